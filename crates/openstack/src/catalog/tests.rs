use rstest::rstest;
use serde_json::json;

use super::*;

fn catalog() -> Catalog {
    serde_json::from_value(json!([
        {"type": "identity", "name": "keystone", "id": "1", "endpoints": []},
        {"type": "volumev2", "endpoints": [{"interface": "public", "region_id": "A", "url": "http://old"}]},
        {"type": "volumev3", "endpoints": [{"interface": "public", "region": "A", "region_id": "A", "url": "http://cinder"}]},
        {"type": "image", "endpoints": [
            {"id": "a", "interface": "admin", "region_id": "A", "region": "A", "url": "http://admin-a"},
            {"id": "b", "interface": "internal", "region_id": "A", "region": "A", "url": "http://internal-a"},
            {"id": "c", "interface": "public", "region_id": "A", "region": "A", "url": "http://public-a"},
            {"id": "d", "interface": "public", "region_id": "B", "region": "B", "url": "http://public-b"},
        ]},
        {"type": "image", "endpoints": [{"interface": "internal", "region_id": "B", "url": "http://internal-b"}]},
    ]))
    .unwrap()
}

#[rstest]
#[case("image", Interface::Internal, Some("A"), Some("http://internal-a"))]
#[case("image", Interface::Public, Some("B"), Some("http://public-b"))]
#[case("image", Interface::Public, None, Some("http://public-a"))]
#[case::second_entry_of_a_type("image", Interface::Internal, Some("B"), Some("http://internal-b"))]
#[case::alias("block-storage", Interface::Public, Some("A"), Some("http://cinder"))]
#[case::no_alias_for_an_alias("volumev3", Interface::Public, Some("A"), Some("http://cinder"))]
#[case::other_region("image", Interface::Public, Some("C"), None)]
#[case::other_interface("block-storage", Interface::Internal, Some("A"), None)]
#[case::no_endpoints("identity", Interface::Public, None, None)]
#[case::no_service("dns", Interface::Public, None, None)]
fn an_endpoint_fits_type_interface_and_region(
    #[case] service_type: &str,
    #[case] interface: Interface,
    #[case] region: Option<&str>,
    #[case] url: Option<&str>,
) {
    assert_eq!(catalog().find(service_type, interface, region), url);
}

#[rstest]
#[case("http://glance:9292", "http://glance:9292/v2", "http://glance:9292/")]
#[case("http://glance:9292/", "http://glance:9292/v2", "http://glance:9292/")]
#[case("http://glance:9292/v2/", "http://glance:9292/v2", "http://glance:9292/")]
#[case("https://api/image", "https://api/image/v2", "https://api/image")]
#[case("https://api/compute/v2.1", "https://api/compute/v2.1", "https://api/compute")]
#[case("https://api/volumes", "https://api/volumes/v2", "https://api/volumes")]
fn a_version_is_added_or_taken_away(#[case] url: Url, #[case] with: &str, #[case] without: &str) {
    assert_eq!(versioned(url.clone(), "v2").as_str(), with);
    assert_eq!(unversioned(url).as_str(), without);
}
