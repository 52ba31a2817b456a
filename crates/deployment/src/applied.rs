//! What Helm recorded of a revision: what was applied, not what would be rendered today.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use kupenstack_helm::{ReleaseRef, parse_manifests};
use serde::Deserialize;
use serde_json::Value;

use crate::{Error, build};

/// Longest record that is read, unpacked. Packed it is at most 1 MiB.
const LIMIT: u64 = 64 << 20;

/// The content of a recorded revision.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The objects that Helm applied.
    pub(crate) objects: Vec<Value>,
    /// The hooks of the chart, which only the engine runs.
    pub(crate) hooks: Vec<Value>,
    /// The values it was made from.
    pub(crate) values: Value,
    /// The chart's own values, below those.
    pub(crate) defaults: Value,
    /// Helm's or our account of it.
    pub(crate) description: String,
}

/// Helm's record, as far as it is read. See `release.Release` in Helm's source.
#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    hooks: Vec<Hook>,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    chart: Chart,
    #[serde(default)]
    info: Info,
}

#[derive(Deserialize)]
struct Hook {
    #[serde(default)]
    manifest: String,
}

#[derive(Deserialize, Default)]
struct Chart {
    #[serde(default)]
    values: Value,
}

#[derive(Deserialize, Default)]
struct Info {
    #[serde(default)]
    description: String,
}

impl Applied {
    /// Reads the record of a revision; `None` when there is none.
    pub(crate) async fn read(client: &Client, release: &ReleaseRef, revision: u32) -> Result<Option<Self>, Error> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &release.namespace);
        let name = release.record_name(revision);
        let Some(secret) = api.get_opt(&name).await? else { return Ok(None) };
        let packed = secret.data.and_then(|mut data| data.remove("release")).unwrap_or_default();
        decode(&packed.0).map(Some).map_err(|reason| Error::Record { name, reason })
    }

    /// Whether we made it, from this content.
    pub(crate) fn is_of(&self, hash: &str) -> bool {
        let ours = hash.parse().is_ok_and(|hash| self.description == kupenstack_helm::description(&hash));
        // Helm's own words; the label says what was rolled back to
        ours || self.description.starts_with("Rollback to ")
    }

    /// Names of the jobs that the engine runs for it.
    pub(crate) fn job_names(&self) -> impl Iterator<Item = &str> {
        self.hooks.iter().filter(|o| o["kind"] == "Job" && build::is_install_hook(o)).map(build::name_of)
    }

    /// Everything, hooks included, as `helm template` prints it.
    pub(crate) fn all(&self) -> Vec<Value> {
        self.objects.iter().chain(&self.hooks).cloned().collect()
    }
}

fn decode(packed: &[u8]) -> Result<Applied, String> {
    let zipped = STANDARD.decode(packed).map_err(|e| e.to_string())?;
    let mut json = Vec::new();
    GzDecoder::new(zipped.as_slice()).take(LIMIT).read_to_end(&mut json).map_err(|e| e.to_string())?;
    // the error names a place, never the text: values may be passwords
    let recorded: Recorded = serde_json::from_slice(&json).map_err(|e| e.to_string())?;
    let parse = |text: &str| parse_manifests(text).map_err(|e| e.to_string());
    let mut hooks = Vec::new();
    for hook in &recorded.hooks {
        hooks.extend(parse(&hook.manifest)?);
    }
    Ok(Applied {
        objects: parse(&recorded.manifest)?,
        hooks,
        values: recorded.config,
        defaults: recorded.chart.values,
        description: recorded.info.description,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::json;

    use super::*;

    fn packed(record: &Value) -> Vec<u8> {
        let mut zip = GzEncoder::new(Vec::new(), Compression::default());
        zip.write_all(record.to_string().as_bytes()).unwrap();
        STANDARD.encode(zip.finish().unwrap()).into_bytes()
    }

    #[test]
    fn a_record_is_unpacked() {
        let applied = decode(&packed(&json!({
            "manifest": "---\nkind: Service\nmetadata: {name: s}\n---\nkind: Secret\nmetadata: {name: x}\n",
            "hooks": [{"name": "j", "manifest": "kind: Job\nmetadata: {name: j}\n"}],
            "config": {"a": 1}, "chart": {"metadata": {}, "values": null}, "info": {"description": "d"},
        })))
        .unwrap();
        assert_eq!((applied.objects.len(), applied.hooks.len()), (2, 1));
        assert_eq!((&applied.values, &applied.defaults), (&json!({"a": 1}), &Value::Null));
        assert_eq!(applied.description, "d");
    }

    #[test]
    fn what_is_no_record_is_an_error_without_its_text() {
        let error = decode(&packed(&json!({"manifest": 7, "password": "secret"}))).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(decode(b"%").is_err());
    }
}
