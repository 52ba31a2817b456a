#!/usr/bin/env python3
"""How long OpenStack took from applied to Ready, against the time that cannot be saved: the job runs and pod starts on
the longest path through its services. All times are the cluster's own, from OpenStack, Job and Pod objects.

critical_path.py [--limit RATIO]    with a limit, exits with 1 when the ratio is above it
"""
import json
import subprocess
import sys
from datetime import datetime

# what has to be there before what; services of one stage start together
STAGES = [["mariadb", "memcached"], ["keystone"], ["glance"]]


def get(kind, *arguments):
    out = subprocess.run(["kubectl", "get", kind, "-o", "json", *arguments], check=True, capture_output=True)
    return json.loads(out.stdout)


def at(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def condition(thing, kind):
    return next((c for c in thing["status"].get("conditions", []) if c["type"] == kind and c["status"] == "True"), None)


def seconds(start, end):
    return (at(end) - at(start)).total_seconds()


def service_time(service, jobs, pods):
    """Jobs run one after the other, then the pods start together."""
    of = lambda things: [t for t in things if t["metadata"]["labels"].get("application") == service]
    runs = [seconds(j["metadata"]["creationTimestamp"], j["status"]["completionTime"]) for j in of(jobs) if condition(j, "Complete")]
    starts = [seconds(p["metadata"]["creationTimestamp"], condition(p, "Ready")["lastTransitionTime"]) for p in of(pods) if condition(p, "Ready")]
    return sum(runs) + max(starts, default=0.0)


def main():
    cloud = get("openstacks.cluster.kupenstack.io", "default")
    ready = condition(cloud, "Ready")
    if ready is None:
        sys.exit("OpenStack default is not Ready")
    namespace = cloud["spec"]["namespace"]
    jobs = get("jobs", "--namespace", namespace)["items"]
    pods = [p for p in get("pods", "--namespace", namespace)["items"] if p["status"]["phase"] == "Running"]
    took = seconds(cloud["metadata"]["creationTimestamp"], ready["lastTransitionTime"])
    path, bound = [], 0.0
    for stage in STAGES:
        slowest = max(stage, key=lambda s: service_time(s, jobs, pods))
        time = service_time(slowest, jobs, pods)
        path.append(f"{slowest} {time:.0f} s")
        bound += time
    ratio = took / bound if bound else float("inf")
    print(f"OpenStack applied to Ready: {took:.0f} s; job runs and pod starts on the longest path: {bound:.0f} s "
          f"({', '.join(path)}); ratio {ratio:.2f}")
    if len(sys.argv) == 3 and ratio > float(sys.argv[2]):
        sys.exit(1)


main()
