"""Jobs: order, idempotent hooks, and who waits for what."""
import unittest

import json

import charts

WEIGHTS = {
    "keystone": {"keystone-fernet-setup": -5, "keystone-credential-setup": -5, "keystone-db-init": -5,
                 "keystone-db-sync": -4, "keystone-bootstrap": -3},
    "glance": {"glance-db-init": -5, "glance-db-sync": -4, "glance-ks-register": -3},
    **{chart: {f"{chart}-db-init": -5, f"{chart}-db-sync": -4, f"{chart}-ks-register": -3}
       for chart in ("placement", "neutron", "nova")},
    **{chart: {} for chart in ("mariadb", "memcached", "rabbitmq", "ovn", "libvirt")},
}


def waits(obj):
    """(jobs, services) that the init container waits for; None without one."""
    inits = charts.pod_spec(obj).get("initContainers")
    if not inits:
        return None
    env = {v["name"]: v.get("value") for v in inits[0]["env"]}
    split = lambda text: text.split(",") if text else []
    return split(env["DEPENDENCY_JOBS"]), split(env["DEPENDENCY_SERVICE"])


class Jobs(unittest.TestCase):
    def test_order_and_hooks(self):
        for chart, expected in WEIGHTS.items():
            jobs = {o["metadata"]["name"]: o for o in charts.defaults(chart) if o["kind"] == "Job"}
            weights = {name: int(o["metadata"]["annotations"]["helm.sh/hook-weight"]) for name, o in jobs.items()}
            self.assertEqual(weights, expected)
            for job in jobs.values():
                self.assertEqual(job["metadata"]["annotations"]["helm.sh/hook"], "post-install,post-upgrade")
                self.assertEqual(job["metadata"]["annotations"]["helm.sh/hook-delete-policy"], "before-hook-creation")
                self.assertEqual(charts.pod_spec(job)["restartPolicy"], "OnFailure")

    def test_no_secret_in_arguments(self):
        for chart in charts.CHARTS:
            for obj in charts.with_pods(charts.defaults(chart)):
                for container in charts.pod_spec(obj)["containers"]:
                    self.assertNotRegex(" ".join([*container["command"], *container.get("args", [])]), "(?i)pass|-pw")

    def test_keystone_jobs_need_no_running_keystone(self):
        for name in ("keystone-db-sync", "keystone-bootstrap"):
            _, services = waits(charts.find(charts.defaults("keystone"), "Job", name))
            self.assertEqual(services, ["cloud:mariadb"])

    def test_registration_is_one_job(self):
        env = charts.pod_spec(charts.find(charts.defaults("glance"), "Job", "glance-ks-register"))["containers"][0]["env"]
        given = {v["name"]: v.get("value") for v in env}
        self.assertEqual((given["SERVICE_NAME"], given["SERVICE_TYPE"]), ("glance", "image"))
        url = "http://glance.cloud.svc.cluster.local:9292"
        self.assertEqual(given["SERVICE_ENDPOINTS"], f'{{"admin":"{url}","internal":"{url}","public":"{url}"}}')
        limits = ["image_count_total", "image_count_uploading", "image_size_total", "image_stage_total"]
        self.assertEqual(given["SERVICE_LIMITS"], json.dumps(dict.fromkeys(limits, 2147483647), separators=(",", ":")))

    def test_job_that_is_off(self):
        objs = charts.objects("keystone", {"manifests": {"job_fernet_setup": False, "job_credential_setup": False}})
        names = {o["metadata"]["name"] for o in objs}
        self.assertNotIn("keystone-fernet-setup", names)
        self.assertNotIn("keystone-keys", names, "the right to create Secrets goes with the jobs")
        jobs, _ = waits(charts.find(objs, "Deployment", "keystone-api"))
        self.assertEqual(jobs, ["keystone-db-sync", "keystone-bootstrap"])

    def test_bootstrap_that_is_off_is_not_waited_for(self):
        objs = charts.objects("keystone", {"bootstrap": {"enabled": False}})
        jobs, _ = waits(charts.find(objs, "Deployment", "keystone-api"))
        self.assertNotIn("keystone-bootstrap", jobs)
        self.assertNotIn("keystone-bootstrap", {o["metadata"]["name"] for o in objs})

    def test_service_in_another_namespace(self):
        objs = charts.objects("glance", {"endpoints": {"oslo_db": {"namespace": "data"}}})
        self.assertEqual(waits(charts.find(objs, "Job", "glance-db-sync")), (["glance-db-init"], ["data:mariadb"]))

    def test_service_outside_the_cluster_is_not_waited_for(self):
        outside = {"endpoints": {"oslo_db": {"host_fqdn_override": {"default": "db.example.org"}}}}
        objs = charts.objects("glance", outside)
        self.assertIsNone(waits(charts.find(objs, "Job", "glance-db-init")))
        self.assertIn("@db.example.org:3306/", charts.conf("glance", outside)["database"][0])

    def test_nothing_to_wait_for(self):
        objs = charts.objects("glance", {"dependencies": {"static": {"api": {"jobs": None, "services": None}}}})
        spec = charts.pod_spec(charts.find(objs, "Deployment", "glance-api"))
        self.assertNotIn("initContainers", spec)
        self.assertNotIn("serviceAccountName", spec)
        self.assertNotIn("init-token", {v["name"] for v in spec["volumes"]})


if __name__ == "__main__":
    unittest.main()
