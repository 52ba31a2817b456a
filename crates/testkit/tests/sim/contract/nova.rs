//! The calls to Nova: a flavor, a key pair, and what is refused along the way. A cloud without Nova is not asked.

use super::calls::{Call, Who, call};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn nova(name: &'static str, who: Who, request: &str) -> Call {
    call(name, who, "compute", request)
}

/// The same at the microversion that our client asks for.
pub(super) fn new_nova(name: &'static str, who: Who, request: &str) -> Call {
    nova(name, who, request).header("openstack-api-version", "compute 2.61")
}

pub(super) fn flavors() -> Vec<Call> {
    use Who::{Admin, Member, Nobody, Wrong};
    let create = r#"{"flavor": {"id": "{flavor}", "name": "{run}", "vcpus": 1, "ram": 64, "disk": 0, "swap": 0,
        "OS-FLV-EXT-DATA:ephemeral": 0, "os-flavor-access:is_public": false, "description": "d {run}"}}"#;
    let other = |id: &str, name: &str| {
        format!(r#"{{"flavor": {{"id": "{id}", "name": "{name}", "vcpus": 1, "ram": 64, "disk": 0}}}}"#)
    };
    let specs = "/v2.1/flavors/{flavor}/os-extra_specs";
    vec![
        nova("Nova's versions", Nobody, "GET /"),
        new_nova("create a flavor", Admin, "POST /v2.1/flavors").body(create),
        new_nova("create the flavor again", Admin, "POST /v2.1/flavors").body(create),
        new_nova("another flavor of the id", Admin, "POST /v2.1/flavors").body(&other("{flavor}", "{run}-2")),
        new_nova("another flavor of the name", Admin, "POST /v2.1/flavors").body(&other("{flavor}-2", "{run}")),
        nova("flavor at the oldest microversion", Admin, "GET /v2.1/flavors/{flavor}"),
        new_nova("flavor", Admin, "GET /v2.1/flavors/{flavor}"),
        nova("flavor with a number for no swap", Admin, "GET /v2.1/flavors/{flavor}")
            .header("openstack-api-version", "compute 2.75"),
        new_nova("flavor that is not public", Member, "GET /v2.1/flavors/{flavor}"),
        new_nova("flavors in detail", Admin, "GET /v2.1/flavors/detail?is_public=None&limit=1"),
        new_nova("flavors in brief", Admin, "GET /v2.1/flavors?is_public=None&limit=1"),
        new_nova("a marker that is no flavor", Admin, "GET /v2.1/flavors/detail?marker=nil"),
        new_nova("set extra specs", Admin, &format!("POST {specs}")).body(r#"{"extra_specs": {"a": "1", "b:c": "2"}}"#),
        new_nova("extra specs", Admin, &format!("GET {specs}")),
        new_nova("set an extra spec", Admin, &format!("PUT {specs}/a")).body(r#"{"a": "3"}"#),
        new_nova("an extra spec", Admin, &format!("GET {specs}/a")),
        new_nova("remove an extra spec", Admin, &format!("DELETE {specs}/a")),
        new_nova("remove no extra spec", Admin, &format!("DELETE {specs}/a")),
        new_nova("describe a flavor", Admin, "PUT /v2.1/flavors/{flavor}").body(r#"{"flavor": {"description": "e"}}"#),
        new_nova("describe no flavor", Admin, "PUT /v2.1/flavors/nil").body(r#"{"flavor": {"description": "e"}}"#),
        new_nova("no such flavor", Admin, "GET /v2.1/flavors/nil"),
        new_nova("flavor by a member", Member, "POST /v2.1/flavors").body(&other("{flavor}-2", "{run}-2")),
        new_nova("flavors without a token", Nobody, "GET /v2.1/flavors"),
        new_nova("flavors with a wrong token", Wrong, "GET /v2.1/flavors"),
        nova("a microversion that is too new", Admin, "GET /v2.1/flavors/nil")
            .header("openstack-api-version", "compute 2.99999"),
        nova("a microversion that is none", Admin, "GET /v2.1/flavors/nil")
            .header("openstack-api-version", "compute two"),
    ]
}

pub(super) fn key_pairs() -> Vec<Call> {
    use Who::{Admin, Member};
    let create =
        |name: &str, key: &str| format!(r#"{{"keypair": {{"name": "{name}", "type": "ssh", "public_key": "{key}"}}}}"#);
    let of_member = "/v2.1/os-keypairs/{run}?user_id={user}";
    vec![
        new_nova("create a key pair", Member, "POST /v2.1/os-keypairs").body(&create("{run}", KEY)),
        new_nova("create the key pair again", Member, "POST /v2.1/os-keypairs").body(&create("{run}", KEY)),
        new_nova("a key pair without a key", Member, "POST /v2.1/os-keypairs").body(&create("{run}-2", "no key")),
        new_nova("a key pair of another name", Member, "POST /v2.1/os-keypairs").body(&create("a.b", KEY)),
        new_nova("key pair", Member, "GET /v2.1/os-keypairs/{run}"),
        new_nova("key pairs", Member, "GET /v2.1/os-keypairs?limit=1000"),
        new_nova("a full page of key pairs", Member, "GET /v2.1/os-keypairs?limit=1"),
        new_nova("no such key pair", Member, "GET /v2.1/os-keypairs/nil"),
        new_nova("key pair of another", Admin, &format!("GET {of_member}")),
        new_nova("key pairs of another by a member", Member, "GET /v2.1/os-keypairs?user_id={admin_user}"),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    vec![
        new_nova("delete the key pair", Who::Member, "DELETE /v2.1/os-keypairs/{run}"),
        new_nova("delete no key pair", Who::Member, "DELETE /v2.1/os-keypairs/{run}"),
        new_nova("delete the flavor", Who::Admin, "DELETE /v2.1/flavors/{flavor}"),
        new_nova("delete no flavor", Who::Admin, "DELETE /v2.1/flavors/{flavor}"),
    ]
}
