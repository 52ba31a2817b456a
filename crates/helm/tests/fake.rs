//! The fake keeps Helm's rules, as far as callers build on them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use kupenstack_helm::{
    Capabilities, ChartRef, Error, Fake, Helm, Operation, ReleaseRef, ReleaseState, Status, UpgradeOptions, Values,
};
use serde_json::json;

fn release() -> ReleaseRef {
    ReleaseRef::new("n", "one")
}

async fn upgrade(fake: &Fake, hash: &str) -> Result<Status, Error> {
    let chart = ChartRef::Path("/charts/one".into());
    let values = Values::new(json!({"hash": hash}));
    fake.upgrade_install(&release(), &chart, &values, &UpgradeOptions::new(hash.parse().unwrap())).await
}

async fn states(fake: &Fake) -> Vec<ReleaseState> {
    fake.history(&release()).await.unwrap().into_iter().map(|revision| revision.state).collect()
}

fn timed_out(command: &'static str) -> Error {
    Error::Timeout { command, limit: std::time::Duration::ZERO }
}

fn failed() -> Error {
    Error::Failed { command: "upgrade", exit: Some(1), message: "no".to_owned() }
}

#[tokio::test]
async fn keeps_releases_and_their_histories() {
    let fake = Fake::new();
    upgrade(&fake, "a").await.unwrap();
    let second = upgrade(&fake, "b").await.unwrap();
    assert_eq!(fake.status(&release()).await.unwrap(), second);
    fake.rollback(&release(), 1).await.unwrap();
    assert_eq!(states(&fake).await, [ReleaseState::Superseded, ReleaseState::Superseded, ReleaseState::Deployed]);
    assert_eq!(fake.get_values(&release()).await.unwrap().as_json()["hash"], "a");
    fake.uninstall(&release()).await.unwrap();
    assert!(matches!(fake.status(&release()).await, Err(Error::ReleaseNotFound { .. })));
}

#[tokio::test]
async fn writes_calls_down() {
    let fake = Fake::rendering(|release, _, values| vec![json!({"name": release.name, "values": values.as_json()})]);
    let values = Values::new(json!({"a": 1}));
    let chart = ChartRef::Path("/charts/one".into());
    let rendered = fake.template(&release(), &chart, &values, &Capabilities::default()).await.unwrap();
    assert_eq!(rendered.objects, [json!({"name": "one", "values": {"a": 1}})]);
    upgrade(&fake, "abc").await.unwrap();
    let calls = fake.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].operation, calls[0].values.as_ref()), (Operation::Template, Some(&values)));
    assert_eq!(calls[1].hash.as_ref().unwrap().as_str(), "abc");
    assert_eq!(fake.count(Operation::UpgradeInstall), 1);
}

#[tokio::test]
async fn fails_when_told_to_and_leaves_what_helm_would_leave() {
    let fake = Fake::new();
    fake.fail_next(Operation::UpgradeInstall, timed_out("upgrade"));
    assert!(matches!(upgrade(&fake, "a").await, Err(Error::Timeout { .. })));
    assert_eq!(states(&fake).await, [ReleaseState::PendingInstall]);
    assert!(matches!(upgrade(&fake, "a").await, Err(Error::PendingOperation { .. })));

    fake.delete_record(&release(), 1);
    upgrade(&fake, "a").await.unwrap();
    fake.fail_next(Operation::UpgradeInstall, failed());
    upgrade(&fake, "b").await.unwrap_err();
    assert_eq!(states(&fake).await, [ReleaseState::Deployed, ReleaseState::Failed]);

    fake.fail_next(Operation::Rollback, timed_out("rollback"));
    fake.rollback(&release(), 1).await.unwrap_err();
    assert_eq!(fake.status(&release()).await.unwrap().state, ReleaseState::PendingRollback);
}

#[tokio::test]
async fn a_killed_upgrade_can_be_rolled_back() {
    let fake = Fake::new();
    upgrade(&fake, "a").await.unwrap();
    upgrade(&fake, "b").await.unwrap();
    fake.set_state(&release(), ReleaseState::PendingUpgrade);
    fake.rollback(&release(), 1).await.unwrap();
    let status = fake.status(&release()).await.unwrap();
    assert_eq!((status.revision, status.hash.unwrap().as_str()), (3, "a"));
}
