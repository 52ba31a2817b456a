#!/usr/bin/python3 -I
"""Wait until everything that a pod depends on is there, then run COMMAND or end with 0.

Understands the environment that OpenStack-Helm's charts give to their init containers:

  NAMESPACE, POD_NAME        of this pod; names below without a namespace mean this one
  DEPENDENCY_SERVICE         "keystone-api,other:mariadb": the Service has a ready address
  DEPENDENCY_JOBS            "db-sync,other:bootstrap": the Job is complete
  DEPENDENCY_JOBS_JSON       [{"name" or "labels", "namespace"}]: the same; labels mean all Jobs that match, at least one
  DEPENDENCY_POD_JSON        [{"labels", "namespace", "requireSameNode"}]: a matching pod is ready
  COMMAND                    run in place of this program at the end

Needs get and list on endpointslices (or endpoints), jobs and pods, as far as they are waited for.
"""
import dataclasses
import http.client
import json
import os
import shlex
import signal
import ssl
import sys
import time
import urllib.parse

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
POLL_SECONDS = 0.5
REQUEST_TIMEOUT_SECONDS = 10
UNSUPPORTED = ("DEPENDENCY_CONFIG", "DEPENDENCY_CONTAINER", "DEPENDENCY_CUSTOM_RESOURCE",
               "DEPENDENCY_DAEMONSET", "DEPENDENCY_SOCKET")


class BadSettings(Exception):
    """The environment can't be understood; waiting would not mend it."""


class ApiError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Api:
    """Reads from the cluster that this pod runs in, over one connection kept open."""

    def __init__(self, host, port, context, token_file):
        self.address, self.context, self.token_file = (host, port), context, token_file
        self.connection = None

    @classmethod
    def in_cluster(cls, env, account=ACCOUNT):
        try:
            host, port = env["KUBERNETES_SERVICE_HOST"], int(env["KUBERNETES_SERVICE_PORT"])
            context = ssl.create_default_context(cafile=f"{account}/ca.crt")
        except (KeyError, ValueError, OSError) as error:
            raise BadSettings(f"not in a pod with a service account: {error!r}") from error
        return cls(host, port, context, f"{account}/token")

    def headers(self):
        # The kubelet replaces the token before it expires, so it is read each time.
        with open(self.token_file, encoding="ascii") as file:
            return {"Authorization": f"Bearer {file.read().strip()}", "Accept": "application/json"}

    def connect(self):
        host, port = self.address
        return http.client.HTTPSConnection(host, port, context=self.context, timeout=REQUEST_TIMEOUT_SECONDS)

    def get(self, path, **query):
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        if self.connection is None:
            self.connection = self.connect()
        try:
            self.connection.request("GET", target, headers=self.headers())
            answer = self.connection.getresponse()
            status, reason, body = answer.status, answer.reason, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.connection = None
            raise ApiError(0, f"API server: {error!r}") from error
        if status != 200:
            raise ApiError(status, f"{path}: {status} {reason}")
        try:
            return json.loads(body)
        except ValueError as error:
            raise ApiError(status, f"{path}: the answer is no JSON") from error


def selector(labels):
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def quoted(name):
    return urllib.parse.quote(name, safe="")


def condition(thing, kind):
    conditions = thing.get("status", {}).get("conditions") or []
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


@dataclasses.dataclass(frozen=True)
class Service:
    namespace: str
    name: str

    def __str__(self):
        return f"service {self.namespace}/{self.name}"

    def missing(self, api):
        try:
            ready = self.slice_ready(api)
        except ApiError as error:
            if error.status != 403:
                raise
            # The roles of OpenStack-Helm's charts allow only the older kind.
            ready = self.endpoints_ready(api)
        return None if ready else "no ready address"

    def slice_ready(self, api):
        slices = api.get(f"/apis/discovery.k8s.io/v1/namespaces/{quoted(self.namespace)}/endpointslices",
                         labelSelector=f"kubernetes.io/service-name={self.name}")
        endpoints = [e for s in slices["items"] for e in s.get("endpoints") or []]
        # A missing "ready" means ready, says the API.
        return any((e.get("conditions") or {}).get("ready") is not False and e.get("addresses") for e in endpoints)

    def endpoints_ready(self, api):
        try:
            found = api.get(f"/api/v1/namespaces/{quoted(self.namespace)}/endpoints/{quoted(self.name)}")
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return any(subset.get("addresses") for subset in found.get("subsets") or [])


@dataclasses.dataclass(frozen=True)
class Job:
    namespace: str
    name: str = ""
    labels: str = ""

    def __str__(self):
        return f"job {self.namespace}/{self.name or self.labels}"

    def missing(self, api):
        path = f"/apis/batch/v1/namespaces/{quoted(self.namespace)}/jobs"
        if self.name:
            try:
                jobs = [api.get(f"{path}/{quoted(self.name)}")]
            except ApiError as error:
                if error.status != 404:
                    raise
                jobs = []
        else:
            jobs = api.get(path, labelSelector=self.labels)["items"]
        if not jobs:
            return "does not exist"
        if all(condition(job, "Complete") for job in jobs):
            return None
        return "failed" if any(condition(job, "Failed") for job in jobs) else "not complete"


@dataclasses.dataclass(frozen=True)
class Pod:
    namespace: str
    labels: str
    beside: str = ""  # "namespace/name" of the pod on whose node it must be

    def __str__(self):
        return f"pod {self.namespace}/{self.labels}" + (" on this node" if self.beside else "")

    def missing(self, api):
        query = {"labelSelector": self.labels}
        if self.beside:
            namespace, name = self.beside.split("/")
            node = api.get(f"/api/v1/namespaces/{quoted(namespace)}/pods/{quoted(name)}")["spec"]["nodeName"]
            query["fieldSelector"] = f"spec.nodeName={node}"
        pods = api.get(f"/api/v1/namespaces/{quoted(self.namespace)}/pods", **query)["items"]
        if not pods:
            return "does not exist"
        return None if any(condition(pod, "Ready") for pod in pods) else "not ready"


def required(env, name):
    if not env.get(name):
        raise BadSettings(f"{name} is not set")
    return env[name]


def names(env, variable):
    """The (namespace, name) pairs of "name,namespace:name"."""
    for item in filter(None, (part.strip() for part in env.get(variable, "").split(","))):
        namespace, _, name = item.rpartition(":")
        yield namespace or required(env, "NAMESPACE"), name


def objects(env, variable):
    try:
        items = json.loads(env.get(variable) or "[]")
    except ValueError as error:
        raise BadSettings(f"{variable} is no JSON: {error}") from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadSettings(f"{variable} must be a list of objects")
    return items


def read_job(env, item):
    namespace = item.get("namespace") or required(env, "NAMESPACE")
    if not item.get("name") and not item.get("labels"):
        raise BadSettings(f"DEPENDENCY_JOBS_JSON: {item} has neither name nor labels")
    return Job(namespace, item.get("name") or "", selector(item.get("labels") or {}))


def read_pod(env, item):
    if not item.get("labels"):
        raise BadSettings(f"DEPENDENCY_POD_JSON: {item} has no labels")
    own = required(env, "NAMESPACE")
    beside = f"{own}/{required(env, 'POD_NAME')}" if item.get("requireSameNode") else ""
    return Pod(item.get("namespace") or own, selector(item["labels"]), beside)


def read_dependencies(env):
    for variable in UNSUPPORTED:
        if env.get(variable):
            raise BadSettings(f"{variable} is not supported")
    return [
        *(Service(*pair) for pair in names(env, "DEPENDENCY_SERVICE")),
        *(Job(*pair) for pair in names(env, "DEPENDENCY_JOBS")),
        *(read_job(env, item) for item in objects(env, "DEPENDENCY_JOBS_JSON")),
        *(read_pod(env, item) for item in objects(env, "DEPENDENCY_POD_JSON")),
    ]


def reason_missing(dependency, api):
    """Why it isn't there yet, or None. Errors are reasons: rights, certificates and servers may still arrive."""
    try:
        return dependency.missing(api)
    except ApiError as error:
        return str(error)
    except (KeyError, OSError) as error:
        return repr(error)


def wait(dependencies, api, pause=time.sleep, say=print):
    """Poll what is still missing; what was there once is not asked for again."""
    said, open_ones = None, list(dependencies)
    while True:
        reasons = [(d, reason_missing(d, api)) for d in open_ones]
        open_ones = [d for d, reason in reasons if reason]
        if not open_ones:
            return
        state = "waiting for " + "; ".join(f"{d} ({reason})" for d, reason in reasons if reason)
        if state != said:
            say(state)
            said = state
        pause(POLL_SECONDS)


def main(env):
    # The kernel ignores signals without a handler for the first process of a container.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    started = time.monotonic()
    try:
        dependencies = read_dependencies(env)
        if dependencies:
            wait(dependencies, Api.in_cluster(env), say=lambda text: print(text, flush=True))
    except BadSettings as error:
        sys.exit(f"kubernetes-entrypoint: {error}")
    print(f"all {len(dependencies)} dependencies are there after {time.monotonic() - started:.1f} s", flush=True)
    command = shlex.split(env.get("COMMAND", ""))
    if command:
        os.execvp(command[0], command)


if __name__ == "__main__":
    main(os.environ)
