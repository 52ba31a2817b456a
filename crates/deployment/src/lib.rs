//! KupenStack: deployment.
