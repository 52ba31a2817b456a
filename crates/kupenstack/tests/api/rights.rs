//! Who may do what: the operator's two accounts, and people with Kubernetes' own roles.

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicy,
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::{Namespace, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use kupenstack_testkit::{eventually, within};
use serde_json::{Value, json};

use crate::stage::{CLOUD, Stage, account, shared};

/// What one may want to do, as `verb group/resource namespace name`; `-` stands for none.
async fn may(client: &Client, user: &str, wish: &str) -> bool {
    let words: Vec<_> = wish.split(' ').collect();
    let &[verb, resource, namespace, name] = words.as_slice() else { panic!("{wish:?} is not four words") };
    let (group, resource) = resource.rsplit_once('/').unwrap_or(("", resource));
    let (resource, subresource) = resource.split_once(':').unwrap_or((resource, ""));
    let some = |word: &str| (word != "-" && !word.is_empty()).then(|| word.to_owned());
    let attributes = ResourceAttributes {
        verb: some(verb),
        group: some(group),
        resource: some(resource),
        subresource: some(subresource),
        namespace: some(namespace),
        name: some(name),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        groups: Some(vec!["system:authenticated".to_owned()]),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    answer.status.unwrap().allowed
}

/// Whether a user may do all of one and nothing of the other.
pub(crate) async fn check(stage: &Stage, user: &str, allowed: &[&str], denied: &[&str]) {
    let client = stage.plane.client().await;
    for wish in allowed {
        assert!(may(&client, user, wish).await, "{user} may not {wish}");
    }
    for wish in denied {
        assert!(!may(&client, user, wish).await, "{user} may {wish}");
    }
}

#[tokio::test]
async fn the_cloud_account_ends_at_its_namespace() {
    let allowed = [
        "create apps/deployments openstack -",
        "delete batch/jobs openstack -",
        "list secrets openstack -",
        "get pods:log openstack -",
        "escalate rbac.authorization.k8s.io/roles openstack -",
        "patch cluster.kupenstack.io/keystones:status openstack keystone",
        "patch cluster.kupenstack.io/openstacks:status - default",
        "get namespaces - kube-system",
        "create events.k8s.io/events default -",
        "patch secrets kupenstack-system kupenstack-webhook",
        "patch admissionregistration.k8s.io/validatingwebhookconfigurations - kupenstack-webhook",
    ];
    let denied = [
        "create apps/deployments default -",
        "get secrets kupenstack-system -",
        "list secrets kupenstack-system -",
        "create secrets kupenstack-system -",
        "patch admissionregistration.k8s.io/validatingwebhookconfigurations - other",
        "create admissionregistration.k8s.io/validatingwebhookconfigurations - -",
        "get secrets - -",
        "get namespaces - default",
        "patch namespaces - openstack",
        "create rbac.authorization.k8s.io/clusterroles - -",
        "bind rbac.authorization.k8s.io/clusterroles openstack cluster-admin",
        "create pods openstack -",
        "create pods:exec openstack -",
        "impersonate users - -",
        "get nodes - -",
        "patch kupenstack.io/images:status default -",
    ];
    check(shared().await, &account("cloud"), &allowed, &denied).await;
}

#[tokio::test]
async fn the_resources_account_reads_credentials_by_name_and_touches_no_workload() {
    let allowed = [
        "list kupenstack.io/images - -",
        "patch kupenstack.io/networks:status default network",
        "patch kupenstack.io/securitygroups:status default web",
        "patch kupenstack.io/subnets:status default subnet",
        "patch kupenstack.io/ports:status default port",
        "patch kupenstack.io/keypairs:status default key-pair",
        "patch kupenstack.io/floatingips:status default floating-ip",
        "patch kupenstack.io/routers:status default router",
        "patch kupenstack.io/images:status default image",
        "patch kupenstack.io/clusterimages:status - image",
        "patch kupenstack.io/flavors:status - flavor",
        "patch kupenstack.io/externalnetworks:status - public",
        "patch namespaces - default",
        "get secrets openstack openstack-admin",
        "patch secrets default kupenstack-application-credential",
        "watch secrets - kupenstack-application-credential",
        "create events.k8s.io/events default -",
        "watch secrets kupenstack-system kupenstack-webhook",
    ];
    let denied = [
        "list secrets openstack -",
        "patch secrets kupenstack-system kupenstack-webhook",
        "patch admissionregistration.k8s.io/validatingwebhookconfigurations - kupenstack-webhook",
        "get secrets default -",
        "create secrets default -",
        "patch secrets default theirs",
        "watch secrets - -",
        "delete kupenstack.io/images default image",
        "create kupenstack.io/clusterimages - -",
        "delete kupenstack.io/flavors - -",
        "delete namespaces - default",
        "update namespaces:finalize - default",
        "create apps/deployments openstack -",
        "patch cluster.kupenstack.io/openstacks - default",
        "create rbac.authorization.k8s.io/rolebindings openstack -",
    ];
    check(shared().await, &account("resources"), &allowed, &denied).await;
}

#[tokio::test]
async fn people_get_our_kinds_with_kubernetes_own_roles() {
    let stage = shared().await;
    let roles: Api<ClusterRole> = Api::all(stage.plane.client().await);
    for role in ["view", "edit", "admin"] {
        let filled = await_condition(roles.clone(), role, |role: Option<&ClusterRole>| {
            role.and_then(|r| r.rules.as_ref()).is_some_and(|rules| {
                rules.iter().any(|rule| rule.resources.as_ref().is_some_and(|r| r.iter().any(|r| r == "images")))
            })
        });
        within(filled, &format!("our kinds in the role {role}")).await.unwrap();
    }
    let namespace = stage.plane.create_namespace("people").await;
    for role in ["view", "edit"] {
        let binding = format!("--clusterrole={role}");
        stage.kubectl(["create", "rolebinding", role, &binding, &format!("--user={role}er"), "-n", &namespace]);
    }
    let read = format!("list kupenstack.io/images {namespace} -");
    let write = format!("create kupenstack.io/images {namespace} -");
    let status = format!("patch kupenstack.io/images:status {namespace} -");
    check(stage, "viewer", &[&read], &[&write, &status]).await;
    let curated = ["create cluster.kupenstack.io/openstacks - -", "create kupenstack.io/clusterimages - -"];
    check(stage, "editer", &[&read, &write], &[&[status.as_str()], &curated[..]].concat()).await;
    stage.kubectl(["create", "clusterrolebinding", "everywhere", "--clusterrole=edit", "--user=everywhere"]);
    check(stage, "everywhere", &["list kupenstack.io/clusterimages - -"], &curated).await;
}

async fn patch(client: &Client, namespace: &str, metadata: Value) -> Result<(), String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"metadata": metadata}));
    namespaces.patch(namespace, &PatchParams::default(), &patch).await.map(drop).map_err(|e| e.to_string())
}

#[tokio::test]
async fn the_resources_account_is_held_to_our_annotations_and_finalizer() {
    let stage = shared().await;
    let (admin, operator) = (stage.plane.client().await, stage.account("resources").await);
    let name = stage.plane.create_namespace("held").await;
    let theirs =
        json!({"annotations": {"team": "blue"}, "labels": {"tier": "gold"}, "finalizers": ["example.org/theirs"]});
    patch(&admin, &name, theirs).await.expect("the administrator is not concerned");
    let probe = json!({"labels": {"probe": "x"}});
    eventually("the policy is enforced", || async { patch(&operator, &name, probe.clone()).await.is_err() }).await;

    let ours = json!({
        "annotations": {"kupenstack.io/project-id": "1", "kupenstack.io/project-name": "held"},
        "finalizers": ["example.org/theirs", "kupenstack.io/finalizer"],
    });
    patch(&operator, &name, ours).await.expect("our own metadata");
    for (change, words) in [
        (json!({"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}), "labels"),
        (json!({"labels": {"tier": null}}), "labels"),
        (json!({"annotations": {"team": "red"}}), "annotations"),
        (json!({"annotations": {"team": null}}), "annotations"),
        (json!({"annotations": {"scheduler.alpha.kubernetes.io/node-selector": "a=b"}}), "annotations"),
        (json!({"finalizers": ["kupenstack.io/finalizer"]}), "finalizer"),
        (json!({"finalizers": ["example.org/theirs", "example.org/more"]}), "finalizer"),
        (json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}), "owners"),
    ] {
        let refusal = patch(&operator, &name, change.clone()).await.expect_err(&change.to_string());
        assert!(refusal.contains("the operator may") && refusal.contains(words), "{change}: {refusal}");
    }
    let back = json!({"annotations": {"kupenstack.io/project-id": null}, "finalizers": ["example.org/theirs"]});
    patch(&operator, &name, back).await.expect("our own metadata goes again");
    patch(&admin, CLOUD, json!({"labels": {"tier": "silver"}})).await.expect("the administrator is not concerned");
}

fn secret(type_: &str, managed_by: &str) -> Secret {
    let name = "kupenstack-application-credential";
    let metadata = json!({
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": managed_by},
        "annotations": {"kubernetes.io/service-account.name": "default"},
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": type_});
    serde_json::from_value(secret).unwrap()
}

/// RBAC lets the account write one Secret per namespace; a token's Secret would be filled with the token of whichever
/// account of the namespace it names.
#[tokio::test]
async fn the_resources_account_can_make_no_token_and_take_over_no_secret() {
    let stage = shared().await;
    let name = "kupenstack-application-credential";
    let namespace = stage.plane.create_namespace("handout").await;
    let of = |client: Client| Api::<Secret>::namespaced(client, &namespace);
    let (admin, operator) = (of(stage.plane.client().await), of(stage.account("resources").await));
    let apply = async |api: &Api<Secret>, secret: Secret| {
        let params = PatchParams::apply("test").force();
        api.patch(name, &params, &Patch::Apply(&secret)).await.map(drop).map_err(|e| e.to_string())
    };
    let token = || secret("kubernetes.io/service-account-token", "kupenstack");
    eventually("the policy is enforced", || async {
        let refused = apply(&operator, token()).await;
        let _ = admin.delete(name, &DeleteParams::default()).await;
        refused.is_err_and(|refusal| refusal.contains("of a type that others act upon"))
    })
    .await;
    apply(&operator, secret("Opaque", "kupenstack")).await.expect("a Secret of our own");
    operator.delete(name, &DeleteParams::default()).await.expect("a Secret of our own");

    admin.create(&PostParams::default(), &secret("Opaque", "somebody")).await.unwrap();
    let refusal = apply(&operator, secret("Opaque", "kupenstack")).await.unwrap_err();
    assert!(refusal.contains("only Secrets of its own"), "{refusal}");
    let refusal = operator.delete(name, &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(refusal.contains("only Secrets of its own"), "{refusal}");
}

#[tokio::test]
async fn the_policies_expressions_fit_the_types() {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(shared().await.plane.client().await);
    for policy in ["kupenstack-resources-namespaces", "kupenstack-resources-secrets"] {
        let checked = await_condition(policies.clone(), policy, |p: Option<&ValidatingAdmissionPolicy>| {
            p.and_then(|p| p.status.as_ref()).is_some_and(|s| s.type_checking.is_some())
        });
        let policy = within(checked, &format!("the check of {policy}")).await.unwrap().unwrap();
        let checking = policy.status.and_then(|s| s.type_checking).unwrap();
        assert_eq!(checking.expression_warnings.unwrap_or_default(), []);
    }
}
