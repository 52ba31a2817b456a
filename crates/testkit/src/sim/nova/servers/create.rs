//! New servers: what is asked for, and what Nova says to it.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Nova, SPAWNING, Server, Step, peers, server::WITH_DESCRIPTION};
use crate::sim::{
    glance::{Glance, Image},
    http::{Answer, Outcome, Refusal},
    neutron::{Item, Neutron},
    nova::{Flavor, flavor::invalid, flavors::is_visible, speaks},
    service::Call,
};

/// The longest name, description, key and value.
pub(super) const LONGEST: usize = 255;
/// The longest user data, encoded.
const LONGEST_USER_DATA: usize = 65_535;
/// As many pairs as Nova allows unless it is told otherwise.
const MOST_METADATA: usize = 128;
const GIB: u64 = 1 << 30;

const KNOWN: [&str; 8] =
    ["name", "flavorRef", "imageRef", "networks", "key_name", "user_data", "metadata", "description"];

impl Nova {
    pub(in crate::sim::nova) fn create_server(&mut self, call: &mut Call<'_>) -> Outcome {
        let peers = peers(call)?;
        let body = call.request.json();
        let asked = asked(call, &body)?;
        let flavor = self.flavor_for_server(call, text(asked, "flavorRef"))?;
        let image = image(call, peers.glance, text(asked, "imageRef"))?;
        let ports = wanted_ports(call, peers.neutron, &asked["networks"])?;
        let key_name = self.key_name(call, asked)?;
        check_image(call, image, &flavor)?;
        let project = call.caller.project();
        let group = self.wanted_group(&body)?;
        self.check_quota(call, project, [1, flavor.vcpus, flavor.ram])?;
        self.check_members(call, group.as_ref())?;
        let (host, lack) = match self.servers.free_host(&self.hosts, &flavor, group.as_ref(), None) {
            Ok(host) => (Some(host), ""),
            Err(lack) => (None, lack),
        };
        let server = Server {
            description: asked.get("description").and_then(Value::as_str).map(str::to_owned),
            user_id: call.caller.user_id.clone(),
            host,
            image_id: image.id.clone(),
            key_name,
            user_data: asked.get("user_data").and_then(Value::as_str).map(str::to_owned),
            metadata: metadata(asked.get("metadata"))?,
            ..Server::new(&call.ids.uuid().to_string(), text(asked, "name"), call.caller.project(), flavor, call.now)
        };
        if let Some(host) = &server.host {
            for port in &ports {
                peers.neutron.connect(call.now, port, &server.id, host);
            }
        }
        let answer = json!({"server": {
            "id": server.id, "links": server.links(call), "OS-DCF:diskConfig": "MANUAL",
            "security_groups": [{"name": "default"}], "adminPass": &call.ids.hex()[..12],
        }});
        self.join(call.now, group, &server.id);
        self.servers.begin(call.now, server, Some(SPAWNING), Step::Build(lack));
        Ok(Answer::json(StatusCode::ACCEPTED, &answer))
    }

    pub(super) fn flavor_for_server(&self, call: &Call<'_>, id: &str) -> Result<Flavor, Refusal> {
        let flavor = self.flavor(id).filter(|flavor| is_visible(flavor, call));
        flavor.cloned().ok_or_else(|| Refusal::bad_request(format!("Flavor {id} could not be found.")))
    }

    fn key_name(&self, call: &Call<'_>, asked: &Map<String, Value>) -> Result<Option<String>, Refusal> {
        let Some(name) = asked.get("key_name").and_then(Value::as_str) else { return Ok(None) };
        match self.key_pair(&call.caller.user_id, name) {
            Some(_) => Ok(Some(name.to_owned())),
            None => Err(Refusal::bad_request("Invalid key_name provided.")),
        }
    }

    /// Refuses more servers, processors or MiB of memory than a project may have.
    pub(super) fn check_quota(&self, call: &Call<'_>, project: &str, more: [u64; 3]) -> Result<(), Refusal> {
        let own = self.servers.all.by("project", project);
        let used = own.fold([0, 0, 0], |[count, vcpus, ram], server| {
            [count + 1, vcpus + server.flavor.vcpus, ram + server.flavor.ram]
        });
        let mut words: [Vec<String>; 4] = Default::default();
        for ((name, used), more) in ["instances", "cores", "ram"].into_iter().zip(used).zip(more) {
            let exceeded = call.quotas.exceeded(project, name, used, more).filter(|_| more > 0);
            if let Some(limit) = exceeded {
                let told = [name.to_owned(), more.to_string(), used.to_string(), limit.to_string()];
                words.iter_mut().zip(told).for_each(|(words, told)| words.push(told));
            }
        }
        let [names, more, used, limits] = words.map(|words| words.join(", "));
        if names.is_empty() {
            return Ok(());
        }
        Err(Refusal::forbidden(format!(
            "Quota exceeded for {names}: Requested {more}, but already used {used} of {limits} {names}"
        )))
    }
}

/// The server in a request's body, as far as a schema can tell.
fn asked<'b>(call: &Call<'_>, body: &'b Value) -> Result<&'b Map<String, Value>, Refusal> {
    let asked = body["server"].as_object().ok_or_else(|| Refusal::bad_request("'server' is a required property"))?;
    if let Some(missing) =
        ["name", "flavorRef", "imageRef", "networks"].into_iter().find(|key| !asked.contains_key(*key))
    {
        let words = "Invalid input for field/attribute server. Value:";
        return Err(Refusal::bad_request(format!("{words} {body}. '{missing}' is a required property")));
    }
    let is_known = |key: &str| KNOWN.contains(&key) && (key != "description" || speaks(call, WITH_DESCRIPTION));
    if let Some(odd) = asked.keys().find(|key| !is_known(key)) {
        let words = "Additional properties are not allowed";
        return Err(Refusal::bad_request(format!("{words} ('{odd}' was unexpected)")));
    }
    check_name(&asked["name"])?;
    check_description(asked.get("description"))?;
    metadata(asked.get("metadata"))?;
    match asked.get("user_data") {
        None => {}
        Some(Value::String(data)) if data.len() > LONGEST_USER_DATA => {
            return Err(invalid("user_data", &asked["user_data"], "is too long"));
        }
        Some(Value::String(data)) if BASE64_STANDARD.decode(data).is_ok() => {}
        Some(other) => return Err(invalid("user_data", other, "is not a 'base64'")),
    }
    Ok(asked)
}

pub(super) fn check_name(name: &Value) -> Result<(), Refusal> {
    match name.as_str() {
        Some(name) if (1..=LONGEST).contains(&name.chars().count()) && name.trim() == name => Ok(()),
        _ => Err(invalid("name", name, "does not match any of the regexes")),
    }
}

pub(super) fn check_description(description: Option<&Value>) -> Result<(), Refusal> {
    match description {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.chars().count() <= LONGEST && !text.contains(char::is_control) => Ok(()),
        Some(other) => Err(invalid("description", other, "does not match '^[^\\x00-\\x1f]*$'")),
    }
}

/// Keys and values, as a server may have them.
pub(super) fn metadata(asked: Option<&Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(asked) = asked else { return Ok(BTreeMap::new()) };
    let pairs = asked.as_object().ok_or_else(|| invalid("metadata", asked, "is not of type 'object'"))?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_:. ".contains(c);
    if let Some(odd) = pairs.keys().find(|key| !(1..=LONGEST).contains(&key.len()) || !key.chars().all(allowed)) {
        let words = format!("'{odd}' does not match any of the regexes: '^[a-zA-Z0-9-_:. ]{{1,255}}$'");
        return Err(Refusal::bad_request(format!(
            "Invalid input for field/attribute metadata. Value: {asked}. {words}"
        )));
    }
    let pairs = pairs.iter().map(|(key, value)| match value.as_str() {
        Some(text) if text.chars().count() <= LONGEST => Ok((key.clone(), text.to_owned())),
        Some(_) => Err(invalid(key, value, "is too long")),
        None => Err(invalid(key, value, "is not of type 'string'")),
    });
    check_number(pairs.collect::<Result<_, _>>()?)
}

/// As many pairs as a server may have.
pub(super) fn check_number(metadata: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    if metadata.len() <= MOST_METADATA {
        return Ok(metadata);
    }
    Err(Refusal::forbidden(format!("Maximum number of metadata items exceeds {MOST_METADATA}")))
}

fn text<'a>(asked: &'a Map<String, Value>, key: &str) -> &'a str {
    asked.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn image<'a>(call: &Call<'_>, glance: &'a Glance, id: &str) -> Result<&'a Image, Refusal> {
    let image = glance.image(id).filter(|image| image.is_visible_to(&call.caller));
    image.ok_or_else(|| Refusal::bad_request("Can not find requested image"))
}

/// Whether a server of this flavor can be made of an image.
fn check_image(call: &Call<'_>, image: &Image, flavor: &Flavor) -> Result<(), Refusal> {
    if image.status != "active" {
        return Err(Refusal::bad_request(format!("Image {} is not active.", image.id)));
    }
    fits_image(image, flavor)?;
    if flavor.disk == 0 && !call.caller.is_admin() {
        return Err(Refusal::forbidden("Only volume-backed servers are allowed for flavors with zero disk."));
    }
    Ok(())
}

/// Whether a flavor has what an image asks for. A root disk of 0 is as large as the image.
pub(super) fn fits_image(image: &Image, flavor: &Flavor) -> Result<(), Refusal> {
    if flavor.ram < image.min_ram {
        return Err(Refusal::bad_request("Flavor's memory is too small for requested image."));
    }
    let (disk, size, least) = (flavor.disk * GIB, image.size.unwrap_or_default(), image.min_disk * GIB);
    if disk != 0 && size > disk {
        return Err(Refusal::bad_request(format!(
            "Flavor's disk is too small for requested image. Flavor disk is {disk} bytes, image is {size} bytes."
        )));
    }
    if disk != 0 && least > disk {
        return Err(Refusal::bad_request(format!(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is {disk} bytes, \
             minimum size is {least} bytes."
        )));
    }
    Ok(())
}

/// The ports that a new server is to be connected by. Nova makes none here.
fn wanted_ports(call: &Call<'_>, neutron: &Neutron, networks: &Value) -> Result<Vec<String>, Refusal> {
    let networks = match networks {
        Value::String(none) if none == "none" => return Ok(Vec::new()),
        Value::Array(networks) => networks,
        other => return Err(invalid("networks", other, "is neither a list of ports nor 'none', and not simulated")),
    };
    let ports = networks.iter().map(|network| {
        let id = network["port"]
            .as_str()
            .ok_or_else(|| invalid("networks", network, "has no port, which is not simulated"))?;
        let port = usable_port(neutron, call.caller.project(), id).map_err(|refusal| {
            let status = if refusal.status == StatusCode::NOT_FOUND { StatusCode::BAD_REQUEST } else { refusal.status };
            Refusal { status, ..refusal }
        })?;
        Ok(port.id.clone())
    });
    ports.collect()
}

/// A port of a project that nothing is connected by. Of a port of another project that the caller sees, Nova finds out
/// only when it builds the server.
pub(super) fn usable_port<'a>(neutron: &'a Neutron, project: &str, id: &str) -> Result<&'a Item, Refusal> {
    let port = neutron.port(id).filter(|port| port.project_id == project);
    let port = port.ok_or_else(|| Refusal::not_found(format!("Port id {id} could not be found.")))?;
    if !port.text("device_id").is_empty() {
        return Err(Refusal::conflict(format!("Port {id} is still in use.")));
    }
    if port.body.get("fixed_ips").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return Err(Refusal::bad_request(format!("Port {id} requires a FixedIP in order to be used.")));
    }
    Ok(port)
}
