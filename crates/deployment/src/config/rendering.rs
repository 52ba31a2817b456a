//! What is accepted stands in the rendered file as it was given: through the real chart, read back as oslo.config reads.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use kupenstack_helm::{Capabilities, ChartRef, Cli, Helm, ReleaseRef, Settings, Values};
use proptest::{prelude::*, test_runner::Config};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{
    Options, ini, resolve,
    sources::Sources,
    tests::{keystone, request},
};
use crate::{
    catalogue::Release,
    service::{Kind, Secrets},
    services,
    values::{ADMIN_PASSWORD, CACHE_KEY, DB_PASSWORD, ROOT_PASSWORD, compute},
};

/// Letters, and everything that means something to one of those through whose hands a value goes.
const HOSTILE: &str = "[a-zA-Zü漢\u{2028}\u{feff} \t\n\r\0=:;#%$\"'\\\\\\[\\]{}|>&*!,`~/-]{0,24}";

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zA-Z_][a-zA-Z0-9_.-]{0,12}", 1 => "[a-zü{}%$\"'#;=:\\[\\] \n-]{0,6}"]
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![3 => HOSTILE.prop_map(Value::from), 1 => "[ -~]{0,40}".prop_map(Value::from)];
    let number = prop_oneof![any::<i64>().prop_map(Value::from), any::<f64>().prop_map(Value::from)];
    let scalar = prop_oneof![4 => text, 1 => number, 1 => any::<bool>().prop_map(Value::from)];
    let list = |items| prop::collection::vec(items, 0..4);
    prop_oneof![
        6 => scalar.clone(),
        1 => list(scalar.clone()).prop_map(Value::from),
        1 => list(scalar).prop_map(|values| json!({"type": "multistring", "values": values})),
    ]
}

/// What oslo.config gets of an accepted value: one text, or several for an option that is repeated.
fn read_back(accepted: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.replace("\n    ", "\n"),
        other => other.to_string(),
    };
    match accepted {
        Value::Array(items) => vec![items.iter().map(text).collect::<Vec<_>>().join(",")],
        Value::Object(map) => map["values"].as_array().unwrap().iter().map(text).collect(),
        scalar => vec![text(scalar)],
    }
}

/// Those options that can be accepted one by one: a whole map of hostile ones never would.
fn accepted(given: BTreeMap<String, BTreeMap<String, Value>>) -> Value {
    let mut options = json!({});
    for (section, given) in given {
        for (option, value) in given {
            let one = json!({"conf": {&section: {&option: value}}});
            if keystone(one.clone()).is_ok() {
                kupenstack_core::merge::merge(&mut options, one);
            }
        }
    }
    options
}

/// `keystone.conf` as the chart renders it.
async fn rendered(spec: Value) -> (Value, Options) {
    let (service, release) = (services::of(Kind::Keystone), Release::find("2026.2").unwrap());
    let request = request(spec);
    let resolved = resolve(service, &request, release, &Sources::default()).unwrap();
    let mut secrets = Secrets::default();
    for (kind, key) in [
        (Kind::MariaDB, ROOT_PASSWORD),
        (Kind::Memcached, CACHE_KEY),
        (Kind::Keystone, DB_PASSWORD),
        (Kind::Keystone, ADMIN_PASSWORD),
    ] {
        secrets.insert(kind, key, SecretString::from("password"));
    }
    let values = Values::new(compute(service, &request, release, &secrets, &resolved));
    let helm = Cli::new(Settings::from_env()).await.expect("helm: set HELM_BIN, or run ./dev/test");
    let chart = ChartRef::Path(kupenstack_testkit::repository().join("charts/openstack/keystone"));
    let name = ReleaseRef::new("openstack", "keystone");
    let rendered = helm.template(&name, &chart, &values, &Capabilities::default()).await.unwrap();
    let file = rendered.objects.iter().find_map(|o| o["data"]["keystone.conf"].as_str()).unwrap();
    let text = String::from_utf8(STANDARD.decode(file).unwrap()).unwrap();
    (resolved.values["conf"]["keystone"].clone(), ini::parse(&text, ini::Repeated::Values).unwrap())
}

fn assert_as_given(given: &Value, file: &Options) {
    for (section, options) in given.as_object().into_iter().flatten() {
        for (option, value) in options.as_object().unwrap() {
            let expected = read_back(value);
            let found = file.get(section).and_then(|s| s.get(option)).map(read_back).unwrap_or_default();
            assert_eq!(found, expected, "[{section}] {option}");
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 12, max_shrink_iters: 100, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_is_accepted_is_read_back(given in prop::collection::btree_map(name(), prop::collection::btree_map(name(), value(), 1..8), 1..8)) {
        let spec = accepted(given);
        let (given, file) = tokio::runtime::Runtime::new().unwrap().block_on(rendered(spec));
        assert_as_given(&given, &file);
        // nothing came in that was not given
        prop_assert!(!file.contains_key("c") || given.get("c").is_some());
    }
}

#[tokio::test]
async fn hostile_values_stay_where_they_are() {
    let conf = json!({"hostile": {
        "lines": "a\nadmin_token = evil\n[DEFAULT]\n# no comment\n",
        "percent": "%(asctime)s %%", "dollar": "$my_ip $$", "quotes": "\"a\" 'b' `c`", "braces": "{{ .Values }}",
        "unicode": "Grüße 漢字 \u{1f980}", "comment": "a # b ; c", "yaml": "- a: |\n  b", "empty": "",
        "large": "x".repeat(200 * 1024),
    }});
    let (given, file) = rendered(json!({"conf": conf})).await;
    assert_eq!(given["hostile"].as_object().map(serde_json::Map::len), Some(10));
    assert_as_given(&given, &file);
    assert!(!file["DEFAULT"].contains_key("admin_token"));
}
