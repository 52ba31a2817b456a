//! Server groups, and the hosts that they leave to servers.

use kupenstack_openstack::{ErrorKind, NewServer, ServerGroup};
use kupenstack_testkit::sim::{self, SimOptions};
use rstest::rstest;

use super::{Shop, new_server, shop, shop_in};

/// One with two hosts.
async fn wide_shop() -> Shop {
    let hosts = vec!["node1".to_owned(), "node2".to_owned()];
    shop_in(SimOptions { standing_clock: true, hosts, ..SimOptions::default() }).await
}

impl Shop {
    async fn group(&self, policy: &str) -> ServerGroup {
        self.client.compute().create_server_group("web", policy).await.unwrap()
    }

    /// A new server in a group, with its host.
    async fn host_in(&self, group: &ServerGroup) -> (String, Option<String>) {
        let id = self.make(&NewServer { group_id: Some(group.id.clone()), ..new_server("web") }).await;
        self.look(&id).await;
        let host = self.sim.cloud().nova.server(&id).unwrap().host.clone();
        (id, host)
    }
}

#[tokio::test]
async fn a_group_lives_and_dies() {
    let shop = shop().await;
    let compute = shop.client.compute();
    let group = shop.group("anti-affinity").await;
    assert_eq!((group.name.as_str(), group.policy.as_str()), ("web", "anti-affinity"));
    assert_eq!((group.project_id.as_str(), group.members.len()), ("project-shop", 0));
    let (server, _) = shop.host_in(&group).await;
    let listed = compute.list_server_groups().await.unwrap();
    assert_eq!(listed, [ServerGroup { members: vec![server.clone()], ..group.clone() }]);
    assert!(shop.admin.compute().list_server_groups().await.unwrap().is_empty(), "it is not the administrator's");
    assert_eq!(shop.admin.compute().survey_server_groups().await.unwrap(), listed);
    compute.delete_server(&server).await.unwrap();
    assert!(shop.client.compute().get_server(&server).await.unwrap().is_none());
    assert_eq!(
        compute.list_server_groups().await.unwrap(),
        std::slice::from_ref(&group),
        "a server that is gone is no member"
    );
    assert!(compute.delete_server_group(&group.id).await.unwrap());
    assert!(!compute.delete_server_group(&group.id).await.unwrap());
    let error =
        compute.create_server(&NewServer { group_id: Some(group.id.clone()), ..new_server("web") }).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.to_string().ends_with(&format!("Instance group {} could not be found.", group.id)), "{error}");
}

#[tokio::test]
async fn servers_of_a_group_are_on_hosts_of_their_own() {
    let shop = wide_shop().await;
    let group = shop.group("anti-affinity").await;
    let (first, second) = (shop.host_in(&group).await.1, shop.host_in(&group).await.1);
    assert_eq!((first.as_deref(), second.as_deref()), (Some("node1"), Some("node2")));
    let (third, host) = shop.host_in(&group).await;
    let failed = shop.look(&third).await;
    assert_eq!((failed.status.as_str(), host), ("ERROR", None));
    assert_eq!(failed.fault.unwrap().message, "No valid host was found. There are not enough hosts available.");
    shop.sim.cloud().nova.set_hosts(&["node1", "node2", "node3"]);
    assert_eq!(shop.host_in(&group).await.1.as_deref(), Some("node3"));
    assert_eq!(shop.host_in(&shop.group("anti-affinity").await).await.1.as_deref(), Some("node1"), "of another group");
}

#[tokio::test]
async fn servers_of_a_soft_group_share_hosts_at_last() {
    let shop = wide_shop().await;
    let group = shop.group("soft-anti-affinity").await;
    let mut hosts = Vec::new();
    for _ in 0..4 {
        hosts.push(shop.host_in(&group).await.1.unwrap());
    }
    assert_eq!(hosts, ["node1", "node2", "node1", "node2"]);
}

#[rstest]
#[case("server_groups", "Quota exceeded, too many server groups.")]
#[case("server_group_members", "Quota exceeded, too many servers in group")]
#[tokio::test]
async fn a_quota_of_groups_is_kept(#[case] resource: &str, #[case] words: &str) {
    let shop = wide_shop().await;
    shop.sim.cloud().quotas.set("project-shop", resource, 1);
    let group = shop.group("anti-affinity").await;
    shop.host_in(&group).await;
    let error = if resource == "server_groups" {
        shop.client.compute().create_server_group("more", "anti-affinity").await.unwrap_err()
    } else {
        let more = NewServer { group_id: Some(group.id.clone()), ..new_server("more") };
        shop.client.compute().create_server(&more).await.unwrap_err()
    };
    assert_eq!((error.kind(), error.status()), (ErrorKind::Quota, Some(403)));
    assert!(error.to_string().ends_with(words), "{error}");
}

#[tokio::test]
async fn a_group_of_others_is_not_seen() {
    let shop = shop().await;
    let now = shop.sim.clock().now();
    shop.sim.cloud().nova.put_server_group(now, sim::ServerGroup::new("theirs", "web", "anti-affinity", "project-x"));
    assert!(shop.client.compute().list_server_groups().await.unwrap().is_empty());
    assert!(!shop.client.compute().delete_server_group("theirs").await.unwrap());
    assert!(shop.sim.cloud().nova.server_group("theirs").is_some());
}

#[rstest]
#[case("", "anti-affinity", "field/attribute name")]
#[case("web ", "anti-affinity", "field/attribute name")]
#[case("web", "apart", "field/attribute policy")]
#[tokio::test]
async fn a_group_that_can_not_be_is_refused(#[case] name: &str, #[case] policy: &str, #[case] words: &str) {
    let error = shop().await.client.compute().create_server_group(name, policy).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.to_string().contains(words), "{error}");
}
