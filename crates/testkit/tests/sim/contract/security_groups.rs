//! The calls to Neutron about security groups and their rules, and what is refused along the way.

use super::{
    calls::{Call, NIL, Who},
    neutron::neutron,
};

/// What a change shows in a group.
const CHANGING: [&str; 4] = [
    "/security_group/revision_number",
    "/security_group/name",
    "/security_group/description",
    "/security_group/stateful",
];

/// What Neutron makes of a rule.
const PARTS: [&str; 9] = [
    "/security_group_rule/direction",
    "/security_group_rule/ethertype",
    "/security_group_rule/protocol",
    "/security_group_rule/port_range_min",
    "/security_group_rule/port_range_max",
    "/security_group_rule/remote_ip_prefix",
    "/security_group_rule/remote_group_id",
    "/security_group_rule/description",
    "/security_group_rule/revision_number",
];

fn create(name: &'static str, group: &str) -> Call {
    neutron(name, Who::Member, "POST /v2.0/security-groups").body(&format!(r#"{{"security_group": {group}}}"#))
}

fn change(name: &'static str, id: &str, changes: &str) -> Call {
    let body = format!(r#"{{"security_group": {changes}}}"#);
    neutron(name, Who::Member, &format!("PUT /v2.0/security-groups/{id}")).body(&body)
}

/// A rule of a group, with these parts.
fn rule(name: &'static str, group: &str, parts: &str) -> Call {
    let body = format!(r#"{{"security_group_rule": {{"security_group_id": "{group}", {parts}}}}}"#);
    neutron(name, Who::Member, "POST /v2.0/security-group-rules").body(&body).tells(&PARTS)
}

/// A rule of the group for what comes in.
fn ingress(name: &'static str, parts: &str) -> Call {
    rule(name, "{group}", &format!(r#""direction": "ingress", {parts}"#))
}

pub(super) fn groups() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let tells = |call: Call| call.tells(&CHANGING);
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/security-groups?{query}"));
    vec![
        neutron("groups without a token", Nobody, "GET /v2.0/security-groups"),
        list("the default group", Member, "name=default").keep("default_group", "/security_groups/0/id"),
        list("the default group of another project", Admin, "name=default&project_id={admin_project}")
            .keep("foreign_group", "/security_groups/0/id"),
        // by any such name
        list("groups of no project", Admin, "project_id={run}-nil")
            .keep("nobodys_group", "/security_groups/0/id")
            .tells(&["/security_groups/0/name", "/security_groups/0/project_id"]),
        list("groups of another project", Member, "project_id={admin_project}"),
        tells(create("create a group", r#"{"name": "{run}", "description": "d {run}"}"#))
            .keep("group", "/security_group/id"),
        tells(create("a group without a state", r#"{"name": "{run}", "stateful": false}"#))
            .keep("second_group", "/security_group/id"),
        tells(create("a group of which nothing is said", "{}")).keep("plain_group", "/security_group/id"),
        create("a group called as the default one", r#"{"name": "default"}"#),
        create("a group of a name that is too long", &format!(r#"{{"name": "{}"}}"#, "x".repeat(256))),
        create("a group of a name that is no text", r#"{"name": 1}"#),
        create("a group of no name at all", r#"{"name": null}"#),
        create("a group of a state in words", r#"{"name": "{run}", "stateful": "nil"}"#),
        create("a group of a given id", r#"{"name": "{run}", "id": "{image}"}"#),
        create("a group of an unknown attribute", r#"{"name": "{run}", "nil": 1}"#),
        create("a group for another project", r#"{"name": "{run}", "project_id": "{admin_project}"}"#),
        neutron("a group without a body", Member, "POST /v2.0/security-groups").body(r#"{"name": "{run}"}"#),
        tells(neutron("group", Member, "GET /v2.0/security-groups/{group}")),
        neutron("some fields of a group", Member, "GET /v2.0/security-groups/{group}?fields=id&fields=name"),
        neutron("no such group", Member, &format!("GET /v2.0/security-groups/{NIL}")),
        neutron("foreign group", Member, "GET /v2.0/security-groups/{foreign_group}"),
        list(
            "groups by name and project",
            Admin,
            "name={run}&project_id={project}&limit=1000&sort_key=id&sort_dir=asc",
        ),
        list("groups by a name that is none", Member, "name={run}-nil"),
        list("a full page of groups", Member, "name={run}&name=default&sort_key=name&sort_dir=desc&limit=1")
            .tells(&["/security_groups/0/name"]),
        list(
            "the page of groups after the last",
            Member,
            "sort_key=name&sort_dir=asc&name=default&limit=1&marker={default_group}",
        ),
        list("a marker that is no group", Member, &format!("name=default&limit=1&marker={NIL}")),
    ]
}

pub(super) fn rules() -> Vec<Call> {
    use Who::{Admin, Member};
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/security-group-rules?{query}"));
    let tcp = r#""protocol": "tcp", "port_range_min": 443, "port_range_max": 443"#;
    vec![
        ingress("create a rule", &format!(r#"{tcp}, "remote_ip_prefix": "10.0.0.0/8", "description": "d {{run}}""#))
            .keep("rule", "/security_group_rule/id"),
        ingress("a rule for all", r#""ethertype": "IPv4""#),
        rule("a rule of nothing but a direction", "{second_group}", r#""direction": "ingress""#),
        ingress(
            "a rule by the number of a protocol",
            r#""protocol": "17", "port_range_min": 53, "port_range_max": 53"#,
        ),
        ingress("a rule by a number that is one", r#""protocol": 132"#),
        ingress("a rule by a protocol in capitals", r#""protocol": "TCP", "port_range_min": 80, "port_range_max": 80"#),
        ingress("a rule for any protocol", r#""protocol": "any", "remote_ip_prefix": "10.1.0.0/16""#),
        ingress("a rule for ports in words", r#""protocol": "tcp", "port_range_min": "81", "port_range_max": "82""#),
        ingress("a rule for pings", r#""protocol": "icmp", "port_range_min": 8, "port_range_max": 0"#),
        ingress("a rule for a type of ICMP", r#""protocol": "icmp", "port_range_min": 3"#),
        ingress("a rule for ICMP of IPv6", r#""ethertype": "IPv6", "protocol": "icmpv6""#),
        ingress(
            "a rule for ICMP by the name of IPv4",
            r#""ethertype": "IPv6", "protocol": "icmp", "port_range_min": 128"#,
        ),
        ingress("a rule for ICMP by its number", r#""ethertype": "IPv6", "protocol": "1""#),
        ingress(
            "a rule for ICMP of IPv6 by its number",
            r#""ethertype": "IPv6", "protocol": "58", "port_range_min": 1"#,
        ),
        ingress("a rule for protocol 0", r#""protocol": "0""#),
        ingress("a rule for all ports", r#""protocol": "dccp", "port_range_min": 1, "port_range_max": 65535"#),
        ingress("a rule for an address", r#""protocol": "tcp", "remote_ip_prefix": "10.0.0.7""#),
        ingress("a rule for an address in a network", r#""protocol": "tcp", "remote_ip_prefix": "10.2.0.7/24""#),
        ingress("a rule for all of IPv4", r#""protocol": "udp", "remote_ip_prefix": "0.0.0.0/0""#),
        ingress(
            "a rule for a long address",
            r#""protocol": "tcp", "ethertype": "IPv6", "remote_ip_prefix": "2001:DB8:0:0::7/64""#,
        ),
        ingress("a rule for a word of another case", r#""protocol": "sctp", "ethertype": "ipv6""#),
        ingress("a rule for a group", r#""protocol": "tcp", "remote_group_id": "{second_group}""#)
            .keep("rule_for_group", "/security_group_rule/id"),
        ingress("a rule for no description", r#""protocol": "gre", "description": null"#),
        ingress("a rule for a protocol without ports", r#""protocol": "vrrp""#),
        ingress("a rule for ports of SCTP", r#""protocol": "sctp", "port_range_min": 5, "port_range_max": 6"#),
        neutron("rule", Member, "GET /v2.0/security-group-rules/{rule}").tells(&PARTS),
        neutron("no such rule", Member, &format!("GET /v2.0/security-group-rules/{NIL}")),
        list("rules of a group", Member, "security_group_id={group}&protocol=tcp"),
        list("rules of the project", Admin, "project_id={project}&limit=1000&sort_key=id&sort_dir=asc"),
        list("a rule by its description", Member, "description=d+{run}").tells(&["/security_group_rules/0/protocol"]),
        list("rules of no group", Member, &format!("security_group_id={NIL}")),
        neutron("a group with rules", Member, "GET /v2.0/security-groups/{group}").tells(&CHANGING),
    ]
}

pub(super) fn refusals() -> Vec<Call> {
    use Who::Member;
    let post = |name, body: &str| neutron(name, Member, "POST /v2.0/security-group-rules").body(body);
    let ports = |name, parts: &str| ingress(name, &format!(r#""protocol": "tcp", {parts}"#));
    vec![
        ingress(
            "the rule again",
            r#""protocol": "tcp", "port_range_min": 443, "port_range_max": 443, "remote_ip_prefix": "10.0.0.0/8""#,
        ),
        ingress(
            "the rule by its number",
            r#""protocol": "6", "port_range_min": 443, "port_range_max": 443, "remote_ip_prefix": "10.0.0.0/8""#,
        ),
        ingress("the rule for all ports without any", r#""protocol": "33""#),
        ingress("the rule for all with all addresses", r#""remote_ip_prefix": "0.0.0.0/0""#),
        rule("what every group lets out", "{group}", r#""direction": "egress""#),
        rule("a rule of no group", NIL, r#""direction": "ingress""#),
        rule("a rule of a foreign group", "{foreign_group}", r#""direction": "ingress""#),
        rule("a rule of what is no id", "nil", r#""direction": "ingress""#),
        rule("a rule of no direction", "{group}", r#""protocol": "tcp""#),
        rule("a rule of another direction", "{group}", r#""direction": "nil""#),
        post("a rule without a body", r#"{"direction": "ingress"}"#),
        post("a rule without a group", r#"{"security_group_rule": {"direction": "ingress"}}"#),
        ingress("a rule for another family", r#""ethertype": "nil""#),
        ingress("a rule for another protocol", r#""protocol": "nil""#),
        ingress("a rule for a protocol beyond", r#""protocol": "256""#),
        ingress("a rule for ports of nothing", r#""port_range_min": 1, "port_range_max": 2"#),
        ingress("a rule for ports of GRE", r#""protocol": "esp", "port_range_min": 1, "port_range_max": 2"#),
        ports("a rule for a port beyond", r#""port_range_min": 1, "port_range_max": 65536"#),
        ports("a rule for port 0", r#""port_range_min": 0, "port_range_max": 0"#),
        ports("a rule for ports that end before", r#""port_range_min": 2, "port_range_max": 1"#),
        ports("a rule for ports without an end", r#""port_range_min": 2"#),
        ports("a rule for ports without a beginning", r#""port_range_max": 2"#),
        ingress("a rule for a type of ICMP beyond", r#""protocol": "icmp", "port_range_min": 256"#),
        ingress(
            "a rule for a code of ICMP beyond",
            r#""protocol": "icmp", "port_range_min": 8, "port_range_max": 256"#,
        ),
        ingress("a rule for a code without a type", r#""protocol": "icmp", "port_range_max": 0"#),
        ingress("a rule for IPv6 in IPv4", r#""ethertype": "IPv4", "remote_ip_prefix": "::/0""#),
        ingress("a rule for IPv4 in IPv6", r#""ethertype": "IPv6", "remote_ip_prefix": "10.0.0.0/8""#),
        ingress("a rule for ICMP of IPv6 in IPv4", r#""ethertype": "IPv4", "protocol": "ipv6-icmp""#),
        ingress("a rule for what is no address", r#""remote_ip_prefix": "nil""#),
        ingress("a rule for no group", &format!(r#""protocol": "tcp", "remote_group_id": "{NIL}""#)),
        ingress(
            "a rule for a group and addresses",
            r#""remote_group_id": "{group}", "remote_ip_prefix": "10.0.0.0/8""#,
        ),
        ingress("a rule of an unknown attribute", r#""nil": 1"#),
        ingress("a rule of a given id", r#""id": "{image}""#),
        ingress("a rule for another project", r#""project_id": "{admin_project}""#),
    ]
}

pub(super) fn changes() -> Vec<Call> {
    use Who::Member;
    let own = |name, changes: &str| change(name, "{group}", changes).tells(&CHANGING);
    let of_rule = |name, changes: &str| {
        let body = format!(r#"{{"security_group_rule": {changes}}}"#);
        neutron(name, Member, "PUT /v2.0/security-group-rules/{rule}").body(&body).tells(&PARTS)
    };
    vec![
        change("change a plain group", "{plain_group}", r#"{"name": "{run}-2"}"#)
            .header("if-match", "revision_number=1")
            .tells(&CHANGING),
        own("change a group", r#"{"description": "e"}"#),
        own("change a group to what it is", r#"{"description": "e"}"#),
        own("change nothing in a group", "{}"),
        own("change an earlier group", r#"{"description": "f"}"#).header("if-match", "revision_number=1"),
        own("a group loses its state", r#"{"stateful": false}"#),
        own("a group is called as the default one", r#"{"name": "default"}"#),
        own("a group gets an unknown attribute", r#"{"nil": 1}"#),
        own("a group is given away", r#"{"project_id": "{admin_project}"}"#),
        change("the default group gets a name", "{default_group}", r#"{"name": "{run}"}"#),
        change("the default group gets a description", "{default_group}", r#"{"description": "f"}"#).tells(&CHANGING),
        change("change no group", NIL, r#"{"description": "f"}"#),
        change("change a foreign group", "{foreign_group}", r#"{"description": "f"}"#),
        of_rule("describe a rule", r#"{"description": "e"}"#),
        of_rule("change a rule", r#"{"protocol": "udp"}"#),
        neutron("rule after that", Member, "GET /v2.0/security-group-rules/{rule}").tells(&PARTS),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    use Who::{Admin, Member};
    vec![
        neutron("delete a rule", Member, "DELETE /v2.0/security-group-rules/{rule}"),
        neutron("delete no rule", Member, "DELETE /v2.0/security-group-rules/{rule}"),
        neutron("a group after that", Member, "GET /v2.0/security-groups/{group}").tells(&CHANGING),
        neutron("delete an earlier group", Member, "DELETE /v2.0/security-groups/{group}")
            .header("if-match", "revision_number=1"),
        neutron("delete a group that a rule names", Member, "DELETE /v2.0/security-groups/{second_group}"),
        neutron("the rule that named it", Member, "GET /v2.0/security-group-rules/{rule_for_group}"),
        neutron("delete a group", Member, "DELETE /v2.0/security-groups/{group}"),
        neutron("delete no group", Member, "DELETE /v2.0/security-groups/{group}"),
        neutron("delete the plain group", Member, "DELETE /v2.0/security-groups/{plain_group}"),
        neutron("delete a foreign group", Member, "DELETE /v2.0/security-groups/{foreign_group}"),
        neutron("delete the default group as a member", Member, "DELETE /v2.0/security-groups/{default_group}"),
        neutron("delete nobody's group", Admin, "DELETE /v2.0/security-groups/{nobodys_group}"),
        neutron("delete the default group", Admin, "DELETE /v2.0/security-groups/{default_group}"),
    ]
}
