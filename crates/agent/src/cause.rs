use std::fmt;

mod signs;

/// What a problem probably comes from.
///
/// Its [`Display`](fmt::Display) is a guess for people, with what to do: it goes on after "probably".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The database server does not answer, or its name is none.
    DatabaseUnreachable,
    /// The database, a right on it or a table is not there.
    DatabaseMissing,
    /// A server refuses the password or the user.
    WrongPassword,
    /// The image can't be had.
    ImagePull,
    /// A program or a module of one is not in the image.
    ProgramMissing,
    /// The container used more memory than it may, or the node has none left.
    OutOfMemory,
    /// No node takes the pod.
    Unschedulable(Placement),
    /// An option of the program is unknown or has an impossible value.
    BadOption,
    /// Another program listens there.
    PortInUse,
    /// A volume or the node's disk is full.
    VolumeFull,
    /// A volume can't be attached or mounted.
    VolumeNotMounted,
    /// Another process holds the data.
    DataInUse,
    /// The data can't be read.
    DataDamaged,
    /// A Secret, a `ConfigMap` or a file of configuration is not there.
    MissingConfiguration,
    /// A host name is not known.
    NameResolution,
    /// A certificate is not trusted or not valid.
    Certificate,
    /// Another service does not answer.
    ServiceUnreachable,
    /// A dependency is waited for.
    DependencyMissing,
    /// A file, a port or a request is not allowed.
    PermissionDenied,
    /// The container works but does not answer its probe as it should.
    ProbeFailing,
    /// The pod gets no network.
    PodNetwork,
    /// The node is gone or does not report.
    NodeLost,
    /// The node lacks a device, a network card or a kernel module.
    NodeUnfit,
}

/// Why no node takes a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Not enough processor, memory or other resources.
    Resources,
    /// No node has the labels that the pod wants.
    Selector,
    /// The nodes have taints that the pod does not tolerate.
    Taint,
    /// The pod must not share a node with those that are there.
    Spread,
    /// A volume claim is not bound, or its volume is elsewhere.
    Claim,
    /// Something else.
    Other,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DatabaseUnreachable => "the database is unreachable: is it up, and are its host and port right?",
            Self::DatabaseMissing => {
                "the database, its tables or the user's rights are not there: has the job run that makes them?"
            }
            Self::WrongPassword => "a wrong password: does the Secret hold what the server knows?",
            Self::ImagePull => {
                "the image can't be pulled: are its name, tag and registry right, and is a pull secret needed?"
            }
            Self::ProgramMissing => "the image lacks a program or module: is it the image for this?",
            Self::OutOfMemory => "the memory limit is too low: raise it",
            Self::Unschedulable(placement) => return placement.fmt(f),
            Self::BadOption => "an option is unknown or has an impossible value: correct the configuration",
            Self::PortInUse => "another program uses the port: stop it or take another port",
            Self::VolumeFull => "a volume is full: enlarge it or free space",
            Self::VolumeNotMounted => "a volume can't be mounted: look at its claim and the storage driver",
            Self::DataInUse => "another process uses the same data: is an older pod still running?",
            Self::DataDamaged => "the data on the volume are damaged: restore them from a backup",
            Self::MissingConfiguration => {
                "a Secret, a ConfigMap or a file of configuration is missing: is its name right?"
            }
            Self::NameResolution => "a host name is not known: is it spelt right, and does the cluster's DNS work?",
            Self::Certificate => "a certificate is not trusted: has it expired, and is its authority known?",
            Self::ServiceUnreachable => "a service that it needs is unreachable: is it up, and is its address right?",
            Self::DependencyMissing => "something that it waits for is not there yet: look at that",
            Self::PermissionDenied => {
                "a permission is missing: look at the owner of the files and the security context"
            }
            Self::ProbeFailing => "it does not answer its probe: is it overloaded, or is something that it needs away?",
            Self::PodNetwork => "the pod gets no network: look at the network plugin on its node",
            Self::NodeLost => "the node is gone or does not report: look at the node",
            Self::NodeUnfit => {
                "the node is not fit for this: give it what it lacks, ask for something else, or keep it out"
            }
        })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resources => "the nodes are full: add one or lower the requests",
            Self::Selector => "no node has the labels that the pod wants: label one",
            Self::Taint => "the nodes are tainted: remove the taint or let the pod tolerate it",
            Self::Spread => "there are too few nodes to spread the pods over: add one or lower the replicas",
            Self::Claim => "its volume claim has no volume here: look at the claim and its storage class",
            Self::Other => "no node fits: look at the nodes",
        })
    }
}

impl Cause {
    /// From the reason and message of a container that waits and should not.
    pub(crate) fn of_waiting(reason: &str, message: &str) -> Option<Self> {
        match reason {
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => Some(Self::ImagePull),
            "CreateContainerConfigError" => Some(Self::MissingConfiguration),
            _ => Self::of_line(message),
        }
    }

    /// From how a container ended.
    pub(crate) fn of_end(reason: &str, exit_code: i32, message: &str) -> Option<Self> {
        match (reason, exit_code) {
            ("OOMKilled", _) => Some(Self::OutOfMemory),
            // what shells and container runtimes say when there is nothing to run, or it may not be run
            (_, 127) => Some(Self::ProgramMissing),
            (_, 126) => Some(Self::PermissionDenied),
            _ => Self::of_line(message),
        }
    }

    /// From why a pod as a whole failed.
    pub(crate) fn of_pod(reason: &str, message: &str) -> Option<Self> {
        match reason {
            "NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated" => Some(Self::NodeLost),
            "Evicted" if message.contains("memory") => Some(Self::OutOfMemory),
            "Evicted" => Some(Self::VolumeFull),
            "OutOfcpu" | "OutOfmemory" | "OutOfpods" => Some(Self::Unschedulable(Placement::Resources)),
            "NodeAffinity" => Some(Self::Unschedulable(Placement::Selector)),
            _ => None,
        }
    }

    /// From what the scheduler says. It counts nodes by what is against them; the taint of control planes is usual,
    /// so it says least.
    pub(crate) fn of_scheduling(message: &str) -> Self {
        const SIGNS: [(&str, Placement); 11] = [
            ("unbound immediate PersistentVolumeClaims", Placement::Claim),
            ("persistentvolumeclaim", Placement::Claim),
            ("volume node affinity conflict", Placement::Claim),
            ("available persistent volumes to bind", Placement::Claim),
            ("Insufficient", Placement::Resources),
            ("Too many pods", Placement::Resources),
            ("anti-affinity", Placement::Spread),
            ("topology spread constraints", Placement::Spread),
            ("node affinity/selector", Placement::Selector),
            ("node selector", Placement::Selector),
            ("taint", Placement::Taint),
        ];
        let placement = SIGNS.iter().find(|(sign, _)| message.contains(sign)).map_or(Placement::Other, |(_, p)| *p);
        Self::Unschedulable(placement)
    }

    /// From a warning event.
    pub(crate) fn of_event(reason: &str, message: &str) -> Option<Self> {
        match reason {
            "FailedScheduling" => Some(Self::of_scheduling(message)),
            "FailedMount" if message.contains("secret \"") || message.contains("configmap \"") => {
                Some(Self::MissingConfiguration)
            }
            "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => Some(Self::VolumeNotMounted),
            "FailedCreatePodSandBox" | "NetworkNotReady" => Some(Self::PodNetwork),
            "Unhealthy" => Some(Self::ProbeFailing),
            "NodeNotReady" => Some(Self::NodeLost),
            "Failed" | "BackOff" if message.contains("pull") => Some(Self::ImagePull),
            _ => None,
        }
    }

    /// From lines of a log; a later line tells more than an earlier one.
    pub(crate) fn of_log(lines: &[String]) -> Option<Self> {
        lines.iter().rev().find_map(|line| Self::of_line(line))
    }

    /// From one line of a log.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        signs::find(line)
    }
}

#[cfg(test)]
mod tests;
