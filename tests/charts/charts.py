"""Render the charts with helm and read the result; load their scripts. Python's library alone is needed."""
import base64
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2] / "charts" / "openstack"
CHARTS = ("mariadb", "memcached", "rabbitmq", "keystone", "glance", "placement", "ovn", "neutron", "libvirt", "nova")
HELM = os.environ.get("HELM", "helm")

SERVICES = ("keystone", "glance", "placement", "neutron", "nova")
PASSWORDS = {
    "endpoints": {
        "oslo_db": {"auth": {"admin": {"password": "root-pw"},
                             **{service: {"password": f"{service}-db-pw"} for service in SERVICES}}},
        "identity": {"auth": {"admin": {"password": "admin-pw"},
                              **{service: {"password": f"{service}-pw"} for service in SERVICES[1:]}}},
        "oslo_cache": {"auth": {"memcache_secret_key": "cache-key"}},
        "oslo_messaging": {"auth": {"erlang_cookie": "cookie-pw", "neutron": {"password": "neutron-mq-pw"},
                                    "nova": {"password": "nova-mq-pw"}}},
        "compute_metadata": {"auth": {"proxy": {"password": "metadata-pw"}}},
        "compute_ssh": {"auth": {"nova": {"password": "ssh-pw"}}},
    }
}


def merged(*layers):
    result = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def helm(*args, values=None):
    """helm's exit code, output and messages."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values or {}, file)
        file.flush()
        run = subprocess.run([HELM, *args, "--values", file.name], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def template(chart, values=None, *args, namespace="cloud"):
    """The text of a render with passwords; helm's words when it fails."""
    code, out, err = helm("template", chart, str(ROOT / chart), "--namespace", namespace, *args,
                          values=merged(PASSWORDS, values or {}))
    if code:
        raise RenderError(err)
    return out


class RenderError(Exception):
    pass


JSON_TEMPLATE = """{{- range splitList "\\n---\\n" (.Files.Get "rendered.yaml") }}{{ with fromYaml . }}
---
{{ toJson . }}
{{ end }}{{ end }}"""


def parse(text):
    """YAML documents as objects: helm is the YAML reader that is there anyway."""
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder)
        (chart / "templates").mkdir()
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: reader\nversion: 0.1.0\n")
        (chart / "templates" / "all.yaml").write_text(JSON_TEMPLATE)
        (chart / "rendered.yaml").write_text(text)
        code, out, err = helm("template", "reader", folder)
    if code:
        raise RenderError(err)
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def objects(chart, values=None, *args):
    return parse(template(chart, values, *args))


@functools.cache
def defaults(chart):
    return objects(chart)


def find(objs, kind, name):
    found = [o for o in objs if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{len(found)} of {kind} {name} in {[(o['kind'], o['metadata']['name']) for o in objs]}"
    return found[0]


def pod_spec(obj):
    return obj["spec"]["template"]["spec"]


def with_pods(objs):
    """Every chart has some: what is asked of each of none would hold always."""
    found = [o for o in objs if o["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "Job")]
    assert found, f"no pods in {[(o['kind'], o['metadata']['name']) for o in objs]}"
    return found


def etc(objs, kind="etc"):
    """The files of the chart's configuration, or of another one beside it."""
    found = [o for o in objs if o["kind"] == "Secret" and "kupenstack.io/config" in o["metadata"]["labels"]
             and o["metadata"]["labels"]["component"] == kind]
    assert len(found) == 1
    return {name: base64.b64decode(text).decode() for name, text in found[0]["data"].items()}


def conf(chart, values=None, *args, file=None, kind="etc"):
    """A configuration file, as {section: [line]}."""
    sections, lines = {}, None
    text = etc(objects(chart, values, *args), kind)[file or {"glance": "glance-api.conf"}.get(chart, f"{chart}.conf")]
    for line in text.splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line[1:-1], [])
        elif line:
            lines.append(line)
    return sections


def script(path):
    """A script of a chart as a module."""
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
