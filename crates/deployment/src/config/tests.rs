//! The whole way: a spec and what it names → values, origins, warnings.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kupenstack_api::cluster::{CommonSpec, Own, ServiceStatus};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::{service::Kind, services, values};

pub(super) fn request(spec: Value) -> Request {
    let mut whole = json!({"release": "2026.2"});
    kupenstack_core::merge::merge(&mut whole, spec);
    Request {
        namespace: "openstack".to_owned(),
        generation: Some(1),
        deleting: false,
        owner: OwnerReference::default(),
        common: serde_json::from_value::<CommonSpec>(whole).unwrap(),
        replicas: BTreeMap::new(),
        nodes: BTreeMap::new(),
        own: Own::None,
        volume: None,
        status: ServiceStatus::default(),
        retry: None,
        replace: None,
    }
}

type Texts<'a> = &'a [(&'a str, &'a str)];

fn sources(objects: &[(Holder, &str, Texts<'_>)]) -> Sources {
    let keys =
        |keys: Texts<'_>| keys.iter().map(|(key, text)| ((*key).to_owned(), Some(SecretString::from(*text)))).collect();
    let reference = |holder, name: &str| Reference { holder, name: name.to_owned() };
    Sources(objects.iter().map(|(holder, name, data)| (reference(*holder, name), Some(keys(data)))).collect())
}

fn resolve_as(kind: Kind, spec: Value, sources: &Sources) -> Result<Resolved, Refused> {
    resolve(services::of(kind), &request(spec), Release::find("2026.2").unwrap(), sources)
}

pub(super) fn keystone(spec: Value) -> Result<Resolved, Refused> {
    resolve_as(Kind::Keystone, spec, &Sources::default())
}

fn refusal(result: Result<Resolved, Refused>) -> String {
    match result {
        Ok(resolved) => panic!("not refused: {}", resolved.values),
        Err(Refused::Missing(message) | Refused::Invalid(message)) => message,
    }
}

/// `option = value from` of each entry.
fn shown(resolved: &Resolved) -> Vec<String> {
    let value = |e: &EffectiveOption| e.value.clone().unwrap_or_else(|| "(removed)".to_owned());
    resolved.effective.iter().map(|e| format!("{} = {} from {}", e.option, value(e), e.from)).collect()
}

#[test]
fn every_layer_wins_over_the_one_before_it_and_each_value_names_its_origin() {
    let spec = json!({
        "commonConf": {"DEFAULT": {"debug": false, "use_json": true, "log_dir": "/1"}},
        "commonConfFrom": [{"configMapRef": {"name": "all"}}],
        "conf": {"DEFAULT": {"log_dir": "/3"}, "token": {"expiration": 1, "provider": "fernet"}},
        "confFrom": [{"configMapRef": {"name": "tokens"}}, {"secretRef": {"name": "ldap", "key": "b"}}],
        "values": {"conf": {"keystone": {"token": {"expiration": 4}, "cache": {"enabled": null}}}},
    });
    let sources = sources(&[
        (Holder::ConfigMap, "all", &[("x", "[DEFAULT]\nlog_dir = /2\ndebug = true\n")]),
        (Holder::ConfigMap, "tokens", &[("a", "[token]\nexpiration = 2\n"), ("b", "[token]\nexpiration = 3\n")]),
        (Holder::Secret, "ldap", &[("a", "not read"), ("b", "[ldap]\npassword = hunter22\n")]),
    ]);
    let resolved = resolve_as(Kind::Keystone, spec, &sources).unwrap();
    let expected = [
        "DEFAULT/debug = true from OpenStack spec.common, ConfigMap all",
        "DEFAULT/log_dir = /3 from spec.conf",
        "DEFAULT/use_json = true from OpenStack spec.common",
        "cache/enabled = (removed) from spec.values",
        "ldap/password = *** from Secret ldap",
        "token/expiration = 4 from spec.values",
        "token/provider = fernet from spec.conf",
    ];
    assert_eq!(shown(&resolved), expected);
    // the raw values are merged by Helm
    let conf = json!({
        "DEFAULT": {"debug": "true", "use_json": true, "log_dir": "/3"},
        "ldap": {"password": "hunter22"},
        "token": {"expiration": "3", "provider": "fernet"},
    });
    assert_eq!(resolved.values, json!({"conf": {"keystone": conf}}));
    assert!(resolved.unknown.is_empty(), "{:?}", resolved.unknown);
}

#[rstest]
#[case::a_section(json!({"conf": {"keystone": {"DEFAULT": null}}}), &["token/expiration"])]
#[case::all_options(json!({"conf": {"keystone": null}}), &[])]
#[case::everything(json!({"conf": null}), &[])]
#[case::another_service(json!({"conf": {"glance": null}}), &["DEFAULT/debug", "token/expiration"])]
fn raw_values_can_take_options_away(#[case] values: Value, #[case] left: &[&str]) {
    let conf = json!({"DEFAULT": {"debug": true}, "token": {"expiration": 1}});
    let resolved = keystone(json!({"conf": conf, "values": values})).unwrap();
    assert_eq!(resolved.effective.iter().map(|e| e.option.as_str()).collect::<Vec<_>>(), left);
}

#[test]
fn understack_2345_a_misspelt_option_is_warned_of_and_rolled_out_all_the_same() {
    let spec = json!({
        "commonConf": {"DEFAULT": {"worker_self_reference_url": "known to Glance", "debgu": true}},
        "conf": {"DEFAULT": {"use_stdrr": true}, "databse": {"connection": "x", "max_retries": 1}},
        "confFrom": [{"configMapRef": {"name": "more", "key": "k"}}],
        "values": {"conf": {"keystone": {"token": {"experation": 1}}}},
    });
    let sources = sources(&[(Holder::ConfigMap, "more", &[("k", "[ldap]\nuser_treedn = x\n")])]);
    let resolved = resolve_as(Kind::Keystone, spec, &sources).unwrap();
    let expected = [
        "OpenStack spec.common.conf.DEFAULT.debgu is not an option of Keystone 2026.2; did you mean debug?",
        "spec.conf.DEFAULT.use_stdrr is not an option of Keystone 2026.2; did you mean use_stderr?",
        "spec.conf.databse is not a section of Keystone 2026.2; did you mean database?",
        "ConfigMap more/key k: [ldap] user_treedn is not an option of Keystone 2026.2; did you mean user_tree_dn?",
        "spec.values.conf.keystone.token.experation is not an option of Keystone 2026.2; did you mean expiration?",
    ];
    assert_eq!(resolved.unknown, expected);
    assert_eq!(resolved.values["conf"]["keystone"]["databse"]["connection"], "x");
}

#[test]
fn the_warning_appears_once_stays_while_nothing_is_known_and_goes() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let unknown = ["a is not an option".to_owned()];
    let first: Vec<_> = warning(Some(&unknown), Some(1), &[], at(1)).into_iter().collect();
    assert_eq!(news(&[], &first), Some("a is not an option"));
    let second: Vec<_> = warning(None, Some(2), &first, at(2)).into_iter().collect();
    assert_eq!(second, first);
    let third: Vec<_> = warning(Some(&unknown), Some(2), &second, at(3)).into_iter().collect();
    assert_eq!((news(&second, &third), &third[0].last_transition_time), (None, &first[0].last_transition_time));
    assert_eq!(warning(Some(&[]), Some(2), &third, at(4)), None);
}

#[rstest]
#[case::missing(json!({"confFrom": [{"secretRef": {"name": "x"}}]}), "spec.confFrom[0]: Secret x does not exist")]
#[case::missing_key(
    json!({"confFrom": [{"configMapRef": {"name": "there"}}, {"configMapRef": {"name": "there", "key": "y"}}]}),
    "spec.confFrom[1]: ConfigMap there/key y does not exist"
)]
#[case::missing_file(
    json!({"files": {"policy": {"secretRef": {"name": "x", "key": "y"}}}}),
    "spec.files.policy: Secret x does not exist"
)]
fn what_is_missing_is_waited_for(#[case] spec: Value, #[case] message: &str) {
    let sources = sources(&[(Holder::ConfigMap, "there", &[("a", "")])]);
    let refused = resolve_as(Kind::Keystone, spec, &sources).err().unwrap();
    assert_eq!(refused, Refused::Missing(message.to_owned()));
    assert_eq!(Outcome::from(refused).reason(), "ReferenceNotFound");
}

#[rstest]
#[case::section(json!({"conf": {"a]": {"b": 1}}}), "spec.conf.a]: a section's name")]
#[case::option(json!({"conf": {"a": {"b\n[c]\nd": 1}}}), "spec.conf.a.b [c] d: an option's name")]
#[case::value(json!({"conf": {"a": {"b": {"c": 1}}}}), "spec.conf.a.b: a map must be")]
#[case::common(json!({"commonConf": {"a": {"": 1}}}), "OpenStack spec.common.conf.a.: an option needs")]
#[case::syntax(
    json!({"confFrom": [{"secretRef": {"name": "s", "key": "bad"}}]}),
    "spec.confFrom[0]: Secret s/key bad, line 2: there is neither"
)]
#[case::control_character(
    json!({"confFrom": [{"secretRef": {"name": "s", "key": "nul"}}]}),
    "Secret s/key nul: [a] b: a value holds no control characters"
)]
#[case::both(
    json!({"confFrom": [{"secretRef": {"name": "s"}, "configMapRef": {"name": "s"}}]}),
    "spec.confFrom[0]: exactly one of"
)]
#[case::a_file_it_has_not(
    json!({"files": {"paste": {"inline": "[a]"}}}),
    "spec.files.paste: Keystone has no such file; those it has are policy and logging"
)]
#[case::no_source(json!({"files": {"policy": {}}}), "spec.files.policy: exactly one of")]
#[case::not_yaml(json!({"files": {"policy": {"inline": "a: b\n- c"}}}), "spec.files.policy.inline, line")]
#[case::not_rules(json!({"files": {"policy": {"inline": "a: [b]"}}}), "spec.files.policy.inline: rule \"a\"")]
#[case::not_ini(
    json!({"files": {"logging": {"secretRef": {"name": "s", "key": "bad"}}}}),
    "spec.files.logging: Secret s/key bad, line 2"
)]
#[case::a_megabyte(json!({"conf": {"a": {"b": "x".repeat(1 << 20)}}}), "spec.conf: with confFrom, files and values.conf it has 1025 KiB; at most 256")]
fn what_can_not_be_used_is_refused_with_its_place(#[case] spec: Value, #[case] message: &str) {
    let sources = sources(&[(Holder::Secret, "s", &[("bad", "[a]\nsecret text"), ("nul", "[a]\nb = \0")])]);
    let refused = resolve_as(Kind::Keystone, spec, &sources).err().unwrap();
    let outcome = Outcome::from(refused);
    assert_eq!(outcome.reason(), "InvalidSpec");
    assert!(outcome.message().contains(message), "{}", outcome.message());
    assert!(!outcome.message().contains("secret text") && outcome.message().len() < 1000);
}

#[test]
fn what_is_named_counts_against_the_limit_too() {
    let text = format!("[a]\nb = {}", "x".repeat(MAX_BYTES));
    let sources = sources(&[(Holder::ConfigMap, "big", &[("k", &text)])]);
    let spec = json!({"confFrom": [{"configMapRef": {"name": "big"}}]});
    assert!(refusal(resolve_as(Kind::Keystone, spec, &sources)).contains("at most 256 KiB"));
}

#[test]
fn files_become_what_the_chart_takes() {
    let spec = json!({"files": {
        "policy": {"inline": "# rules\n\"identity:list_users\": \"role:admin\"\nempty: ''\n"},
        "paste": {"configMapRef": {"name": "c", "key": "paste.ini"}},
        "logging": {"secretRef": {"name": "s", "key": "l"}},
    }});
    let sources = sources(&[
        (Holder::ConfigMap, "c", &[("paste.ini", "[pipeline:api]\npipeline = cors\n  app\n[app:api]\n/v2: x\n")]),
        (Holder::Secret, "s", &[("l", "[loggers]\nkeys = root\n[handler_x]\nargs = ('secret-host',)\n")]),
    ]);
    let mut resolved = resolve_as(Kind::Glance, spec, &sources).unwrap();
    let expected = json!({
        "policy": {"identity:list_users": "role:admin", "empty": ""},
        "paste": {"pipeline:api": {"pipeline": "cors\n    app"}, "app:api": {"/v2": "x"}},
        "logging": {"loggers": {"keys": "root"}, "handler_x": {"args": "('secret-host',)"}},
    });
    assert_eq!(resolved.values, json!({"conf": expected}));
    let origins = [
        "files/logging = 2 sections from Secret s",
        "files/paste = 2 sections from ConfigMap c",
        "files/policy = 2 rules from spec.files.policy",
    ];
    assert_eq!(shown(&resolved), origins);
    let mut secrets = Secrets::default();
    resolved.confide(&mut secrets);
    assert_eq!(secrets.mask("no route to ('secret-host',)"), "no route to ***");
}

#[test]
fn secrets_are_shown_nowhere() {
    let spec = json!({
        "conf": {"DEFAULT": {"log_dir": "/var/hunter22/x"}, "database": {"connection": "mysql://u:pw@h/k"}},
        "confFrom": [{"secretRef": {"name": "s"}}],
    });
    let text = "[ldap]\npassword = \"hunter22\"\nuse_tls = true\npage_size = 7\n[oauth1]\nx = one\nx = other-secret\n";
    let mut resolved = resolve_as(Kind::Keystone, spec, &sources(&[(Holder::Secret, "s", &[("k", text)])])).unwrap();
    let mut secrets = Secrets::default();
    resolved.confide(&mut secrets);
    super::shown(&mut resolved.effective, &secrets);
    let shown = shown(&resolved).join("\n");
    assert!(!shown.contains("hunter22") && !shown.contains("other-secret") && !shown.contains("pw@h"), "{shown}");
    let log = "true: bind with hunter22 and other-secret to mysql://u:pw@h/k failed 7 times";
    assert_eq!(secrets.mask(log), "true: bind with *** and *** to *** failed 7 times");
}

#[test]
fn services_without_an_oslo_file_keep_their_own_formats() {
    let conf = json!({"memcached": {"memory": 128}});
    let resolved = resolve_as(Kind::Memcached, json!({"conf": conf}), &Sources::default()).unwrap();
    assert_eq!(resolved.values, json!({"conf": conf}));
    let refused = refusal(resolve_as(Kind::Memcached, json!({"conf": {"DEFAULT": {"a": 1}}}), &Sources::default()));
    assert!(refused.contains("spec.conf.DEFAULT") && refused.contains("section memcached"), "{refused}");
    let spec =
        json!({"conf": {"mysqld": {"max_connections": 9}}, "values": {"conf": {"mariadb": {"mysqld": {"port": 1}}}}});
    let resolved = resolve_as(Kind::MariaDB, spec, &Sources::default()).unwrap();
    assert_eq!(resolved.values, json!({"conf": {"mariadb": {"mysqld": {"max_connections": 9}}}}));
    assert_eq!(shown(&resolved), ["mysqld/max_connections = 9 from spec.conf", "mysqld/port = 1 from spec.values"]);
}

#[test]
fn a_status_stays_small() {
    let options: BTreeMap<_, _> = (0..500).map(|i| (format!("option{i}"), "x".repeat(400))).collect();
    let mut resolved = keystone(json!({"conf": {"DEFAULT": options}})).unwrap();
    super::shown(&mut resolved.effective, &Secrets::default());
    assert_eq!((resolved.effective.len(), resolved.unknown.len()), (MAX_LISTED, MAX_UNKNOWN + 1));
    assert_eq!(resolved.effective[MAX_LISTED - 1].value.as_deref(), Some("301 more"));
    assert!(resolved.effective.iter().all(|e| e.value.as_ref().is_none_or(|v| v.len() <= MAX_SHOWN)));
}

#[test]
fn thousands_of_unknown_options_cost_no_more_than_the_few_that_are_named() {
    let options: BTreeMap<_, _> = (0..8000).map(|i| (format!("max_option_no_{i}"), i)).collect();
    let started = processor_time();
    let resolved = keystone(json!({"conf": {"DEFAULT": options}})).unwrap();
    let taken = processor_time().saturating_sub(started);
    assert_eq!(resolved.unknown.last().map(String::as_str), Some("and 7980 more"));
    assert!(taken < Duration::from_secs(1), "{taken:?}");
}

/// Overrides of all nodes were compared pairwise: a minute for 46 of them. Here are 500 nodes in 30 profiles. What
/// counts is processor time, as this machine may be busy with other tests.
#[test]
fn lp_2151229_thirty_profiles_for_500_nodes_are_resolved_and_planned_in_less_than_a_second() {
    let release = Release::find("2026.2").unwrap();
    let service = services::of(Kind::Glance);
    let lines = include_str!("../../options/2026.2/glance.txt").lines().skip_while(|line| *line != "[DEFAULT]");
    let known: Vec<_> =
        lines.skip(1).take_while(|line| !line.starts_with('[')).map(|l| l.trim_end_matches(" *")).collect();
    assert!(known.len() > 50, "the list has another form: {known:?}");
    let started = processor_time();
    let mut rendered = Vec::new();
    let mut hashes = std::collections::BTreeSet::new();
    for profile in 0..30 {
        let mut options: BTreeMap<_, _> = known.iter().map(|option| (*option, json!(profile))).collect();
        options.insert("misspelt_option", json!(profile));
        let request = request(json!({"conf": {"DEFAULT": options}}));
        let resolved = resolve(service, &request, release, &Sources::default()).unwrap();
        let values = values::compute(service, &request, release, &Secrets::default(), &resolved);
        hashes.insert(crate::build::content_hash("chart", &values));
        let nodes: Vec<_> = (0..500).filter(|n| n % 30 == profile).map(|n| format!("node-{n}")).collect();
        rendered.extend(per_profile(profile, &nodes, &values));
    }
    let built = crate::build::sort(rendered).unwrap();
    assert_eq!((hashes.len(), built.configuration.len()), (30, 30));
    let taken = processor_time().saturating_sub(started);
    assert!(taken < Duration::from_secs(1), "{taken:?}");
}

fn per_profile(profile: usize, nodes: &[String], values: &Value) -> [Value; 2] {
    let name = format!("agent-{profile}");
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": nodes}]}]}}});
    [
        json!({"kind": "DaemonSet", "metadata": {"name": name}, "spec": {"template": {"spec": {"affinity": affinity}}}}),
        json!({"kind": "Secret", "metadata": {"name": name}, "data": {"conf": values.to_string()}}),
    ]
}

/// Of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
