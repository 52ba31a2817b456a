//! The custom resource definitions as YAML files.

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::output::Files;

/// One file per kind.
pub(crate) fn files() -> anyhow::Result<Files> {
    kupenstack_api::crds::all().into_iter().map(file).collect()
}

fn file(mut crd: CustomResourceDefinition) -> anyhow::Result<(String, String)> {
    let name = format!("{}.yaml", crd.spec.names.plural);
    // deleting a definition deletes every object of its kind, so uninstalling the chart must not do it
    let annotations = crd.metadata.annotations.get_or_insert_default();
    annotations.insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
    crd.metadata
        .labels
        .get_or_insert_default()
        .insert("app.kubernetes.io/part-of".to_owned(), kupenstack_api::MANAGER.to_owned());
    let text = serde_saphyr::to_string(&crd).with_context(|| format!("write {name}"))?;
    Ok((name, text))
}
