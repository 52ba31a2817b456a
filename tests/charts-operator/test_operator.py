"""The operator's chart: what it renders, and what it refuses."""
import functools
import pathlib
import unittest

import charts

CHART = pathlib.Path(__file__).parents[2] / "charts" / "kupenstack"


def render(values=None, namespace="kupenstack-system"):
    code, out, err = charts.helm("template", "kupenstack", str(CHART), "--namespace", namespace, values=values)
    if code:
        raise charts.RenderError(err)
    return charts.parse(out)


@functools.cache
def defaults():
    return render()


@functools.cache
def everything():
    """With all that is off unless it is wanted."""
    return render({"consoleLog": {"enabled": True}, "userSecrets": {"enabled": True}})


def of_kind(objs, *kinds):
    """All objects of some kinds. There is one at least: what is asked of each of none would hold always."""
    found = [o for o in objs if o["kind"] in kinds]
    assert found, f"no {kinds} in {names(objs)}"
    return found


def kinds(objs):
    return {o["kind"] for o in objs}


def names(objs):
    return sorted(o["metadata"]["name"] for o in objs)


class Values(unittest.TestCase):
    def refused(self, words, values):
        with self.assertRaises(charts.RenderError) as caught:
            render(values)
        self.assertIn(words, str(caught.exception))

    def test_lint(self):
        code, _, err = charts.helm("lint", "--strict", str(CHART))
        self.assertEqual(code, 0, err)

    def test_wrong_values_are_refused_by_name(self):
        self.refused("/cloud/namespace", {"cloud": {"namespace": "Open_Stack"}})
        self.refused("/controllers/cloud/workDir/sizeLimit", {"controllers": {"cloud": {"workDir": {"sizeLimit": "much"}}}})
        self.refused("/image/digest", {"image": {"digest": "latest"}})
        self.refused("/replicas", {"replicas": -1})
        self.refused("additional properties 'replica' not allowed", {"replica": 2})

    def test_the_cloud_never_shares_the_operators_namespace(self):
        self.refused("cloud.namespace must not be", {"cloud": {"namespace": "kupenstack-system"}})

    def test_image(self):
        for image, expected in (
            ({"repository": "r.example/op"}, "r.example/op:0.1.0"),
            ({"repository": "r.example/op", "tag": "1"}, "r.example/op:1"),
            ({"repository": "r.example/op", "tag": "1", "digest": "sha256:" + "0" * 64}, "r.example/op@sha256:" + "0" * 64),
        ):
            for deployment in of_kind(render({"image": image}), "Deployment"):
                self.assertEqual(charts.pod_spec(deployment)["containers"][0]["image"], expected)

    def test_log_filter(self):
        env = charts.pod_spec(of_kind(render({"log": "debug,kube=info"}), "Deployment")[0])["containers"][0]["env"]
        self.assertIn({"name": "RUST_LOG", "value": "debug,kube=info"}, env)


class Lasting(unittest.TestCase):
    """What an uninstall must not take away."""

    def kept(self, obj):
        return obj["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"

    def test_definitions(self):
        definitions = of_kind(defaults(), "CustomResourceDefinition")
        self.assertEqual(len(definitions), len(list(CHART.glob("files/crds/*.yaml"))))
        self.assertTrue(all(map(self.kept, definitions)))
        self.assertNotIn("CustomResourceDefinition", kinds(render({"crds": {"install": False}})))

    def test_namespace_of_the_cloud(self):
        self.assertTrue(self.kept(charts.find(defaults(), "Namespace", "openstack")))
        charts.find(render({"cloud": {"namespace": "cloud-7"}}), "Namespace", "cloud-7")
        self.assertNotIn("Namespace", kinds(render({"cloud": {"createNamespace": False}})))


class Pods(unittest.TestCase):
    def test_hardened(self):
        for deployment in of_kind(defaults(), "Deployment"):
            spec = charts.pod_spec(deployment)
            [container] = spec["containers"]
            with self.subTest(deployment["metadata"]["name"]):
                self.assertEqual(spec["securityContext"]["runAsUser"], 65532)
                self.assertTrue(spec["securityContext"]["runAsNonRoot"])
                self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertTrue(all(v["emptyDir"]["sizeLimit"] for v in spec["volumes"]))
                self.assertNotIn("hostNetwork", spec)

    def test_two_replicas_that_replace_each_other_one_by_one(self):
        for deployment in of_kind(defaults(), "Deployment"):
            spec = deployment["spec"]
            self.assertEqual((spec["replicas"], spec["strategy"]["type"]), (2, "RollingUpdate"))
            self.assertEqual(spec["strategy"]["rollingUpdate"]["maxUnavailable"], 0)
        self.assertEqual({d["spec"]["replicas"] for d in of_kind(render({"replicas": 1}), "Deployment")}, {1})

    def test_each_deployment_has_a_new_lease(self):
        leases = of_kind(defaults(), "Lease")
        self.assertEqual(names(leases), names(of_kind(defaults(), "Deployment")))
        # a holder named here would be taken for one that works, at every upgrade
        self.assertTrue(all("spec" not in lease for lease in leases))

    def test_a_drained_node_takes_one_replica_at_a_time(self):
        self.assertEqual(names(of_kind(defaults(), "PodDisruptionBudget")), names(of_kind(defaults(), "Deployment")))
        for budget in of_kind(defaults(), "PodDisruptionBudget"):
            selector = budget["spec"]["selector"]["matchLabels"]
            chosen = [d for d in of_kind(defaults(), "Deployment") if d["spec"]["selector"]["matchLabels"] == selector]
            self.assertEqual(names(chosen), [budget["metadata"]["name"]])
            self.assertEqual(budget["spec"]["maxUnavailable"], 1)

    def test_replicas_prefer_nodes_of_their_own(self):
        for deployment in of_kind(defaults(), "Deployment"):
            [preferred] = charts.pod_spec(deployment)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
            self.assertEqual(preferred["podAffinityTerm"]["labelSelector"]["matchLabels"],
                             deployment["spec"]["selector"]["matchLabels"])
        own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
        for deployment in of_kind(render({"affinity": own}), "Deployment"):
            self.assertEqual(charts.pod_spec(deployment)["affinity"], own)

    def test_every_controller_runs_in_one_of_them(self):
        running = []
        for deployment in of_kind(defaults(), "Deployment"):
            for arg in charts.pod_spec(deployment)["containers"][0]["args"]:
                if arg.startswith("--controllers="):
                    running += arg.partition("=")[2].split(",")
        self.assertEqual(sorted(running), ["aggregates", "clusterimage", "externalnetwork", "fencing", "flavor", "floatingip", "glance", "image", "keypair", "keystone", "libvirt", "mariadb", "memcached",
                                           "network", "neutron", "nova", "openstack", "ovn", "placement", "port", "projects", "quotas", "rabbitmq",
                                           "router", "securitygroup", "subnet", "virtualmachine"])

    def test_services_select_their_pods_and_nothing_else(self):
        asked = ["kupenstack-webhook", "kupenstack-subresources"]
        services = [s for s in of_kind(defaults(), "Service") if s["metadata"]["name"] not in asked]
        self.assertEqual(names(services), names(of_kind(defaults(), "Deployment")))
        for service in services:
            selector = service["spec"]["selector"].items()
            chosen = [d for d in of_kind(defaults(), "Deployment")
                      if selector <= d["spec"]["template"]["metadata"]["labels"].items()]
            self.assertEqual(names(chosen), [service["metadata"]["name"]])
            self.assertEqual(service["metadata"]["annotations"]["prometheus.io/scrape"], "true")


class ImageSources(unittest.TestCase):
    def pod(self, values, name="kupenstack-resources"):
        spec = charts.pod_spec(charts.find(render({"imageSources": values}), "Deployment", name))
        return spec, spec["containers"][0]

    def refused(self, words, values):
        with self.assertRaises(charts.RenderError) as caught:
            render({"imageSources": values})
        self.assertIn(words, str(caught.exception))

    def test_the_work_dir_is_not_filled_beyond_its_limit(self):
        _, container = self.pod({})
        self.assertIn("--work-dir-size=20Gi", container["args"])

    def test_nothing_is_there_unless_it_is_asked_for(self):
        spec, container = self.pod({})
        self.assertFalse([a for a in container["args"] if "image-sources" in a])
        self.assertFalse([e for e in container["env"] if "PROXY" in e["name"]])
        self.assertEqual([v["name"] for v in spec["volumes"]], ["tmp", "work"])

    def test_ranges(self):
        _, container = self.pod({"allow": ["10.1.2.3", "fd00::/8"], "deny": ["10.0.0.0/8"]})
        self.assertIn("--image-sources-allow=10.1.2.3,fd00::/8", container["args"])
        self.assertIn("--image-sources-deny=10.0.0.0/8", container["args"])
        self.refused("/imageSources/deny", {"deny": ["pods"]})

    def test_certificates_from_either_kind(self):
        for kind, volume in (("configMap", {"configMap": {"name": "cas"}}), ("secret", {"secret": {"secretName": "cas"}})):
            spec, container = self.pod({"caBundle": {kind: "cas", "key": "all.pem"}})
            self.assertIn("--image-sources-ca=/etc/kupenstack/image-sources/all.pem", container["args"])
            self.assertIn({"name": "image-sources-ca", **volume}, spec["volumes"])
            self.assertIn("/etc/kupenstack/image-sources", [m["mountPath"] for m in container["volumeMounts"]])
        self.refused("/imageSources/caBundle", {"caBundle": {"configMap": "a", "secret": "b"}})

    def test_proxies_leave_the_cluster_out(self):
        _, container = self.pod({"proxy": {"https": "http://proxy.example:3128", "noProxy": ["images.example"]}})
        env = {e["name"]: e.get("value") for e in container["env"]}
        self.assertEqual(env["HTTPS_PROXY"], "http://proxy.example:3128")
        self.assertNotIn("HTTP_PROXY", env)
        self.assertEqual(env["NO_PROXY"], "images.example,localhost,127.0.0.1,.svc,.cluster.local,$(KUBERNETES_SERVICE_HOST)")
        _, cloud = self.pod({"proxy": {"https": "http://proxy.example:3128"}}, "kupenstack-cloud")
        self.assertFalse([e for e in cloud["env"] if "PROXY" in e["name"]])

    def test_a_password_is_in_a_secret(self):
        self.refused("/imageSources/proxy/http", {"proxy": {"http": "http://user:password@proxy.example:3128"}})
        _, container = self.pod({"proxy": {"secret": "proxy"}})
        refs = [e["valueFrom"]["secretKeyRef"] for e in container["env"] if e["name"] in ("HTTP_PROXY", "HTTPS_PROXY")]
        self.assertEqual([(r["name"], r["key"]) for r in refs], [("proxy", "HTTPS_PROXY"), ("proxy", "HTTP_PROXY")])


class Rights(unittest.TestCase):
    def test_no_wildcard_and_no_role_of_others(self):
        for role in of_kind(everything(), "ClusterRole", "Role"):
            for rule in role["rules"]:
                self.assertNotIn("*", rule["apiGroups"] + rule["resources"] + rule["verbs"])
        others = {b["roleRef"]["name"]: b["metadata"]["namespace"] for b in of_kind(everything(), "ClusterRoleBinding", "RoleBinding")
                  if not b["roleRef"]["name"].startswith("kupenstack-")}
        # what tells how API servers make themselves known is Kubernetes' own
        self.assertEqual(others, {"extension-apiserver-authentication-reader": "kube-system"})

    def test_roles_follow_the_namespaces(self):
        objs = render({"cloud": {"namespace": "cloud-7"}, "consoleLog": {"enabled": True}}, namespace="ops")
        places = {r["metadata"]["namespace"] for r in of_kind(objs, "Role", "RoleBinding")}
        self.assertEqual(places, {"cloud-7", "default", "kube-system", "ops"})
        for binding in of_kind(objs, "ClusterRoleBinding", "RoleBinding"):
            for subject in binding["subjects"]:
                self.assertEqual(subject["namespace"], "ops")
                charts.find(objs, "ServiceAccount", subject["name"])

    def test_in_the_operators_namespace_there_are_only_the_lease_and_the_webhooks_secret(self):
        roles = [role for role in of_kind(render(namespace="ops"), "Role") if role["metadata"]["namespace"] == "ops"]
        self.assertEqual(names(roles), ["kupenstack-cloud-operator", "kupenstack-resources-operator",
                                        "kupenstack-webhook-keep", "kupenstack-webhook-read"])
        for role in roles:
            if role["metadata"]["name"].startswith("kupenstack-webhook-"):
                [rule] = role["rules"]
                self.assertEqual((rule["resources"], rule["resourceNames"]), (["secrets"], ["kupenstack-webhook"]))
                self.assertNotIn("create", rule["verbs"])
            else:
                self.assertEqual({r for rule in role["rules"] for r in rule["resources"]}, {"leases"})
                [named] = [rule for rule in role["rules"] if rule["verbs"] != ["create"]]
                self.assertEqual(named["resourceNames"], [role["metadata"]["name"].removesuffix("-operator")])

    def test_the_policy_holds_the_account_that_may_patch_namespaces(self):
        objs = render(namespace="ops")
        policy = charts.find(objs, "ValidatingAdmissionPolicy", "kupenstack-resources-namespaces")
        self.assertIn("'system:serviceaccount:ops:kupenstack-resources'", policy["spec"]["matchConditions"][0]["expression"])
        self.assertEqual(policy["spec"]["failurePolicy"], "Fail")
        patching = [r["metadata"]["name"] for r in of_kind(objs, "ClusterRole")
                    for rule in r["rules"] if "namespaces" in rule["resources"] and "patch" in rule["verbs"]]
        self.assertEqual(patching, ["kupenstack-resources"])


class Webhook(unittest.TestCase):
    def arguments(self, objs):
        return {d["metadata"]["name"]: charts.pod_spec(d)["containers"][0]["args"] for d in of_kind(objs, "Deployment")}

    def test_nothing_depends_on_it(self):
        [webhook] = charts.find(defaults(), "ValidatingWebhookConfiguration", "kupenstack-webhook")["webhooks"]
        self.assertEqual(webhook["failurePolicy"], "Ignore")
        self.assertLessEqual(webhook["timeoutSeconds"], 5)
        self.assertEqual((webhook["sideEffects"], webhook["matchPolicy"]), ("None", "Equivalent"))
        [rule] = webhook["rules"]
        self.assertEqual(rule["apiGroups"], ["cluster.kupenstack.io", "kupenstack.io"])
        self.assertEqual(rule["operations"], ["CREATE", "UPDATE"])
        [spared] = webhook["namespaceSelector"]["matchExpressions"]
        self.assertEqual((spared["operator"], spared["values"]), ("NotIn", ["kube-system", "kupenstack-system"]))

    def test_it_does_not_ask_about_what_the_operator_writes(self):
        objs = render(namespace="ops")
        [webhook] = charts.find(objs, "ValidatingWebhookConfiguration", "kupenstack-webhook")["webhooks"]
        own = webhook["matchConditions"][0]["expression"]
        for account in of_kind(objs, "ServiceAccount"):
            self.assertIn(f"'system:serviceaccount:ops:{account['metadata']['name']}'", own)

    def test_its_service_leads_to_every_pod_that_serves_it(self):
        objs = render(namespace="ops")
        service = charts.find(objs, "Service", "kupenstack-webhook")
        [webhook] = charts.find(objs, "ValidatingWebhookConfiguration", "kupenstack-webhook")["webhooks"]
        reference = webhook["clientConfig"]["service"]
        self.assertEqual((reference["name"], reference["namespace"]), ("kupenstack-webhook", "ops"))
        [port] = service["spec"]["ports"]
        self.assertEqual(port["port"], reference["port"])
        for deployment in of_kind(objs, "Deployment"):
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
            [container] = charts.pod_spec(deployment)["containers"]
            self.assertIn({"name": port["targetPort"], "containerPort": 9443}, container["ports"])
            self.assertIn("--webhook-name=kupenstack-webhook.ops.svc", container["args"])

    def test_one_account_keeps_the_certificate_and_may(self):
        arguments = self.arguments(defaults())
        self.assertIn("--webhook-certificate=keep", arguments["kupenstack-cloud"])
        self.assertIn("--webhook-certificate=read", arguments["kupenstack-resources"])
        binding = charts.find(defaults(), "ClusterRoleBinding", "kupenstack-webhook-keep")
        self.assertEqual([s["name"] for s in binding["subjects"]], ["kupenstack-cloud"])
        # without data: what the operator puts there is not the chart's to take away
        self.assertNotIn("data", charts.find(defaults(), "Secret", "kupenstack-webhook"))

    def test_cert_manager_takes_the_work_and_the_right(self):
        objs = render({"webhook": {"certManager": True}, "consoleLog": {"enabled": True}}, namespace="ops")
        for arguments in self.arguments(objs).values():
            self.assertIn("--webhook-certificate=read", arguments)
        self.assertNotIn("kupenstack-webhook-keep", names(of_kind(objs, "ClusterRole", "Role")))
        self.assertNotIn("Secret", kinds(objs))
        serving = charts.find(objs, "Certificate", "kupenstack-webhook")["spec"]
        self.assertEqual(serving["secretName"], "kupenstack-webhook")
        self.assertEqual(serving["dnsNames"], ["kupenstack-webhook.ops.svc", "kupenstack-subresources.ops.svc"])
        self.assertEqual(names(of_kind(objs, "Issuer")), ["kupenstack-webhook", "kupenstack-webhook-ca"])
        authority = charts.find(objs, "Certificate", "kupenstack-webhook-ca")["spec"]
        self.assertTrue(authority["isCA"])
        self.assertEqual(charts.find(objs, "Issuer", "kupenstack-webhook")["spec"]["ca"]["secretName"], authority["secretName"])
        configuration = charts.find(objs, "ValidatingWebhookConfiguration", "kupenstack-webhook")
        self.assertEqual(configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "ops/kupenstack-webhook")

    def test_switched_off_it_leaves_nothing(self):
        objs = render({"webhook": {"enabled": False}, "consoleLog": {"enabled": True}})
        self.assertNotIn("ValidatingWebhookConfiguration", kinds(objs))
        self.assertIn("kupenstack-webhook", names(of_kind(objs, "Secret")), "console logs are served with it too")
        objs = render({"webhook": {"enabled": False}, "consoleLog": {"enabled": False}})
        self.assertEqual([n for n in names(objs) if "webhook" in n], [])
        for arguments in self.arguments(objs).values():
            self.assertEqual([a for a in arguments if "webhook" in a], [])


class ConsoleLog(unittest.TestCase):
    OWN = "v1.subresources.kupenstack.io"

    def test_api_servers_reach_the_pods_that_can_answer(self):
        objs = render({"consoleLog": {"enabled": True}}, namespace="ops")
        spec = charts.find(objs, "APIService", self.OWN)["spec"]
        self.assertEqual(f"{spec['version']}.{spec['group']}", self.OWN)
        self.assertNotIn("insecureSkipTLSVerify", spec)
        service = charts.find(objs, "Service", spec["service"]["name"])
        self.assertEqual(spec["service"]["namespace"], "ops")
        [port] = service["spec"]["ports"]
        self.assertEqual(port["port"], spec["service"]["port"])
        selector = service["spec"]["selector"].items()
        led_to = []
        for deployment in of_kind(objs, "Deployment"):
            pod = deployment["spec"]["template"]
            [container] = charts.pod_spec(deployment)["containers"]
            self.assertIn("--console-log", container["args"])
            self.assertIn(f"--webhook-name={spec['service']['name']}.ops.svc", container["args"])
            self.assertIn({"name": port["targetPort"], "containerPort": 9443}, container["ports"])
            if selector <= pod["metadata"]["labels"].items():
                led_to.append(deployment["metadata"]["name"])
        self.assertEqual(led_to, ["kupenstack-resources"])

    def test_who_only_looks_on_reads_no_console(self):
        for role in of_kind(render({"consoleLog": {"enabled": True}}), "ClusterRole"):
            if any("subresources.kupenstack.io" in rule["apiGroups"] for rule in role["rules"]):
                labels = [l for l in role["metadata"]["labels"] if l.startswith("rbac.authorization.k8s.io/")]
                self.assertEqual(labels, ["rbac.authorization.k8s.io/aggregate-to-edit"])

    def test_cert_manager_takes_the_work_and_the_right(self):
        objs = render({"webhook": {"certManager": True}, "consoleLog": {"enabled": True}}, namespace="ops")
        annotations = charts.find(objs, "APIService", self.OWN)["metadata"]["annotations"]
        self.assertEqual(annotations["cert-manager.io/inject-ca-from"], "ops/kupenstack-webhook")
        self.assertNotIn("kupenstack-console-log-announce", names(of_kind(objs, "ClusterRole")))

    def test_it_is_off_unless_wanted_and_leaves_nothing(self):
        objs = defaults()
        self.assertEqual([n for n in names(objs) if "console" in n or "subresources" in n], [])
        self.assertNotIn("APIService", kinds(objs))
        for deployment in of_kind(objs, "Deployment"):
            [container] = charts.pod_spec(deployment)["containers"]
            self.assertEqual([a for a in container["args"] if "console" in a or "subresources" in a], [])


class UserSecrets(unittest.TestCase):
    def rights(self, objs):
        everywhere = [rule for role in of_kind(objs, "ClusterRole") for rule in role["rules"]]
        return [rule["verbs"] for rule in everywhere if "secrets" in rule["resources"] and not rule.get("resourceNames")]

    def test_no_right_to_all_secrets_unless_it_is_granted(self):
        self.assertEqual(self.rights(defaults()), [])
        self.assertEqual(self.rights(render({"userSecrets": {"enabled": True}})), [["get", "create"]])
