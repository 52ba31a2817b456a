//! Security groups. Every project has one called `default` from when it first needs one.

use serde_json::{Value, json};

use super::{
    Item, Neutron,
    item::attributes,
    kinds::{GROUPS, RULES, SECURITY_GROUP},
    rules::OF_DEFAULT,
};
use crate::sim::{http::Refusal, service::Call};

/// The name that one group of each project has.
const DEFAULT: &str = "default";

impl Neutron {
    /// Makes a project's default group, if it has none yet.
    pub(super) fn ensure_default_group(&mut self, call: &mut Call<'_>, project: &str) {
        if project.is_empty() || self.default_group(project).is_some() {
            return;
        }
        let mut group = Item::new(&GROUPS, call.ids.uuid().to_string(), project, call.now);
        group.body.extend(attributes(json!({"name": DEFAULT, "description": "Default security group"})));
        self.put(&GROUPS, call.now, group.clone());
        self.add_egress(call, &group);
        for ethertype in ["IPv4", "IPv6"] {
            let rule = json!({"direction": "ingress", "ethertype": ethertype, "remote_group_id": group.id});
            self.add_rule(call, &group, rule);
        }
    }

    /// Makes that of the project that is asked about, or else of the caller's own.
    pub(super) fn ensure_listed_default_group(&mut self, call: &mut Call<'_>) {
        let asked = ["project_id", "tenant_id"].into_iter().find_map(|key| call.request.query(key));
        let project = asked.unwrap_or(call.caller.project()).to_owned();
        self.ensure_default_group(call, &project);
    }

    /// What every new group lets out.
    pub(super) fn add_egress(&mut self, call: &mut Call<'_>, group: &Item) {
        for ethertype in ["IPv4", "IPv6"] {
            self.add_rule(call, group, json!({"direction": "egress", "ethertype": ethertype}));
        }
    }

    fn add_rule(&mut self, call: &mut Call<'_>, group: &Item, rule: Value) {
        let mut item = Item::new(&RULES, call.ids.uuid().to_string(), &group.project_id, call.now);
        item.body.extend(attributes(rule));
        // nobody has said anything about it
        let of_default = group.text("name") == DEFAULT;
        item.body.extend(attributes(json!({SECURITY_GROUP: group.id, OF_DEFAULT: of_default, "description": null})));
        self.put(&RULES, call.now, item);
    }

    pub(super) fn default_group(&self, project: &str) -> Option<&Item> {
        let groups = self.table(&GROUPS).by("project_id", project);
        groups.map(|group| &**group).find(|group| group.text("name") == DEFAULT)
    }

    /// The name of a group is any but the one that is given by Neutron itself, whose group keeps it.
    pub(super) fn check_group(&self, _: &Call<'_>, item: &Item) -> Result<(), Refusal> {
        let before = self.get(GROUPS.collection, &item.id);
        if before.is_some_and(|group| group.text("name") == DEFAULT) && item.text("name") != DEFAULT {
            let words = "Updating default security group not allowed.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupCannotUpdateDefault"));
        }
        if item.text("name") == DEFAULT && self.default_group(&item.project_id).is_some_and(|group| group.id != item.id)
        {
            let words = "Default security group already exists.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupDefaultAlreadyExists"));
        }
        Ok(())
    }

    /// The default group only an administrator deletes.
    pub(super) fn check_end_of_group(call: &Call<'_>, group: &Item) -> Result<(), Refusal> {
        if group.text("name") == DEFAULT && !call.caller.is_admin() {
            let words = "Insufficient rights for removing default security group.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupCannotRemoveDefault"));
        }
        Ok(())
    }
}
