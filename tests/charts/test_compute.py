"""The charts of networks and VMs: what a node gets to see, which nodes they choose, what their scripts do."""
import base64
import contextlib
import io
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import unittest
import unittest.mock

import charts

ON_THE_NODE = {"ovn": ("ovn-openvswitch-db", "ovn-openvswitch-vswitchd", "ovn-controller"), "libvirt": ("libvirt",),
               "nova": ("nova-compute", "nova-ssh"), "neutron": ("neutron-ovn-metadata-agent",)}


def daemonset(chart, name, values=None):
    return charts.find(charts.objects(chart, values) if values else charts.defaults(chart), "DaemonSet", name)


def env(obj):
    return {v["name"]: v.get("value") for v in charts.pod_spec(obj)["containers"][0]["env"]}


class Nodes(unittest.TestCase):
    def test_hypervisors_are_chosen_by_label_and_replaced_on_demand(self):
        for chart, names in ON_THE_NODE.items():
            for name in names:
                obj = daemonset(chart, name)
                self.assertEqual(charts.pod_spec(obj)["nodeSelector"], {"openstack-compute-node": "enabled"}, name)
                self.assertEqual(obj["spec"]["updateStrategy"], {"type": "OnDelete"}, name)
                self.assertNotIn("affinity", charts.pod_spec(obj), name)

    def test_what_vms_stand_on_is_not_evicted_when_their_disks_fill_a_node(self):
        for chart in charts.CHARTS:
            for obj in charts.with_pods(charts.defaults(chart)):
                wanted = "system-node-critical" if obj["metadata"]["name"] in ON_THE_NODE.get(chart, ()) else None
                self.assertEqual(charts.pod_spec(obj).get("priorityClassName"), wanted, obj["metadata"]["name"])
        # where a quota leaves that to the system's own namespace
        spec = charts.pod_spec(daemonset("libvirt", "libvirt", {"pod": {"priorityClassName": {"libvirt": None}}}))
        self.assertNotIn("priorityClassName", spec)

    def test_nova_operator_620_replicas_that_come_and_go_leave_no_record(self):
        for name in ("nova-conductor", "nova-scheduler"):
            obj = charts.find(charts.defaults("nova"), "Deployment", name)
            self.assertEqual(env(obj)["OS_DEFAULT__HOST"], name, "one record, however many there are")

    def test_label_that_is_there_already(self):
        label = {"node_selector_key": "node-role.kubernetes.io/worker", "node_selector_value": ""}
        for chart, key in (("nova", "compute"), ("libvirt", "libvirt"), ("ovn", "ovn_controller"), ("neutron", "ovn_metadata_agent")):
            objs = [o for o in charts.objects(chart, {"labels": {key: label}}) if o["kind"] == "DaemonSet"]
            self.assertEqual({o["metadata"]["name"] for o in objs}, set(ON_THE_NODE[chart]))
            for obj in objs:
                self.assertEqual(charts.pod_spec(obj)["nodeSelector"], {"node-role.kubernetes.io/worker": ""})

    def test_tolerations(self):
        for chart, names in ON_THE_NODE.items():
            spec = charts.pod_spec(daemonset(chart, names[0], {"pod": {"tolerations": {chart: {"enabled": True}}}}))
            self.assertEqual(spec["tolerations"][0]["effect"], "NoSchedule")

    def test_taints_are_respected_by_default(self):
        for chart in charts.CHARTS:
            for obj in charts.with_pods(charts.defaults(chart)):
                self.assertNotIn("tolerations", charts.pod_spec(obj), obj["metadata"]["name"])

    def test_tolerations_of_some_pods_win_over_the_charts(self):
        vms = [{"key": "vms", "operator": "Exists"}]
        values = {"pod": {"tolerations": {"nova": {"enabled": True}, "compute": {"enabled": True, "tolerations": vms}}}}
        for obj in charts.with_pods(charts.objects("nova", values)):
            key = charts.pod_spec(obj)["tolerations"][0]["key"]
            self.assertEqual(key, "vms" if obj["kind"] == "DaemonSet" else "node-role.kubernetes.io/control-plane")
        values["pod"]["tolerations"]["compute"] = {"enabled": False}
        self.assertNotIn("tolerations", charts.pod_spec(daemonset("nova", "nova-compute", values)))

    def test_a_toleration_that_is_none_is_refused_by_name(self):
        for wrong, words in (({"effect": "NoWay"}, "effect"), ({"keys": "vms"}, "keys"), ({"operator": "In"}, "operator")):
            values = {"pod": {"tolerations": {"nova": {"enabled": True, "tolerations": [wrong]}}}}
            with self.assertRaisesRegex(charts.RenderError, words):
                charts.objects("nova", values)

    def test_every_node_is_a_gateway_unless_some_are_named(self):
        self.assertEqual(env(daemonset("ovn", "ovn-controller"))["CMS_OPTIONS"], "enable-chassis-as-gw")
        objs = charts.objects("ovn", {"labels": {"ovn_controller_gw": {"node_selector_key": "gateway", "node_selector_value": "yes"}}})
        for name, options, operator in (("ovn-controller", "", "NotIn"), ("ovn-controller-gw", "enable-chassis-as-gw", "In")):
            obj = charts.find(objs, "DaemonSet", name)
            term = charts.pod_spec(obj)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            self.assertEqual(term["nodeSelectorTerms"][0]["matchExpressions"], [{"key": "gateway", "operator": operator, "values": ["yes"]}])
            self.assertEqual(env(obj)["CMS_OPTIONS"], options)
            self.assertIn("startupProbe", charts.pod_spec(obj)["containers"][0])

    def test_osh_12851247b_starlingx_730f852_grace_is_longer_than_the_service_takes(self):
        """OSH 12851247b, StarlingX 730f852: pods that were killed while Nova still finished its work."""
        wanted = int(next(line for line in charts.conf("nova")["DEFAULT"] if line.startswith("graceful")).split()[-1])
        for kind, name in (("DaemonSet", "nova-compute"), ("Deployment", "nova-conductor"), ("Deployment", "nova-scheduler")):
            obj = charts.find(charts.defaults("nova"), kind, name)
            self.assertGreater(charts.pod_spec(obj)["terminationGracePeriodSeconds"], wanted)

    def test_atmosphere_745_identity_of_a_chassis_is_the_nodes_name(self):
        """atmosphere 745: a chassis that came back under another identity."""
        script = (charts.ROOT / "ovn" / "files" / "controller.sh").read_text()
        self.assertIn("external-ids:system-id=$NODE_NAME", script)


class Visible(unittest.TestCase):
    def test_hypervisors_see_no_database(self):
        self.assertIn("database", charts.conf("nova"))
        compute = charts.conf("nova", kind="compute")
        self.assertFalse({"database", "api_database", "keystone_authtoken"} & set(compute))
        self.assertNotRegex(str(compute), "db-pw|mysql")
        self.assertIn("transport_url", str(compute["DEFAULT"]))
        mounted = charts.pod_spec(daemonset("nova", "nova-compute"))["volumes"]
        self.assertRegex(next(v for v in mounted if v["name"] == "etc")["secret"]["secretName"], "^nova-compute-")

    def test_hypervisors_have_no_policy(self):
        """They judge nobody's requests: the file is not theirs, so its name must not be either."""
        values = {"conf": {"policy": {"os_compute_api:servers:create": "role:x"}}}
        self.assertIn("oslo_policy", charts.conf("nova", values))
        self.assertNotIn("oslo_policy", charts.conf("nova", values, kind="compute"))

    def test_the_metadata_agent_sees_its_shared_secret_only(self):
        agent = str(charts.conf("neutron", kind="agent", file="ovn_metadata_agent.ini"))
        self.assertIn("metadata-pw", agent)
        self.assertNotRegex(agent, "neutron-pw|db-pw|mq-pw")

    def test_a_fake_hypervisor_touches_no_switch(self):
        values = {"conf": {"nova": {"DEFAULT": {"compute_driver": "fake.FakeDriverWithoutFakeNodes"}}}}
        volumes = {v["name"] for v in charts.pod_spec(daemonset("nova", "nova-compute", values))["volumes"]}
        self.assertIn("nova-data", volumes)
        self.assertFalse({"libvirt-run", "openvswitch-run", "terminals", "ssh"} & volumes)
        self.assertEqual([o["metadata"]["name"] for o in charts.objects("nova", values) if o["kind"] == "DaemonSet"], ["nova-compute"])
        self.assertFalse([o for o in charts.objects("nova", values) if o["kind"] == "Secret" and o["metadata"]["name"].startswith("nova-ssh")])

    def test_who_takes_disks_may_write_to_folders_of_vms_and_holds_no_secret_of_those_who_bring_them(self):
        spec = charts.pod_spec(daemonset("nova", "nova-ssh"))
        container, prepare = spec["containers"][0], spec["initContainers"][0]
        mounted = [{m["mountPath"]: m.get("readOnly", False) for m in c["volumeMounts"]} for c in (container, prepare)]
        self.assertEqual(mounted, [{"/scripts": True, "/tmp": False, "/keys": True, "/var/lib/nova/instances": False},
                                   {"/scripts": True, "/tmp": False, "/keys": False, "/etc/ssh-secret": True}])
        self.assertEqual(prepare["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertEqual((spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]), (42424, True))
        self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertEqual(env(daemonset("nova", "nova-compute"))["SSH_UID"], "42424")
        for name in ("nova-compute", "nova-ssh"):
            volume = next(v for v in charts.pod_spec(daemonset("nova", name))["volumes"] if v["name"] == "ssh-secret")
            secret = charts.find(charts.defaults("nova"), "Secret", volume["secret"]["secretName"])
            self.assertEqual({key: base64.b64decode(value) for key, value in secret["data"].items()}, {"secret": b"ssh-pw"})

    def test_one_port_for_who_brings_and_who_takes(self):
        values = {"endpoints": {"compute_ssh": {"port": {"ssh": {"default": 2222}}}}}
        both = [daemonset("nova", name, values) for name in ("nova-compute", "nova-ssh")]
        self.assertEqual([env(obj)["SSH_PORT"] for obj in both], ["2222", "2222"])
        container = charts.pod_spec(both[1])["containers"][0]
        self.assertEqual([p["containerPort"] for p in container["ports"]], [2222])
        self.assertEqual(container["readinessProbe"]["tcpSocket"], {"port": "ssh"})


class Databases(unittest.TestCase):
    def test_one_user_three_databases(self):
        secret = charts.find(charts.defaults("nova"), "Secret", "nova-db-user")
        self.assertEqual(set(secret["data"]), {"DB_CONNECTION", "DB_CONNECTION_API", "DB_CONNECTION_CELL0"})
        job = charts.find(charts.defaults("nova"), "Job", "nova-db-init")
        self.assertLessEqual(set(secret["data"]), {v["name"] for v in charts.pod_spec(job)["containers"][0]["env"]})

    def test_a_database_that_no_user_is_named_for(self):
        """A path for everybody is a service's own as well, for its configuration and for the job that makes it."""
        values = {"endpoints": {"oslo_db": {"path": {"neutron": None, "default": "/all"}}}}
        secret = charts.find(charts.objects("neutron", values), "Secret", "neutron-db-user")
        self.assertIn(b"/all?", base64.b64decode(secret["data"]["DB_CONNECTION"]))
        self.assertIn("/all?", str(charts.conf("neutron", values)["database"]))

    def test_cells_follow_the_configuration(self):
        """A cell's URLs are patterns: a stored password would be an old one after the next change."""
        script = (charts.ROOT / "nova" / "files" / "db-sync.sh").read_text()
        self.assertEqual(script.count("{password}"), 2)

    def test_no_unencrypted_migration_by_default(self):
        self.assertIn("listen_tcp = 0", charts.etc(charts.defaults("libvirt"))["libvirtd.conf"])


class Broker(unittest.TestCase):
    def definitions(self, values=None):
        return json.loads(charts.etc(charts.objects("rabbitmq", values))["definitions.json"])

    def test_each_service_has_its_own_user_and_host(self):
        """infra-operator PR 577: what one service leaves is not another's."""
        found = self.definitions()
        self.assertEqual([(p["user"], p["vhost"]) for p in found["permissions"]], [("neutron", "neutron"), ("nova", "nova")])
        for chart in ("neutron", "nova"):
            url = next(line for line in charts.conf(chart)["DEFAULT"] if line.startswith("transport_url"))
            self.assertIn(f"rabbit://{chart}:{chart}-mq-pw@rabbitmq.cloud.svc.cluster.local:5672/{chart}", url)

    def test_another_user(self):
        more = {"endpoints": {"oslo_messaging": {"auth": {"cinder": {"username": "cinder", "password": "x"}}, "path": {"cinder": "/cinder"}}}}
        self.assertIn({"name": "cinder"}, self.definitions(more)["vhosts"])

    def test_lists_become_numbered_options(self):
        text = charts.etc(charts.objects("rabbitmq", {"conf": {"rabbitmq": {"auth_backends": ["internal", "cache"]}}}))["rabbitmq.conf"]
        self.assertIn("auth_backends.1 = internal\nauth_backends.2 = cache\n", text)


class Scripts(unittest.TestCase):
    def test_connected(self):
        script = charts.ROOT / "toolkit" / "files" / "connected.sh"
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            self.assertEqual(subprocess.run(["bash", script, port], check=False).returncode, 1)
            with socket.create_connection(server.getsockname()):
                self.assertEqual(subprocess.run(["bash", script, port], check=False).returncode, 0)

    def compute(self, **given):
        """What the script of nova-compute says on this machine, without a hypervisor."""
        with tempfile.TemporaryDirectory() as folder:
            state = pathlib.Path(folder)
            (state / "python3").write_text("#!/bin/sh\necho started $1\n")
            (state / "python3").chmod(0o755)
            (state / "mkdir").write_text("#!/bin/sh\n")
            (state / "mkdir").chmod(0o755)
            text = (charts.ROOT / "nova" / "files" / "compute.sh").read_text().replace("/dev/kvm", given.pop("kvm"))
            return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False,
                                  env={"PATH": f"{folder}:{os.environ['PATH']}", "OS_DEFAULT__HOST": "node7", **given})

    def test_kvm_that_is_not_there(self):
        done = self.compute(kvm="/nonexistent", DRIVER="libvirt.LibvirtDriver", VIRT_TYPE="kvm")
        self.assertEqual(done.returncode, 1)
        self.assertIn("node node7 has no /nonexistent", done.stderr)
        self.assertIn("virt_type to qemu", done.stderr)

    def test_fake_needs_nothing(self):
        done = self.compute(kvm="/nonexistent", DRIVER="fake.FakeDriverWithoutFakeNodes", VIRT_TYPE="kvm")
        self.assertEqual((done.returncode, done.stdout), (0, "started /scripts/serve.py\n"), done.stderr)

    def test_who_takes_disks_has_to_be_nova_in_its_image(self):
        done = subprocess.run(["bash", charts.ROOT / "nova" / "files" / "sshd.sh"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pod.security_context.nova.pod.runAsUser", done.stderr)

    def identity(self, providers, vms=()):
        """The file with a node's identity afterwards, where Placement has these."""
        module = charts.script(charts.ROOT / "nova" / "files" / "identity.py")
        answers = {"/resource_providers?name=node7": {"resource_providers": [{"uuid": uuid} for uuid in providers]},
                   "/resource_providers/u1/allocations": {"allocations": {vm: {} for vm in vms}}}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            file = pathlib.Path(folder, "compute_id")
            try:
                module.restore(file, "node7", answers.__getitem__)
            except module.Lost as why:
                self.assertFalse(file.exists())
                return str(why)
            return file.read_text() if file.exists() else None

    def test_a_node_that_nova_knows_gets_its_identity_back_unless_it_has_vms(self):
        self.assertIsNone(self.identity([]), "Nova gives it one")
        self.assertEqual(self.identity(["u1"]), "u1")
        self.assertRegex(self.identity(["u1"], ["vm-b", "vm-a"]), "node7 .* 2 VMs on it, vm-a .* write u1 to .*compute_id")

    def empty(self, services, *vms):
        """The domains and folders that are left on a host with these, where Nova has these services there and has deleted gone-…."""
        module = charts.script(charts.ROOT / "nova" / "files" / "serve.py")
        kept = set(vms)

        def get(path):
            if path == "/os-services?binary=nova-compute&host=node7":
                return {"services": services}
            vm = path.removeprefix("/servers/detail?all_tenants=1&deleted=true&uuid=")
            return {"servers": [{"id": vm, "status": "DELETED"}] if vm.startswith("gone-") else []}

        def domain(vm):
            made = unittest.mock.Mock()
            made.UUIDString.return_value, made.isActive.return_value = vm, vm.endswith("-runs")
            made.undefineFlags.side_effect = lambda flags: kept.discard(vm)
            return made

        domains = [domain(vm) for vm in vms]
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            module.INSTANCES = pathlib.Path(folder)
            for vm in vms:
                (module.INSTANCES / vm).mkdir()
            module.forget("node7", get, unittest.mock.Mock(listAllDomains=lambda: domains), 7)
            self.assertEqual({file.name for file in module.INSTANCES.iterdir()}, kept)
        for vm, made in zip(vms, domains):
            self.assertEqual(made.destroy.called, vm not in kept and vm.endswith("-runs"), vm)
        return kept, said.getvalue()

    def test_a_host_that_was_forgotten_loses_the_vms_that_nova_has_deleted(self):
        self.assertEqual(self.empty([], "gone-1", "gone-2-runs")[0], set())
        kept, said = self.empty([], "gone-1", "unknown-1", "unknown-2")
        self.assertEqual(kept, {"gone-1", "unknown-1", "unknown-2"}, "somebody has to look")
        self.assertIn("2 VMs on this node that Nova does not know, unknown-1 among them", said)
        self.assertEqual(self.empty([{"id": "known"}], "gone-1")[0], {"gone-1"}, "Nova sees to it itself")
        self.assertEqual(self.empty([]), (set(), ""))

    def clean(self, plugged):
        """What cleans a node of the metadata agent's namespaces, where the switch has this, and which it asked to delete."""
        with tempfile.TemporaryDirectory() as folder:
            stand_ins = {"ovs-vsctl": plugged, "ip": 'if [ "$2" = list ]; then echo "ovnmeta-1 (id: 3)"; echo theirs; else echo "$@" >>"$0.log"; fi'}
            for name, text in stand_ins.items():
                file = pathlib.Path(folder, name)
                file.write_text(f"#!/bin/sh\n{text}\n")
                file.chmod(0o755)
            done = subprocess.run(["bash", charts.ROOT / "neutron" / "files" / "clean-node.sh"], capture_output=True, text=True,
                                  check=False, env={"PATH": f"{folder}:{os.environ['PATH']}"})
            log = pathlib.Path(folder, "ip.log")
            return done.returncode, log.read_text() if log.exists() else ""

    def test_a_node_with_vms_is_left_as_it_is(self):
        self.assertEqual(self.clean("echo 'iface-id=a iface-status=active vm-uuid=b'"), (3, ""))
        self.assertEqual(self.clean("exit 7"), (7, ""), "nobody knows")
        self.assertEqual(self.clean("echo 'iface-id=a'"), (0, "netns delete ovnmeta-1\n"))

    def test_card_that_is_not_there(self):
        script = charts.ROOT / "ovn" / "files" / "lib.sh"
        done = subprocess.run(["bash", "-c", f". {script}; need_card eth77 network.interface.tunnel tunnelInterface"], capture_output=True, text=True,
                              check=False, env={**os.environ, "NODE_NAME": "node7", "TUNNEL_CARD": "", "DATAPATH": "system"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("node node7 has no network card eth77, which network.interface.tunnel names (tunnelInterface of the OVN object)", done.stderr)


if __name__ == "__main__":
    unittest.main()
