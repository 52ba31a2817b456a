//! What is special about each kind of object.

use serde_json::{Map, Value, json};

/// A kind of object that is made, read, changed and deleted like the others.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name in paths and lists.
    pub(super) collection: &'static str,
    /// Its name in bodies and words.
    pub(super) member: &'static str,
    /// What a body must have.
    pub(super) required: &'static [&'static str],
    /// What lists can be filtered by.
    pub(super) filters: &'static [&'static str],
    /// Whether lists of it come in pages.
    pub(super) has_pages: bool,
    /// The longest name.
    pub(super) longest_name: usize,
    pub(super) names: Names,
    /// The attributes that are not extra ones. A change of a kind that has them listed shows the extra ones twice.
    pub(super) columns: &'static [&'static str],
    /// What an object has beside what is asked for.
    pub(super) defaults: fn() -> Value,
}

/// Where a name can be there only once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// It need not be unique.
    Free,
    /// In the cloud.
    Unique,
    /// In its domain.
    UniqueInDomain,
}

pub(super) static DOMAINS: Kind = Kind {
    collection: "domains",
    member: "domain",
    required: &["name"],
    filters: &["name", "enabled"],
    has_pages: false,
    longest_name: 64,
    names: Names::Unique,
    columns: &[],
    defaults: || json!({"description": "", "enabled": true, "options": {}, "tags": []}),
};

pub(super) static PROJECTS: Kind = Kind {
    collection: "projects",
    member: "project",
    required: &["name"],
    filters: &["name", "domain_id", "enabled", "parent_id", "is_domain"],
    has_pages: true,
    longest_name: 64,
    names: Names::UniqueInDomain,
    columns: &["id", "name", "domain_id", "description", "enabled", "parent_id", "is_domain", "tags", "options"],
    defaults: || json!({"description": "", "enabled": true, "is_domain": false, "options": {}, "tags": []}),
};

pub(super) static USERS: Kind = Kind {
    collection: "users",
    member: "user",
    required: &["name"],
    filters: &["name", "domain_id", "enabled"],
    has_pages: true,
    longest_name: 255,
    names: Names::UniqueInDomain,
    columns: &["id", "name", "domain_id", "enabled", "default_project_id", "password_expires_at", "options"],
    defaults: || json!({"enabled": true, "options": {}, "password_expires_at": null}),
};

pub(super) static ROLES: Kind = Kind {
    collection: "roles",
    member: "role",
    required: &["name"],
    filters: &["name", "domain_id"],
    has_pages: false,
    longest_name: 255,
    names: Names::Unique,
    columns: &[],
    defaults: || json!({"description": null, "domain_id": null, "options": {}}),
};

pub(super) static SERVICES: Kind = Kind {
    collection: "services",
    member: "service",
    required: &["type"],
    filters: &["name", "type"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"enabled": true, "name": ""}),
};

pub(super) static ENDPOINTS: Kind = Kind {
    collection: "endpoints",
    member: "endpoint",
    required: &["interface", "service_id", "url"],
    filters: &["interface", "service_id", "region_id"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"enabled": true, "region_id": null}),
};

pub(super) static REGIONS: Kind = Kind {
    collection: "regions",
    member: "region",
    required: &[],
    filters: &["parent_region_id"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"description": "", "parent_region_id": null}),
};

pub(super) static REGISTERED_LIMITS: Kind = Kind {
    collection: "registered_limits",
    member: "registered_limit",
    required: &["service_id", "resource_name", "default_limit"],
    filters: &["service_id", "region_id", "resource_name"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"description": null, "region_id": null}),
};

pub(super) static LIMITS: Kind = Kind {
    collection: "limits",
    member: "limit",
    required: &["service_id", "resource_name", "resource_limit"],
    filters: &["service_id", "region_id", "resource_name", "project_id", "domain_id"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"description": null, "region_id": null, "project_id": null, "domain_id": null}),
};

/// Application credentials have routes of their own, below their user.
pub(super) static CREDENTIALS: Kind = Kind {
    collection: "application_credentials",
    member: "application_credential",
    required: &["name"],
    filters: &["name"],
    has_pages: false,
    longest_name: 255,
    names: Names::Free,
    columns: &[],
    defaults: || json!({"description": null, "expires_at": null, "system": null, "unrestricted": null}),
};

impl Kind {
    /// A new object's attributes: what was asked for, over what it has anyway.
    pub(super) fn complete(&self, id: &str, asked: Map<String, Value>) -> Map<String, Value> {
        let mut body = match (self.defaults)() {
            Value::Object(defaults) => defaults,
            _ => Map::new(),
        };
        // Keystone spells the names of unknown attributes as its database could.
        body.extend(asked.into_iter().map(|(key, value)| (key.replace(['-', ':'], "_"), value)));
        body.insert("id".to_owned(), json!(id));
        if self.names == Names::UniqueInDomain {
            let domain = body.entry("domain_id").or_insert_with(|| json!("default")).clone();
            if self.collection == "projects" {
                body.entry("parent_id").or_insert(domain);
            }
        }
        if self.collection == "endpoints" {
            let region = body.get("region_id").cloned().unwrap_or_default();
            body.insert("region".to_owned(), region);
        }
        body
    }
}
