use rstest::rstest;

use super::*;

fn shown(image: &Value) -> Value {
    json!({
        "id": "4f1ab1a4", "name": "web", "description": null, "tenant_id": "shop", "user_id": "u", "status": "ACTIVE",
        "OS-EXT-STS:task_state": null, "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:power_state": 1, "key_name": null,
        "flavor": {"original_name": "small", "vcpus": 1, "ram": 512, "disk": 1, "ephemeral": 0, "swap": 0, "extra_specs": {}},
        "image": image, "metadata": {}, "created": "2026-11-28T10:00:00Z", "updated": "2026-11-28T10:00:00Z",
    })
}

#[rstest]
#[case::image(json!({"id": "cirros", "links": []}), Some("cirros"))]
#[case::volume(json!(""), None)]
fn libcloud_1672_gtema_1210_a_server_of_an_image_and_one_of_a_volume_are_read(
    #[case] image: Value,
    #[case] image_id: Option<&str>,
) {
    let server: Server = serde_json::from_value(shown(&image)).unwrap();
    assert_eq!((server.image_id.as_deref(), server.flavor.original_name.as_str()), (image_id, "small"));
    assert_eq!(
        (server.description.as_deref(), server.host.as_deref(), server.task_state.as_deref()),
        (None, None, None)
    );
    let again: Server = serde_json::from_value(serde_json::to_value(&server).unwrap()).unwrap();
    assert_eq!(again, server, "it is kept as it is written");
}

#[rstest]
#[case("image")]
#[case("status")]
#[case("tenant_id")]
#[case("flavor")]
fn what_decides_has_to_be_there(#[case] key: &str) {
    let mut shown = shown(&json!(""));
    shown.as_object_mut().unwrap().remove(key);
    let error = serde_json::from_value::<Server>(shown).unwrap_err();
    assert!(error.to_string().contains(key), "{error}");
}

#[test]
fn a_fault_is_read() {
    let mut shown = shown(&json!({"id": "cirros"}));
    shown["status"] = json!("ERROR");
    shown["fault"] = json!({"code": 500, "created": "2026-11-28T10:00:01Z", "message": "No valid host was found. "});
    let fault = serde_json::from_value::<Server>(shown).unwrap().fault.unwrap();
    assert_eq!((fault.code, fault.message.as_str()), (500, "No valid host was found. "));
}

#[rstest]
#[case("web-1", "^web-1$")]
#[case("web.1", "^web.1$")]
#[case("a|b(c)*", "^a.b.c..$")]
#[case("süß", "^süß$")]
fn a_name_is_no_regular_expression(#[case] name: &str, #[case] expected: &str) {
    assert_eq!(pattern(name), expected);
}

#[test]
fn a_new_server_keeps_its_user_data_to_itself() {
    let new = NewServer {
        name: "web".to_owned(),
        description: None,
        flavor_id: "f".to_owned(),
        image_id: "i".to_owned(),
        key_name: None,
        ports: Vec::new(),
        user_data: Some(b"correct-horse".to_vec()),
        metadata: BTreeMap::new(),
        group_id: None,
    };
    let printed = format!("{new:?}");
    assert!(
        printed.contains("[13 bytes]") && !printed.contains("correct") && !printed.contains("99, 111"),
        "{printed}"
    );
    assert_eq!(new.server(None)["networks"], "none");
    assert_eq!(new.server(None).get("key_name"), None);
    assert_eq!(new.body(None).get("os:scheduler_hints"), None);
    let grouped = NewServer { group_id: Some("g".to_owned()), ..new };
    assert_eq!(grouped.body(None)["os:scheduler_hints"], json!({"group": "g"}), "beside the server");
}
