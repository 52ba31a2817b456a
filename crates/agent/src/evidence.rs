use std::fmt;

use jiff::Timestamp;

use crate::Cause;

/// What is wrong with a pod and why, for people.
///
/// Its [`Display`](fmt::Display) is one sentence.
///
/// Passwords in URLs are blackened. Any other secret that a log quotes is not: who knows the secrets masks them in the
/// finished text. A line that is too long is cut between words, so that no half of a secret is left to escape that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Kind and name, such as `Pod keystone-api-7d4b9-x2x5k`.
    pub object: String,
    /// The container that has the problem, if it is one container's.
    pub container: Option<String>,
    /// What Kubernetes says, such as `CrashLoopBackOff, exit code 1, 3 restarts`.
    pub problem: String,
    /// The last lines of the container's log that mean something, in their order.
    pub log: Vec<String>,
    /// What the problem and the log point to.
    pub cause: Option<Cause>,
    /// Since when it is like this.
    pub since: Option<Timestamp>,
    /// When the pod was made.
    pub created: Option<Timestamp>,
    /// How bad it is.
    pub severity: Severity,
}

/// How bad something is; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing has failed, but it takes longer than it should.
    Slow,
    /// Something has failed.
    Failing,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.object)?;
        if let Some(container) = &self.container {
            write!(f, ", container {container}")?;
        }
        write!(f, ": {}", self.problem)?;
        if !self.log.is_empty() {
            write!(f, "; it says: \"{}\"", self.log.join(" | "))?;
        }
        if let Some(cause) = &self.cause {
            write!(f, "; probably {cause}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_one_sentence() {
        let mut evidence = Evidence {
            object: "Pod keystone-db-sync-x2x5k".to_owned(),
            container: Some("db-sync".to_owned()),
            problem: "Error, exit code 1".to_owned(),
            log: vec!["a".to_owned(), "b".to_owned()],
            cause: Some(Cause::VolumeFull),
            since: None,
            created: None,
            severity: Severity::Failing,
        };
        assert_eq!(
            evidence.to_string(),
            "Pod keystone-db-sync-x2x5k, container db-sync: Error, exit code 1; it says: \"a | b\"; \
             probably a volume is full: enlarge it or free space"
        );
        (evidence.container, evidence.cause) = (None, None);
        evidence.log.clear();
        assert_eq!(evidence.to_string(), "Pod keystone-db-sync-x2x5k: Error, exit code 1");
    }

    #[test]
    fn a_failure_is_worse_than_slowness() {
        assert!(Severity::Failing > Severity::Slow);
    }
}
