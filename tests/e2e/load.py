#!/usr/bin/env python3
"""A steady load on Keystone and Glance, and its account.

load.py run             20 requests per second until killed; one line per request in RESULTS
load.py account FROM TO what became of the requests that began in that span (seconds of this machine's clock):
                        "REQUESTS FAILED SLOWEST_MS", then one line per failed request
load.py now             this machine's clock

No request is repeated: what a client without patience would see as an error is a failure. The identity is the OS_*
variables', as the charts' Secrets have them.
"""

import http.client
import itertools
import json
import os
import socket
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

RESULTS = "/tmp/results"
IMAGE = "load"
PER_SECOND = 20
# Longer than an answer takes on a machine that is overloaded many times: this looks for refusals and errors.
TIMEOUT = 120
WORKERS = 200

# One second: a login costs the server a bcrypt, so there is one of it. Names ending in "+" keep their connection.
SECOND = (["login"] + ["validate", "images"] * 4 + ["projects", "data"] * 2 + ["validate+", "images+"] * 3
          + ["data"])
EXPECTED = {"login": 201, "validate": 200, "projects": 200, "images": 200, "data": 200}

kept = threading.local()


def login_body():
    env = os.environ
    user = {"name": env["OS_USERNAME"], "domain": {"name": env["OS_USER_DOMAIN_NAME"]}, "password": env["OS_PASSWORD"]}
    project = {"name": env["OS_PROJECT_NAME"], "domain": {"name": env["OS_PROJECT_DOMAIN_NAME"]}}
    identity = {"methods": ["password"], "password": {"user": user}}
    return json.dumps({"auth": {"identity": identity, "scope": {"project": project}}})


def connection(base, keep):
    """A new connection, or this thread's own to that server."""
    host = urllib.parse.urlsplit(base).netloc
    if not keep:
        return http.client.HTTPConnection(host, timeout=TIMEOUT)
    connections = kept.__dict__.setdefault("connections", {})
    return connections.setdefault(host, http.client.HTTPConnection(host, timeout=TIMEOUT))


def send(base, method, path, headers, body=None, keep=False):
    """Status, headers and body of one request."""
    link = connection(base, keep)
    try:
        link.request(method, urllib.parse.urlsplit(base).path + path, body, headers)
        answer = link.getresponse()
        return answer.status, answer.headers, answer.read()
    except BaseException:
        link.close()
        raise
    finally:
        if not keep:
            link.close()


class Load:
    def __init__(self):
        self.keystone = os.environ["OS_AUTH_URL"]
        status, headers, body = self.login()
        if status != 201:
            sys.exit(f"login: {status} {body[:200]}")
        self.token = {"X-Auth-Token": headers["X-Subject-Token"]}
        catalog = json.loads(body)["token"]["catalog"]
        endpoints = next(s["endpoints"] for s in catalog if s["type"] == "image")
        self.glance = next(e["url"] for e in endpoints if e["interface"] == "internal")
        self.data = os.urandom(256 * 1024)
        self.image = self.upload()
        self.results = open(RESULTS, "a", buffering=1)

    def upload(self):
        described = {"name": IMAGE, "disk_format": "raw", "container_format": "bare"}
        headers = self.token | {"Content-Type": "application/json"}
        status, _, body = send(self.glance, "POST", "/v2/images", headers, json.dumps(described))
        if status != 201:
            sys.exit(f"image: {status} {body[:200]}")
        image = json.loads(body)["id"]
        headers = self.token | {"Content-Type": "application/octet-stream"}
        status, _, body = send(self.glance, "PUT", f"/v2/images/{image}/file", headers, self.data)
        if status != 204:
            sys.exit(f"image data: {status} {body[:200]}")
        return image

    def login(self):
        return send(self.keystone, "POST", "/auth/tokens", {"Content-Type": "application/json"}, login_body())

    def one(self, kind, keep):
        if kind == "login":
            return self.login()
        if kind == "validate":
            subject = {"X-Subject-Token": self.token["X-Auth-Token"]}
            return send(self.keystone, "GET", "/auth/tokens", self.token | subject, keep=keep)
        if kind == "projects":
            return send(self.keystone, "GET", "/projects", self.token, keep=keep)
        if kind == "images":
            return send(self.glance, "GET", "/v2/images", self.token, keep=keep)
        answer = send(self.glance, "GET", f"/v2/images/{self.image}/file", self.token, keep=keep)
        if answer[0] == 200 and answer[2] != self.data:
            raise OSError(f"other bytes: {len(answer[2])} of {len(self.data)}")
        return answer

    def measured(self, name):
        kind, start = name.rstrip("+"), time.time()
        try:
            status, _, body = self.one(kind, name.endswith("+"))
            text = "ok" if status == EXPECTED[kind] else f"status {status}: {body[:200]!r}"
        except (OSError, http.client.HTTPException, socket.timeout) as error:
            text = f"{type(error).__name__}: {error}"
        took = (time.time() - start) * 1000
        self.results.write(f"{start:.3f} {name} {took:.0f} {' '.join(text.split())}\n")

    def run(self):
        pool = ThreadPoolExecutor(WORKERS)
        start = time.monotonic()
        for number, name in enumerate(itertools.cycle(SECOND)):
            time.sleep(max(0.0, start + number / PER_SECOND - time.monotonic()))
            pool.submit(self.measured, name)


def account(begin, end):
    lines = [line.rstrip("\n").split(" ", 3) for line in open(RESULTS)]
    lines = [line for line in lines if begin <= float(line[0]) < end]
    failed = [line for line in lines if line[3] != "ok"]
    print(len(lines), len(failed), max((int(line[2]) for line in lines), default=0))
    for line in failed:
        moment = time.strftime("%H:%M:%S", time.gmtime(float(line[0])))
        print(f"{moment} {line[1]} after {line[2]} ms: {line[3]}")


def main():
    if len(SECOND) != PER_SECOND:
        sys.exit(f"a second has {len(SECOND)} requests, not {PER_SECOND}")
    if sys.argv[1:] == ["run"]:
        Load().run()
    elif sys.argv[1:] == ["now"]:
        print(f"{time.time():.3f}")
    else:
        account(float(sys.argv[2]), float(sys.argv[3]))


main()
