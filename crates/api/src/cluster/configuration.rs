//! Where a service's configuration comes from, and what of it is in force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{Conf, conf_schema};

/// Options for every service that has an oslo.config file. What a service says itself wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonConf {
    /// Options by section: `{DEFAULT: {debug: true}}`.
    #[serde(default, skip_serializing_if = "Conf::is_empty")]
    #[schemars(schema_with = "conf_schema")]
    pub conf: Conf,

    /// Secrets and ConfigMaps in the cloud's namespace that hold options; they win over `conf`, the last one over all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conf_from: Vec<ConfSource>,
}

/// A Secret or ConfigMap with options in the syntax of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.secretRef) != has(self.configMapRef)", "message": "exactly one of secretRef and configMapRef must be set"}
]))]
pub struct ConfSource {
    /// A Secret in the namespace of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<ObjectKeys>,
    /// A `ConfigMap` in the namespace of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ObjectKeys>,
}

/// An object's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKeys {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key to read; all keys in alphabetical order when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// Whole files, in place of those that the service brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Files {
    /// Policy rules as YAML: a map of rule to expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<FileSource>,
    /// The API's pipeline of filters, in `PasteDeploy`'s syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paste: Option<FileSource>,
    /// Loggers, handlers and formatters, in the syntax of Python's `logging.config.fileConfig`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<FileSource>,
}

/// Where the text of a file comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.inline), has(self.secretRef), has(self.configMapRef)].filter(set, set).size() == 1",
    "message": "exactly one of inline, secretRef and configMapRef must be set"
}]))]
pub struct FileSource {
    /// The text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub inline: Option<String>,
    /// A key of a Secret in the namespace of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<ObjectKey>,
    /// A key of a `ConfigMap` in the namespace of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ObjectKey>,
}

/// One key of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectKey {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key to read.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// An option that somebody set, with the value that won and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveOption {
    /// Section and option, such as `DEFAULT/debug`; a whole file as `files/policy`.
    pub option: String,
    /// The value, cut to 256 characters; `***` for a secret; absent when the option is removed from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What set it: `spec.conf`, `spec.values`, `OpenStack spec.common`, `Secret NAME`, `ConfigMap NAME`, `operator`.
    pub from: String,
}
