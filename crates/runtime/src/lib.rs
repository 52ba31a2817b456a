//! KupenStack: runtime.
