"""options.py SERVICE: print the options of a service that is installed here, by section. Runs inside the image.

An option is on a line of its own, with the names it had in earlier releases on lines of theirs. A `*` behind a name says
that the value is a secret. The section [*] has what is valid in any section that is not listed.
"""
import sys

from keystoneauth1 import loading
from oslo_config import generator

# What each service reads: the namespaces of its own sample configuration.
NAMESPACES = {
    "keystone": ["keystone", "oslo.cache", "oslo.db", "oslo.log", "oslo.messaging", "oslo.middleware", "oslo.policy",
                 "oslo.reports", "osprofiler"],
    "glance": ["castellan.config", "glance", "glance.api", "glance.cache", "glance.manage", "glance.multi_store",
               "glance.scrubber", "glance.store", "keystonemiddleware.auth_token", "os_brick", "oslo.concurrency", "oslo.db",
               "oslo.limit", "oslo.log", "oslo.messaging", "oslo.middleware", "oslo.policy", "oslo.reports", "osprofiler"],
    "neutron": ["designate.auth", "ironic.auth", "keystonemiddleware.auth_token", "neutron", "neutron.agent",
                "neutron.base.agent", "neutron.db", "neutron.extensions", "nova.auth", "oslo.cache", "oslo.concurrency",
                "oslo.db", "oslo.log", "oslo.messaging", "oslo.middleware", "oslo.policy", "oslo.reports",
                "oslo.service.sslutils", "oslo.service.wsgi", "osprofiler", "placement.auth"],
    "nova": ["castellan.config", "keystonemiddleware.auth_token", "nova.conf", "os_vif", "oslo.cache", "oslo.concurrency",
             "oslo.db", "oslo.limit", "oslo.log", "oslo.messaging", "oslo.middleware", "oslo.policy", "oslo.privsep",
             "oslo.reports", "oslo.service.periodic_task", "oslo.service.service", "osprofiler"],
    "placement": ["placement.conf", "keystonemiddleware.auth_token", "oslo.log", "oslo.middleware", "oslo.policy"],
}
# Sections named by the user: a store of Glance, a federation protocol of Keystone; or by a library that gives its helper
# root's rights: each has one of its own.
ANY = "*"


def auth_options():
    """Options of every way to authenticate: which one a section holds is only known where it is read."""
    for name in loading.get_available_plugin_names():
        yield from (option._to_oslo_opt() for option in loading.get_plugin_options(name))


class Options:
    def __init__(self):
        self.sections = {}

    def add(self, section, name, secret):
        options = self.sections.setdefault(section, {})
        options[name] = options.get(name, False) or secret

    def take(self, section, option):
        secret = bool(option.secret)
        self.add(section, option.dest, secret)
        for old in option.deprecated_opts:
            self.add(old.group or section, (old.name or option.dest).replace("-", "_"), secret)

    def take_namespace(self, groups):
        for group, options in groups:
            section = str(getattr(group, "name", group) or "DEFAULT")
            for option in options:
                self.take(section, option)

    def print(self):
        for section in sorted(self.sections):
            print(f"[{section}]")
            for name, secret in sorted(self.sections[section].items()):
                print(name + " *" if secret else name)


def main(service):
    found = Options()
    for namespace, groups in generator._list_opts(NAMESPACES[service]):
        found.take_namespace(groups)
        if namespace in ("glance.multi_store", "oslo.privsep"):
            found.take_namespace((ANY, options) for _, options in groups)
    if service == "keystone":
        found.add(ANY, "remote_id_attribute", False)
    for section, options in list(found.sections.items()):
        if section != ANY and {"auth_type", "auth_section"} & options.keys():
            for option in auth_options():
                found.take(section, option)
    found.print()


main(sys.argv[1])
