//! KupenStack: core.
