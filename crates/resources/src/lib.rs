//! KupenStack: resources.
