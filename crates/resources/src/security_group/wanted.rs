//! What the security group of an object has to be, as a pure function of the object.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kupenstack_api::resources::{self as api, SecurityGroup};
use kupenstack_openstack::{self as openstack, SecurityGroupAttributes};

use super::rule::{Direction, Rule};
use crate::{
    actuator::Target,
    needs::Needs,
    neutron::{description, differing},
};

/// The group that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    object: &'a SecurityGroup,
    needs: &'a Needs,
    declared: SecurityGroupAttributes,
    is_made: bool,
}

/// What has to be done about a group's rules.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rules {
    pub(super) missing: Vec<Rule>,
    /// Identifiers.
    pub(super) needless: Vec<String>,
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.needless.is_empty()
    }
}

impl<'a> Wanted<'a> {
    pub(super) fn of(target: &'a Target<SecurityGroup>) -> Self {
        Self::declared(&target.object, &target.mark, &target.needs)
    }

    fn declared(object: &'a SecurityGroup, mark: &str, needs: &'a Needs) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let declared = SecurityGroupAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            stateful: spec.stateful,
        };
        Self { object, needs, declared, is_made }
    }

    /// What a new group is to have, but for its rules.
    pub(super) fn attributes(self) -> SecurityGroupAttributes {
        self.declared
    }

    /// What has to be set of a group, but for its rules.
    pub(super) fn changes(self, group: &openstack::SecurityGroup) -> SecurityGroupAttributes {
        // what is declared no more goes back to what a new group has, where Neutron has such a thing at all
        let stateful = self.declared.stateful;
        let stateful = stateful.or(group.stateful.filter(|_| self.is_made).map(|_| true));
        SecurityGroupAttributes {
            name: self.declared.name.filter(|name| *name != group.name),
            description: differing(self.declared.description, group.description.as_ref()),
            stateful: differing(stateful, group.stateful.as_ref()),
        }
    }

    /// What has to be done about the rules of a group.
    pub(super) fn rules(&self, group: &openstack::SecurityGroup) -> Rules {
        let mut rules = Rules::default();
        for direction in Direction::ALL {
            let Some(mut wanted) = self.rules_of(direction, &group.id) else { continue };
            let of_direction = |rule: &&openstack::SecurityGroupRule| direction.is_that_of(rule);
            let seen: Vec<_> =
                group.rules.iter().filter(of_direction).map(|rule| (&rule.id, Rule::seen(rule))).collect();
            let is_wanted = |rule: &Option<Rule>| rule.as_ref().is_some_and(|rule| wanted.contains(rule));
            rules.needless.extend(seen.iter().filter(|(_, rule)| !is_wanted(rule)).map(|(id, _)| (*id).clone()));
            for (_, rule) in seen {
                wanted.retain(|other| Some(other) != rule.as_ref());
            }
            rules.missing.extend(wanted);
        }
        rules
    }

    /// The rules for a direction; none if they are not to be touched.
    fn rules_of(&self, direction: Direction, group: &str) -> Option<BTreeSet<Rule>> {
        let spec = &self.object.spec;
        let declared = match direction {
            Direction::Ingress => &spec.ingress,
            Direction::Egress => &spec.egress,
        };
        match (declared, direction) {
            (Some(rules), _) => Some(rules.iter().flat_map(|rule| self.declared_as(direction, rule, group)).collect()),
            (None, _) if !self.is_made => None,
            (None, Direction::Ingress) => Some(BTreeSet::new()),
            (None, Direction::Egress) => Some(Rule::everything(direction).into_iter().collect()),
        }
    }

    /// What a declared rule comes to in a group. Nothing as long as another group that it names does not exist.
    fn declared_as(&self, direction: Direction, rule: &api::SecurityGroupRule, group: &str) -> Vec<Rule> {
        let of_group = match rule.group.as_deref() {
            None => return Rule::declared(direction, rule, None),
            Some(name) if name == self.object.name_any() => Some(group),
            Some(name) => self.needs.id_of::<SecurityGroup>(name),
        };
        of_group.map(|id| Rule::declared(direction, rule, Some(id))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn object(spec: &Value) -> SecurityGroup {
        serde_json::from_value(json!({
            "apiVersion": "kupenstack.io/v1", "kind": "SecurityGroup", "metadata": {"name": "web"}, "spec": spec,
        }))
        .unwrap()
    }

    /// A rule as Neutron shows it, but for some attributes.
    fn rule(id: &str, but: &Value) -> Value {
        let mut rule = json!({"id": id, "security_group_id": "g1", "direction": "ingress", "ethertype": "IPv4",
            "protocol": null, "port_range_min": null, "port_range_max": null, "remote_ip_prefix": null,
            "remote_group_id": null});
        rule.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        rule
    }

    /// A group with what every new one lets out, and more rules.
    fn seen(rules: &[Value]) -> openstack::SecurityGroup {
        let out = ["IPv4", "IPv6"].map(|family| rule(family, &json!({"direction": "egress", "ethertype": family})));
        let rules: Vec<&Value> = out.iter().chain(rules).collect();
        serde_json::from_value(json!({"id": "g1", "name": "web", "description": MARK, "project_id": "p",
            "stateful": true, "revision_number": 3, "security_group_rules": rules}))
        .unwrap()
    }

    /// What is sent of new rules, but for the group, and which rules go.
    fn done(spec: &Value, rules: &[Value]) -> (Vec<Value>, Vec<String>) {
        let Rules { missing, needless } = Wanted::declared(&object(spec), MARK, &Needs::default()).rules(&seen(rules));
        let sent = missing.iter().map(|rule| {
            let mut rule = json!(rule.attributes("g1"));
            assert_eq!(rule.as_object_mut().unwrap().remove("security_group_id"), Some(json!("g1")));
            rule
        });
        (sent.collect(), needless)
    }

    #[test]
    fn a_minimal_one_lets_everything_out_and_nothing_in() {
        assert_eq!(done(&json!({}), &[]), (vec![], vec![]));
        assert_eq!(done(&json!({}), &[rule("r", &json!({}))]), (vec![], vec!["r".to_owned()]));
        assert_eq!(done(&json!({"egress": []}), &[]).1, ["IPv4", "IPv6"]);
    }

    #[rstest]
    #[case::port(json!({"protocol": "TCP", "port": 80, "ipFamily": "IPv4"}),
        json!({"ethertype": "IPv4", "protocol": "tcp", "port_range_min": 80, "port_range_max": 80}))]
    #[case::ports(json!({"protocol": "UDP", "port": 53, "endPort": 60, "ipFamily": "IPv6"}),
        json!({"ethertype": "IPv6", "protocol": "udp", "port_range_min": 53, "port_range_max": 60}))]
    #[case::addresses(json!({"cidr": "10.0.0.0/8"}), json!({"ethertype": "IPv4", "remote_ip_prefix": "10.0.0.0/8"}))]
    #[case::any_address(json!({"cidr": "0.0.0.0/0"}), json!({"ethertype": "IPv4"}))]
    #[case::long_address(json!({"cidr": "2001:DB8:0::/32"}),
        json!({"ethertype": "IPv6", "remote_ip_prefix": "2001:db8::/32"}))]
    #[case::ping(json!({"protocol": "ICMP", "icmpType": 8, "icmpCode": 0, "ipFamily": "IPv4"}),
        json!({"ethertype": "IPv4", "protocol": "icmp", "port_range_min": 8, "port_range_max": 0}))]
    #[case::ping_of_version_6(json!({"protocol": "ICMP", "ipFamily": "IPv6"}),
        json!({"ethertype": "IPv6", "protocol": "ipv6-icmp"}))]
    #[case::number(json!({"protocol": "6", "ipFamily": "IPv4"}), json!({"ethertype": "IPv4", "protocol": "tcp"}))]
    #[case::other_number(json!({"protocol": "47", "ipFamily": "IPv4"}), json!({"ethertype": "IPv4", "protocol": "47"}))]
    #[case::itself(json!({"group": "web", "ipFamily": "IPv4"}), json!({"ethertype": "IPv4", "remote_group_id": "g1"}))]
    fn a_rule_is_said_in_neutrons_words(#[case] declared: Value, #[case] mut sent: Value) {
        sent["direction"] = json!("ingress");
        assert_eq!(done(&json!({"ingress": [declared]}), &[]), (vec![sent.clone()], vec![]));
        // and is recognised when Neutron has it
        assert_eq!(done(&json!({"ingress": [declared]}), &[rule("r", &sent)]), (vec![], vec![]));
    }

    #[test]
    fn a_rule_without_a_family_is_one_of_each_and_what_is_said_twice_is_one() {
        let twice = json!({"ingress": [{"protocol": "TCP", "port": 22}, {"protocol": "6", "port": 22, "endPort": 22}]});
        let families: Vec<_> = done(&twice, &[]).0.iter().map(|rule| rule["ethertype"].clone()).collect();
        assert_eq!(families, ["IPv4", "IPv6"]);
    }

    #[rstest]
    #[case::number(json!({"protocol": "TCP", "ipFamily": "IPv4"}), json!({"protocol": "6"}))]
    #[case::gardener_extension_335(json!({"protocol": "TCP", "port": 1, "endPort": 65535, "ipFamily": "IPv4"}),
        json!({"protocol": "tcp"}))]
    #[case::old_name(json!({"protocol": "ICMP", "ipFamily": "IPv6"}), json!({"ethertype": "IPv6", "protocol": "icmpv6"}))]
    #[case::any(json!({"ipFamily": "IPv4"}), json!({"protocol": "any", "remote_ip_prefix": "0.0.0.0/0"}))]
    #[case::loose_prefix(json!({"cidr": "10.0.0.0/8"}), json!({"remote_ip_prefix": "10.1.2.3/8"}))]
    fn what_others_wrote_in_another_way_is_the_same(#[case] declared: Value, #[case] shown: Value) {
        assert_eq!(done(&json!({"ingress": [declared]}), &[rule("r", &shown)]), (vec![], vec![]));
    }

    #[test]
    fn of_an_adopted_one_only_what_is_declared_is_touched() {
        let theirs = [rule("r", &json!({}))];
        let adopt = json!({"adopt": {"name": "old"}});
        assert_eq!(done(&adopt, &theirs), (vec![], vec![]));
        assert_eq!(
            json!(Wanted::declared(&object(&adopt), MARK, &Needs::default()).changes(&seen(&theirs))),
            json!({})
        );
        let closed = json!({"adopt": {"name": "old"}, "ingress": [], "stateful": false});
        assert_eq!(done(&closed, &theirs), (vec![], vec!["r".to_owned()]));
        assert_eq!(
            json!(Wanted::declared(&object(&closed), MARK, &Needs::default()).changes(&seen(&theirs))),
            json!({"stateful": false})
        );
    }

    #[rstest]
    #[case::text(json!({"description": "t"}), json!({"description": format!("t {MARK}")}))]
    #[case::stateless(json!({"stateful": false}), json!({"stateful": false}))]
    #[case::nothing(json!({}), json!({}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] sent: Value) {
        assert_eq!(json!(Wanted::declared(&object(&spec), MARK, &Needs::default()).changes(&seen(&[]))), sent);
    }
}
