use std::collections::BTreeMap;

use kupenstack_api::resources::{Image, ImageFormat, ImageSpec};
use kupenstack_images::Format;
use kupenstack_openstack::{self as openstack, ImageChange};
use rstest::rstest;
use serde_json::json;

use super::{
    is_open, is_whole,
    wanted::{MARK, SIZE, SOURCE_FORMAT, Wanted},
};

fn object(properties: &[(&str, &str)]) -> Image {
    let properties = properties.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let spec = ImageSpec {
        src: Some("http://host/a.img".to_owned()),
        format: Some(ImageFormat::Vhd),
        min_disk: Some(3),
        properties,
        ..ImageSpec::default()
    };
    Image::new("a", spec)
}

fn wanted(properties: &[(&str, &str)]) -> Wanted {
    Wanted::of(&object(properties), "the-mark").unwrap()
}

/// The image as Glance would show it after it was made as `wanted` says.
fn made(wanted: &Wanted) -> openstack::Image {
    let new = wanted.new_image("id-1", 4096, Format::Raw, Format::Vhd);
    let mut shown = json!(new.properties);
    for (key, value) in [
        ("id", json!(new.id)),
        ("name", json!(new.name)),
        ("status", json!("active")),
        ("size", json!(4096)),
        ("visibility", json!("private")),
        ("min_disk", json!(new.min_disk)),
        ("min_ram", json!(new.min_ram)),
        ("created_at", json!("2026-11-27T10:00:00Z")),
        ("updated_at", json!("2026-11-27T10:00:00Z")),
        ("foreign", json!("stays")),
    ] {
        shown[key] = value;
    }
    serde_json::from_value(shown).unwrap()
}

#[test]
fn a_new_image_says_what_it_is_and_whose() {
    let new = wanted(&[("hw_disk_bus", "virtio")]).new_image("id-1", 4096, Format::Qcow2, Format::Vhd);
    assert_eq!((new.disk_format.as_str(), new.container_format.as_str()), ("vhd", "bare"));
    let expected = [
        (MARK, "the-mark"),
        (SIZE, "4096"),
        (SOURCE_FORMAT, "qcow2"),
        ("hw_disk_bus", "virtio"),
        ("kupenstack_properties", "hw_disk_bus"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    assert_eq!(new.properties, expected);
}

#[test]
fn what_is_as_declared_needs_no_change() {
    for properties in [&[][..], &[("a", "1"), ("b", "2")]] {
        let wanted = wanted(properties);
        let image = made(&wanted);
        assert_eq!(wanted.attributes_to_set(&image), []);
        assert_eq!(wanted.properties_to_set(&image), []);
    }
}

#[test]
fn only_what_differs_is_sent_and_only_what_was_declared_is_removed() {
    let image = made(&wanted(&[("a", "1"), ("b", "2")]));
    let changes = wanted(&[("a", "9")]).properties_to_set(&image);
    let expected =
        [ImageChange::set("a", "9"), ImageChange::set("kupenstack_properties", "a"), ImageChange::remove("b")];
    assert_eq!(changes, expected);
    let changes = wanted(&[]).properties_to_set(&image);
    let removed = ["a", "b", "kupenstack_properties"].map(ImageChange::remove);
    assert_eq!(changes, removed);
}

#[test]
fn a_list_of_declared_properties_that_somebody_wrote_removes_nothing_but_properties() {
    let mut image = made(&wanted(&[]));
    image.properties.insert("kupenstack_properties".to_owned(), "kupenstack_mark,id,foreign".to_owned());
    let expected = [ImageChange::remove("foreign"), ImageChange::remove("kupenstack_properties")];
    assert_eq!(wanted(&[]).properties_to_set(&image), expected);
}

#[test]
fn a_lost_mark_comes_back() {
    let mut image = made(&wanted(&[]));
    image.properties.remove(MARK);
    assert_eq!(wanted(&[]).properties_to_set(&image), [ImageChange::set(MARK, "the-mark")]);
}

#[rstest]
#[case("visibility")]
#[case("owner")]
#[case("kupenstack_mark")]
#[case("os_glance_import_task")]
#[case("with space")]
#[case("a,b")]
#[case("a/b")]
#[case("")]
fn attributes_and_reserved_names_are_no_properties(#[case] name: &str) {
    let blocked = Wanted::of(&object(&[(name, "x")]), "mark").unwrap_err();
    assert_eq!(blocked.reason(), "InvalidSpec");
    assert!(blocked.message().starts_with("spec.properties"), "{}", blocked.message());
}

#[rstest]
#[case("active", Some(4096), true)]
#[case("deactivated", Some(4096), true)]
#[case("active", Some(100), false)]
#[case("active", Some(0), false)]
#[case("active", None, false)]
#[case("queued", None, false)]
#[case("saving", None, false)]
#[case("killed", None, false)]
#[case("of a newer Glance", None, true)]
fn whole_is_what_has_every_byte(#[case] status: &str, #[case] size: Option<u64>, #[case] expected: bool) {
    let mut image = made(&wanted(&[]));
    image.status = status.to_owned().into();
    image.size = size;
    assert_eq!(is_whole(&image), expected);
}

#[test]
fn only_a_queued_record_for_the_same_data_is_filled() {
    let mut image = made(&wanted(&[]));
    assert!(!is_open(&image, 4096), "it is active");
    image.status = "queued".to_owned().into();
    assert!(is_open(&image, 4096));
    assert!(!is_open(&image, 4097));
}
