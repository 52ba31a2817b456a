//! A release made by one major version of Helm is the other's release too.

use rstest::rstest;

use super::*;

/// One release, seen by two Helms.
struct Pair {
    maker: World,
    taker: Cli,
}

impl Pair {
    async fn new(prefix: &str, maker: &str, taker: &str) -> Option<Self> {
        let maker = World::new(prefix, maker).await?;
        let taker = helm(taker, Some(maker.plane.kubeconfig_path())).await?;
        Some(Self { maker, taker })
    }

    /// The other way round.
    fn swap(&mut self) {
        std::mem::swap(&mut self.maker.helm, &mut self.taker);
    }

    /// What each says about the release is the same.
    async fn agree(&self) -> kupenstack_helm::Status {
        let release = &self.maker.release;
        let status = self.maker.helm.status(release).await.unwrap();
        assert_eq!(self.taker.status(release).await.unwrap(), status);
        let history = self.maker.helm.history(release).await.unwrap();
        assert_eq!(self.taker.history(release).await.unwrap(), history);
        assert!(history.len() as u64 == u64::from(status.revision), "each revision is there: {history:?}");
        let values = self.maker.helm.get_values(release).await.unwrap();
        assert_eq!(self.taker.get_values(release).await.unwrap().as_json(), values.as_json());
        status
    }
}

#[rstest]
#[case("helm3", "helm")]
#[case("helm", "helm3")]
#[tokio::test]
async fn a_release_changes_hands_there_and_back(#[case] maker: &str, #[case] taker: &str) {
    let Some(mut pair) = Pair::new("hands", maker, taker).await else { return };
    pair.maker.upgrade("one", "aaa").await.unwrap();
    pair.maker.upgrade("two", "bbb").await.unwrap();
    assert_eq!(pair.agree().await.hash.unwrap().as_str(), "bbb");
    let secret = pair.maker.api::<Secret>().await.get("one").await.unwrap();

    pair.swap();
    let upgraded = pair.maker.upgrade("three", "ccc").await.unwrap();
    assert_eq!((upgraded.revision, upgraded.state), (3, ReleaseState::Deployed));
    assert_eq!(pair.maker.greeting().await, "three");
    assert_eq!(pair.agree().await, upgraded);
    let untouched = pair.maker.api::<Secret>().await.get("one").await.unwrap();
    assert_eq!(untouched.metadata.uid, secret.metadata.uid, "nothing is made anew");
    assert_eq!(untouched.data, secret.data);

    pair.maker.helm.rollback(&pair.maker.release, 1).await.unwrap();
    assert_eq!(pair.maker.greeting().await, "one");
    assert_eq!(pair.agree().await.hash.unwrap().as_str(), "aaa", "the hash goes back with the content");

    pair.swap();
    pair.maker.helm.rollback(&pair.maker.release, 3).await.unwrap();
    assert_eq!(pair.maker.greeting().await, "three");
    let status = pair.maker.upgrade("four", "ddd").await.unwrap();
    assert_eq!((status.revision, pair.maker.greeting().await.as_str()), (6, "four"));

    pair.swap();
    pair.maker.helm.uninstall(&pair.maker.release).await.unwrap();
    assert_eq!(pair.taker.history(&pair.maker.release).await.unwrap(), []);
    assert!(pair.maker.api::<ConfigMap>().await.get_opt("one").await.unwrap().is_none());
}

#[rstest]
#[case("helm3", "helm")]
#[case("helm", "helm3")]
#[tokio::test]
async fn what_one_was_killed_in_the_other_recognises_and_goes_on_from(#[case] maker: &str, #[case] taker: &str) {
    let Some(mut pair) = Pair::new("takeover", maker, taker).await else { return };
    pair.maker.upgrade("one", "aaa").await.unwrap();
    pair.maker.upgrade_and_kill("two", "bbb").await;
    let status = pair.agree().await;
    assert_eq!((status.revision, status.state), (2, ReleaseState::PendingUpgrade));

    pair.swap();
    assert!(matches!(pair.maker.upgrade("two", "bbb").await, Err(Error::PendingOperation { .. })));
    pair.maker.helm.rollback(&pair.maker.release, 1).await.unwrap();
    assert_eq!(pair.maker.greeting().await, "one");
    pair.maker.upgrade("three", "ccc").await.unwrap();
    assert_eq!(pair.maker.greeting().await, "three");
}

#[rstest]
#[case("helm3", "helm")]
#[case("helm", "helm3")]
#[tokio::test]
async fn a_field_that_the_chart_gives_up_goes_whoever_set_it(#[case] maker: &str, #[case] taker: &str) {
    let Some(mut pair) = Pair::new("given-up", maker, taker).await else { return };
    let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {kept: a, dropped: b}\n";
    pair.maker.chart.write("templates/extra.yaml", extra);
    pair.maker.upgrade("one", "aaa").await.unwrap();

    pair.swap();
    pair.maker.chart.write("templates/extra.yaml", &extra.replace(", dropped: b", ""));
    pair.maker.upgrade("one", "bbb").await.unwrap();
    let maps = pair.maker.api::<ConfigMap>().await;
    assert_eq!(maps.get("extra").await.unwrap().data.unwrap().into_keys().collect::<Vec<_>>(), ["kept"]);

    pair.swap();
    pair.maker.chart.write("templates/extra.yaml", "");
    pair.maker.upgrade("one", "ccc").await.unwrap();
    assert!(maps.get_opt("extra").await.unwrap().is_none());
}
