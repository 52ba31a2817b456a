//! Flavors: how much of a host a server gets.

use std::collections::BTreeMap;

use futures::Stream;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};

use super::{Compute, LARGEST_PAGE};
use crate::{
    Error,
    service::{Collection, Query},
};

/// A flavor. Nova can change its description and its extra specs, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Flavor {
    /// The flavor's id: any text.
    pub id: String,
    /// Its name, unique in the cloud.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub ram: u32,
    /// Root disk, in GiB; 0 is as much as the image has.
    pub disk: u32,
    /// A second disk, in GiB, that goes with the server; 0 is none.
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral", default)]
    pub ephemeral: u32,
    /// Swap disk, in MiB; 0 is none.
    #[serde(default, deserialize_with = "or_empty")]
    pub swap: u32,
    /// Whether every project may use it.
    #[serde(rename = "os-flavor-access:is_public")]
    pub is_public: bool,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// What else is asked of a host, such as `hw:cpu_policy`. Without the right to read them, nothing can be said.
    pub extra_specs: BTreeMap<String, String>,
}

/// Nova writes a swap disk of no size as an empty text, from 2.75 on as 0.
fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) if text.is_empty() => Ok(0),
        value => u32::deserialize(value).map_err(D::Error::custom),
    }
}

/// A flavor to be made. It has no extra specs yet.
#[derive(Debug, Clone)]
pub struct NewFlavor {
    /// An id of our choice: it makes a second create of the same flavor impossible.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub ram: u32,
    /// Root disk, in GiB.
    pub disk: u32,
    /// A second disk, in GiB.
    pub ephemeral: u32,
    /// Swap disk, in MiB.
    pub swap: u32,
    /// Whether every project may use it.
    pub is_public: bool,
    /// A text for people, in one line.
    pub description: String,
}

impl NewFlavor {
    fn body(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "vcpus": self.vcpus,
            "ram": self.ram,
            "disk": self.disk,
            "OS-FLV-EXT-DATA:ephemeral": self.ephemeral,
            "swap": self.swap,
            "os-flavor-access:is_public": self.is_public,
            "description": self.description,
        })
    }
}

const FLAVORS: Collection = Collection { path: "flavors/detail", key: "flavors" };

/// Public ones and others; whoever is no administrator gets the public ones whatever he asks for.
fn everything() -> Query {
    vec![("is_public", "None".to_owned()), ("limit", LARGEST_PAGE.to_string())]
}

impl Compute {
    /// A flavor by its id.
    pub async fn get_flavor(&self, id: &str) -> Result<Option<Flavor>, Error> {
        self.service.get_member(&["flavors", id], "flavor").await
    }

    /// Every flavor, for an administrator; others get the public ones. They come in the order of their ids, so that
    /// what comes and goes meanwhile shifts nothing. A flavor that can't be read is left out, and told in the log.
    pub fn survey_flavors(&self) -> impl Stream<Item = Result<Flavor, Error>> + Send + use<> {
        self.service.clone().survey(FLAVORS, everything())
    }

    /// Every flavor that is not public, for an administrator, as [`survey_flavors`](Self::survey_flavors) gives them all.
    pub fn survey_private_flavors(&self) -> impl Stream<Item = Result<Flavor, Error>> + Send + use<> {
        let query = vec![("is_public", "false".to_owned()), ("limit", LARGEST_PAGE.to_string())];
        self.service.clone().survey(FLAVORS, query)
    }

    /// Makes a flavor. An id or a name that is taken is a conflict.
    pub async fn create_flavor(&self, flavor: &NewFlavor) -> Result<Flavor, Error> {
        self.service.post(&["flavors"], &json!({"flavor": flavor.body()})).await?.member("flavor")
    }

    /// Changes a flavor's description, a text of one line.
    pub async fn describe_flavor(&self, id: &str, description: &str) -> Result<Flavor, Error> {
        let body = json!({"flavor": {"description": description}});
        self.service.put(&["flavors", id], &body).await?.member("flavor")
    }

    /// Sets some of a flavor's extra specs; the others stay as they are.
    pub async fn set_extra_specs(&self, id: &str, specs: &BTreeMap<String, String>) -> Result<(), Error> {
        self.service.post(&["flavors", id, "os-extra_specs"], &json!({"extra_specs": specs})).await.map(drop)
    }

    /// Removes an extra spec; false if the flavor has none of that name.
    pub async fn remove_extra_spec(&self, id: &str, name: &str) -> Result<bool, Error> {
        self.service.delete(&["flavors", id, "os-extra_specs", name]).await
    }

    /// Deletes a flavor; false if there is none of that id. Servers that were made with it keep what they have.
    pub async fn delete_flavor(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["flavors", id]).await
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn answer(swap: &Value) -> Value {
        json!({
            "id": "1", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1, "swap": swap, "rxtx_factor": 1.0,
            "OS-FLV-EXT-DATA:ephemeral": 0, "os-flavor-access:is_public": true, "description": null, "extra_specs": {},
        })
    }

    #[rstest]
    #[case(json!(""), 0)]
    #[case(json!(0), 0)]
    #[case(json!(512), 512)]
    fn a_swap_disk_of_each_microversion_is_read(#[case] swap: Value, #[case] size: u32) {
        let flavor: Flavor = serde_json::from_value(answer(&swap)).unwrap();
        assert_eq!((flavor.swap, flavor.id.as_str(), flavor.description), (size, "1", None));
    }

    /// Of a flavor whose extra specs are not shown, one would conclude that it has none.
    #[rstest]
    #[case("extra_specs")]
    #[case("ram")]
    fn what_decides_has_to_be_there(#[case] key: &str) {
        let mut answer = answer(&json!(""));
        answer.as_object_mut().unwrap().remove(key);
        let error = serde_json::from_value::<Flavor>(answer).unwrap_err();
        assert!(error.to_string().contains(key), "{error}");
    }
}
