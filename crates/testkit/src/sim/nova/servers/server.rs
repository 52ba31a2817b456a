//! What a server is, and how Nova shows it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha224};

use super::{Detail, PLACED};
use crate::sim::{
    neutron::Neutron,
    nova::{Flavor, speaks},
    service::{Call, Caller, Version},
    table::Row,
};

/// Nova's own states, of which it shows a status.
pub(super) const BUILDING: &str = "building";
pub(super) const ACTIVE: &str = "active";
pub(super) const STOPPED: &str = "stopped";
pub(super) const SUSPENDED: &str = "suspended";
pub(super) const PAUSED: &str = "paused";
pub(super) const RESIZED: &str = "resized";
pub(super) const ERROR: &str = "error";
pub(super) const DELETED: &str = "deleted";

/// What is being done with a server.
pub(super) const SPAWNING: &str = "spawning";
pub(super) const DELETING: &str = "deleting";
pub(super) const REBOOTING: &str = "rebooting";
pub(super) const REBOOTING_HARD: &str = "rebooting_hard";
pub(super) const RESIZING: &str = "resize_prep";
pub(super) const REVERTING: &str = "resize_reverting";

/// The oldest microversions that show something.
const WITH_EC2: Version = (2, 3);
const WITH_LOCK: Version = (2, 9);
const WITH_HOST_STATUS: Version = (2, 16);
pub(super) const WITH_DESCRIPTION: Version = (2, 19);
const WITH_TAGS: Version = (2, 26);
const WITH_WHOLE_FLAVOR: Version = (2, 47);
const WITH_CERTIFICATES: Version = (2, 63);
const WITH_GROUPS: Version = (2, 71);
const WITH_LOCKED_REASON: Version = (2, 73);

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name, not unique.
    pub name: String,
    /// A text for people.
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// Who has made it.
    pub user_id: String,
    /// Its state as Nova keeps it: `building`, `active`, `stopped`, `suspended`, `paused`, `resized`, `error`.
    pub vm_state: &'static str,
    /// What is being done with it.
    pub task_state: Option<&'static str>,
    /// Where it is.
    pub host: Option<String>,
    /// What it has of its host.
    pub flavor: Flavor,
    /// The flavor and the state that it goes back to, as long as nobody has confirmed its resize.
    pub former: Option<(Flavor, &'static str)>,
    /// The host that it goes back to then.
    pub former_host: Option<String>,
    /// What it was made of.
    pub image_id: String,
    /// Name of its user's key pair.
    pub key_name: Option<String>,
    /// What it was told, as it was sent.
    pub user_data: Option<String>,
    /// Keys and values.
    pub metadata: BTreeMap<String, String>,
    /// What went wrong last.
    pub fault: Option<ServerFault>,
    /// What it has written to its console.
    pub console: String,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When something of it changed.
    pub updated_at: Timestamp,
    /// When it first ran where it is.
    pub launched_at: Option<Timestamp>,
}

/// What went wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFault {
    /// 500, if the cloud is to blame.
    pub code: u16,
    /// What is said of it.
    pub message: String,
    /// When.
    pub created_at: Timestamp,
}

impl Row for Server {
    fn id(&self) -> &str {
        &self.id
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let placed = self.host.is_some().then(|| (PLACED, String::new()));
        [("project", self.project_id.clone())].into_iter().chain(placed).collect()
    }
}

impl Server {
    /// A server that runs nowhere yet.
    pub fn new(id: &str, name: &str, project_id: &str, flavor: Flavor, now: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            description: None,
            project_id: project_id.to_owned(),
            user_id: String::new(),
            vm_state: BUILDING,
            task_state: None,
            host: None,
            flavor,
            former: None,
            former_host: None,
            image_id: String::new(),
            key_name: None,
            user_data: None,
            metadata: BTreeMap::new(),
            fault: None,
            console: String::new(),
            created_at: now,
            updated_at: now,
            launched_at: None,
        }
    }

    /// Its status, as everybody sees it.
    pub fn status(&self) -> &'static str {
        match (self.vm_state, self.task_state) {
            (BUILDING, _) => "BUILD",
            (ACTIVE, Some(REBOOTING)) => "REBOOT",
            (ACTIVE, Some(REBOOTING_HARD)) => "HARD_REBOOT",
            (ACTIVE | STOPPED, Some(RESIZING)) => "RESIZE",
            (ACTIVE, _) => "ACTIVE",
            (STOPPED, _) => "SHUTOFF",
            (SUSPENDED, _) => "SUSPENDED",
            (PAUSED, _) => "PAUSED",
            (RESIZED, Some(REVERTING)) => "REVERT_RESIZE",
            (RESIZED, _) => "VERIFY_RESIZE",
            (ERROR, _) => "ERROR",
            (DELETED, _) => "DELETED",
            _ => "UNKNOWN",
        }
    }

    pub(super) fn launch(&mut self, now: Timestamp) {
        self.vm_state = ACTIVE;
        self.launched_at = Some(now);
        self.console = format!("{} is up\n\n{} login: ", self.name, self.name);
    }

    pub(super) fn fail(&mut self, now: Timestamp, message: &str) {
        self.vm_state = ERROR;
        self.task_state = None;
        self.fault = Some(ServerFault { code: 500, message: message.to_owned(), created_at: now });
    }

    pub(super) fn is_visible_to(&self, caller: &Caller) -> bool {
        caller.is_admin() || self.project_id == caller.project()
    }

    pub(super) fn links(&self, call: &Call<'_>) -> Value {
        let of_server = format!("servers/{}", self.id);
        json!([
            {"rel": "self", "href": format!("{}/compute/v2.1/{of_server}", call.base)},
            {"rel": "bookmark", "href": format!("{}/compute/{of_server}", call.base)},
        ])
    }

    pub(super) fn shown(&self, call: &Call<'_>, neutron: &Neutron, detail: Detail) -> Value {
        if detail == Detail::Brief {
            return json!({"id": self.id, "name": self.name, "links": self.links(call)});
        }
        let is_whole = detail == Detail::Whole;
        let mut shown = json!({
            "id": self.id, "name": self.name, "links": self.links(call), "status": self.status(),
            "tenant_id": self.project_id, "user_id": self.user_id, "metadata": self.metadata,
            "hostId": self.host_id(), "image": self.image(call), "flavor": self.flavor(call),
            "created": stamp(self.created_at), "updated": stamp(self.updated_at), "accessIPv4": "", "accessIPv6": "",
            "addresses": neutron.addresses_of_server(&self.id, is_whole), "OS-DCF:diskConfig": "MANUAL",
        });
        if ["ACTIVE", "BUILD", "RESIZE", "VERIFY_RESIZE"].contains(&self.status()) {
            shown["progress"] = json!(0);
        }
        if let Some(fault) = self.fault.as_ref().filter(|_| self.vm_state == ERROR) {
            let ServerFault { code, message, created_at } = fault;
            shown["fault"] = json!({"code": code, "message": message, "created": stamp(*created_at)});
        }
        self.show_newer(call, &mut shown);
        if is_whole {
            self.show_more(call, neutron, &mut shown);
        }
        shown
    }

    /// What microversions have added.
    fn show_newer(&self, call: &Call<'_>, shown: &mut Value) {
        for (version, key, value) in [
            (WITH_LOCK, "locked", json!(false)),
            (WITH_DESCRIPTION, "description", json!(self.description)),
            (WITH_TAGS, "tags", json!([])),
            (WITH_CERTIFICATES, "trusted_image_certificates", Value::Null),
            (WITH_LOCKED_REASON, "locked_reason", Value::Null),
        ] {
            if speaks(call, version) {
                shown[key] = value;
            }
        }
    }

    /// What a change is not answered with.
    fn show_more(&self, call: &Call<'_>, neutron: &Neutron, shown: &mut Value) {
        let is_on = [ACTIVE, RESIZED].contains(&self.vm_state) && self.former.as_ref().is_none_or(|it| it.1 == ACTIVE);
        let power = match self.vm_state {
            _ if is_on => 1,
            PAUSED => 3,
            STOPPED | SUSPENDED | RESIZED => 4,
            _ => 0,
        };
        shown["OS-EXT-AZ:availability_zone"] = json!(if self.host.is_some() { "nova" } else { "" });
        shown["config_drive"] = json!("");
        shown["key_name"] = json!(self.key_name);
        let terminated_at = (self.vm_state == DELETED).then_some(self.updated_at);
        shown["OS-SRV-USG:launched_at"] = json!(self.launched_at.map(usage_stamp));
        shown["OS-SRV-USG:terminated_at"] = json!(terminated_at.map(usage_stamp));
        shown["OS-EXT-STS:task_state"] = json!(self.task_state);
        shown["OS-EXT-STS:vm_state"] = json!(self.vm_state);
        shown["OS-EXT-STS:power_state"] = json!(power);
        shown["os-extended-volumes:volumes_attached"] = json!([]);
        let groups: Vec<Value> =
            neutron.groups_of_server(&self.id).into_iter().map(|name| json!({"name": name})).collect();
        if !groups.is_empty() {
            shown["security_groups"] = json!(groups);
        }
        if call.caller.is_admin() {
            self.show_to_admin(call, shown);
        }
        if speaks(call, WITH_GROUPS) && call.template.ends_with("{server_id}") {
            shown["server_groups"] = json!([]);
        }
    }

    fn show_to_admin(&self, call: &Call<'_>, shown: &mut Value) {
        let short = self.id.get(..8).unwrap_or(&self.id);
        shown["OS-EXT-SRV-ATTR:host"] = json!(self.host);
        shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] = json!(self.host);
        shown["OS-EXT-SRV-ATTR:instance_name"] = json!(format!("instance-{short}"));
        if speaks(call, WITH_EC2) {
            shown["OS-EXT-SRV-ATTR:hostname"] = json!(self.name.to_lowercase().replace(['.', '_', ' '], "-"));
            shown["OS-EXT-SRV-ATTR:reservation_id"] = json!(format!("r-{short}"));
            shown["OS-EXT-SRV-ATTR:launch_index"] = json!(0);
            shown["OS-EXT-SRV-ATTR:kernel_id"] = json!("");
            shown["OS-EXT-SRV-ATTR:ramdisk_id"] = json!("");
            shown["OS-EXT-SRV-ATTR:root_device_name"] = json!(self.host.as_ref().map(|_| "/dev/vda"));
            shown["OS-EXT-SRV-ATTR:user_data"] = json!(self.user_data);
        }
        if speaks(call, WITH_HOST_STATUS) {
            shown["host_status"] = json!(if self.host.is_some() { "UP" } else { "" });
        }
    }

    /// What tells whoever may not know the host whether two servers share it.
    fn host_id(&self) -> String {
        let Some(host) = &self.host else { return String::new() };
        let digest = Sha224::digest(format!("{}{host}", self.project_id));
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    }

    fn image(&self, call: &Call<'_>) -> Value {
        let href = format!("{}/compute/images/{}", call.base, self.image_id);
        json!({"id": self.image_id, "links": [{"rel": "bookmark", "href": href}]})
    }

    fn flavor(&self, call: &Call<'_>) -> Value {
        let Flavor { id, name, vcpus, ram, disk, ephemeral, swap, extra_specs, .. } = &self.flavor;
        if !speaks(call, WITH_WHOLE_FLAVOR) {
            let href = format!("{}/compute/flavors/{id}", call.base);
            return json!({"id": id, "links": [{"rel": "bookmark", "href": href}]});
        }
        json!({
            "original_name": name, "vcpus": vcpus, "ram": ram, "disk": disk, "ephemeral": ephemeral, "swap": swap,
            "extra_specs": extra_specs,
        })
    }
}

/// Nova writes no fractions of seconds.
fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// But of usage, and without a zone.
fn usage_stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string()
}
