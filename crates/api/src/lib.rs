//! KupenStack: api.
