//! The calls to Neutron about subnets of the network that the calls about networks made, and what is refused along the way.

use super::{
    calls::{Call, NIL, Who},
    neutron::{CHANGING, neutron},
};

/// What Neutron makes of a subnet.
const MADE: [&str; 8] = [
    "/subnet/revision_number",
    "/subnet/cidr",
    "/subnet/gateway_ip",
    "/subnet/allocation_pools",
    "/subnet/enable_dhcp",
    "/subnet/dns_nameservers",
    "/subnet/host_routes",
    "/subnet/description",
];

/// A subnet of the network, with these parts.
fn create(name: &'static str, parts: &str) -> Call {
    of(name, "{network}", parts)
}

fn of(name: &'static str, network: &str, parts: &str) -> Call {
    let body = format!(r#"{{"subnet": {{"network_id": "{network}", {parts}}}}}"#);
    neutron(name, Who::Member, "POST /v2.0/subnets").body(&body).tells(&MADE)
}

fn change(name: &'static str, id: &str, changes: &str) -> Call {
    let body = format!(r#"{{"subnet": {changes}}}"#);
    neutron(name, Who::Member, &format!("PUT /v2.0/subnets/{id}")).body(&body).tells(&MADE)
}

pub(super) fn subnets() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/subnets?{query}"));
    let network = |name| neutron(name, Member, "GET /v2.0/networks/{network}").tells(&CHANGING);
    vec![
        neutron("subnets without a token", Nobody, "GET /v2.0/subnets"),
        create("create a subnet", r#""name": "{run}", "ip_version": 4, "cidr": "10.91.0.7/24""#).keep("subnet", "/subnet/id"),
        network("a network with a subnet"),
        create(
            "a subnet with everything said",
            r#""name": "{run}-2", "ip_version": 4, "cidr": "10.92.0.0/24", "gateway_ip": "10.92.0.9", "enable_dhcp": false,
                "allocation_pools": [{"start": "10.92.0.20", "end": "10.92.0.30"}],
                "dns_nameservers": ["10.92.0.3", "10.92.0.2"], "host_routes": [{"destination": "10.93.0.0/16", "nexthop": "10.92.0.4"}],
                "description": "d {run}""#,
        )
        .keep("second_subnet", "/subnet/id"),
        create("a subnet without a gateway", r#""ip_version": 4, "cidr": "10.94.0.0/29", "gateway_ip": null"#)
            .keep("third_subnet", "/subnet/id"),
        create(
            "a subnet of IPv6",
            r#""ip_version": 6, "cidr": "2001:DB8:0:0::/64", "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac""#,
        )
        .keep("fourth_subnet", "/subnet/id"),
        neutron("subnet", Member, "GET /v2.0/subnets/{subnet}").tells(&MADE),
        neutron("no such subnet", Member, &format!("GET /v2.0/subnets/{NIL}")),
        list("subnets by name and project", Admin, "name={run}&project_id={project}&limit=1000&sort_key=id&sort_dir=asc")
            .tells(&["/subnets/0/name", "/subnets/1/name"]),
        list("subnets of a network", Member, "network_id={network}&name={run}-2"),
        list("subnets by their range", Member, "cidr=10.91.0.0/24&network_id={network}"),
        list("subnets by what is no range", Member, "cidr=nil"),
        list("a marker that is no subnet", Member, &format!("name={{run}}&limit=1&marker={NIL}")),
    ]
}

pub(super) fn refusals() -> Vec<Call> {
    let v4 = |name, parts: &str| create(name, &format!(r#""ip_version": 4, {parts}"#));
    vec![
        v4("a subnet of a range that is taken", r#""cidr": "10.91.0.128/25""#),
        v4("a subnet of no range", r#""name": "{run}""#),
        v4("a subnet of what is no range", r#""cidr": "nil""#),
        v4("a subnet of a range of IPv6", r#""cidr": "2001:db8:1::/64""#),
        v4("a subnet of everything", r#""cidr": "0.0.0.0/0""#),
        v4("a subnet of one address", r#""cidr": "10.95.0.1/32""#),
        v4("a subnet of a gateway that is none", r#""cidr": "10.95.0.0/24", "gateway_ip": "nil""#),
        v4("a subnet whose gateway is its range", r#""cidr": "10.95.0.0/24", "gateway_ip": "10.95.0.0""#),
        v4(
            "a subnet whose gateway is in a pool",
            r#""cidr": "10.95.0.0/24", "allocation_pools": [{"start": "10.95.0.1", "end": "10.95.0.9"}]"#,
        ),
        v4(
            "a subnet of a pool elsewhere",
            r#""cidr": "10.95.0.0/24", "allocation_pools": [{"start": "10.96.0.2", "end": "10.96.0.9"}]"#,
        ),
        v4(
            "a subnet of a pool that ends before",
            r#""cidr": "10.95.0.0/24", "allocation_pools": [{"start": "10.95.0.9", "end": "10.95.0.2"}]"#,
        ),
        v4("a subnet of a name server that is none", r#""cidr": "10.95.0.0/24", "dns_nameservers": ["nil"]"#),
        v4("a subnet of DHCP in words", r#""cidr": "10.95.0.0/24", "enable_dhcp": "nil""#),
        v4("a subnet of modes of IPv6", r#""cidr": "10.95.0.0/24", "ipv6_ra_mode": "slaac""#),
        v4("a subnet of an unknown attribute", r#""cidr": "10.95.0.0/24", "nil": 1"#),
        create("a subnet of no version", r#""cidr": "10.95.0.0/24""#),
        create("a subnet of another version", r#""ip_version": 5, "cidr": "10.95.0.0/24""#),
        of("a subnet of no network", NIL, r#""ip_version": 4, "cidr": "10.95.0.0/24""#),
        of("a subnet of a shared network", "{foreign_network}", r#""ip_version": 4, "cidr": "10.95.0.0/24""#),
    ]
}

pub(super) fn changes() -> Vec<Call> {
    use Who::Member;
    let own = |name, changes: &str| change(name, "{subnet}", changes);
    vec![
        own("change a subnet", r#"{"description": "e", "dns_nameservers": ["10.91.0.2"]}"#)
            .header("if-match", "revision_number=0"),
        own("change a subnet to what it is", r#"{"description": "e"}"#),
        own("change an earlier subnet", r#"{"description": "f"}"#).header("if-match", "revision_number=0"),
        own("a subnet gets another range", r#"{"cidr": "10.97.0.0/24"}"#),
        own("a subnet gets another network", r#"{"network_id": "{plain_network}"}"#),
        own("a subnet gets other pools", r#"{"allocation_pools": [{"start": "10.91.0.20", "end": "10.91.0.30"}]}"#),
        own("a subnet gets another gateway", r#"{"gateway_ip": "10.91.0.9"}"#),
        own("a subnet gets a gateway in its pool", r#"{"gateway_ip": "10.91.0.21"}"#),
        own("a subnet loses its gateway", r#"{"gateway_ip": null}"#),
        own("a subnet gets a route", r#"{"host_routes": [{"destination": "10.98.0.0/16", "nexthop": "10.91.0.4"}]}"#),
        own("a subnet loses its routes", r#"{"host_routes": null}"#),
        own("a subnet loses DHCP", r#"{"enable_dhcp": false}"#),
        change("change no subnet", NIL, r#"{"description": "f"}"#),
        neutron("a network whose subnet has changed", Member, "GET /v2.0/networks/{network}").tells(&CHANGING),
    ]
}

/// The others go with their network.
pub(super) fn ends() -> Vec<Call> {
    use Who::Member;
    vec![
        neutron("delete an earlier subnet", Member, "DELETE /v2.0/subnets/{subnet}")
            .header("if-match", "revision_number=0"),
        neutron("delete a subnet", Member, "DELETE /v2.0/subnets/{subnet}"),
        neutron("delete no subnet", Member, "DELETE /v2.0/subnets/{subnet}"),
        neutron("a network that has lost a subnet", Member, "GET /v2.0/networks/{network}").tells(&CHANGING),
    ]
}
