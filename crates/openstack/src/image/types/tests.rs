use super::*;

/// The shape of a real answer.
fn image() -> Value {
    json!({
        "checksum": "443b7623e27ecf03dc9e01ee93f67afe",
        "container_format": "bare",
        "created_at": "2026-11-27T10:00:00Z",
        "direct_url": "file:///var/lib/glance/images/x",
        "disk_format": "qcow2",
        "file": "/v2/images/4f1ab1a4/file",
        "id": "4f1ab1a4",
        "min_disk": 1,
        "min_ram": 128,
        "name": "cirros",
        "os_hash_algo": "sha512",
        "os_hash_value": "6513f21e44aa3da3",
        "os_hidden": false,
        "owner": "f00d",
        "protected": false,
        "schema": "/v2/schemas/image",
        "self": "/v2/images/4f1ab1a4",
        "size": 12_716_032,
        "status": "active",
        "stores": "local",
        "tags": ["a"],
        "updated_at": "2026-11-27T10:00:05Z",
        "virtual_size": null,
        "visibility": "private",
        "hw_disk_bus": "virtio",
        "kupenstack_mark": "kupenstack:c:u",
    })
}

#[test]
fn what_is_written_reads_as_the_same_image() {
    let status = json!("of a newer Glance");
    let newer = json!({"status": status, "id": "4f1ab1a4", "visibility": "shared", "created_at": "2026-11-27T10:00:00Z",
        "updated_at": "2026-11-27T10:00:00.5Z"});
    for answer in [image(), newer] {
        let image: Image = serde_json::from_value(answer).unwrap();
        let written = serde_json::to_string(&image).unwrap();
        assert!(!written.contains("null"), "{written}");
        assert_eq!(serde_json::from_str::<Image>(&written).unwrap(), image);
    }
}

#[test]
fn properties_are_what_is_no_attribute() {
    let image: Image = serde_json::from_value(image()).unwrap();
    let properties: Vec<_> = image.properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(properties, [("hw_disk_bus", "virtio"), ("kupenstack_mark", "kupenstack:c:u")]);
    assert_eq!((image.status, image.visibility), (ImageStatus::Active, Visibility::Private));
    assert_eq!((image.size, image.virtual_size), (Some(12_716_032), None));
    assert_eq!(image.updated_at.as_second() - image.created_at.as_second(), 5);
}

#[test]
fn an_image_that_waits_for_data_has_gaps() {
    let mut gaps = image();
    for key in ["name", "size", "checksum", "os_hash_algo", "os_hash_value", "disk_format", "container_format", "owner"]
    {
        gaps[key] = Value::Null;
    }
    gaps["status"] = json!("queued");
    let image: Image = serde_json::from_value(gaps).unwrap();
    assert_eq!((image.name, image.size, image.status), (None, None, ImageStatus::Queued));
}

#[test]
fn words_of_a_newer_glance_are_kept() {
    assert_eq!(ImageStatus::from("pending_delete".to_owned()), ImageStatus::PendingDelete);
    assert_eq!(ImageStatus::from("frozen".to_owned()), ImageStatus::Unknown("frozen".to_owned()));
    assert_eq!(ImageStatus::Unknown("frozen".to_owned()).to_string(), "frozen");
    assert_eq!(Visibility::from("secret".to_owned()).to_string(), "secret");
}

#[test]
fn a_property_can_not_pose_as_an_attribute() {
    let new = NewImage {
        id: "4f1ab1a4".to_owned(),
        name: "cirros".to_owned(),
        disk_format: "raw".to_owned(),
        container_format: "bare".to_owned(),
        visibility: Visibility::Public,
        min_disk: 0,
        min_ram: 64,
        tags: vec!["a".to_owned()],
        properties: [("os_distro", "cirros"), ("visibility", "private")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    };
    let expected = json!({
        "id": "4f1ab1a4", "name": "cirros", "disk_format": "raw", "container_format": "bare", "visibility": "public",
        "min_disk": 0, "min_ram": 64, "tags": ["a"], "os_distro": "cirros",
    });
    assert_eq!(new.body(), expected);
}

#[test]
fn a_change_is_a_json_patch() {
    let set = ImageChange::set("hw/disk~bus", "virtio").operation();
    assert_eq!(set, json!({"op": "add", "path": "/hw~1disk~0bus", "value": "virtio"}));
    assert_eq!(ImageChange::remove("a").operation(), json!({"op": "remove", "path": "/a"}));
}
