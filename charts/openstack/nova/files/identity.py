"""Before nova-compute starts on a node that has lost what Nova knows it by, as one that was set up anew: give it back, if no VM is
on the node. Nova itself refuses to start then, and goes on as if it were up.
"""
import os
import pathlib
import sys

FILE = pathlib.Path("/var/lib/nova/compute_id")


class Lost(Exception):
    """Somebody has to see to it."""


def restore(file, name, get):
    """Write the file, if Placement knows the node and nothing is on it. `get` asks Placement."""
    for provider in get(f"/resource_providers?name={name}")["resource_providers"]:
        uuid = provider["uuid"]
        vms = get(f"/resource_providers/{uuid}/allocations")["allocations"]
        if vms:
            raise Lost(
                f"node {name} has lost what Nova knows it by, and in Nova there are {len(vms)} VMs on it, {min(vms)} among them. "
                f"Where their disks are lost too, delete them or have them made anew elsewhere; else write {uuid} to {file} on the node")
        new = file.with_name(file.name + ".new")
        new.write_text(uuid, encoding="ascii")
        new.rename(file)
        print(f"node {name} had lost what Nova knows it by, and gets it back: {uuid}")


def asking(service):
    """What asks a service, of a type of the catalogue, as Nova asks Placement."""
    from keystoneauth1 import adapter, loading
    from oslo_config import cfg

    conf = cfg.ConfigOpts()
    for register in (loading.register_auth_conf_options, loading.register_session_conf_options, loading.register_adapter_conf_options):
        register(conf, "placement")
    conf(["--config-file", "/etc/nova/nova.conf"])
    session = loading.load_session_from_conf_options(conf, "placement", auth=loading.load_auth_from_conf_options(conf, "placement"))
    ask = adapter.Adapter(session, service_type=service, interface=conf.placement.valid_interfaces,
                          region_name=conf.placement.region_name)
    return lambda path: ask.get(path).json()


def main():
    import libvirt

    name = libvirt.openReadOnly(os.environ["LIBVIRT_URI"]).getHostname()
    try:
        restore(FILE, name, asking("placement"))
    except Lost as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
