"""What the charts make of their own defaults."""
import subprocess
import sys
import tarfile
import tempfile
import unittest

import charts

HARDENED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
# What runs VMs or their networks is root on its node, and nothing else is.
ROOT = {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False}
PRIVILEGED = {"allowPrivilegeEscalation": True, "readOnlyRootFilesystem": True, "privileged": True, "capabilities": {}, **ROOT}
ON_THE_NODE = {"openvswitch-db": {**HARDENED, **ROOT}, "openvswitch-vswitchd": PRIVILEGED, "ovn-controller": PRIVILEGED,
               "ovn-metadata-agent": PRIVILEGED, "libvirt": PRIVILEGED, "compute": PRIVILEGED}
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def containers(obj):
    spec = charts.pod_spec(obj)
    return [*spec.get("initContainers", []), *spec["containers"]]


def has_token(container):
    return any(m["mountPath"] == TOKEN_FOLDER for m in container.get("volumeMounts", []))


class EveryChart(unittest.TestCase):
    def each_pod(self):
        return [obj for chart in charts.CHARTS for obj in charts.with_pods(charts.defaults(chart))]

    def test_lint(self):
        for chart in charts.CHARTS:
            code, out, _ = charts.helm("lint", "--strict", str(charts.ROOT / chart), values=charts.PASSWORDS)
            self.assertEqual(code, 0, out)

    def test_renders_are_byte_stable(self):
        for chart in charts.CHARTS:
            self.assertEqual(charts.template(chart), charts.template(chart))

    def test_installs_without_helm_dependency_build(self):
        """The library is reached by a link inside the repository, so a checkout is all that is needed."""
        for chart in charts.CHARTS:
            self.assertTrue((charts.ROOT / chart / "charts" / "toolkit" / "Chart.yaml").is_file())

    def test_packages_hold_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            for chart in charts.CHARTS:
                subprocess.run([charts.HELM, "package", str(charts.ROOT / chart), "--destination", folder],
                               check=True, capture_output=True)
                with tarfile.open(f"{folder}/{chart}-0.1.0.tgz") as package:
                    self.assertIn(f"{chart}/charts/toolkit/templates/_pod.tpl", package.getnames())

    def test_values_documentation_is_current(self):
        script = charts.ROOT.parent / "gen-docs.py"
        done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pods_meet_the_restricted_standard_but_on_hypervisors(self):
        for obj in self.each_pod():
            name, context = obj["metadata"]["name"], charts.pod_spec(obj)["securityContext"]
            self.assertIs(context["runAsNonRoot"], True, name)
            self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"}, name)
            for container in containers(obj):
                self.assertEqual(container["securityContext"], ON_THE_NODE.get(container["name"], HARDENED), name)

    def test_only_pods_of_hypervisors_share_anything_with_the_node(self):
        for obj in self.each_pod():
            spec, here = charts.pod_spec(obj), obj["kind"] == "DaemonSet"
            self.assertEqual(spec.get("hostNetwork", False), here, obj["metadata"]["name"])
            self.assertEqual(spec.get("hostPID", False), obj["metadata"]["name"] == "libvirt")
            self.assertEqual(any("hostPath" in v for v in spec["volumes"]), here, obj["metadata"]["name"])

    def test_no_links_to_services_and_no_account_by_default(self):
        for obj in self.each_pod():
            self.assertIs(charts.pod_spec(obj)["enableServiceLinks"], False)
            self.assertIs(charts.pod_spec(obj)["automountServiceAccountToken"], False)

    def test_only_init_containers_and_key_jobs_get_a_token(self):
        for obj in self.each_pod():
            for container in containers(obj):
                expected = container["name"] in ("init", "fernet-setup", "credential-setup")
                self.assertEqual(has_token(container), expected, obj["metadata"]["name"])

    def test_requests_and_memory_limits(self):
        for obj in self.each_pod():
            for container in containers(obj):
                self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory"})
                self.assertIn("memory", container["resources"]["limits"])

    def test_secrets_use_data(self):
        """`stringData` is never stored, so a server-side apply of it conflicts for ever."""
        for chart in charts.CHARTS:
            for obj in charts.defaults(chart):
                self.assertNotIn("stringData", obj)

    def test_no_password_outside_secrets(self):
        for chart in charts.CHARTS:
            for obj in charts.defaults(chart):
                if obj["kind"] != "Secret":
                    self.assertNotRegex(str(obj), r"-pw\b|cache-key")

    def test_selectors_match_pods(self):
        for chart in charts.CHARTS:
            objs = charts.defaults(chart)
            pods = [o["spec"]["template"]["metadata"]["labels"] for o in charts.with_pods(objs) if o["kind"] != "Job"]
            for obj in objs:
                if obj["kind"] in ("Service", "PodDisruptionBudget"):
                    wanted = obj["spec"]["selector"].get("matchLabels", obj["spec"]["selector"])
                    self.assertTrue(any(wanted.items() <= labels.items() for labels in pods), obj["metadata"]["name"])

    def test_one_values_file_serves_all(self):
        shared = {"conf": {"keystone": {"DEFAULT": {"debug": True}}, "memcached": {"memory": 32}},
                  "endpoints": {"cluster_domain_suffix": "example.org"}}
        for chart in charts.CHARTS:
            charts.template(chart, shared)


class Configuration(unittest.TestCase):
    def names(self, chart, values=None):
        return {o["kind"]: o["metadata"]["name"] for o in charts.objects(chart, values)
                if "kupenstack.io/config" in o["metadata"].get("labels", {})}

    def test_names_follow_content(self):
        before = self.names("keystone")
        after = self.names("keystone", {"conf": {"keystone": {"token": {"expiration": 60}}}})
        self.assertRegex(before["Secret"], r"^keystone-etc-[0-9a-f]{8}$")
        self.assertNotEqual(before["Secret"], after["Secret"])
        self.assertEqual(before["ConfigMap"], after["ConfigMap"])

    def test_kept_and_immutable(self):
        for chart in ("mariadb", "keystone", "glance"):
            configurations = [o for o in charts.defaults(chart) if "kupenstack.io/config" in o["metadata"].get("labels", {})]
            self.assertTrue(configurations, chart)
            for obj in configurations:
                self.assertEqual(obj["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})
                self.assertIs(obj["immutable"], True)

    def test_what_is_mounted_exists(self):
        """Everything named is in the render or one of the two key Secrets, by direct name."""
        for chart in charts.CHARTS:
            objs = charts.defaults(chart)
            known = {(o["kind"], o["metadata"]["name"]) for o in objs}
            known |= {("Secret", "keystone-fernet-keys"), ("Secret", "keystone-credential-keys")}
            for obj in charts.with_pods(objs):
                for volume in charts.pod_spec(obj)["volumes"]:
                    if "secret" in volume:
                        self.assertIn(("Secret", volume["secret"]["secretName"]), known)
                    if "configMap" in volume:
                        self.assertIn(("ConfigMap", volume["configMap"]["name"]), known)
                    self.assertTrue("projected" not in volume or volume["name"] == "init-token")
                for variable in (v for c in containers(obj) for v in c["env"]):
                    reference = variable.get("valueFrom", {}).get("secretKeyRef")
                    if reference:
                        secret = charts.find(objs, "Secret", reference["name"])
                        self.assertIn(reference["key"], secret["data"])


if __name__ == "__main__":
    unittest.main()
