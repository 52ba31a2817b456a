use super::*;

const PLAN_HASH: &str = "0123456789abcdef0123456789abcdef01234567";

fn prepare(job: Value, configuration: &[Value]) -> (Value, Vec<Value>) {
    // a client that is never used: preparing is pure
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let client = Client::try_from(config).unwrap();
    let owner = OwnerReference { name: "keystone".into(), uid: "u".into(), ..OwnerReference::default() };
    let plan = Plan { client: &client, namespace: "ns", kind: Kind::Keystone, hash: PLAN_HASH, owner: &owner };
    let (job, copies) = plan.prepare(serde_json::from_value(job).unwrap(), configuration);
    (serde_json::to_value(job).unwrap(), copies)
}

fn db_sync() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "keystone-db-sync", "annotations": {"helm.sh/hook": "post-install", "note": "kept"}},
        "spec": {"template": {"spec": {
            "serviceAccountName": "keystone-jobs",
            "initContainers": [{"name": "init"}],
            "containers": [{"name": "db-sync", "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "keystone-db-user", "key": "password"}}},
            ], "envFrom": [{"configMapRef": {"name": "keystone-env"}}]}],
            "volumes": [
                {"name": "etc", "secret": {"secretName": "keystone-etc"}},
                {"name": "keys", "secret": {"secretName": "keystone-fernet-keys"}},
                {"name": "bin", "configMap": {"name": "keystone-bin"}},
                {"name": "all", "projected": {"sources": [{"secret": {"name": "keystone-etc"}}]}},
                {"name": "init-token", "emptyDir": {}},
            ],
        }}},
    })
}

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "annotations": {"helm.sh/resource-policy": "keep"}}, "data": {"k": "dg=="}})
}

#[test]
fn a_job_runs_from_copies_of_what_the_chart_renders() {
    let configuration = [
        object("Secret", "keystone-etc"),
        object("Secret", "keystone-db-user"),
        object("Secret", "keystone-unused"),
        object("ConfigMap", "keystone-bin"),
        object("ConfigMap", "keystone-env"),
    ];
    let (job, copies) = prepare(db_sync(), &configuration);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "keystone-etc-01234567");
    assert_eq!(pod["volumes"][1]["secret"]["secretName"], "keystone-fernet-keys", "not rendered: not copied");
    assert_eq!(pod["volumes"][2]["configMap"]["name"], "keystone-bin-01234567");
    assert_eq!(pod["volumes"][3]["projected"]["sources"][0]["secret"]["name"], "keystone-etc-01234567");
    assert_eq!(pod["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["name"], "keystone-db-user-01234567");
    assert_eq!(pod["containers"][0]["envFrom"][0]["configMapRef"]["name"], "keystone-env-01234567");
    let mut names: Vec<_> = copies.iter().map(|c| c["metadata"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["keystone-bin-01234567", "keystone-db-user-01234567", "keystone-env-01234567", "keystone-etc-01234567"]
    );
    assert!(copies.iter().all(|c| c["metadata"]["annotations"].is_null() && c["data"]["k"] == "dg=="));
    assert!(copies.iter().all(|c| c["metadata"]["ownerReferences"][0]["uid"] == "u"));
}

#[test]
fn a_job_keeps_its_name_and_loses_what_is_helms() {
    let (job, _) = prepare(db_sync(), &[]);
    assert_eq!(job["metadata"]["name"], "keystone-db-sync");
    assert_eq!(job["metadata"]["annotations"], json!({"note": "kept"}));
    assert_eq!(job["metadata"]["labels"], json!({SERVICE: "keystone", PLAN: PLAN_HASH}));
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"], json!([]));
    assert!(pod["serviceAccountName"].is_null());
    assert!(pod["volumes"].as_array().unwrap().iter().all(|v| v["name"] != "init-token"));
}
