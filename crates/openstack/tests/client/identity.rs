//! Keystone's calls.

use futures::TryStreamExt;
use kupenstack_openstack::{ErrorKind, NewLimit, NewProject, NewUser};
use serde_json::{Map, Value, json};
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{body_json, method, path, query_param},
};

use crate::support::{Cloud, PASSWORD};

fn project(name: &str) -> Value {
    json!({
        "id": "p7", "name": name, "domain_id": "default", "description": "", "enabled": true, "is_domain": false,
        "parent_id": "default", "tags": ["kupenstack:c:u"], "options": {}, "links": {"self": "http://k/v3/projects/p7"},
        "kupenstack_owner": "c:u",
    })
}

fn user() -> Value {
    json!({
        "id": "u7", "name": "shop", "domain_id": "default", "enabled": true, "email": "a@b", "options": {},
        "password_expires_at": null, "links": {"self": "http://k/v3/users/u7"},
    })
}

fn list(collection: &str, items: &[Value]) -> ResponseTemplate {
    let links = json!({"next": null, "self": "http://k/v3", "previous": null});
    ResponseTemplate::new(200).set_body_json(json!({collection: items, "links": links}))
}

fn new_project() -> NewProject {
    NewProject {
        name: "shop".to_owned(),
        domain_id: "default".to_owned(),
        description: "namespace shop".to_owned(),
        tags: vec!["kupenstack:c:u".to_owned()],
        extra: Map::from_iter([("kupenstack_owner".to_owned(), json!("c:u"))]),
    }
}

#[tokio::test]
async fn a_project_is_made_with_its_marks() {
    let cloud = Cloud::start().await;
    let body = json!({"project": {
        "name": "shop", "domain_id": "default", "description": "namespace shop", "tags": ["kupenstack:c:u"],
        "kupenstack_owner": "c:u",
    }});
    Mock::given(method("POST"))
        .and(path("/v3/projects"))
        .and(body_json(body))
        .respond_with(ResponseTemplate::new(201).set_body_json(json!({"project": project("shop")})))
        .mount(&cloud.server)
        .await;
    let made = cloud.client().identity().create_project(&new_project()).await.unwrap();
    assert_eq!((made.id.as_str(), made.tags.as_slice()), ("p7", &["kupenstack:c:u".to_owned()][..]));
    assert_eq!(made.extra["kupenstack_owner"], "c:u");
    assert_eq!(made.extra.get("name"), None);
}

#[tokio::test]
async fn a_taken_name_is_a_conflict() {
    let cloud = Cloud::start().await;
    let message = "Conflict occurred attempting to store project - it is not permitted to have two projects with the same name in the same domain : shop.";
    let body = json!({"error": {"code": 409, "message": message, "title": "Conflict"}});
    cloud.answer("POST", "/v3/projects", ResponseTemplate::new(409).set_body_json(body)).await;
    let error = cloud.client().identity().create_project(&new_project()).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Conflict, "Conflict"));
    assert_eq!(error.to_string(), format!("identity POST /v3/projects: 409 Conflict: {message}"));
}

#[tokio::test]
async fn a_name_is_found_only_if_it_is_the_same() {
    let cloud = Cloud::start().await;
    Mock::given(path("/v3/projects"))
        .and(query_param("name", "shop & co"))
        .and(query_param("domain_id", "default"))
        .respond_with(list("projects", &[project("Shop & Co"), project("shop & co")]))
        .mount(&cloud.server)
        .await;
    let identity = cloud.client().identity();
    assert_eq!(identity.find_project("shop & co", "default").await.unwrap().unwrap().name, "shop & co");
    cloud.server.reset().await;
    cloud.answer("GET", "/v3/projects", list("projects", &[project("Shop")])).await;
    assert_eq!(identity.find_project("shop", "default").await.unwrap(), None);
}

#[tokio::test]
async fn what_is_not_there_is_no_error() {
    let cloud = Cloud::start().await;
    let identity = cloud.client().identity();
    let body = json!({"error": {"code": 404, "message": "Could not find project: nil.", "title": "Not Found"}});
    cloud.answer_all(ResponseTemplate::new(404).set_body_json(body)).await;
    assert_eq!(identity.get_project("nil").await.unwrap(), None);
    assert_eq!(identity.get_user("nil").await.unwrap(), None);
    assert!(!identity.delete_project("nil").await.unwrap());
    assert!(!identity.delete_user("nil").await.unwrap());
    assert!(!identity.has_role("p", "u", "r").await.unwrap());
    assert_eq!(identity.assign_role("p", "u", "r").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn what_is_there_is_deleted() {
    let cloud = Cloud::start().await;
    cloud.answer("DELETE", "/v3/projects/p7", ResponseTemplate::new(204)).await;
    assert!(cloud.client().identity().delete_project("p7").await.unwrap());
}

#[tokio::test]
async fn a_limit_is_made_listed_and_changed() {
    let cloud = Cloud::start().await;
    let limit = |amount: i64| {
        json!({
            "id": "l7", "project_id": "p7", "domain_id": null, "service_id": "s7", "region_id": null,
            "resource_name": "image_count_total", "resource_limit": amount, "description": "m", "links": {},
        })
    };
    let body = json!({"limits": [{
        "project_id": "p7", "service_id": "s7", "resource_name": "image_count_total", "resource_limit": 5, "description": "m",
    }]});
    Mock::given(method("POST"))
        .and(path("/v3/limits"))
        .and(body_json(body))
        .respond_with(ResponseTemplate::new(201).set_body_json(json!({"limits": [limit(5)]})))
        .mount(&cloud.server)
        .await;
    Mock::given(method("GET"))
        .and(path("/v3/limits"))
        .and(query_param("project_id", "p7"))
        .respond_with(list("limits", &[limit(5)]))
        .mount(&cloud.server)
        .await;
    Mock::given(method("PATCH"))
        .and(path("/v3/limits/l7"))
        .and(body_json(json!({"limit": {"resource_limit": 0}})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"limit": limit(5)})))
        .mount(&cloud.server)
        .await;
    let identity = cloud.client().identity();
    let new = NewLimit {
        project_id: "p7".to_owned(),
        service_id: "s7".to_owned(),
        region_id: None,
        resource_name: "image_count_total".to_owned(),
        resource_limit: 5,
        description: "m".to_owned(),
    };
    let made = identity.create_limit(&new).await.unwrap();
    let listed: Vec<_> = identity.list_limits(Some("p7")).try_collect().await.unwrap();
    assert_eq!(listed, [made]);
    assert_eq!(
        identity.set_limit("l7", 0).await.unwrap().resource_limit,
        5,
        "what is answered, not what was asked for"
    );
}

#[tokio::test]
async fn an_id_can_not_lead_elsewhere() {
    let cloud = Cloud::start().await;
    cloud.answer("DELETE", "/v3/users/..%2Fprojects%2Fp7%3Fx", ResponseTemplate::new(204)).await;
    assert!(cloud.client().identity().delete_user("../projects/p7?x").await.unwrap());
}

#[tokio::test]
async fn a_user_is_made_and_its_password_set() {
    let cloud = Cloud::start().await;
    let body = json!({"user": {
        "name": "shop", "domain_id": "default", "description": "", "password": PASSWORD, "default_project_id": "p7",
    }});
    Mock::given(method("POST"))
        .and(path("/v3/users"))
        .and(body_json(body))
        .respond_with(ResponseTemplate::new(201).set_body_json(json!({"user": user()})))
        .mount(&cloud.server)
        .await;
    Mock::given(method("PATCH"))
        .and(path("/v3/users/u7"))
        .and(body_json(json!({"user": {"password": PASSWORD}})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"user": user()})))
        .expect(1)
        .mount(&cloud.server)
        .await;
    let identity = cloud.client().identity();
    let new = NewUser {
        name: "shop".to_owned(),
        domain_id: "default".to_owned(),
        password: PASSWORD.to_owned().into(),
        description: String::new(),
        default_project_id: Some("p7".to_owned()),
        extra: Map::new(),
    };
    let made = identity.create_user(&new).await.unwrap();
    assert_eq!((made.id.as_str(), &made.extra["email"]), ("u7", &json!("a@b")));
    identity.set_password(&made.id, &PASSWORD.to_owned().into()).await.unwrap();
    cloud.server.reset().await;
    Mock::given(method("PATCH"))
        .and(path("/v3/users/u7"))
        .and(body_json(json!({"user": {"default_project_id": "p8"}})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"user": user()})))
        .expect(1)
        .mount(&cloud.server)
        .await;
    identity.set_default_project(&made.id, "p8").await.unwrap();
}

#[tokio::test]
async fn roles_are_found_granted_and_checked() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/v3/roles", list("roles", &[json!({"id": "r1", "name": "Member", "domain_id": null})])).await;
    let grant = "/v3/projects/p/users/u/roles/r1";
    cloud.answer("PUT", grant, ResponseTemplate::new(204)).await;
    cloud.answer("HEAD", grant, ResponseTemplate::new(204)).await;
    let identity = cloud.client().identity();
    let role = identity.find_role("member").await.unwrap().unwrap();
    identity.assign_role("p", "u", &role.id).await.unwrap();
    assert!(identity.has_role("p", "u", &role.id).await.unwrap());
}

#[tokio::test]
async fn grants_are_listed_whoever_has_them_and_wherever() {
    let cloud = Cloud::start().await;
    let grant = |user: Value, scope: Value| {
        let mut grant = json!({"role": {"id": "r"}, "scope": scope, "links": {"assignment": "http://k"}});
        grant.as_object_mut().unwrap().extend(user.as_object().unwrap().clone());
        grant
    };
    let grants = [
        grant(json!({"user": {"id": "u"}}), json!({"project": {"id": "p"}})),
        grant(json!({"user": {"id": "u"}}), json!({"project": {"id": "p"}, "OS-INHERIT:inherited_to": "projects"})),
        grant(json!({"group": {"id": "g"}}), json!({"domain": {"id": "d"}})),
        grant(json!({"user": {"id": "u"}}), json!({"system": {"all": true}})),
        json!({"user": {"id": "u"}}),
    ];
    cloud.answer("GET", "/v3/role_assignments", list("role_assignments", &grants)).await;
    let read: Vec<_> = cloud.client().identity().survey_role_assignments().try_collect().await.unwrap();
    let read: Vec<_> =
        read.iter().map(|one| (one.user_id.as_deref(), one.project_id.as_deref(), one.inherited)).collect();
    let (user, project) = (Some("u"), Some("p"));
    assert_eq!(read, [(user, project, false), (user, project, true), (None, None, false), (user, None, false)]);
}

#[tokio::test]
async fn one_odd_project_or_user_does_not_hide_the_others() {
    let cloud = Cloud::start().await;
    for (at, page) in [
        ("/v3/projects", list("projects", &[json!({"id": 7}), project("shop")])),
        ("/v3/users", list("users", &[json!({"id": 7}), user()])),
    ] {
        // Keystone gives the first thousand and says nothing of others unless it is asked for pages
        let whole = Mock::given(path(at)).and(query_param("domain_id", "default")).and(query_param("limit", "1000"));
        whole.respond_with(page).mount(&cloud.server).await;
    }
    cloud.answer("GET", "/v3/roles", list("roles", &[json!({"id": "r1", "name": "Member"})])).await;
    let identity = cloud.client().identity();
    let projects: Vec<_> = identity.survey_projects("default").try_collect().await.unwrap();
    let users: Vec<_> = identity.survey_users("default").try_collect().await.unwrap();
    let roles: Vec<_> = identity.list_roles().try_collect().await.unwrap();
    assert_eq!((projects[0].id.as_str(), users[0].id.as_str(), roles[0].is("member")), ("p7", "u7", true));
    assert_eq!((projects.len(), users.len(), roles.len()), (1, 1, 1));
}

#[tokio::test]
async fn domains_services_and_endpoints_are_read() {
    let cloud = Cloud::start().await;
    let domain = json!({"id": "default", "name": "Default", "enabled": true, "description": ""});
    cloud.answer("GET", "/v3/domains", list("domains", std::slice::from_ref(&domain))).await;
    cloud
        .answer("GET", "/v3/domains/default", ResponseTemplate::new(200).set_body_json(json!({"domain": domain})))
        .await;
    let service = json!({"id": "s", "type": "image", "name": "glance", "enabled": true, "description": "x"});
    cloud.answer("GET", "/v3/services", list("services", &[service])).await;
    let endpoint = json!({"id": "e", "service_id": "s", "interface": "public", "region_id": "R", "region": "R", "url": "http://g", "enabled": true});
    cloud.answer("GET", "/v3/endpoints", list("endpoints", &[endpoint])).await;
    let identity = cloud.client().identity();
    assert_eq!(identity.find_domain("Default").await.unwrap().unwrap().id, "default");
    assert_eq!(identity.get_domain("default").await.unwrap().unwrap().name, "Default");
    assert_eq!(identity.list_services().await.unwrap()[0].service_type, "image");
    assert_eq!(identity.list_endpoints().await.unwrap()[0].region_id.as_deref(), Some("R"));
}
