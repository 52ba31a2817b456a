"""The waiting program against an API server on loopback: python3 -m unittest discover images/base."""
import http.client
import http.server
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
import kubernetes_entrypoint as entrypoint  # noqa: E402

SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
ENDPOINTS = "/api/v1/namespaces/{}/endpoints/{}"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        status, body = self.server.answer(url.path, query, self.headers.get("Authorization"))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class FakeCluster(http.server.ThreadingHTTPServer):
    """Answers by path; an answer may be a function of the query. Anything else does not exist."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = {}, []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path, query, authorization):
        self.asked.append((path, query, authorization))
        found = self.answers.get(path, (404, {}))
        return found(query) if callable(found) else found

    def close(self):
        self.shutdown()
        self.server_close()


class PlainApi(entrypoint.Api):
    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=5)


def endpoint(ready, addresses=("10.0.0.1",)):
    return {"addresses": list(addresses), "conditions": {} if ready is None else {"ready": ready}}


def slices(*endpoints):
    return 200, {"items": [{"endpoints": list(endpoints)}]}


def having(kind, value="True"):
    return {"status": {"conditions": [{"type": kind, "status": value}]}}


class AgainstFakeCluster(unittest.TestCase):
    def setUp(self):
        self.cluster = FakeCluster()
        self.addCleanup(self.cluster.close)
        self.token = tempfile.NamedTemporaryFile("w", suffix="token")
        self.addCleanup(self.token.close)
        self.write_token("first")
        self.api = PlainApi("127.0.0.1", self.cluster.server_port, None, self.token.name)
        self.addCleanup(lambda: self.api.connection and self.api.connection.close())

    def write_token(self, token):
        self.token.seek(0)
        self.token.truncate()
        self.token.write(token + "\n")
        self.token.flush()

    def missing(self, dependency):
        return entrypoint.reason_missing(dependency, self.api)


class Services(AgainstFakeCluster):
    service = entrypoint.Service("openstack", "mariadb")

    def test_asks_for_the_slices_of_the_service(self):
        self.cluster.answers[SLICES.format("openstack")] = slices(endpoint(True))
        self.assertIsNone(self.missing(self.service))
        path, query, authorization = self.cluster.asked[0]
        self.assertEqual(query, {"labelSelector": "kubernetes.io/service-name=mariadb"})
        self.assertEqual(authorization, "Bearer first")

    def test_one_ready_address_is_enough(self):
        self.cluster.answers[SLICES.format("openstack")] = slices(endpoint(False), endpoint(True))
        self.assertIsNone(self.missing(self.service))

    def test_readiness_not_stated_means_ready(self):
        self.cluster.answers[SLICES.format("openstack")] = slices(endpoint(None))
        self.assertIsNone(self.missing(self.service))

    def test_not_ready(self):
        for answer in (slices(), slices(endpoint(False)), slices(endpoint(True, addresses=())),
                       (200, {"items": []}), (200, {"items": [{"endpoints": None}]})):
            with self.subTest(answer=answer):
                self.cluster.answers[SLICES.format("openstack")] = answer
                self.assertEqual(self.missing(self.service), "no ready address")

    def test_roles_that_allow_only_endpoints(self):
        self.cluster.answers[SLICES.format("openstack")] = 403, {}
        path = ENDPOINTS.format("openstack", "mariadb")
        self.assertEqual(self.missing(self.service), "no ready address")
        self.cluster.answers[path] = 200, {"subsets": [{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]}
        self.assertEqual(self.missing(self.service), "no ready address")
        self.cluster.answers[path] = 200, {"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}
        self.assertIsNone(self.missing(self.service))


class Jobs(AgainstFakeCluster):
    job = entrypoint.Job("openstack", "db-sync")

    def answer(self, *answer):
        self.cluster.answers[JOBS.format("openstack") + "/db-sync"] = answer

    def test_states(self):
        self.assertEqual(self.missing(self.job), "does not exist")
        for body, reason in (({}, "not complete"), ({"status": {"active": 1}}, "not complete"),
                             (having("Complete", "False"), "not complete"), (having("Failed"), "failed"),
                             (having("Complete"), None)):
            with self.subTest(body=body):
                self.answer(200, body)
                self.assertEqual(self.missing(self.job), reason)

    def test_labels_mean_every_job_and_at_least_one(self):
        job = entrypoint.Job("openstack", labels="application=nova")
        for items, reason in (([], "does not exist"), ([having("Complete"), {}], "not complete"),
                              ([having("Complete"), having("Complete")], None)):
            with self.subTest(items=items):
                self.cluster.answers[JOBS.format("openstack")] = 200, {"items": items}
                self.assertEqual(self.missing(job), reason)
        self.assertEqual(self.cluster.asked[-1][1], {"labelSelector": "application=nova"})


class Pods(AgainstFakeCluster):
    def test_states(self):
        pod = entrypoint.Pod("openstack", "application=ovn")
        for items, reason in (([], "does not exist"), ([having("Ready", "False")], "not ready"),
                              ([having("Ready", "False"), having("Ready")], None)):
            with self.subTest(items=items):
                self.cluster.answers[PODS.format("openstack")] = 200, {"items": items}
                self.assertEqual(self.missing(pod), reason)

    def test_on_the_same_node(self):
        on_node = {"spec.nodeName=node2": [having("Ready")]}
        self.cluster.answers[PODS.format("openstack") + "/me"] = 200, {"spec": {"nodeName": "node1"}}
        self.cluster.answers[PODS.format("openstack")] = lambda query: (
            200, {"items": on_node.get(query["fieldSelector"], [])})
        pod = entrypoint.Pod("openstack", "application=ovn", "openstack/me")
        self.assertEqual(self.missing(pod), "does not exist")
        on_node["spec.nodeName=node1"] = [having("Ready")]
        self.assertIsNone(self.missing(pod))


class Errors(AgainstFakeCluster):
    service = entrypoint.Service("openstack", "mariadb")

    def test_are_reasons_to_wait(self):
        path = SLICES.format("openstack")
        for answer, text in (((500, {}), "500"), ((401, {}), "401"), ((200, b"<html>"), "no JSON"), ((200, {}), "items")):
            with self.subTest(answer=answer):
                self.cluster.answers[path] = answer
                self.assertIn(text, self.missing(self.service))

    def test_both_kinds_forbidden(self):
        self.cluster.answers[SLICES.format("openstack")] = 403, {}
        self.cluster.answers[ENDPOINTS.format("openstack", "mariadb")] = 403, {}
        self.assertIn("403", self.missing(self.service))

    def test_a_server_that_comes_back(self):
        port = self.cluster.server_port
        self.api.address = ("127.0.0.1", 1)  # nothing listens there
        self.assertIn("API server", self.missing(self.service))
        self.api.address = ("127.0.0.1", port)
        self.cluster.answers[SLICES.format("openstack")] = slices(endpoint(True))
        self.assertIsNone(self.missing(self.service))

    def test_a_renewed_token_is_used(self):
        self.missing(self.service)
        self.write_token("second")
        self.missing(self.service)
        self.assertEqual([asked[2] for asked in self.cluster.asked], ["Bearer first", "Bearer second"])


class Waiting(AgainstFakeCluster):
    def test_until_all_hold_and_says_only_changes(self):
        job, service = entrypoint.Job("a", "sync"), entrypoint.Service("a", "db")
        steps = iter([
            lambda: None,
            lambda: self.cluster.answers.update({SLICES.format("a"): slices(endpoint(True))}),
            lambda: self.cluster.answers.update({JOBS.format("a") + "/sync": (200, having("Complete"))}),
        ])
        said, pauses = [], []

        def pause(seconds):
            pauses.append(seconds)
            next(steps)()

        self.cluster.answers[SLICES.format("a")] = slices()
        entrypoint.wait([job, service], self.api, pause=pause, say=said.append)
        self.assertEqual(said, ["waiting for job a/sync (does not exist); service a/db (no ready address)",
                                "waiting for job a/sync (does not exist)"])
        self.assertEqual(pauses, [entrypoint.POLL_SECONDS] * 3)

    def test_what_was_there_is_not_asked_for_again(self):
        self.cluster.answers[SLICES.format("a")] = slices(endpoint(True))

        def finish_job(_):
            self.cluster.answers[JOBS.format("a") + "/sync"] = 200, having("Complete")

        entrypoint.wait([entrypoint.Service("a", "db"), entrypoint.Job("a", "sync")], self.api,
                        pause=finish_job, say=lambda _: None)
        self.assertEqual([path for path, *_ in self.cluster.asked],
                         [SLICES.format("a"), JOBS.format("a") + "/sync", JOBS.format("a") + "/sync"])


class Settings(unittest.TestCase):
    env = {"NAMESPACE": "own", "POD_NAME": "me"}

    def read(self, **settings):
        return entrypoint.read_dependencies({**self.env, **settings})

    def test_everything(self):
        self.assertEqual(self.read(
            DEPENDENCY_SERVICE="db, other:broker,", DEPENDENCY_JOBS="sync,other:boot",
            DEPENDENCY_JOBS_JSON='[{"name": "x"}, {"labels": {"b": "2", "a": "1"}, "namespace": "far"}]',
            DEPENDENCY_POD_JSON='[{"labels": {"a": "1"}, "requireSameNode": true}, {"labels": {"b": "2"}, "namespace": "far"}]'), [
                entrypoint.Service("own", "db"), entrypoint.Service("other", "broker"),
                entrypoint.Job("own", "sync"), entrypoint.Job("other", "boot"),
                entrypoint.Job("own", "x"), entrypoint.Job("far", labels="a=1,b=2"),
                entrypoint.Pod("own", "a=1", "own/me"), entrypoint.Pod("far", "b=2")])

    def test_empty_values_mean_nothing(self):
        self.assertEqual(self.read(DEPENDENCY_SERVICE="", DEPENDENCY_JOBS="", DEPENDENCY_JOBS_JSON="",
                                   DEPENDENCY_POD_JSON="", DEPENDENCY_DAEMONSET=""), [])

    def test_what_cannot_be_understood_is_refused(self):
        for settings in ({"DEPENDENCY_JOBS_JSON": "{"}, {"DEPENDENCY_JOBS_JSON": "{}"}, {"DEPENDENCY_JOBS_JSON": '["a"]'},
                         {"DEPENDENCY_JOBS_JSON": '[{"namespace": "a"}]'}, {"DEPENDENCY_POD_JSON": '[{"labels": {}}]'},
                         {"DEPENDENCY_SERVICE": "db", "NAMESPACE": ""}, {"DEPENDENCY_DAEMONSET": "x"},
                         {"DEPENDENCY_POD_JSON": '[{"labels": {"a": "1"}, "requireSameNode": true}]', "POD_NAME": ""}):
            with self.subTest(settings=settings), self.assertRaises(entrypoint.BadSettings):
                self.read(**settings)


class Program(unittest.TestCase):
    """The whole program as a process, with TLS."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.certificate = os.path.join(cls.folder.name, "ca.crt")
        cls.key = os.path.join(cls.folder.name, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", cls.key, "-out", cls.certificate, "-days", "1", "-subj", "/CN=test",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with open(os.path.join(cls.folder.name, "token"), "w", encoding="ascii") as token:
            token.write("secret-token")

    def start(self, port, **env):
        code = ("import os, sys; sys.path.insert(0, sys.argv[1]); import kubernetes_entrypoint as e; "
                "api = e.Api.in_cluster; e.Api.in_cluster = lambda env: api(env, sys.argv[2]); e.main(os.environ)")
        return subprocess.Popen(
            [sys.executable, "-c", code, os.path.dirname(os.path.abspath(entrypoint.__file__)), self.folder.name],
            env={"PATH": os.environ["PATH"], "NAMESPACE": "a", "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                 "KUBERNETES_SERVICE_PORT": str(port), **env},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def serve(self):
        cluster = FakeCluster()
        self.addCleanup(cluster.close)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        cluster.socket = context.wrap_socket(cluster.socket, server_side=True)
        return cluster

    def test_waits_then_runs_the_command(self):
        cluster = self.serve()
        program = self.start(cluster.server_port, DEPENDENCY_SERVICE="db", COMMAND="echo 'all done'")
        self.assertIn("waiting for service a/db", program.stdout.readline())
        cluster.answers[SLICES.format("a")] = slices(endpoint(True))
        output = program.communicate(timeout=20)[0]
        self.assertEqual(program.returncode, 0, output)
        self.assertIn("all 1 dependencies are there", output)
        self.assertIn("all done", output)
        self.assertNotIn("secret-token", output)

    def test_an_unknown_certificate_is_not_trusted(self):
        cluster = self.serve()
        cluster.answers[SLICES.format("a")] = slices(endpoint(True))
        with open(self.certificate, encoding="ascii") as file:
            good = file.read()
        self.addCleanup(self.write_certificate, good)
        other = os.path.join(self.folder.name, "other.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", os.devnull, "-out", other, "-days", "1", "-subj", "/CN=other"], check=True, capture_output=True)
        with open(other, encoding="ascii") as file:
            self.write_certificate(file.read())
        program = self.start(cluster.server_port, DEPENDENCY_SERVICE="db")
        self.assertIn("CERTIFICATE_VERIFY_FAILED", program.stdout.readline())
        program.kill()
        program.communicate()
        self.assertEqual(cluster.asked, [])

    def write_certificate(self, text):
        with open(self.certificate, "w", encoding="ascii") as file:
            file.write(text)

    def test_ends_at_once_when_told_to(self):
        program = self.start(self.serve().server_port, DEPENDENCY_SERVICE="db")
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        program.communicate(timeout=5)
        self.assertEqual(program.returncode, 128 + signal.SIGTERM)

    def test_bad_settings_end_it(self):
        program = self.start(1, DEPENDENCY_JOBS_JSON="{")
        output = program.communicate(timeout=5)[0]
        self.assertEqual(program.returncode, 1)
        self.assertIn("DEPENDENCY_JOBS_JSON", output)

    def test_nothing_to_wait_for_needs_no_cluster(self):
        program = self.start(1)
        self.assertIn("all 0 dependencies", program.communicate(timeout=5)[0])
        self.assertEqual(program.returncode, 0)


if __name__ == "__main__":
    unittest.main()
