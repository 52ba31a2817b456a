//! Servers: Nova's virtual machines.

use std::{collections::BTreeMap, fmt, future};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{Stream, TryStreamExt};
use http::Method;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Compute, LARGEST_PAGE};
use crate::{
    Error,
    service::{Collection, Query},
};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Server {
    /// The server's id.
    pub id: String,
    /// Its name, not unique.
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    #[serde(rename = "tenant_id")]
    pub project_id: String,
    /// How it is: `BUILD`, `ACTIVE`, `SHUTOFF`, `SUSPENDED`, `PAUSED`, `RESIZE`, `VERIFY_RESIZE`, `REBOOT`,
    /// `HARD_REBOOT`, `ERROR`, among others; `DELETED` and `SOFT_DELETED` in lists of changes only.
    pub status: String,
    /// What Nova is doing with it, such as `spawning`, `powering-off` or `deleting`; none if it rests.
    #[serde(rename = "OS-EXT-STS:task_state", default)]
    pub task_state: Option<String>,
    /// The node that it is on. Only administrators are told, and there is none before one was chosen.
    #[serde(rename = "OS-EXT-SRV-ATTR:host", default)]
    pub host: Option<String>,
    /// What it has of its host.
    pub flavor: ServerFlavor,
    /// Id of the image it was made of; none for one that boots from a volume.
    #[serde(rename = "image", with = "image")]
    pub image_id: Option<String>,
    /// The name of its user's key pair that it was made to let in.
    #[serde(default)]
    pub key_name: Option<String>,
    /// Keys and values, which the server itself can read too.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Why it is in `ERROR`.
    #[serde(default)]
    pub fault: Option<ServerFault>,
    /// When it was asked for, as Nova writes it (RFC 3339).
    pub created: String,
    /// When something of it changed, its state or what is declared of it, to the second.
    #[serde(default)]
    pub updated: String,
    /// When it first came up on the host that it is on; none before that.
    #[serde(rename = "OS-SRV-USG:launched_at", default)]
    pub launched: Option<String>,
    /// Its addresses by the names of its networks.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<ServerAddress>>,
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServerAddress {
    /// The address itself.
    pub addr: String,
    /// `fixed` if it is of the network, `floating` if others are led to that one.
    #[serde(rename = "OS-EXT-IPS:type", default)]
    pub kind: String,
    /// The MAC of the port that it is of.
    #[serde(rename = "OS-EXT-IPS-MAC:mac_addr", default)]
    pub mac_address: String,
}

impl ServerAddress {
    /// Whether it is a floating IP.
    pub fn is_floating(&self) -> bool {
        self.kind == "floating"
    }
}

/// A flavor as a server remembers it, which the flavor's end does not change. Its id is not among it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServerFlavor {
    /// The flavor's name when the server was made or resized.
    pub original_name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub ram: u32,
    /// Root disk, in GiB; 0 is as much as the image has.
    pub disk: u32,
}

/// The last thing that went wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServerFault {
    /// As a status of HTTP: 500 if it is the cloud's fault.
    pub code: u16,
    /// Nova's own words.
    pub message: String,
    /// When, as Nova writes it (RFC 3339).
    pub created: String,
}

/// Nova writes `{"id": …}`, and an empty text for a server without an image.
mod image {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    #[derive(Deserialize, Serialize)]
    #[serde(untagged)]
    enum Shown {
        Image { id: String },
        None(String),
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
        match Shown::deserialize(deserializer)? {
            Shown::Image { id } => Ok(Some(id)),
            Shown::None(text) if text.is_empty() => Ok(None),
            Shown::None(text) => Err(D::Error::custom(format!("`{text}` is no image"))),
        }
    }

    #[allow(clippy::ref_option, reason = "what serde hands over")]
    pub(super) fn serialize<S: Serializer>(image: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
        match image {
            Some(id) => Shown::Image { id: id.clone() }.serialize(serializer),
            None => Shown::None(String::new()).serialize(serializer),
        }
    }
}

/// A server to be made.
#[derive(Clone)]
pub struct NewServer {
    /// Its name, which is its host name too as far as it can be one.
    pub name: String,
    /// A text for people, at most 255 characters in one line.
    pub description: Option<String>,
    /// Id of its flavor.
    pub flavor_id: String,
    /// Id of its image.
    pub image_id: String,
    /// Name of a key pair of the user that asks.
    pub key_name: Option<String>,
    /// Ids of the ports that it is connected by, the first one first. They stay when the server goes. Without any, it
    /// is connected to nothing.
    pub ports: Vec<String>,
    /// What it is told at its first boot, at most 49,149 bytes. It often holds passwords, so it is never shown.
    pub user_data: Option<Vec<u8>>,
    /// Keys and values, at most 255 characters each.
    pub metadata: BTreeMap<String, String>,
    /// Id of the server group that it is to be in, for as long as it is there. One that does not exist is a
    /// [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest).
    pub group_id: Option<String>,
}

impl fmt::Debug for NewServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, flavor_id, image_id, key_name, ports, user_data, metadata, group_id } = self;
        f.debug_struct("NewServer")
            .field("name", name)
            .field("description", description)
            .field("flavor_id", flavor_id)
            .field("image_id", image_id)
            .field("key_name", key_name)
            .field("ports", ports)
            .field("user_data", &user_data.as_ref().map(|data| format!("[{} bytes]", data.len())))
            .field("metadata", metadata)
            .field("group_id", group_id)
            .finish()
    }
}

impl NewServer {
    /// With the user data as it is encoded.
    fn body(&self, user_data: Option<&str>) -> Value {
        let mut body = json!({"server": self.server(user_data)});
        if let Some(group) = &self.group_id {
            body["os:scheduler_hints"] = json!({"group": group});
        }
        body
    }

    fn server(&self, user_data: Option<&str>) -> Value {
        // without a word about networks, Nova would choose one
        let networks = match self.ports.as_slice() {
            [] => json!("none"),
            ports => ports.iter().map(|port| json!({"port": port})).collect(),
        };
        let mut body = json!({
            "name": self.name,
            "flavorRef": self.flavor_id,
            "imageRef": self.image_id,
            "networks": networks,
            "metadata": self.metadata,
        });
        let given = [("description", self.description.as_deref()), ("key_name", self.key_name.as_deref())];
        for (key, value) in given.into_iter().chain([("user_data", user_data)]) {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        body
    }
}

/// What is changed of a server; the rest stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServerChanges {
    /// Its name. What the server calls itself stays as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Which servers to list.
#[derive(Debug, Clone, Default)]
pub struct ServerFilter {
    /// The name, all of it.
    pub name: Option<String>,
}

impl ServerFilter {
    fn query(&self) -> Query {
        let mut query = in_order();
        query.extend(self.name.as_deref().map(|name| ("name", pattern(name))));
        query
    }

    fn fits(&self, server: &Server) -> bool {
        self.name.as_deref().is_none_or(|name| name == server.name)
    }
}

/// A regular expression that fits a name, and little else. How a character is escaped depends on Nova's database, which
/// moreover may not tell capital letters from small ones.
fn pattern(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_ ".contains(c) { c } else { '.' };
    format!("^{}$", name.chars().map(plain).collect::<String>())
}

/// By their ids, which never change: else a server that is made while pages are read would shift the others.
fn in_order() -> Query {
    vec![("limit", LARGEST_PAGE.to_string()), ("sort_key", "uuid".to_owned()), ("sort_dir", "asc".to_owned())]
}

fn of_all_projects() -> Query {
    let mut query = in_order();
    query.push(("all_tenants", "1".to_owned()));
    query
}

const SERVERS: Collection = Collection { path: "servers/detail", key: "servers" };

impl Compute {
    /// A server by its id.
    pub async fn get_server(&self, id: &str) -> Result<Option<Server>, Error> {
        self.service.get_member(&["servers", id], "server").await
    }

    /// The servers that fit, of the project that the user is in.
    pub fn list_servers(&self, filter: &ServerFilter) -> impl Stream<Item = Result<Server, Error>> + Send + use<> {
        let filter = filter.clone();
        let listed = self.service.clone().list(SERVERS, filter.query());
        listed.try_filter(move |server: &Server| future::ready(filter.fits(server)))
    }

    /// Every server of every project, for an administrator; others are refused. They come in the order of their ids, so
    /// that what comes and goes meanwhile shifts nothing. A marker that was deleted between two pages ends the list with
    /// [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest).
    ///
    /// A server that can't be read is left out, and told in the log.
    pub fn survey_servers(&self) -> impl Stream<Item = Result<Server, Error>> + Send + use<> {
        self.service.clone().survey(SERVERS, of_all_projects())
    }

    /// As [`survey_servers`](Self::survey_servers), but only those that have changed since, by Nova's clock, and with those that
    /// were deleted since, whose status says so. A change of metadata, of addresses or of ports alone need not be among them.
    pub fn survey_changed_servers(&self, since: Timestamp) -> impl Stream<Item = Result<Server, Error>> + Send + use<> {
        let mut query = of_all_projects();
        query.push(("changes-since", since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
        self.service.clone().survey(SERVERS, query)
    }

    /// The ids of the servers on a host, of whatever project; for an administrator, others are refused.
    pub fn servers_on(&self, host: &str) -> impl Stream<Item = Result<String, Error>> + Send + use<> {
        #[derive(Deserialize)]
        struct Brief {
            id: String,
        }
        let mut query = of_all_projects();
        query.push(("host", host.to_owned()));
        let listed = self.service.clone().list(Collection { path: "servers", key: "servers" }, query);
        listed.map_ok(|server: Brief| server.id)
    }

    /// Asks for a server, and gives its id. Whether there will be one says its status later: `ACTIVE`, or `ERROR` with a
    /// fault.
    ///
    /// Nothing keeps a repeated request from making another one, except for its ports: one that a server has is a
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) or [`BadRequest`](crate::ErrorKind::BadRequest).
    pub async fn create_server(&self, new: &NewServer) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Made {
            id: String,
        }
        let user_data = new.user_data.as_ref().map(|data| BASE64_STANDARD.encode(data));
        let call = self.service.call(Method::POST, &["servers"]).await?;
        let mut call = call.json(&new.body(user_data.as_deref()));
        if let Some(user_data) = user_data {
            // Nova quotes what it does not like
            call = call.secret(&SecretString::from(user_data));
        }
        // the answer has a password of root too, which is nobody's business
        let made: Made = self.service.send(&call).await?.member("server")?;
        Ok(made.id)
    }

    /// Changes a server's name or description, and gives the server as it is then.
    pub async fn update_server(&self, id: &str, changes: &ServerChanges) -> Result<Server, Error> {
        self.service.put(&["servers", id], &json!({"server": changes})).await?;
        // the answer to that lacks half of what a server is
        let call = self.service.call(Method::GET, &["servers", id]).await?;
        self.service.send(&call).await?.member("server")
    }

    /// Sets some of a server's metadata; the other keys stay as they are.
    pub async fn set_server_metadata(&self, id: &str, set: &BTreeMap<String, String>) -> Result<(), Error> {
        self.service.post(&["servers", id, "metadata"], &json!({"metadata": set})).await.map(drop)
    }

    /// Removes a key from a server's metadata; false if there is none of that name, or no such server.
    pub async fn remove_server_metadata(&self, id: &str, key: &str) -> Result<bool, Error> {
        self.service.delete(&["servers", id, "metadata", key]).await
    }

    /// Has a server deleted, which takes a while: it is there until it can't be read any more. False if there is none of
    /// that id. Its ports stay.
    pub async fn delete_server(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["servers", id]).await
    }
}

#[cfg(test)]
mod tests;
