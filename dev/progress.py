#!/usr/bin/env python3
"""Follow the OpenStack of a cluster until it is ready, showing each service's steps as they change.

progress.py SECONDS: reads nothing but watches (kubectl), so it says something whenever there is news. Ends with 0 when
OpenStack `default` is Ready, with 1 after SECONDS or when an object says that only a person can help (Stalled).
"""
import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

CLOUD = "openstacks.cluster.kupenstack.io"
SERVICES = [
    f"{name}.cluster.kupenstack.io"
    for name in (
        "mariadbs", "memcacheds", "keystones", "glances", "rabbitmqs", "placements", "ovns", "neutrons", "libvirts", "novas"
    )
]
# Between the end of a watch (the API server ends each after a while) and the next one.
AGAIN_AFTER = 1
STARTED = int(os.environ.get("KUPENSTACK_T0", time.time() * 1000)) / 1000


def elapsed():
    return time.time() - STARTED


def say(text):
    print(f"[{elapsed():7.1f} s]   {text}", file=sys.stderr, flush=True)


def objects(stream):
    """The JSON documents of a stream, as they come."""
    decoder, text = json.JSONDecoder(), ""
    for line in stream:
        text += line
        if line.startswith("}"):
            yield decoder.decode(text)
            text = ""


def follow(kind, news, watches):
    command = ["kubectl", "get", kind, "--all-namespaces", "--watch", "--output", "json"]
    while True:
        watches[kind] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for item in objects(watches[kind].stdout):
            news.put(item)
        watches[kind].wait()
        time.sleep(AGAIN_AFTER)


def end_all(watches):
    for watch in watches.values():
        watch.kill()


class Service:
    """What was last said about one service."""

    def __init__(self):
        self.steps = {}
        self.ready = {}
        self.since = {}

    def tell(self, item):
        kind, status = item["kind"], item.get("status", {})
        for step in status.get("steps", []):
            self.tell_step(kind, step)
        ready = condition(item, "Ready")
        if ready != self.ready:
            self.ready = ready
            self.tell_ready(kind, ready)

    def tell_ready(self, kind, ready):
        text = ready.get("message") or ready.get("reason", "")
        if ready.get("status") == "True":
            say(f"{kind}: ready")
        elif not any(text.startswith(step) for step in self.steps):  # what a step says is said there
            say(f"{kind}: {text}")

    def tell_step(self, kind, step):
        name, state = step["name"], step["state"]
        if self.steps.get(name) == state:
            return
        known = name in self.steps
        self.steps[name] = state
        if state == "Running":
            self.since[name] = time.monotonic()
            say(f"{kind}:   {name} …")
        elif state == "Done" and known:
            took = f" ({time.monotonic() - self.since[name]:.1f} s)" if name in self.since else ""
            say(f"{kind}:   {name} ✓{took}")
        elif state == "Failed":
            say(f"{kind}:   {name} FAILED: {step.get('message', '')}")


def condition(item, kind):
    """A condition's status, reason and message, if it is about the object's present spec."""
    generation = item["metadata"].get("generation")
    for entry in item.get("status", {}).get("conditions", []):
        if entry["type"] == kind and entry.get("observedGeneration", generation) == generation:
            return {key: entry.get(key, "") for key in ("status", "reason", "message")}
    return {}


def is_true(item, kind):
    return condition(item, kind).get("status") == "True"


def run(limit):
    news, watches = queue.Queue(), {}
    atexit.register(end_all, watches)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for kind in [CLOUD, *SERVICES]:
        threading.Thread(target=follow, args=(kind, news, watches), daemon=True).start()
    said, cloud, end = {}, None, time.monotonic() + limit
    while True:
        try:
            item = news.get(timeout=max(0, end - time.monotonic()))
        except queue.Empty:
            say(f"OpenStack is not ready after {limit} s: {condition(cloud, 'Ready') if cloud else 'there is none'}")
            return 1
        if item["kind"] == "OpenStack":
            cloud = item
        else:
            said.setdefault(item["kind"], Service()).tell(item)
        if is_true(item, "Stalled"):
            say(f"{item['kind']} needs help: {condition(item, 'Stalled')}")
            return 1
        if cloud and is_true(cloud, "Ready"):
            return 0


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1])))
