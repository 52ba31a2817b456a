//! The client against a real Keystone and a real Glance, named by the usual `OS_*` variables of an administrator:
//! `cargo test -p kupenstack-openstack --test real -- --ignored`. It removes what it makes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

use std::{
    collections::BTreeMap,
    env, io,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use kupenstack_openstack::{
    Client, CloudConfig, Credentials, DomainRef, ErrorKind, Image, ImageChange, ImageFilter, ImageService, ImageStatus,
    Interface, NewImage, NewProject, NewUser, Options, Project, ProjectFilter, ProjectScope, User, Visibility,
};
use serde_json::{Map, json};

const PASSWORD: &str = "first-pass-word";

fn variable(name: &str, default: Option<&str>) -> String {
    env::var(name).ok().or(default.map(str::to_owned)).unwrap_or_else(|| panic!("{name} is not set"))
}

fn admin() -> Client {
    // Tests run in one process, and only the first can install it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = CloudConfig {
        auth_url: variable("OS_AUTH_URL", None).parse().unwrap(),
        credentials: Credentials {
            username: variable("OS_USERNAME", Some("admin")),
            password: variable("OS_PASSWORD", None).into(),
            user_domain: DomainRef::Name(variable("OS_USER_DOMAIN_NAME", Some("Default"))),
            project: Some(ProjectScope::Name {
                name: variable("OS_PROJECT_NAME", Some("admin")),
                domain: DomainRef::Name(variable("OS_PROJECT_DOMAIN_NAME", Some("Default"))),
            }),
        },
        region: env::var("OS_REGION_NAME").ok(),
        interface: variable("OS_INTERFACE", Some("internal")).parse::<Interface>().unwrap(),
        ca_certificate: None,
    };
    Client::new(config, Options::default()).unwrap()
}

/// Unlike any other, of this run and others.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    format!("{:04x}-{:012x}", COUNT.fetch_add(1, Ordering::SeqCst), now)
}

fn user_credentials(user: &User, project: &Project, password: &str) -> Credentials {
    Credentials {
        username: user.name.clone(),
        password: password.to_owned().into(),
        user_domain: DomainRef::Id(user.domain_id.clone()),
        project: Some(ProjectScope::Id(project.id.clone())),
    }
}

/// Runs a test with a project and a member of its own, which go away however it ends.
async fn with_tenant<F>(test: impl FnOnce(Client, Project, User) -> F)
where
    F: Future<Output = ()>,
{
    let admin = admin();
    let identity = admin.identity();
    let name = format!("kupenstack-test-{}", unique());
    let project = NewProject {
        name: name.clone(),
        domain_id: "default".to_owned(),
        description: "a test".to_owned(),
        tags: vec![name.clone(), "kupenstack".to_owned()],
        extra: Map::from_iter([("kupenstack_owner".to_owned(), json!(name))]),
    };
    let user = NewUser {
        name: name.clone(),
        domain_id: "default".to_owned(),
        password: PASSWORD.to_owned().into(),
        description: String::new(),
        default_project_id: None,
        extra: Map::from_iter([("kupenstack_owner".to_owned(), json!(name))]),
    };
    let project = identity.create_project(&project).await.unwrap();
    let user = identity.create_user(&user).await.unwrap();
    let outcome = AssertUnwindSafe(test(admin, project.clone(), user.clone())).catch_unwind().await;
    assert!(identity.delete_user(&user.id).await.unwrap());
    assert!(identity.delete_project(&project.id).await.unwrap());
    assert!(!identity.delete_project(&project.id).await.unwrap());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

async fn become_member(admin: &Client, project: &Project, user: &User) -> Client {
    let identity = admin.identity();
    let role = identity.find_role("member").await.unwrap().unwrap();
    assert!(!identity.has_role(&project.id, &user.id, &role.id).await.unwrap());
    identity.assign_role(&project.id, &user.id, &role.id).await.unwrap();
    identity.assign_role(&project.id, &user.id, &role.id).await.unwrap();
    assert!(identity.has_role(&project.id, &user.id, &role.id).await.unwrap());
    admin.act_as(user_credentials(user, project, PASSWORD))
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn both_services_are_there() {
    let admin = admin();
    let info = admin.authenticate().await.unwrap();
    assert!(info.project_id.is_some());
    assert_eq!(admin.probe("identity", "/").await.unwrap(), 300);
    assert_eq!(admin.probe("image", "/healthcheck").await.unwrap(), 200);
    let identity = admin.identity();
    assert_eq!(identity.find_domain("Default").await.unwrap().unwrap().id, "default");
    assert_eq!(identity.get_domain("default").await.unwrap().unwrap().name, "Default");
    let services = identity.list_services().await.unwrap();
    let glance = services.iter().find(|service| service.service_type == "image").unwrap();
    let endpoints = identity.list_endpoints().await.unwrap();
    assert!(endpoints.iter().any(|endpoint| endpoint.service_id == glance.id && endpoint.interface == "public"));
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn a_wrong_password_is_refused() {
    let wrong = Credentials {
        username: variable("OS_USERNAME", Some("admin")),
        password: "not-the-password".to_owned().into(),
        user_domain: DomainRef::default(),
        project: None,
    };
    let error = admin().act_as(wrong).authenticate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn projects_and_users_live_and_die() {
    with_tenant(async |admin, project, user| {
        let identity = admin.identity();
        assert_eq!(identity.get_project(&project.id).await.unwrap().as_ref(), Some(&project));
        assert_eq!(project.extra["kupenstack_owner"], json!(project.name));
        assert_eq!(identity.get_user(&user.id).await.unwrap().unwrap().extra["kupenstack_owner"], json!(user.name));
        let found = identity.find_project(&project.name, "default").await.unwrap().unwrap();
        assert_eq!(found.id, project.id);
        assert_eq!(identity.find_project(&project.name.to_uppercase(), "default").await.unwrap(), None);
        assert_eq!(identity.find_user(&user.name, "default").await.unwrap().unwrap().id, user.id);
        let filter = ProjectFilter { tags: project.tags.clone(), ..ProjectFilter::default() };
        let marked: Vec<Project> = identity.list_projects(&filter).try_collect().await.unwrap();
        assert_eq!(marked.iter().map(|project| &project.id).collect::<Vec<_>>(), [&project.id]);

        let again = NewProject { name: project.name.clone(), domain_id: "default".to_owned(), ..NewProject::default() };
        let error = identity.create_project(&again).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn a_changed_password_counts_at_once() {
    with_tenant(async |admin, project, user| {
        let member = become_member(&admin, &project, &user).await;
        member.authenticate().await.unwrap();
        let none = ImageFilter { owner: Some(project.id.clone()), ..ImageFilter::default() };
        assert!(images(&member.image(), &none).await.is_empty());
        admin.identity().set_password(&user.id, &"second-pass-word".to_owned().into()).await.unwrap();
        let error = member.authenticate().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
        let member = admin.act_as(user_credentials(&user, &project, "second-pass-word"));
        assert_eq!(member.authenticate().await.unwrap().project_id, Some(project.id.clone()));
        let error = member.identity().create_project(&NewProject::default()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::BadRequest), "{error}");
    })
    .await;
}

async fn images(image: &ImageService, filter: &ImageFilter) -> Vec<Image> {
    image.list(filter).try_collect().await.unwrap()
}

fn new_image(name: &str) -> NewImage {
    NewImage {
        id: format!("00000000-0000-4000-{}", unique()),
        name: name.to_owned(),
        disk_format: "raw".to_owned(),
        container_format: "bare".to_owned(),
        visibility: Visibility::Private,
        min_disk: 1,
        min_ram: 64,
        tags: vec!["kupenstack".to_owned()],
        properties: BTreeMap::from([("kupenstack_mark".to_owned(), "kupenstack:c:u".to_owned())]),
    }
}

const CHUNK: usize = 64 << 10;

fn data(chunks: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter((0..chunks).map(|number| Ok(Bytes::from(vec![u8::try_from(number % 251).unwrap(); CHUNK]))))
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn an_image_lives_and_dies() {
    with_tenant(async |admin, project, user| {
        let image = become_member(&admin, &project, &user).await.image();
        let new = new_image("a b, c");
        let made = image.create(&new).await.unwrap();
        assert_eq!((made.id.as_str(), &made.status), (new.id.as_str(), &ImageStatus::Queued));
        assert_eq!((made.owner.as_ref(), &made.properties), (Some(&project.id), &new.properties));
        assert_eq!(image.create(&new).await.unwrap_err().kind(), ErrorKind::Conflict);

        let size = 128 * CHUNK as u64;
        image.upload(&new.id, Some(size), data(128)).await.unwrap();
        let active = image.get(&new.id).await.unwrap().unwrap();
        assert_eq!((active.status, active.size), (ImageStatus::Active, Some(size)));
        assert!(active.os_hash_value.is_some());
        let error = image.upload(&new.id, None, data(128)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");

        let changes = [
            ImageChange::set("min_disk", 2),
            ImageChange::set("os_distro", "x"),
            ImageChange::remove("kupenstack_mark"),
        ];
        let after = image.update(&new.id, &changes).await.unwrap();
        assert_eq!((after.min_disk, after.properties), (2, BTreeMap::from([("os_distro".to_owned(), "x".to_owned())])));
        assert_eq!(image.update(&new.id, &[ImageChange::remove("nil")]).await.unwrap_err().kind(), ErrorKind::Conflict);

        let filter = ImageFilter {
            owner: Some(project.id.clone()),
            visibility: Some(Visibility::Private),
            ..ImageFilter::default()
        };
        assert_eq!(images(&image, &filter).await.len(), 1);
        assert!(image.delete(&new.id).await.unwrap());
        assert!(!image.delete(&new.id).await.unwrap());
        assert_eq!(image.get(&new.id).await.unwrap(), None);
        // Glance keeps the row of a deleted image, so an id is used up.
        assert_eq!(image.create(&new).await.unwrap_err().kind(), ErrorKind::Conflict);
    })
    .await;
}

/// What came before a fault must never become an image.
#[tokio::test]
#[ignore = "needs a real cloud"]
async fn a_broken_upload_is_no_image() {
    with_tenant(async |admin, project, user| {
        let image = become_member(&admin, &project, &user).await.image();
        for length in [None, Some(16 * CHUNK as u64)] {
            let new = new_image("broken");
            image.create(&new).await.unwrap();
            let source = data(16).chain(stream::iter([Err(io::Error::other("digest mismatch"))]));
            let error = image.upload(&new.id, length, source).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Source, "{error}");
            let left = image.get(&new.id).await.unwrap().unwrap();
            println!("after a broken upload (length {length:?}) the image is {}", left.status);
            assert_ne!(left.status, ImageStatus::Active);
            assert!(image.delete(&new.id).await.unwrap());
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn a_list_has_pages() {
    with_tenant(async |admin, project, user| {
        let image = become_member(&admin, &project, &user).await.image();
        let new: Vec<_> = (0..203).map(|number| new_image(&format!("image-{number}"))).collect();
        stream::iter(&new).map(|new| image.create(new)).buffer_unordered(4).try_collect::<Vec<_>>().await.unwrap();
        let filter = ImageFilter { owner: Some(project.id.clone()), ..ImageFilter::default() };
        let listed = images(&image, &filter).await;
        stream::iter(&new).map(|new| image.delete(&new.id)).buffer_unordered(4).try_collect::<Vec<_>>().await.unwrap();
        assert_eq!(listed.len(), new.len());
    })
    .await;
}
