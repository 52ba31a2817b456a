//! The calls to Neutron about routers and floating IPs, with an external network that an administrator makes for them.

use super::{
    calls::{Call, NIL, Who},
    neutron::neutron,
};

/// What Neutron makes of a router.
const MADE: [&str; 8] = [
    "/router/revision_number",
    "/router/status",
    "/router/admin_state_up",
    "/router/name",
    "/router/description",
    "/router/external_gateway_info/network_id",
    "/router/external_gateway_info/enable_snat",
    "/router/routes",
];

/// What Neutron makes of a floating IP.
const FLOATING: [&str; 5] = [
    "/floatingip/revision_number",
    "/floatingip/status",
    "/floatingip/description",
    "/floatingip/fixed_ip_address",
    "/floatingip/port_id",
];

fn create(name: &'static str, router: &str) -> Call {
    neutron(name, Who::Member, "POST /v2.0/routers").body(&format!(r#"{{"router": {router}}}"#)).tells(&MADE)
}

fn change(name: &'static str, id: &str, changes: &str) -> Call {
    let body = format!(r#"{{"router": {changes}}}"#);
    neutron(name, Who::Member, &format!("PUT /v2.0/routers/{id}")).body(&body).tells(&MADE)
}

fn interface(name: &'static str, action: &str, body: &str) -> Call {
    neutron(name, Who::Member, &format!("PUT /v2.0/routers/{{router}}/{action}_router_interface")).body(body)
}

fn floating(name: &'static str, parts: &str) -> Call {
    let body = format!(r#"{{"floatingip": {parts}}}"#);
    neutron(name, Who::Member, "POST /v2.0/floatingips").body(&body).tells(&FLOATING)
}

pub(super) fn routers() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/routers?{query}"));
    vec![
        neutron("an external network", Admin, "POST /v2.0/networks")
            .body(r#"{"network": {"name": "{run}-out", "router:external": true}}"#)
            .keep("external", "/network/id"),
        neutron("a subnet of an external network", Admin, "POST /v2.0/subnets")
            .body(r#"{"subnet": {"network_id": "{external}", "ip_version": 4, "cidr": "203.0.113.0/24", "enable_dhcp": false}}"#)
            .keep("external_subnet", "/subnet/id"),
        neutron("routers without a token", Nobody, "GET /v2.0/routers"),
        create("create a router", r#"{"name": "{run}", "description": "d {run}"}"#).keep("router", "/router/id"),
        create("a router of which nothing is said", "{}").keep("plain_router", "/router/id"),
        create("a router with a way out", r#"{"name": "{run}-2", "external_gateway_info": {"network_id": "{external}"}}"#)
            .keep("second_router", "/router/id"),
        create("a router out through no network", &format!(r#"{{"external_gateway_info": {{"network_id": "{NIL}"}}}}"#)),
        create("a router out through an inner network", r#"{"external_gateway_info": {"network_id": "{network}"}}"#),
        create("a router out through nothing", r#"{"external_gateway_info": {}}"#).keep("odd_router", "/router/id"),
        create("a router of an unknown attribute", r#"{"nil": 1}"#),
        create("a router without SNAT", r#"{"external_gateway_info": {"network_id": "{external}", "enable_snat": false}}"#),
        neutron("router", Member, "GET /v2.0/routers/{router}").tells(&MADE),
        neutron("router by an administrator", Admin, "GET /v2.0/routers/{second_router}").tells(&MADE),
        neutron("no such router", Member, &format!("GET /v2.0/routers/{NIL}")),
        list("routers by name and project", Admin, "name={run}&project_id={project}&limit=1000&sort_key=id&sort_dir=asc"),
        list("a marker that is no router", Member, &format!("name={{run}}&limit=1&marker={NIL}")),
        interface("add an interface", "add", r#"{"subnet_id": "{second_subnet}"}"#).keep("interface_port", "/port_id"),
        interface("add the interface again", "add", r#"{"subnet_id": "{second_subnet}"}"#),
        interface("add an interface to a subnet without a gateway", "add", r#"{"subnet_id": "{third_subnet}"}"#),
        interface("add an interface by a port", "add", r#"{"port_id": "{port}"}"#),
        interface("add an interface to no subnet", "add", &format!(r#"{{"subnet_id": "{NIL}"}}"#)),
        interface("add an interface to no port", "add", &format!(r#"{{"port_id": "{NIL}"}}"#)),
        interface("add an interface to nothing", "add", "{}"),
        interface("add an interface to two things", "add", r#"{"subnet_id": "{subnet}", "port_id": "{plain_port}"}"#),
        neutron("a port of a router's own", Member, "GET /v2.0/ports/{interface_port}")
            .tells(&["/port/device_owner", "/port/device_id", "/port/fixed_ips/0/ip_address"]),
        neutron("delete a port of a router's own", Member, "DELETE /v2.0/ports/{interface_port}"),
        neutron("ports of a router", Member, "GET /v2.0/ports?device_id={router}").tells(&["/ports/0/id", "/ports/1/id"]),
        neutron("delete a router with an interface", Member, "DELETE /v2.0/routers/{router}"),
        neutron("a router with an interface", Member, "GET /v2.0/routers/{router}").tells(&MADE),
        change("change a router", "{router}", r#"{"description": "e"}"#),
        change("change a router to what it is", "{router}", r#"{"description": "e"}"#),
        change("change an earlier router", "{router}", r#"{"description": "f"}"#).header("if-match", "revision_number=1"),
        change("a router gets a way out", "{router}", r#"{"external_gateway_info": {"network_id": "{external}"}}"#),
        change("a router gets routes", "{router}", r#"{"routes": [{"destination": "10.98.0.0/16", "nexthop": "10.92.0.4"}]}"#),
        change("a router gets a route to where it is not", "{router}", r#"{"routes": [{"destination": "10.98.0.0/16", "nexthop": "10.99.0.4"}]}"#),
        change("a router loses its routes", "{router}", r#"{"routes": []}"#),
        change("a router goes down", "{router}", r#"{"admin_state_up": false}"#),
        change("change no router", NIL, r#"{"description": "f"}"#),
    ]
}

pub(super) fn floating_ips() -> Vec<Call> {
    use Who::{Admin, Member};
    let change = |name, id: &str, changes: &str| {
        let body = format!(r#"{{"floatingip": {changes}}}"#);
        neutron(name, Member, &format!("PUT /v2.0/floatingips/{id}")).body(&body)
    };
    vec![
        floating("create a floating IP", r#"{"floating_network_id": "{external}", "description": "d {run}", "floating_ip_address": "203.0.113.77"}"#),
        neutron("a floating IP of a given address", Admin, "POST /v2.0/floatingips")
            .body(r#"{"floatingip": {"floating_network_id": "{external}", "floating_ip_address": "203.0.113.78", "project_id": "{project}", "description": "d {run}"}}"#)
            .tells(&FLOATING)
            .keep("floating", "/floatingip/id"),
        floating("a floating IP for a port", r#"{"floating_network_id": "{external}", "port_id": "{second_port}"}"#)
            .keep("second_floating", "/floatingip/id"),
        floating("a floating IP for a port that no router leads to", r#"{"floating_network_id": "{external}", "port_id": "{plain_port}"}"#),
        floating("a floating IP for no port", &format!(r#"{{"floating_network_id": "{{external}}", "port_id": "{NIL}"}}"#)),
        floating("a floating IP of no network", &format!(r#"{{"floating_network_id": "{NIL}"}}"#)),
        floating("a floating IP of an inner network", r#"{"floating_network_id": "{network}"}"#),
        floating("a floating IP of nothing", "{}"),
        neutron("floating IP", Member, "GET /v2.0/floatingips/{floating}").tells(&FLOATING),
        neutron("no such floating IP", Member, &format!("GET /v2.0/floatingips/{NIL}")),
        neutron("floating IPs by address", Member, "GET /v2.0/floatingips?floating_ip_address=203.0.113.78")
            .tells(&["/floatingips/0/description"]),
        neutron("floating IPs of a port", Member, "GET /v2.0/floatingips?port_id={second_port}"),
        change("describe a floating IP", "{floating}", r#"{"description": "e"}"#).tells(&FLOATING),
        change("a floating IP goes to a port", "{floating}", r#"{"port_id": "{fourth_port}"}"#).tells(&FLOATING),
        change("a floating IP goes to a port that has one", "{floating}", r#"{"port_id": "{second_port}"}"#).tells(&FLOATING),
        change("a floating IP goes to nothing", "{floating}", r#"{"port_id": null}"#).tells(&FLOATING),
        change("change no floating IP", NIL, r#"{"description": "e"}"#),
        neutron("remove an interface that floating IPs need", Member, "PUT /v2.0/routers/{router}/remove_router_interface")
            .body(r#"{"subnet_id": "{second_subnet}"}"#),
        neutron("a router loses a way out that floating IPs need", Member, "PUT /v2.0/routers/{router}")
            .body(r#"{"router": {"external_gateway_info": null}}"#),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    use Who::{Admin, Member};
    vec![
        neutron("delete a floating IP", Member, "DELETE /v2.0/floatingips/{floating}"),
        neutron("delete no floating IP", Member, "DELETE /v2.0/floatingips/{floating}"),
        // what no port has would be deleted by the attempt
        neutron("delete an external network in use", Admin, "DELETE /v2.0/networks/{external}"),
        neutron("delete the second floating IP", Member, "DELETE /v2.0/floatingips/{second_floating}"),
        interface("remove an interface", "remove", r#"{"subnet_id": "{second_subnet}"}"#),
        interface("remove no interface", "remove", r#"{"subnet_id": "{second_subnet}"}"#),
        neutron("delete a router", Member, "DELETE /v2.0/routers/{router}"),
        neutron("delete no router", Member, "DELETE /v2.0/routers/{router}"),
        neutron("delete the plain router", Member, "DELETE /v2.0/routers/{plain_router}"),
        neutron("delete the odd router", Member, "DELETE /v2.0/routers/{odd_router}"),
        neutron("delete the second router", Member, "DELETE /v2.0/routers/{second_router}"),
        neutron("delete the external network", Admin, "DELETE /v2.0/networks/{external}"),
    ]
}
