//! Floating IPs that were in Neutron before their objects, or are not ours at all.

use kupenstack_api::resources::FloatingIP;
use serde_json::{Value, json};

use crate::{
    common::look::{self, id},
    floating_ip::{all, only, outside, outside_id},
    world::{self, Tenant},
};

/// Puts a floating IP there, as if somebody had made it.
fn put(tenant: &Tenant<'_>, id: &str, project: &str, address: &str, but: &Value) {
    let mut body = json!({"floating_network_id": outside_id(tenant), "floating_ip_address": address});
    body.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    let now = tenant.world.sim.clock().now();
    tenant.world.sim.cloud().neutron.add(now, "floatingips", id, project, body);
}

/// Also as an administrator may make one of a given address for a project.
#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_by_id_and_by_address_and_leaves_what_is_not_declared() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    let project = tenant.project().await;
    for (adoption, object, address) in
        [("id", "ip-by-id", "203.0.113.51"), ("address", "ip-by-address", "203.0.113.52")]
    {
        let name = format!("{object}-{}", tenant.name);
        put(&tenant, &name, &project, address, &json!({"description": "theirs", "port_id": "of-others"}));
        let meant = if adoption == "id" { name.as_str() } else { address };
        tenant.create::<FloatingIP>(object, json!({"adopt": {adoption: meant}})).await;
        let floating = tenant.ready::<FloatingIP>(object).await;
        assert_eq!((id(&floating), floating.status.unwrap().address.as_deref()), (name, Some(address)));
        let stored = only(&tenant);
        assert_eq!((stored.text("description"), stored.text("port_id")), ("theirs", "of-others"));
        tenant.patch::<FloatingIP>(object, json!({"spec": {"description": "ours", "deletionPolicy": "Delete"}})).await;
        tenant.ready::<FloatingIP>(object).await;
        assert_eq!(only(&tenant).text("description"), "ours");
        look::delete(tenant.api::<FloatingIP>(), object).await;
        assert!(all(&tenant).is_empty(), "it was asked for");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_public_address_is_retained_and_can_be_adopted_again() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    put(&tenant, &format!("public-{}", tenant.name), &tenant.project().await, "203.0.113.53", &json!({}));
    for object in ["ip-today", "ip-tomorrow"] {
        tenant.create::<FloatingIP>(object, json!({"adopt": {"address": "203.0.113.53"}})).await;
        tenant.ready::<FloatingIP>(object).await;
        look::delete(tenant.api::<FloatingIP>(), object).await;
        assert_eq!(only(&tenant).text("floating_ip_address"), "203.0.113.53");
    }
}

/// What another project has is not this one's to take over, whatever its address.
#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_until_one_of_the_projects_own_fits() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    put(&tenant, &format!("theirs-{}", tenant.name), "elsewhere", "203.0.113.54", &json!({}));
    for (object, adoption) in [
        ("ip-by-address", json!({"address": "203.0.113.54"})),
        ("ip-by-id", json!({"id": format!("theirs-{}", tenant.name)})),
    ] {
        tenant.create::<FloatingIP>(object, json!({"adopt": adoption})).await;
        let message = tenant.says::<FloatingIP>(object, "NothingToAdopt").await;
        assert_eq!(message, "spec.adopt: none of the project's Neutron floating IPs fits");
        look::delete(tenant.api::<FloatingIP>(), object).await;
    }
    assert_eq!(only(&tenant).revision, 0);
    tenant.create::<FloatingIP>("patient-ip", json!({"adopt": {"address": "203.0.113.55"}})).await;
    tenant.says::<FloatingIP>("patient-ip", "NothingToAdopt").await;
    put(&tenant, &format!("ours-{}", tenant.name), &tenant.project().await, "203.0.113.55", &json!({}));
    assert_eq!(id(&tenant.ready::<FloatingIP>("patient-ip").await), format!("ours-{}", tenant.name));
}
