//! KupenStack: images.
