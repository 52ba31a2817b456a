//! Networks that were in Neutron before their objects, or are not ours at all.

use kupenstack_api::resources::Network;
use serde_json::json;

use crate::{
    common::look::{eventually, id, shown},
    network::{delete, named, put},
    world,
};

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_network_of_the_name_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    put(tenant.world, "own-foreign", &tenant.project().await, json!({"name": "clash", "mtu": 1200}));
    put(tenant.world, "shared-foreign", "elsewhere", json!({"name": "clash", "mtu": 1200, "shared": true}));
    tenant.create::<Network>("clash", json!({})).await;
    let ours = id(&tenant.ready::<Network>("clash").await);
    assert!(!["own-foreign", "shared-foreign"].contains(&ours.as_str()), "made beside them");
    delete(&tenant, "clash").await;
    let left: Vec<_> = named(tenant.world, "clash").into_iter().map(|network| (network.id, network.revision)).collect();
    assert_eq!(left, [("own-foreign".to_owned(), 1), ("shared-foreign".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_by_id_and_by_name_and_leaves_what_is_not_declared() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    for (adoption, object, network) in [("id", "by-id", "net-by-id"), ("name", "by-name", "net-by-name")] {
        let before = json!({"name": network, "description": "theirs", "admin_state_up": false, "mtu": 1200});
        put(tenant.world, network, &project, before);
        tenant.create::<Network>(object, json!({"adopt": {adoption: network}, "mtu": 1300})).await;
        assert_eq!(id(&tenant.ready::<Network>(object).await), network);
        let [stored] = named(tenant.world, network).try_into().unwrap();
        assert_eq!((stored.text("description"), &stored.body["mtu"]), ("theirs", &json!(1300)));
        assert!(!stored.is("admin_state_up"));
        delete(&tenant, object).await;
        assert_eq!(named(tenant.world, network).len(), 1, "what was adopted is retained");
    }
}

/// Each would set right without end what the other declares.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_belongs_to_one_object() {
    let tenant = world::shared().await.tenant().await;
    put(tenant.world, "net-of-one", &tenant.project().await, json!({"name": "net-of-one", "mtu": 1200}));
    let declared = |mtu| json!({"adopt": {"id": "net-of-one"}, "mtu": mtu, "deletionPolicy": "Delete"});
    tenant.create::<Network>("second", declared(1300)).await;
    tenant.ready::<Network>("second").await;
    tenant.create::<Network>("first", declared(1400)).await;
    let why = tenant.says::<Network>("first", "AlreadyAdopted").await;
    assert!(why.ends_with("network net-of-one belongs to Network second"), "{why}");
    let mtu =
        || named(tenant.world, "net-of-one").iter().map(|network| network.body["mtu"].clone()).collect::<Vec<_>>();
    assert_eq!(mtu(), [json!(1300)]);

    delete(&tenant, "first").await;
    assert_eq!(mtu(), [json!(1300)], "it was never its own");
    tenant.create::<Network>("third", declared(1500)).await;
    tenant.says::<Network>("third", "AlreadyAdopted").await;
    delete(&tenant, "second").await;
    assert!(named(tenant.world, "net-of-one").is_empty(), "its owner has had it deleted");
    tenant.says::<Network>("third", "NothingToAdopt").await;
}

/// Neither knows of the other when it looks.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_adopt_at_the_same_time_one_has_it() {
    let tenant = world::shared().await.tenant().await;
    put(tenant.world, "net-of-two", &tenant.project().await, json!({"name": "net-of-two"}));
    let spec = json!({"adopt": {"id": "net-of-two"}});
    tokio::join!(tenant.create::<Network>("this", spec.clone()), tenant.create::<Network>("that", spec));
    eventually("one of them waits", async || {
        let all =
            [tenant.api::<Network>().get("this").await.unwrap(), tenant.api::<Network>().get("that").await.unwrap()];
        let mut words = all.each_ref().map(|network| shown(network).0);
        words.sort_unstable();
        words == ["AlreadyAdopted", "Ready"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_has_made_is_not_taken_from_it() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("maker", json!({})).await;
    let made = id(&tenant.ready::<Network>("maker").await);
    tenant.create::<Network>("adopter", json!({"adopt": {"id": made}, "deletionPolicy": "Delete"})).await;
    tenant.says::<Network>("adopter", "AlreadyAdopted").await;
    delete(&tenant, "adopter").await;
    assert_eq!(id(&tenant.ready::<Network>("maker").await), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_adopted_is_deleted_where_that_is_asked_for() {
    let tenant = world::shared().await.tenant().await;
    put(tenant.world, "net-to-go", &tenant.project().await, json!({"name": "net-to-go"}));
    tenant.create::<Network>("to-go", json!({"adopt": {"name": "net-to-go"}, "deletionPolicy": "Delete"})).await;
    tenant.ready::<Network>("to-go").await;
    delete(&tenant, "to-go").await;
    assert!(named(tenant.world, "net-to-go").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_until_exactly_one_of_the_projects_own_fits() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    put(tenant.world, "not-ours", "elsewhere", json!({"name": "wanted", "shared": true}));
    tenant.create::<Network>("picky", json!({"adopt": {"name": "wanted"}})).await;
    tenant.says::<Network>("picky", "NothingToAdopt").await;
    put(tenant.world, "wanted-1", &project, json!({"name": "twofold"}));
    put(tenant.world, "wanted-2", &project, json!({"name": "twofold"}));
    tenant.create::<Network>("torn", json!({"adopt": {"name": "twofold"}})).await;
    let message = tenant.says::<Network>("torn", "AmbiguousAdoption").await;
    assert!(message.contains("2 of the project's Neutron networks fit"), "{message}");
    put(tenant.world, "wanted-3", &project, json!({"name": "wanted"}));
    assert_eq!(id(&tenant.ready::<Network>("picky").await), "wanted-3");
    delete(&tenant, "torn").await;
    assert_eq!(named(tenant.world, "twofold").len(), 2);
}
