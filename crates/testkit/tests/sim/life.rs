//! Everything our client does, without a fault.

use std::{io, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kupenstack_openstack::{
    ErrorKind, Image, ImageChange, ImageFilter, ImageService, ImageStatus, NewLimit, NewProject, NewUser, Project,
    ProjectFilter, Visibility,
};
use kupenstack_testkit::sim::{Sim, SimOptions};
use serde_json::{Map, json};

use crate::support::{ID, admin, credentials, member, new_image, start};

pub(crate) fn data(bytes: &'static [u8]) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter([Ok(Bytes::from_static(bytes))])
}

async fn images(image: &ImageService, filter: &ImageFilter) -> Vec<Image> {
    image.list(filter).try_collect().await.unwrap()
}

#[tokio::test]
async fn both_services_are_there() {
    let sim = start();
    let admin = admin(&sim);
    assert!(admin.authenticate().await.unwrap().project_id.is_some());
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
async fn projects_users_and_roles_live_and_die() {
    let sim = start();
    let admin = admin(&sim);
    let identity = admin.identity();
    let new = NewProject {
        name: "Shop".to_owned(),
        domain_id: "default".to_owned(),
        tags: vec!["a".to_owned(), "b".to_owned()],
        extra: Map::from_iter([("my-mark".to_owned(), json!("m"))]),
        ..NewProject::default()
    };
    let project = identity.create_project(&new).await.unwrap();
    assert_eq!(project.extra["my_mark"], json!("m"), "Keystone changes the names of attributes");
    let taken = identity.create_project(&NewProject { name: "shop".to_owned(), ..new }).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict, "names are one whatever their case: {taken}");
    let user = NewUser {
        name: "shop".to_owned(),
        domain_id: "default".to_owned(),
        password: "first".to_owned().into(),
        description: String::new(),
        default_project_id: None,
        extra: Map::new(),
    };
    let user = identity.create_user(&user).await.unwrap();
    let role = identity.find_role("member").await.unwrap().unwrap();
    assert!(!identity.has_role(&project.id, &user.id, &role.id).await.unwrap());
    identity.assign_role(&project.id, &user.id, &role.id).await.unwrap();
    assert!(identity.has_role(&project.id, &user.id, &role.id).await.unwrap());
    for (tags, count) in [(vec!["a", "b"], 1), (vec!["a", "c"], 0)] {
        let filter = ProjectFilter { tags: tags.into_iter().map(str::to_owned).collect(), ..ProjectFilter::default() };
        assert_eq!(identity.list_projects(&filter).try_collect::<Vec<Project>>().await.unwrap().len(), count);
    }
    assert!(identity.delete_project(&project.id).await.unwrap());
    assert!(!identity.delete_project(&project.id).await.unwrap());
    assert!(!identity.has_role(&project.id, &user.id, &role.id).await.unwrap());
    assert!(identity.delete_user(&user.id).await.unwrap());
}

#[tokio::test]
async fn a_token_ends_with_its_time_and_with_its_password() {
    let sim = start();
    let admin = admin(&sim);
    let shop = member(&sim, &admin, "shop");
    shop.image().get(ID).await.unwrap();
    sim.clock().advance(Duration::from_hours(1));
    shop.image().get(ID).await.unwrap();
    let logins = sim.cloud().journal.count("POST", "/v3/auth/tokens");
    assert_eq!(logins, 2, "the refused token was replaced once");
    admin.identity().set_password("user-shop", &"other".to_owned().into()).await.unwrap();
    let error = shop.image().get(ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
    admin.act_as(credentials("shop", "other", "shop")).authenticate().await.unwrap();
    sim.cloud().keystone.remove(sim.clock().now(), "projects", "project-shop");
    let error = admin.act_as(credentials("shop", "other", "shop")).authenticate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
}

#[tokio::test]
async fn an_image_lives_and_dies() {
    let sim = Sim::start(SimOptions { standing_clock: true, saving: Duration::from_secs(10), ..SimOptions::default() });
    let image = member(&sim, &admin(&sim), "shop").image();
    let made = image.create(&new_image(ID)).await.unwrap();
    assert_eq!((made.status, made.owner.as_deref()), (ImageStatus::Queued, Some("project-shop")));
    assert_eq!(image.create(&new_image(ID)).await.unwrap_err().kind(), ErrorKind::Conflict);

    image.upload(ID, Some(3), data(b"abc")).await.unwrap();
    assert_eq!(image.get(ID).await.unwrap().unwrap().status, ImageStatus::Saving);
    sim.clock().advance(Duration::from_secs(10));
    let active = image.get(ID).await.unwrap().unwrap();
    assert_eq!((active.status, active.size), (ImageStatus::Active, Some(3)));
    assert_eq!(active.checksum.as_deref(), Some("900150983cd24fb0d6963f7d28e17f72"));
    assert_eq!(image.upload(ID, None, data(b"abc")).await.unwrap_err().kind(), ErrorKind::Conflict);

    let changes = [ImageChange::set("min_disk", 2), ImageChange::set("a/b", "x"), ImageChange::remove("os_distro")];
    let after = image.update(ID, &changes).await.unwrap();
    assert_eq!((after.min_disk, after.properties), (2, [("a/b".to_owned(), "x".to_owned())].into()));
    assert_eq!(image.update(ID, &[ImageChange::remove("nil")]).await.unwrap_err().kind(), ErrorKind::Conflict);
    let publish = image.update(ID, &[ImageChange::set("visibility", "public")]).await.unwrap_err();
    assert_eq!(publish.kind(), ErrorKind::Forbidden, "{publish}");

    assert!(image.delete(ID).await.unwrap());
    assert!(!image.delete(ID).await.unwrap());
    assert_eq!(image.get(ID).await.unwrap(), None);
    assert_eq!(image.create(&new_image(ID)).await.unwrap_err().kind(), ErrorKind::Conflict, "an id is used up");
}

#[tokio::test]
async fn a_project_sees_its_own_and_what_is_public() {
    let sim = start();
    let admin = admin(&sim);
    let (shop, other) = (member(&sim, &admin, "shop").image(), member(&sim, &admin, "other").image());
    let id = |number: u32| format!("4f1ab1a4-0000-5000-8000-00000000000{number}");
    shop.create(&new_image(&id(1))).await.unwrap();
    admin
        .image()
        .create(&kupenstack_openstack::NewImage { visibility: Visibility::Public, ..new_image(&id(2)) })
        .await
        .unwrap();
    admin.image().create(&new_image(&id(3))).await.unwrap();
    let ids = async |image: &ImageService| -> Vec<String> {
        images(image, &ImageFilter::default()).await.into_iter().map(|image| image.id).collect()
    };
    assert_eq!(ids(&shop).await, [id(2), id(1)]);
    assert_eq!(ids(&other).await, [id(2)]);
    assert_eq!(ids(&admin.image()).await, [id(3), id(2), id(1)]);
    assert_eq!(other.get(&id(1)).await.unwrap(), None);
    assert!(!other.delete(&id(1)).await.unwrap());
    assert_eq!(other.delete(&id(2)).await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert_eq!(other.update(&id(2), &[ImageChange::set("a", "b")]).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let shop = admin.act_as(credentials("shop", "pass", "shop"));
    assert_eq!(shop.identity().find_project("shop", "default").await.unwrap_err().kind(), ErrorKind::Forbidden);
}

/// Waits until the server is where a test wants it: it works on its own thread.
pub(crate) async fn until(sim: &Sim, status: &str) {
    while sim.cloud().glance.image(ID).is_none_or(|image| image.status != status) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_broken_upload_is_no_image() {
    let sim = std::sync::Arc::new(start());
    let image = member(&sim, &admin(&sim), "shop").image();
    image.create(&new_image(ID)).await.unwrap();
    for length in [None, Some(6)] {
        let of_source = std::sync::Arc::clone(&sim);
        let source = data(b"abc").chain(stream::once(async move {
            until(&of_source, "saving").await;
            Err(io::Error::other("digest mismatch"))
        }));
        let error = image.upload(ID, length, source).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Source, "{error}");
        until(&sim, "queued").await;
    }
    image.upload(ID, Some(3), data(b"abc")).await.unwrap();
    assert_eq!(image.get(ID).await.unwrap().unwrap().status, ImageStatus::Active);
}

#[tokio::test]
async fn a_quota_is_a_limit() {
    let sim = start();
    let image = member(&sim, &admin(&sim), "shop").image();
    sim.cloud().quotas.set("project-shop", "image_count_total", 1);
    image.create(&new_image(ID)).await.unwrap();
    let error = image.create(&new_image("4f1ab1a4-0000-5000-8000-000000000002")).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Quota, Some(413)), "{error}");
    image.delete(ID).await.unwrap();
    image.create(&new_image("4f1ab1a4-0000-5000-8000-000000000002")).await.unwrap();
}

#[tokio::test]
async fn a_limit_in_keystone_is_one_in_glance() {
    let sim = start();
    let admin = admin(&sim);
    let (identity, shop) = (admin.identity(), member(&sim, &admin, "shop"));
    let now = sim.clock().now();
    sim.cloud().keystone.register_limit(now, "image", "image_count_total", -1);
    let registered: Vec<_> = identity.list_registered_limits().try_collect().await.unwrap();
    let [registered] = &registered[..] else { panic!("{registered:?}") };
    let limit = |project: &str, resource_limit| NewLimit {
        project_id: project.to_owned(),
        service_id: registered.service_id.clone(),
        region_id: registered.region_id.clone(),
        resource_name: registered.resource_name.clone(),
        resource_limit,
        description: "mark".to_owned(),
    };
    let made = identity.create_limit(&limit("project-shop", 1)).await.unwrap();
    let again = identity.create_limit(&limit("project-shop", 2)).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    let elsewhere = NewLimit { region_id: None, ..limit("project-shop", 1) };
    assert_eq!(identity.create_limit(&elsewhere).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let listed: Vec<_> = identity.list_limits(Some("project-shop")).try_collect().await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&made));
    let seen: Vec<_> = shop.identity().list_limits(None).try_collect().await.unwrap();
    assert_eq!(seen, listed, "a member sees those of the own project");

    let image = shop.image();
    image.create(&new_image(ID)).await.unwrap();
    let error = image.create(&new_image("4f1ab1a4-0000-5000-8000-000000000002")).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Quota, Some(413)), "{error}");
    assert_eq!(identity.set_limit(&made.id, 2).await.unwrap().resource_limit, 2);
    image.create(&new_image("4f1ab1a4-0000-5000-8000-000000000002")).await.unwrap();
    assert_eq!(identity.set_limit(&made.id, 0).await.unwrap().resource_limit, 2, "as Keystone does");
    assert!(identity.delete_limit(&made.id).await.unwrap());
    assert!(!identity.delete_limit(&made.id).await.unwrap());
    image.create(&new_image("4f1ab1a4-0000-5000-8000-000000000003")).await.unwrap();
    identity.create_limit(&limit("project-shop", 0)).await.unwrap();
    identity.delete_project("project-shop").await.unwrap();
    assert!(sim.cloud().keystone.all("limits").next().is_none(), "they go with the project");
}

#[tokio::test]
async fn a_list_has_pages() {
    let sim = start();
    let image = member(&sim, &admin(&sim), "shop").image();
    let ids: Vec<_> = (0..403).map(|number| format!("4f1ab1a4-0000-5000-8000-{number:012}")).collect();
    stream::iter(&ids)
        .map(|id| {
            let new = new_image(id);
            let image = &image;
            async move { image.create(&new).await }
        })
        .buffered(8)
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    let mut listed: Vec<_> = images(&image, &ImageFilter::default()).await.into_iter().map(|image| image.id).collect();
    listed.sort();
    assert_eq!(listed, ids);
    assert_eq!(sim.cloud().journal.count("GET", "/v2/images"), 3);
}

/// Its keys are still there, so an old token can be read, and names nobody.
#[tokio::test]
async fn a_keystone_whose_database_is_lost_knows_nobody_of_before() {
    let sim = start();
    let admin = admin(&sim);
    member(&sim, &admin, "shop").authenticate().await.unwrap();
    admin.authenticate().await.unwrap();
    sim.cloud().replace_keystone();
    let error = admin.identity().find_role("member").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    admin.authenticate().await.unwrap();
    assert_eq!(admin.identity().find_project("shop", "default").await.unwrap(), None);
    assert!(admin.identity().find_role("member").await.unwrap().is_some());
}

#[tokio::test]
async fn what_is_changed_behind_the_services_backs_is_seen() {
    let sim = start();
    let admin = admin(&sim);
    let shop = member(&sim, &admin, "shop");
    shop.image().create(&new_image(ID)).await.unwrap();
    let now = sim.clock().now();
    {
        let mut cloud = sim.cloud();
        assert!(cloud.glance.edit(now, ID, |image| image.min_disk = 9));
        assert!(!cloud.glance.edit(now, "nil", |_| {}));
        assert!(cloud.keystone.grants().any(|grant| grant == ("project-shop", "user-shop", "member")));
        assert!(cloud.keystone.secrets().any(|secret| secret == "pass"));
        let other = Map::from_iter([("password".to_owned(), json!("other"))]);
        assert!(cloud.keystone.edit(now, "users", "user-shop", other));
        assert_eq!(cloud.keystone.find("users", "SHOP").and_then(|user| user.secret.as_deref()), Some("other"));
    }
    assert_eq!(admin.image().get(ID).await.unwrap().unwrap().min_disk, 9);
    let error = shop.image().get(ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "a token ends with its password: {error}");
}
