//! KupenStack: testkit.
