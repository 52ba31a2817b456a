//! What can be said of users' objects before they are stored.

use kupenstack_api::resources::{ClusterImage, GROUP, Image, KeyPair};
use kupenstack_core::admission::{Findings, Rule};

use kube::Resource;

use crate::{
    image::{self, Variant},
    key_pair,
};

/// How objects of the group are judged.
pub fn rules() -> Vec<Rule> {
    let of_key_pairs = |object: &KeyPair| key_pair::refusal(object).map(Findings::fault).unwrap_or_default();
    vec![rule::<Image>(), rule::<ClusterImage>(), Rule::new(GROUP, &KeyPair::plural(&()), of_key_pairs)]
}

fn rule<K: Variant>() -> Rule {
    Rule::new(GROUP, &K::plural(&()), |object: &K| image::refusal(object).map(Findings::fault).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// What the definition's pattern lets through.
    #[rstest]
    #[case::port("http://a.example:99999/i")]
    #[case::host("http://[::1/i")]
    #[case::no_host("http://:80/i")]
    #[case::character("http://a<b/i")]
    fn an_address_that_is_none_is_a_fault(#[case] src: &str) {
        for rule in rules().iter().filter(|rule| rule.plural().ends_with("images")) {
            let image = json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "i"},
                "spec": {"src": src, "format": "raw"}});
            let found = rule.judge(image).unwrap();
            assert!(found.faults.len() == 1 && found.faults[0].starts_with("spec.src: "), "{found:?}");
        }
    }

    fn with_property(name: &str) -> Findings {
        let image = json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "i"},
            "spec": {"src": "http://a.example/i", "format": "raw", "properties": {name: "x"}}});
        rules()[0].judge(image).unwrap()
    }

    /// Names that the definition's rule holds.
    #[test]
    fn the_definition_refuses_no_property_that_the_controller_takes() {
        let crds = json!(kupenstack_api::crds::all());
        let crd = crds.as_array().unwrap().iter().find(|c| c["spec"]["names"]["kind"] == "Image").unwrap();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let rule = spec["properties"]["properties"]["x-kubernetes-validations"][1]["rule"].as_str().unwrap();
        let names: Vec<_> = rule.split('\'').skip(1).step_by(2).collect();
        assert!(names.len() > 25, "{rule}");
        for name in names {
            assert_eq!(with_property(name).faults.len(), 1, "{name}");
        }
        assert_eq!(with_property("hw_disk_bus"), Findings::default());
    }

    /// What the definition's pattern lets through, and what it can't be told of.
    #[rstest]
    #[case::key("ssh-ed25519 AAAA")]
    #[case::another_type("ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIM5VUfJYhPwFhni7yWYee4vCC3W5DEUA804o6s0VRzzo")]
    fn a_key_that_is_none_is_a_fault(#[case] key: &str) {
        let object = json!({"apiVersion": "kupenstack.io/v1", "kind": "KeyPair", "metadata": {"name": "k"},
            "spec": {"publicKey": key}});
        let rules = rules();
        let found = rules.iter().find(|rule| rule.plural() == "keypairs").unwrap().judge(object).unwrap();
        assert!(found.faults.len() == 1 && found.faults[0].starts_with("spec.publicKey: "), "{found:?}");
        assert!(!found.faults[0].contains(key), "{found:?}");
    }

    #[test]
    fn an_address_that_does_not_answer_is_none() {
        let image = json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "i"},
            "spec": {"src": "http://nobody.invalid/i", "format": "raw"}});
        assert_eq!(rules()[0].judge(image).unwrap(), Findings::default());
    }
}
