//! What can be said of the cloud and its services before they are stored: the checks of a pass that need nothing but the
//! object.

use kube::{Resource, core::NamespaceResourceScope};
use kupenstack_api::cluster::{GROUP, OpenStack, ServiceResource};
use kupenstack_core::admission::{Findings, Rule};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    catalogue::Release,
    cloud,
    config::{self, Refused, Sources},
    controller::request,
    service::{Kind, Request, Secrets},
    services::{self, typed},
    values,
};

/// How objects of the group are judged by an operator that works in this namespace.
pub fn rules(cloud_namespace: &str) -> Vec<Rule> {
    let namespace = cloud_namespace.to_owned();
    let of_cloud = Rule::new(GROUP, &OpenStack::plural(&()), move |object| whole(object, &namespace));
    let of_services = Kind::ALL.map(|kind| typed!(kind, rule(kind, cloud_namespace)));
    [of_cloud].into_iter().chain(of_services).collect()
}

fn rule<K>(kind: Kind, cloud_namespace: &str) -> Rule
where
    K: ServiceResource + Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + 'static,
{
    let cloud_namespace = cloud_namespace.to_owned();
    Rule::new(GROUP, &K::plural(&()), move |object: &K| {
        let request = request(object);
        let release = match Release::find(&request.common.release) {
            Ok(release) => release,
            Err(message) => return Findings::fault(message),
        };
        let Judged { mut faults, mut warnings, values } = judged(kind, &request, release);
        faults.extend(values);
        if request.namespace != cloud_namespace {
            let message =
                format!("metadata.namespace: the operator looks at this kind in namespace {cloud_namespace} only");
            warnings.push(message);
        }
        Findings { faults, warnings }
    })
}

/// What is wrong with a service.
#[derive(Default)]
struct Judged {
    faults: Vec<String>,
    warnings: Vec<String>,
    /// What is wrong with the values as a whole; nothing when the spec names objects that may hold further ones.
    values: Option<String>,
}

fn judged(kind: Kind, request: &Request, release: &Release) -> Judged {
    let service = services::of(kind);
    // nothing is read: what an object that is named holds may change at any time
    let (mut resolved, refused) = config::examine(service, request, release, &Sources::default());
    let faults: Vec<_> = refused
        .into_iter()
        .filter_map(|refused| match refused {
            Refused::Invalid(message) => Some(message),
            Refused::Missing(_) => None,
        })
        .collect();
    let warnings = std::mem::take(&mut resolved.unknown);
    let is_whole = faults.is_empty() && config::references(&request.common).is_empty();
    let values = is_whole.then(|| values::compute(service, request, release, &Secrets::default(), &resolved));
    let values = values.and_then(|values| service.refusal(request, &values));
    Judged { faults, warnings, values }
}

/// The cloud: by itself, and by what it sets of each service. What is wrong with a service's values is only a warning, as
/// its object may have more of them than the cloud sets.
fn whole(cloud: &OpenStack, namespace: &str) -> Findings {
    let mut findings = Findings::default();
    findings.faults.extend(cloud::out_of_reach(cloud, namespace));
    let release = match Release::find(&cloud.spec.release) {
        Ok(release) => release,
        Err(message) => {
            findings.faults.push(message);
            return findings;
        }
    };
    for kind in Kind::ALL.into_iter().filter(|kind| cloud::enabled(*kind, cloud)) {
        // what does not fit the service's type is refused by its own definition, when it is applied
        let Ok(request) = child(kind, &cloud::declared(kind, cloud)) else { continue };
        let Judged { faults, warnings, values } = judged(kind, &request, release);
        add(&mut findings.faults, kind, faults);
        add(&mut findings.warnings, kind, warnings.into_iter().chain(values));
    }
    findings
}

/// Adds messages about a service's object as they are about the cloud's. What is set for all services is told once.
fn add(told: &mut Vec<String>, kind: Kind, messages: impl IntoIterator<Item = String>) {
    for message in messages {
        let message = match (message.strip_prefix("OpenStack spec."), message.strip_prefix("spec.")) {
            (Some(rest), _) => format!("spec.{rest}"),
            (None, Some(rest)) => format!("spec.services.{}.{rest}", kind.object()),
            (None, None) => message,
        };
        if !told.contains(&message) {
            told.push(message);
        }
    }
}

/// What a pass would read of the service's object if it had this spec.
fn child(kind: Kind, spec: &Value) -> Result<Request, serde_json::Error> {
    typed!(kind, read(json!({"metadata": {"name": kind.object()}, "spec": spec})))
}

fn read<K>(object: Value) -> Result<Request, serde_json::Error>
where
    K: ServiceResource + Resource<DynamicType = ()> + DeserializeOwned,
{
    serde_json::from_value::<K>(object).map(|object| request(&object))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;
    use serde_json::json;
    use strum::IntoEnumIterator;

    use super::*;
    use crate::config::Fault;

    fn findings(plural: &str, namespace: &str, spec: Value) -> Findings {
        let mut object =
            json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "Any", "spec": {"release": "2026.2"}});
        object["metadata"] = json!({"name": "x", "namespace": namespace});
        let Value::Object(given) = spec else { panic!("a spec") };
        object["spec"].as_object_mut().unwrap().extend(given);
        let rules = rules("openstack");
        let rule = rules.iter().find(|rule| rule.covers(GROUP, plural)).unwrap();
        rule.judge(object).unwrap()
    }

    fn keystone(spec: Value) -> Findings {
        findings("keystones", "openstack", spec)
    }

    fn says(messages: &[String], expected: &[&str]) {
        assert_eq!(messages.len(), expected.len(), "{messages:?}");
        for (message, words) in messages.iter().zip(expected) {
            assert!(message.starts_with(words), "{words:?} is not how {message:?} begins");
        }
    }

    #[rstest]
    #[case::release("keystones", json!({"release": "2019.1"}), "spec.release: \"2019.1\" is not a release")]
    #[case::section("keystones", json!({"conf": {"a]": {}}}), "spec.conf.a]: a section's name")]
    #[case::option("keystones", json!({"conf": {"a": {"b=": 1}}}), "spec.conf.a.b=: an option's name")]
    #[case::value("glances", json!({"conf": {"a": {"b": "c\n\nd"}}}), "spec.conf.a.b: a value holds no empty lines")]
    #[case::flags("memcacheds", json!({"conf": {"DEFAULT": {"b": 1}}}), "spec.conf.DEFAULT: Memcached takes no other")]
    #[case::size("glances", json!({"files": {"paste": {"inline": "x".repeat(300_000)}}}), "spec.conf: with confFrom")]
    #[case::no_such_file("mariadbs", json!({"files": {"policy": {"inline": ""}}}), "spec.files.policy: MariaDB has no such")]
    #[case::policy("keystones", json!({"files": {"policy": {"inline": "- a"}}}), "spec.files.policy.inline, line 1")]
    #[case::rule("keystones", json!({"files": {"policy": {"inline": "a: 1"}}}), "spec.files.policy.inline: rule \"a\"")]
    #[case::logging("keystones", json!({"files": {"logging": {"inline": "a"}}}), "spec.files.logging.inline, line 1")]
    #[case::keys("keystones", json!({"fernet": {"activeKeys": 3}}), "spec.fernet.activeKeys: with 3 keys")]
    #[case::interval("keystones", json!({"conf": {"token": {"expiration": 9_999_999}}, "fernet": {"rotationInterval": "1h"}}),
        "spec.fernet.rotationInterval: tokens are of use")]
    fn what_can_never_be_is_a_fault(#[case] plural: &str, #[case] spec: Value, #[case] words: &str) {
        says(&findings(plural, "openstack", spec).faults, &[words]);
    }

    /// A new fault fails here until there is an example that is refused for it.
    #[test]
    fn every_fault_of_names_and_values_has_an_example() {
        let values = [
            json!({"a": 1}),
            json!({"type": "x", "values": []}),
            json!([["a"]]),
            json!(["a,b"]),
            json!("a\n\nb"),
            json!("a\0b"),
        ];
        let values = values.into_iter().enumerate().map(|(number, value)| (number.to_string(), value));
        let conf = json!({"": {}, "a]": {}, "names": {"": 1, "a=b": 1}, "values": values.collect::<BTreeMap<_, _>>()});
        let faults = keystone(json!({"conf": conf})).faults;
        let expected: Vec<_> = Fault::iter().map(|fault| fault.to_string()).collect();
        for fault in &expected {
            assert!(faults.iter().any(|told| told.ends_with(fault)), "{fault:?} is not in {faults:?}");
        }
        assert_eq!(faults.len(), expected.len());
    }

    #[test]
    fn what_may_become_right_is_none() {
        let reference = json!({"confFrom": [{"secretRef": {"name": "missing"}}],
            "files": {"policy": {"configMapRef": {"name": "missing", "key": "x"}}}});
        assert_eq!(keystone(reference), Findings::default());
        // the Secret may set how long a token lives
        let keys = json!({"confFrom": [{"secretRef": {"name": "x"}}], "fernet": {"activeKeys": 3}});
        assert_eq!(keystone(keys), Findings::default());
    }

    #[test]
    fn every_fault_is_told_and_a_missing_reference_hides_none() {
        let spec = json!({"confFrom": [{"secretRef": {"name": "missing"}}], "conf": {"a]": {}, "b": {"c": [["d"]]}},
            "files": {"paste": {"inline": ""}}});
        says(&keystone(spec).faults, &["spec.conf.a]", "spec.conf.b.c", "spec.files.paste"]);
    }

    #[test]
    fn understack_2345_a_misspelt_option_is_a_warning_with_the_one_that_was_meant() {
        let warnings = keystone(json!({"conf": {"DEFAULT": {"debgu": true}}})).warnings;
        assert_eq!(warnings, ["spec.conf.DEFAULT.debgu is not an option of Keystone 2026.2; did you mean debug?"]);
        let services = json!({"services": {"keystone": {"conf": {"DEFAULT": {"debgu": true}}}}});
        let warnings = findings("openstacks", "", services).warnings;
        let expected =
            "spec.services.keystone.conf.DEFAULT.debgu is not an option of Keystone 2026.2; did you mean debug?";
        assert_eq!(warnings, [expected]);
    }

    #[test]
    fn the_cloud_is_judged_by_what_it_sets_of_its_services() {
        let cloud = |spec| findings("openstacks", "", spec);
        says(&cloud(json!({"namespace": "other"})).faults, &["spec.namespace: this operator may only work in"]);
        says(&cloud(json!({"release": "2019.1"})).faults, &["spec.release: \"2019.1\""]);
        says(&cloud(json!({"common": {"conf": {"a]": {}}}})).faults, &["spec.common.conf.a]: "]);
        let glance = json!({"services": {"glance": {"files": {"logging": {"inline": "x"}}}}});
        says(&cloud(glance).faults, &["spec.services.glance.files.logging.inline, line 1"]);
        let off = json!({"services": {"glance": {"enabled": false, "conf": {"a]": {}}}}});
        assert_eq!(cloud(off), Findings::default());
        // the service's own object may set how long a token lives
        let keys = cloud(json!({"services": {"keystone": {"fernet": {"activeKeys": 3}}}}));
        assert_eq!(keys.faults, Vec::<String>::new());
        says(&keys.warnings, &["spec.services.keystone.fernet.activeKeys: with 3 keys"]);
    }

    /// The definitions say of files and options what the services do, word for word.
    #[test]
    fn the_definitions_refuse_exactly_the_files_that_a_service_does_not_have() {
        let crds = json!(kupenstack_api::crds::all());
        let crd = |kind: &str| crds.as_array().unwrap().iter().find(|c| c["spec"]["names"]["kind"] == kind).unwrap();
        let spec = |kind| &crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let rules = |schema: &Value| schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
        for kind in Kind::ALL {
            let mut expected = Vec::new();
            for name in ["policy", "paste", "logging"] {
                let mut given = json!({"release": "2026.2", "files": {}});
                given["files"][name] = json!({"inline": ""});
                let found = judged(kind, &child(kind, &given).unwrap(), Release::find("2026.2").unwrap());
                let missing = found.faults.iter().filter_map(|fault| fault.strip_prefix("spec."));
                let rule = format!("!has(self.files) || !has(self.files.{name})");
                expected.extend(missing.map(|message| json!({"rule": rule, "message": message})));
            }
            if let crate::service::Format::Flat(sections) = services::of(kind).format() {
                let given = json!({"release": "2026.2", "conf": {"other": {"option": 1}}});
                let found = judged(kind, &child(kind, &given).unwrap(), Release::find("2026.2").unwrap());
                let [fault] = found.faults.as_slice() else { panic!("{:?}", found.faults) };
                let message = fault.replacen("spec.conf.other", "conf", 1);
                let names = sections.iter().map(|s| format!("'{s}'")).collect::<Vec<_>>().join(", ");
                let rule = format!("!has(self.conf) || self.conf.all(section, section in [{names}])");
                expected.push(json!({"rule": rule, "message": message}));
            }
            assert_eq!(rules(spec(kind.name())), expected, "{}", kind.name());
            let template = &spec("OpenStack")["properties"]["services"]["properties"][kind.object()];
            assert_eq!(rules(template), expected, "{}", kind.name());
        }
    }

    #[test]
    fn a_service_elsewhere_is_nobodys() {
        let found = findings("keystones", "elsewhere", json!({}));
        assert_eq!(found.faults, Vec::<String>::new());
        says(&found.warnings, &["metadata.namespace: the operator looks at this kind in namespace openstack only"]);
    }
}
