"""Values that are missing or wrong: the message names the field."""
import subprocess
import tempfile
import unittest

import charts


class Missing(unittest.TestCase):
    NEEDED = {
        "mariadb": ["endpoints.oslo_db.auth.admin.password"],
        "memcached": [],
        "keystone": ["endpoints.oslo_db.auth.admin.password", "endpoints.oslo_db.auth.keystone.password",
                     "endpoints.identity.auth.admin.password"],
        "glance": ["endpoints.oslo_db.auth.admin.password", "endpoints.oslo_db.auth.glance.password",
                   "endpoints.identity.auth.admin.password", "endpoints.identity.auth.glance.password",
                   "endpoints.oslo_cache.auth.memcache_secret_key"],
        "rabbitmq": ["endpoints.oslo_messaging.auth.erlang_cookie", "endpoints.oslo_messaging.auth.nova.password",
                     "endpoints.oslo_messaging.auth.neutron.password"],
        "placement": ["endpoints.oslo_db.auth.placement.password", "endpoints.identity.auth.placement.password"],
        "ovn": [],
        "neutron": ["endpoints.oslo_db.auth.neutron.password", "endpoints.identity.auth.neutron.password",
                    "endpoints.oslo_messaging.auth.neutron.password", "endpoints.compute_metadata.auth.proxy.password"],
        "libvirt": [],
        "nova": ["endpoints.oslo_db.auth.nova.password", "endpoints.identity.auth.nova.password",
                 "endpoints.oslo_messaging.auth.nova.password", "endpoints.compute_metadata.auth.proxy.password",
                 "endpoints.compute_ssh.auth.nova.password"],
    }

    def test_each_password_is_asked_for_by_name(self):
        for chart, paths in self.NEEDED.items():
            for path in paths:
                values = None
                for key in reversed(path.split(".")):
                    values = {key: values}
                with self.subTest(chart=chart, path=path), self.assertRaises(charts.RenderError) as caught:
                    charts.template(chart, values)
                self.assertIn(f"{chart}: the value {path} is not set", str(caught.exception))
                self.assertIn("make-values.sh", str(caught.exception))

    def test_nothing_else_is_needed(self):
        for chart, paths in self.NEEDED.items():
            code, _, err = charts.helm("template", chart, str(charts.ROOT / chart))
            self.assertEqual(code == 0, not paths, err)

    def test_missing_image(self):
        with self.assertRaisesRegex(charts.RenderError, "keystone: images.tags.keystone_api is not set"):
            charts.template("keystone", {"images": {"tags": {"keystone_api": None}}})

    def test_generated_file_is_enough_and_never_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            make = [str(charts.ROOT / "make-values.sh"), f"{folder}/values.yaml"]
            subprocess.run(make, check=True, capture_output=True)
            for chart in charts.CHARTS:
                subprocess.run([charts.HELM, "template", chart, str(charts.ROOT / chart), "-f", make[1]],
                               check=True, capture_output=True)
            again = subprocess.run(make, capture_output=True, text=True, check=False)
            self.assertNotEqual(again.returncode, 0)
            self.assertIn("exists", again.stderr)


class Wrong(unittest.TestCase):
    CASES = [
        ("keystone", {"pod": {"replicas": {"api": -1}}}, "'/pod/replicas/api': minimum"),
        ("keystone", {"pod": {"replicas": {"api": "two"}}}, "'/pod/replicas/api': got string"),
        ("mariadb", {"pod": {"replicas": {"server": 3}}}, "'/pod/replicas/server': maximum"),
        ("memcached", {"pod": {"replicas": {"server": 2}}}, "'/pod/replicas/server': maximum"),
        ("glance", {"replicas": 2}, "additional properties 'replicas' not allowed"),
        ("glance", {"storage": "swift"}, "'/storage': value must be one of"),
        ("glance", {"volume": {"size": "ten"}}, "'/volume/size'"),
        ("glance", {"images": {"pull_policy": "Sometimes"}}, "'/images/pull_policy'"),
        ("glance", {"manifests": {"job_db_sync": "no"}}, "'/manifests/job_db_sync': got string"),
        ("glance", {"conf": {"glance": {"DEFAULT": 7}}}, "'/conf/glance/DEFAULT': got number"),
        ("glance", {"endpoints": {"identity": {"port": {"api": {"default": 70000}}}}}, "'/endpoints/identity/port/api/default'"),
        ("keystone", {"endpoints": {"identity": {"auth": {"admin": {"password": "x" * 73}}}}}, "/password': maxLength"),
        ("keystone", {"network": {"api": {"node_port": {"port": 0}}}}, "'/network/api/node_port/port': minimum"),
        ("rabbitmq", {"pod": {"replicas": {"server": 3}}}, "'/pod/replicas/server': maximum"),
        ("ovn", {"pod": {"replicas": {"ovsdb_nb": 3}}}, "'/pod/replicas/ovsdb_nb': maximum"),
        ("ovn", {"conf": {"ovn_bridge_datapath_type": "dpdk"}}, "'/conf/ovn_bridge_datapath_type'"),
        ("ovn", {"conf": {"ovn_bridge_mappings": "public"}}, "'/conf/ovn_bridge_mappings'"),
        ("nova", {"conf": {"nova": {"libvirt": "qemu"}}}, "'/conf/nova/libvirt': got string"),
        ("nova", {"pod": {"lifecycle": {"upgrades": {"daemonsets": {"compute": {"pod_replacement_strategy": "Recreate"}}}}}},
         "'/pod/lifecycle/upgrades/daemonsets/compute/pod_replacement_strategy'"),
    ]

    def test_messages_name_the_field(self):
        for chart, values, message in self.CASES:
            with self.subTest(message=message), self.assertRaises(charts.RenderError) as caught:
                charts.template(chart, values)
            self.assertIn(message, str(caught.exception))


class Settings(unittest.TestCase):
    def test_zero_replicas(self):
        objs = charts.objects("keystone", {"pod": {"replicas": {"api": 0}}})
        self.assertEqual(charts.find(objs, "Deployment", "keystone-api")["spec"]["replicas"], 0)

    def test_node_port(self):
        objs = charts.objects("keystone", {"network": {"api": {"node_port": {"enabled": True, "port": 30500}}}})
        spec = charts.find(objs, "Service", "keystone")["spec"]
        self.assertEqual((spec["type"], spec["ports"][0]["nodePort"]), ("NodePort", 30500))

    def test_load_balancer(self):
        for chart, component, name in (("glance", "api", "glance"), ("nova", "novncproxy", "nova-novncproxy")):
            spec = charts.find(charts.objects(chart, {"network": {component: {"load_balancer": {"enabled": True}}}}), "Service", name)["spec"]
            self.assertEqual((spec["type"], "nodePort" in spec["ports"][0]), ("LoadBalancer", False))
            self.assertNotIn("type", charts.find(charts.defaults(chart), "Service", name)["spec"])

    def test_public_endpoint(self):
        values = {"endpoints": {"identity": {"host_fqdn_override": {"public": "id.example.org"}, "scheme": {"public": "https"},
                                             "port": {"api": {"public": 443}}}}}
        job = charts.find(charts.objects("keystone", values), "Job", "keystone-bootstrap")
        env = {v["name"]: v.get("value") for v in charts.pod_spec(job)["containers"][0]["env"]}
        self.assertEqual(env["OS_BOOTSTRAP_PUBLIC_URL"], "https://id.example.org:443/v3")
        self.assertEqual(env["OS_BOOTSTRAP_INTERNAL_URL"], "http://keystone.cloud.svc.cluster.local:5000/v3")

    def test_node_selector_and_tolerations(self):
        values = {"labels": {"api": {"node_selector_key": "role", "node_selector_value": "control"}},
                  "pod": {"tolerations": {"glance": {"enabled": True}}}}
        spec = charts.pod_spec(charts.find(charts.objects("glance", values), "Deployment", "glance-api"))
        self.assertEqual(spec["nodeSelector"], {"role": "control"})
        self.assertEqual(spec["tolerations"][0]["key"], "node-role.kubernetes.io/control-plane")
        plain = charts.pod_spec(charts.find(charts.defaults("glance"), "Deployment", "glance-api"))
        self.assertNotIn("nodeSelector", plain)
        self.assertNotIn("tolerations", plain)

    def test_volume(self):
        objs = charts.objects("glance", {"volume": {"class_name": "fast", "size": "1Ti"}})
        spec = charts.find(objs, "PersistentVolumeClaim", "glance-images")["spec"]
        self.assertEqual((spec["storageClassName"], spec["resources"]["requests"]["storage"]), ("fast", "1Ti"))
        claim = charts.find(charts.defaults("mariadb"), "StatefulSet", "mariadb")["spec"]["volumeClaimTemplates"][0]
        self.assertNotIn("storageClassName", claim["spec"])

    def test_images_without_a_claim(self):
        objs = charts.objects("glance", {"storage": "emptyDir"})
        self.assertNotIn("PersistentVolumeClaim", {o["kind"] for o in objs})
        volumes = charts.pod_spec(charts.find(objs, "Deployment", "glance-api"))["volumes"]
        self.assertIn({"name": "images", "emptyDir": {}}, volumes)

    def test_disruption_budget(self):
        values = {"pod": {"lifecycle": {"disruption_budget": {"api": {"min_available": 1}}}}}
        budget = charts.find(charts.objects("glance", values), "PodDisruptionBudget", "glance-api")["spec"]
        self.assertEqual((budget["minAvailable"], "maxUnavailable" in budget), (1, False))

    def test_annotations(self):
        values = {"annotations": {"pod": {"default": {"a": "1"}, "api": {"b": "2"}}, "job": {"db_sync": {"c": "3"}}}}
        objs = charts.objects("glance", values)
        pod = charts.find(objs, "Deployment", "glance-api")["spec"]["template"]["metadata"]
        self.assertEqual(pod["annotations"], {"a": "1", "b": "2"})
        self.assertEqual(charts.find(objs, "Job", "glance-db-sync")["metadata"]["annotations"]["c"], "3")

    def test_every_sort_of_annotations_is_on_something(self):
        for chart in charts.CHARTS:
            [values] = charts.parse((charts.ROOT / chart / "values.yaml").read_text())
            sorts = values["annotations"]
            text = charts.template(chart, {"annotations": {sort: {"default": {f"of/{sort}": "yes"}} for sort in sorts}})
            self.assertEqual([sort for sort in sorts if f"of/{sort}: " not in text], [], chart)

    def test_extra_objects(self):
        extra = {"route": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}}}
        charts.find(charts.objects("glance", {"extraObjects": extra}), "ConfigMap", "glance-extra")

    def test_probes_and_resources_can_be_turned_off(self):
        values = {"pod": {"resources": {"enabled": False}, "probes": {"api": {"api": {"liveness": {"enabled": False}}}}}}
        container = charts.pod_spec(charts.find(charts.objects("glance", values), "Deployment", "glance-api"))["containers"][0]
        self.assertNotIn("livenessProbe", container)
        self.assertIn("readinessProbe", container)
        self.assertNotIn("resources", container)


if __name__ == "__main__":
    unittest.main()
