//! Which namespaces get a project.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ParseExpressionError, Selector, SelectorExt};
use kupenstack_api::{cluster::OpenStackSpec, resources::PROJECT};

/// Whether a namespace gets a project. Kubernetes' own, the cloud's and the operator's never do.
pub(super) fn admits(
    openstack: &OpenStackSpec,
    operator_namespace: &str,
    namespace: &ObjectMeta,
) -> Result<bool, ParseExpressionError> {
    let name = namespace.name.as_deref().unwrap_or_default();
    let reserved = name.starts_with("kube-") || name == openstack.namespace || name == operator_namespace;
    let annotations = namespace.annotations.as_ref();
    let ignored = annotations.and_then(|all| all.get(PROJECT)).is_some_and(|value| value == "ignore");
    if reserved || ignored {
        return Ok(false);
    }
    let Some(selector) = openstack.projects.selector.clone() else { return Ok(true) };
    let labels = namespace.labels.clone().unwrap_or_default();
    Ok(Selector::try_from(selector)?.matches(&labels))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
    use kupenstack_api::cluster::Projects;
    use rstest::rstest;

    use super::*;

    fn namespace(name: &str, labels: &[(&str, &str)], ignore: bool) -> ObjectMeta {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(map(labels)),
            annotations: ignore.then(|| map(&[(PROJECT, "ignore")])),
            ..ObjectMeta::default()
        }
    }

    fn openstack(operator: &str) -> OpenStackSpec {
        let requirement = LabelSelectorRequirement {
            key: "tenant".to_owned(),
            operator: operator.to_owned(),
            values: (operator == "In").then(|| vec!["yes".to_owned()]),
        };
        let selector = LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None };
        let projects = Projects { selector: (!operator.is_empty()).then_some(selector) };
        OpenStackSpec { namespace: "cloud".to_owned(), projects, ..OpenStackSpec::default() }
    }

    #[rstest]
    #[case("shop", false, true)]
    #[case("shop", true, false)]
    #[case("default", false, true)]
    #[case("kube-system", false, false)]
    #[case("kubeflow", false, true)]
    #[case("cloud", false, false)]
    #[case("kupenstack-system", false, false)]
    fn all_but_the_systems_own(#[case] name: &str, #[case] ignore: bool, #[case] expected: bool) {
        let admitted = admits(&openstack(""), "kupenstack-system", &namespace(name, &[], ignore)).unwrap();
        assert_eq!(admitted, expected);
    }

    #[rstest]
    #[case(&[("tenant", "yes")], true)]
    #[case(&[("tenant", "no")], false)]
    #[case(&[], false)]
    fn a_selector_narrows_it_down(#[case] labels: &[(&str, &str)], #[case] expected: bool) {
        assert_eq!(admits(&openstack("In"), "operator", &namespace("shop", labels, false)).unwrap(), expected);
        assert!(!admits(&openstack("In"), "operator", &namespace("kube-system", &[("tenant", "yes")], false)).unwrap());
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_an_error() {
        assert!(admits(&openstack("Near"), "operator", &namespace("shop", &[], false)).is_err());
    }
}
