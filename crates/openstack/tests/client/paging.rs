//! Lists in pages.

use futures::{TryStreamExt, stream::StreamExt};
use kupenstack_openstack::{Error, ErrorKind, Image, ImageFilter, Project, ProjectFilter, Visibility};
use serde_json::{Value, json};
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{path, query_param, query_param_is_missing},
};

use crate::support::{Cloud, image_body};

fn images(ids: &[&str], next: Option<&str>) -> ResponseTemplate {
    let images: Vec<Value> = ids
        .iter()
        .map(|id| {
            let mut image = image_body();
            image["id"] = json!(id);
            image
        })
        .collect();
    let mut body = json!({"images": images, "first": "/v2/images", "schema": "/v2/schemas/images"});
    if let Some(next) = next {
        body["next"] = json!(next);
    }
    ResponseTemplate::new(200).set_body_json(body)
}

async fn ids(cloud: &Cloud, filter: &ImageFilter) -> Result<Vec<String>, Error> {
    cloud.client().image().list(filter).map_ok(|image: Image| image.id).try_collect().await
}

#[tokio::test]
async fn glances_pages_are_followed() {
    let cloud = Cloud::start().await;
    Mock::given(path("/v2/images"))
        .and(query_param_is_missing("marker"))
        .and(query_param("name", "a b"))
        .and(query_param("owner", "p1"))
        .and(query_param("visibility", "public"))
        .and(query_param("limit", "200"))
        .respond_with(images(&["1", "2"], Some("/v2/images?name=a+b&limit=200&marker=2")))
        .mount(&cloud.server)
        .await;
    Mock::given(path("/v2/images"))
        .and(query_param("marker", "2"))
        .and(query_param("name", "a b"))
        .respond_with(images(&["3"], None))
        .mount(&cloud.server)
        .await;
    let filter = ImageFilter {
        name: Some("a b".to_owned()),
        owner: Some("p1".to_owned()),
        visibility: Some(Visibility::Public),
    };
    assert_eq!(ids(&cloud, &filter).await.unwrap(), ["1", "2", "3"]);
}

#[tokio::test]
async fn pages_are_asked_for_as_they_are_read() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/v2/images", images(&["1", "2"], Some("/v2/images?marker=2"))).await;
    let list = cloud.client().image().list(&ImageFilter::default());
    let first: Vec<_> = list.take(2).try_collect().await.unwrap();
    assert_eq!((first.len(), cloud.calls().await), (2, 1));
}

#[tokio::test]
async fn a_link_does_not_lead_the_token_elsewhere() {
    let elsewhere = Cloud::start().await;
    let cloud = Cloud::start().await;
    let page = |id: &str, next: Value| {
        let project = json!({"id": id, "name": id, "domain_id": "default", "enabled": true});
        ResponseTemplate::new(200).set_body_json(json!({"projects": [project], "links": {"next": next}}))
    };
    let next = format!("{}/v3/projects?marker=1", elsewhere.server.uri());
    Mock::given(path("/v3/projects"))
        .and(query_param_is_missing("marker"))
        .respond_with(page("1", json!(next)))
        .mount(&cloud.server)
        .await;
    Mock::given(path("/v3/projects"))
        .and(query_param("marker", "1"))
        .respond_with(page("2", Value::Null))
        .mount(&cloud.server)
        .await;
    let list = cloud.client().identity().list_projects(&ProjectFilter::default());
    let names: Vec<String> = list.map_ok(|project: Project| project.name).try_collect().await.unwrap();
    assert_eq!(names, ["1", "2"]);
    assert!(elsewhere.server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn filters_reach_keystone() {
    let cloud = Cloud::start().await;
    Mock::given(path("/v3/projects"))
        .and(query_param("domain_id", "default"))
        .and(query_param("tags", "a,b"))
        .and(query_param_is_missing("name"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"projects": [], "links": {"next": null}})))
        .expect(1)
        .mount(&cloud.server)
        .await;
    let filter = ProjectFilter {
        domain_id: Some("default".to_owned()),
        tags: vec!["a".to_owned(), "b".to_owned()],
        ..ProjectFilter::default()
    };
    let projects: Vec<Project> = cloud.client().identity().list_projects(&filter).try_collect().await.unwrap();
    assert!(projects.is_empty());
}

#[tokio::test]
async fn a_list_that_goes_in_circles_ends() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/v2/images", images(&["1"], Some("/v2/images?marker=1"))).await;
    let error = ids(&cloud, &ImageFilter::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().ends_with("the next page is this page"), "{error}");
}

#[tokio::test]
async fn a_part_of_a_list_is_not_taken_for_the_whole() {
    let cloud = Cloud::start().await;
    let body = json!({"projects": [], "links": {"next": null}, "truncated": true});
    cloud.answer("GET", "/v3/projects", ResponseTemplate::new(200).set_body_json(body)).await;
    let list = cloud.client().identity().list_projects(&ProjectFilter::default());
    let error = list.try_collect::<Vec<Project>>().await.unwrap_err();
    assert!(error.to_string().ends_with("the list of projects is cut off"), "{error}");
}

#[tokio::test]
async fn a_fault_on_a_later_page_is_not_lost() {
    let cloud = Cloud::start().await;
    Mock::given(path("/v2/images"))
        .and(query_param_is_missing("marker"))
        .respond_with(images(&["1"], Some("/v2/images?marker=1")))
        .mount(&cloud.server)
        .await;
    Mock::given(query_param("marker", "1")).respond_with(ResponseTemplate::new(500)).mount(&cloud.server).await;
    assert_eq!(ids(&cloud, &ImageFilter::default()).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_survey_asks_for_images_of_all_and_leaves_out_what_can_not_be_read() {
    let cloud = Cloud::start().await;
    let everything = |hidden| {
        Mock::given(path("/v2/images"))
            .and(query_param("visibility", "all"))
            .and(query_param("os_hidden", hidden))
            .and(query_param("sort", "created_at:asc,id:asc"))
            .and(query_param("limit", "1000"))
    };
    let odd = json!({"id": "odd", "status": 7});
    let mut whole = image_body();
    whole["id"] = json!("1");
    let shown = ResponseTemplate::new(200).set_body_json(json!({"images": [odd, whole]}));
    everything("false").respond_with(shown).expect(1).mount(&cloud.server).await;
    everything("true").respond_with(images(&["2"], None)).expect(1).mount(&cloud.server).await;
    let all: Vec<Image> = cloud.client().image().survey().try_collect().await.unwrap();
    assert_eq!(all.iter().map(|image| image.id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
}
