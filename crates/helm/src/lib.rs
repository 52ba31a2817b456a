//! KupenStack: helm.
