"""Runs nova-compute, and ends when it fails: the threads that it leaves would keep its pod as if all were well.

A host that Nova does not know, as one that was forgotten with its node, it refuses while there are VMs. Those that Nova has
deleted meanwhile go, so that the next start is one of an empty host; of others it says what they are.
"""
import os
import pathlib
import shutil
import sys
import traceback

INSTANCES = pathlib.Path("/var/lib/nova/instances")


def deleted_by_nova(vms, get):
    """Those of a host's VMs that are to go; nothing unless Nova, which `get` asks, has had and deleted every one of them."""
    has_had = "/servers/detail?all_tenants=1&deleted=true&uuid="
    others = [vm for vm in vms if not any(server["id"] == vm for server in get(has_had + vm)["servers"])]
    if others:
        print(f"there are {len(others)} VMs on this node that Nova does not know, {min(others)} among them: `virsh list --all` in "
              "libvirt's pod shows them. Remove them, and their folders in /var/lib/nova/instances, to have the node used", file=sys.stderr)
        return []
    return vms


def forget(host, get, connection, undefine):
    """Removes what Nova has deleted from a host that it does not know. `undefine` says what goes with a definition."""
    if get(f"/os-services?binary=nova-compute&host={host}")["services"]:
        return
    domains = {domain.UUIDString(): domain for domain in connection.listAllDomains()}
    for vm in deleted_by_nova(sorted(domains), get):
        if domains[vm].isActive():
            domains[vm].destroy()
        domains[vm].undefineFlags(undefine)
        shutil.rmtree(INSTANCES / vm, ignore_errors=True)
        print(f"VM {vm} was deleted while this node was away, and is gone now", file=sys.stderr)


def empty_the_host():
    import identity
    import libvirt

    undefine = libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA | libvirt.VIR_DOMAIN_UNDEFINE_NVRAM
    forget(os.environ["OS_DEFAULT__HOST"], identity.asking("compute"), libvirt.open(os.environ["LIBVIRT_URI"]), undefine)


def main():
    from nova.cmd import compute  # first: it prepares what others use
    from nova import exception

    pathlib.Path("/proc/self/comm").write_text("nova-compute", encoding="ascii")
    try:
        compute.main()
    except Exception as why:
        sys.excepthook(*sys.exc_info())
        try:
            if isinstance(why, exception.InvalidConfiguration) and os.environ["DRIVER"].startswith("libvirt."):
                empty_the_host()
        except Exception:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
