//! Which container images make up a release.

/// Registry and path of the images when the spec names none: the development images that are built from `images/`.
pub(crate) const DEFAULT_REGISTRY: &str = "kupenstack.local";

/// A release of OpenStack that this operator can run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Name, such as `2026.2`.
    pub(crate) name: &'static str,
    /// Image with all OpenStack services, without the registry.
    openstack: &'static str,
    /// Image with what hypervisors need besides, without the registry.
    compute: &'static str,
    /// Image with database, broker and cache, without the registry.
    infra: &'static str,
}

/// Which of a release's images a task runs from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// OpenStack's services and their management commands.
    OpenStack,
    /// What runs on hypervisors: the switch, libvirt, and the services of OpenStack that belong to them.
    Compute,
    /// Database, broker and cache.
    Infra,
}

pub(crate) const RELEASES: [Release; 2] = [
    Release { name: "2026.1", openstack: "openstack:2026.1", compute: "compute:2026.1", infra: "infra:dev" },
    Release { name: "2026.2", openstack: "openstack:2026.2", compute: "compute:2026.2", infra: "infra:dev" },
];

impl Release {
    /// Finds a release; the error names those that exist.
    pub(crate) fn find(name: &str) -> Result<&'static Self, String> {
        RELEASES.iter().find(|r| r.name == name).ok_or_else(|| {
            let known: Vec<_> = RELEASES.iter().map(|r| r.name).collect();
            format!("spec.release: {name:?} is not a release that this operator knows; use one of {}", known.join(", "))
        })
    }

    /// Reference of an image.
    pub(crate) fn image(&self, registry: Option<&str>, part: Part) -> String {
        let name = match part {
            Part::OpenStack => self.openstack,
            Part::Compute => self.compute,
            Part::Infra => self.infra,
        };
        format!("{}/{name}", registry.unwrap_or(DEFAULT_REGISTRY).trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_release_names_field_and_remedy() {
        let error = Release::find("2019.1").unwrap_err();
        assert!(error.contains("spec.release") && error.contains("2026.2"), "{error}");
    }

    #[test]
    fn the_registry_goes_in_front() {
        let release = Release::find("2026.2").unwrap();
        assert_eq!(release.image(Some("r.example/k/"), Part::OpenStack), "r.example/k/openstack:2026.2");
        assert_eq!(release.image(None, Part::Infra), "kupenstack.local/infra:dev");
    }
}
