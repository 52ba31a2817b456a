//! Glance's calls, but for the data.

use std::collections::BTreeMap;

use kupenstack_openstack::{ErrorKind, ImageChange, ImageStatus, NewImage, Visibility};
use serde_json::json;
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{body_json, header, method, path},
};

use crate::support::{Cloud, IMAGE_ID, image_at, image_body};

pub(crate) fn new_image() -> NewImage {
    NewImage {
        id: IMAGE_ID.to_owned(),
        name: "cirros".to_owned(),
        disk_format: "qcow2".to_owned(),
        container_format: "bare".to_owned(),
        visibility: Visibility::Private,
        min_disk: 1,
        min_ram: 128,
        tags: Vec::new(),
        properties: BTreeMap::from([("os_distro".to_owned(), "cirros".to_owned())]),
    }
}

#[tokio::test]
async fn an_image_is_made_with_an_id_of_our_choice() {
    let cloud = Cloud::start().await;
    let body = json!({
        "id": IMAGE_ID, "name": "cirros", "disk_format": "qcow2", "container_format": "bare", "visibility": "private",
        "min_disk": 1, "min_ram": 128, "tags": [], "os_distro": "cirros",
    });
    Mock::given(method("POST"))
        .and(path("/v2/images"))
        .and(header("x-auth-token", "token-1"))
        .and(body_json(body))
        .respond_with(ResponseTemplate::new(201).set_body_json(image_body()))
        .mount(&cloud.server)
        .await;
    let image = cloud.client().image().create(&new_image()).await.unwrap();
    assert_eq!((image.id.as_str(), image.status), (IMAGE_ID, ImageStatus::Active));
    assert_eq!(image.properties["os_distro"], "cirros");
}

#[tokio::test]
async fn a_taken_id_is_a_conflict() {
    let cloud = Cloud::start().await;
    let page = format!(
        "<html><head><title>409 Conflict</title></head><body><h1>409 Conflict</h1>Image ID {IMAGE_ID} already exists!<br /></body></html>"
    );
    cloud.answer("POST", "/v2/images", ResponseTemplate::new(409).set_body_string(page)).await;
    let error = cloud.client().image().create(&new_image()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.to_string(), format!("image POST /v2/images: 409 Conflict: Image ID {IMAGE_ID} already exists!"));
}

#[tokio::test]
async fn an_image_is_changed_by_a_patch() {
    let cloud = Cloud::start().await;
    Mock::given(method("PATCH"))
        .and(path(image_at()))
        .and(header("content-type", "application/openstack-images-v2.1-json-patch"))
        .and(body_json(json!([
            {"op": "add", "path": "/min_disk", "value": 2},
            {"op": "remove", "path": "/os_distro"},
        ])))
        .respond_with(ResponseTemplate::new(200).set_body_json(image_body()))
        .mount(&cloud.server)
        .await;
    let changes = [ImageChange::set("min_disk", 2), ImageChange::remove("os_distro")];
    assert_eq!(cloud.client().image().update(IMAGE_ID, &changes).await.unwrap().id, IMAGE_ID);
}

#[tokio::test]
async fn what_is_not_there_is_no_error() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(404)).await;
    cloud.answer("DELETE", &image_at(), ResponseTemplate::new(404)).await;
    let image = cloud.client().image();
    assert_eq!(image.get(IMAGE_ID).await.unwrap(), None);
    assert!(!image.delete(IMAGE_ID).await.unwrap());
}

#[tokio::test]
async fn a_used_image_is_not_deleted() {
    let cloud = Cloud::start().await;
    let body = "409 Conflict\n\nImage x could not be deleted because it is in use: The image cannot be deleted because it is in use through the backend store outside of Glance.\n\n   ";
    cloud.answer("DELETE", &image_at(), ResponseTemplate::new(409).set_body_string(body)).await;
    let error = cloud.client().image().delete(IMAGE_ID).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("409 Conflict: Image x could not be deleted"), "{error}");
}

#[tokio::test]
async fn a_malformed_answer_is_told() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_string("{\"id\": ")).await;
    let error = cloud.client().image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Protocol, "MalformedAnswer"));
    assert!(error.to_string().starts_with(&format!("image GET {}: malformed answer: EOF", image_at())), "{error}");
}
