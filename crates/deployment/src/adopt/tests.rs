use serde_json::json;

use super::*;
use crate::{service::Kind, services};

fn made(values: &Value, defaults: &Value) -> Applied {
    Applied { values: values.clone(), defaults: defaults.clone(), ..Applied::default() }
}

#[test]
fn passwords_are_found_where_they_are_written_for_the_chart() {
    let config = json!({"endpoints": {
        "oslo_db": {"auth": {"keystone": {"password": "db"}, "glance": {"password": "not ours"}}},
    }});
    let defaults = json!({"endpoints": {"identity": {"auth": {"admin": {"password": "from the chart"}}}}});
    let found = made(&config, &defaults).passwords(services::of(Kind::Keystone), "keystone").unwrap();
    let found: BTreeMap<_, _> = found.into_iter().map(|(k, v)| (k, String::from_utf8(v.0).unwrap())).collect();
    let expected = BTreeMap::from([("db-password", "db".to_owned()), ("admin-password", "from the chart".to_owned())]);
    assert_eq!(found, expected);
}

#[test]
fn a_password_that_is_in_use_and_not_to_be_found_is_named() {
    let defaults = json!({"endpoints": {"oslo_db": {"auth": {"admin": {"password": null}}}}});
    let release = made(&json!({}), &defaults);
    let error = release.passwords(services::of(Kind::MariaDB), "mariadb").unwrap_err();
    assert!(error.to_string().contains("endpoints.oslo_db.auth.admin.password"), "{error}");
    // the cache server itself has none: it is of use to others only
    assert!(made(&json!({}), &json!({})).passwords(services::of(Kind::Memcached), "memcached").unwrap().is_empty());
}

#[test]
fn what_is_lost_is_named_by_path_and_never_by_value() {
    let config = json!({
        "conf": {"keystone": {"token": {"expiration": 3600}, "DEFAULT": {"debug": true}}},
        "pod": {"replicas": {"api": 2}},
        "images": {"pull_policy": "IfNotPresent"},
        "extraObjects": {},
        "bootstrap": {"enabled": true},
        "endpoints": {
            "identity": {"auth": {"admin": {"password": "secret"}, "glance": {"password": "secret"}}},
            "oslo_cache": {"auth": {"memcache_secret_key": "secret"}},
        },
    });
    let defaults = json!({"bootstrap": {"enabled": true}, "extraObjects": {}});
    let ours = json!({"conf": {"keystone": {"DEFAULT": {"debug": "true"}}}, "pod": {"replicas": {"api": 1}}, "images": {"pull_policy": "IfNotPresent"}});
    let lost = made(&config, &defaults).lost(&ours);
    assert_eq!(lost, ["conf.keystone.token.expiration", "pod.replicas.api"]);
    assert!(said(&lost).contains("conf.keystone.token.expiration"));
    let many: Vec<_> = (0..30).map(|i| i.to_string()).collect();
    assert!(said(&many).ends_with("19 and 10 more"), "{}", said(&many));
}

#[test]
fn every_password_of_every_service_has_its_place_in_the_values() {
    for kind in Kind::ALL {
        for generated in services::of(kind).credentials() {
            let Generated::Password(key) = generated else { continue };
            assert!(values::path_of(kind, key).is_some(), "{kind:?} {key}");
        }
    }
}
