//! Rendered objects, sorted; the content hash. Pure.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use k8s_openapi::api::batch::v1::Job;
use kupenstack_core::hash;
use serde::Serialize;
use serde_json::Value;

use crate::Error;

/// What a chart renders, sorted.
#[derive(Debug)]
pub(crate) struct Built {
    /// Jobs that have to succeed before the release, in order.
    pub(crate) pre_jobs: Vec<Job>,
    /// Jobs that need the release's own Services or pods, in order.
    pub(crate) post_jobs: Vec<Job>,
    /// Jobs that are objects of the release.
    pub(crate) plain_jobs: Vec<Value>,
    /// ConfigMaps and Secrets, from which jobs that run before the release get private copies.
    pub(crate) configuration: Vec<Value>,
}

const HOOK: &str = "helm.sh/hook";
const WEIGHT: &str = "helm.sh/hook-weight";

/// Sorts what `helm template` printed.
pub(crate) fn sort(objects: Vec<Value>) -> Result<Built, Error> {
    let services: BTreeSet<&str> = of_kind(&objects, "Service").map(name_of).collect();
    let mut jobs: Vec<(i64, Job)> = Vec::new();
    for object in of_kind(&objects, "Job").filter(|o| is_install_hook(o)) {
        let weight = annotation(object, WEIGHT).and_then(|w| w.parse().ok()).unwrap_or(0);
        let job = serde_json::from_value(object.clone()).map_err(|source| Error::Rendered { what: "Job", source })?;
        jobs.push((weight, job));
    }
    // Helm runs hooks of one weight by name
    jobs.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.metadata.name.cmp(&y.metadata.name)));
    let (post_jobs, pre_jobs) = jobs.into_iter().map(|(_, job)| job).partition(|job| waits_for_any(job, &services));
    let plain_jobs = of_kind(&objects, "Job").filter(|o| annotation(o, HOOK).is_none()).cloned().collect();
    // a hook is not part of the release: key repositories are made once and filled later, so that their render is
    // empty and jobs have to mount the real one
    let is_configuration =
        |o: &Value| matches!(o["kind"].as_str(), Some("ConfigMap" | "Secret")) && annotation(o, HOOK).is_none();
    let configuration = objects.into_iter().filter(is_configuration).collect();
    Ok(Built { pre_jobs, post_jobs, plain_jobs, configuration })
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |o| o["kind"] == kind)
}

/// Name of a rendered object.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Whether Helm would run it after an install, which the engine does instead.
pub(crate) fn is_install_hook(job: &Value) -> bool {
    annotation(job, HOOK).is_some_and(|hooks| hooks.split(',').any(|h| h.trim() == "post-install"))
}

/// Whether the job's dependency init container waits for one of these Services, or for pods: then it can only run
/// once the release is there.
fn waits_for_any(job: &Job, services: &BTreeSet<&str>) -> bool {
    let containers =
        job.spec.iter().filter_map(|s| s.template.spec.as_ref()).flat_map(|s| s.init_containers.iter().flatten());
    containers.flat_map(|c| c.env.iter().flatten()).any(|env| match (env.name.as_str(), env.value.as_deref()) {
        ("DEPENDENCY_SERVICE", Some(list)) => {
            list.split(',').filter_map(|s| s.trim().rsplit(':').next()).any(|s| services.contains(s))
        }
        ("DEPENDENCY_POD_JSON", Some(pods)) => !matches!(pods.trim(), "" | "[]" | "null"),
        _ => false,
    })
}

/// Hash over everything that decides what is rolled out.
pub(crate) fn content_hash(chart_digest: &str, values: &Value) -> String {
    #[derive(Serialize)]
    struct Content<'a> {
        chart: &'a str,
        values: &'a Value,
    }
    // a label value, which the hash becomes, has at most 63 characters
    hash::of(&Content { chart: chart_digest, values })[..40].to_owned()
}

/// Digest of a chart's files, and its version.
pub(crate) fn chart_digest(chart: &Path) -> Result<String, Error> {
    let read = |path: &Path| -> io::Result<String> {
        let mut files = Vec::new();
        collect_files(path, &mut files)?;
        files.sort();
        let mut digests = Vec::with_capacity(files.len());
        for file in files {
            let relative = file.strip_prefix(path).unwrap_or(&file).display().to_string();
            digests.push((relative, hash::of_bytes(&fs::read(&file)?)));
        }
        Ok(hash::of(&digests))
    };
    read(chart).map_err(|source| Error::Chart { path: chart.display().to_string(), source })
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // a library chart may be linked in; links are followed as Helm does
        if fs::metadata(&path)?.is_dir() {
            collect_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(name: &str, weight: &str, waits_for: &str) -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "annotations": {HOOK: "post-install,post-upgrade", WEIGHT: weight}},
            "spec": {"template": {"spec": {
                "containers": [{"name": "main"}],
                "initContainers": [{"name": "init", "env": [{"name": "DEPENDENCY_SERVICE", "value": waits_for}]}],
            }}},
        })
    }

    fn names(jobs: &[Job]) -> Vec<&str> {
        jobs.iter().filter_map(|j| j.metadata.name.as_deref()).collect()
    }

    #[test]
    fn jobs_come_by_weight_and_those_that_need_the_release_come_after_it() {
        let built = sort(vec![
            json!({"kind": "Service", "metadata": {"name": "keystone"}}),
            job("keystone-bootstrap", "5", "ns:keystone"),
            job("keystone-db-sync", "-4", "ns:mariadb"),
            job("keystone-db-init", "-5", "ns:mariadb"),
            json!({"kind": "Secret", "metadata": {"name": "keystone-etc"}}),
            json!({"kind": "Secret", "metadata": {"name": "keystone-fernet-keys", "annotations": {HOOK: "pre-install"}}}),
            json!({"kind": "Deployment", "metadata": {"name": "keystone-api"}}),
        ])
        .unwrap();
        assert_eq!(names(&built.pre_jobs), ["keystone-db-init", "keystone-db-sync"]);
        assert_eq!(names(&built.post_jobs), ["keystone-bootstrap"]);
        assert_eq!(built.configuration.len(), 1, "what a hook makes is not the release's");
    }

    #[test]
    fn plain_jobs_are_helms_and_test_hooks_nobodys() {
        let mut test = job("test", "0", "");
        test["metadata"]["annotations"][HOOK] = json!("test");
        let plain = json!({"kind": "Job", "metadata": {"name": "plain"}});
        let built = sort(vec![test, plain]).unwrap();
        assert!(built.pre_jobs.is_empty() && built.post_jobs.is_empty());
        assert_eq!(built.plain_jobs.iter().map(name_of).collect::<Vec<_>>(), ["plain"]);
    }

    #[test]
    fn the_hash_moves_with_chart_and_values() {
        let hash = content_hash("c", &json!({"a": 1, "b": 2}));
        assert_eq!(hash, content_hash("c", &json!({"b": 2, "a": 1})));
        assert_ne!(hash, content_hash("d", &json!({"a": 1, "b": 2})));
        assert_ne!(hash, content_hash("c", &json!({"a": 1, "b": 3})));
        assert_eq!(hash.len(), 40);
    }
}
