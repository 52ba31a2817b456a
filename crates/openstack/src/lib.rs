//! KupenStack: openstack.
