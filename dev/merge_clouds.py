"""Runs in the client pod: makes one clouds.yaml of the Secrets (a List in JSON) on standard input."""
import base64
import json
import os
import sys

import yaml

clouds = {}
for secret in json.load(sys.stdin)["items"]:
    content = yaml.safe_load(base64.b64decode(secret["data"]["clouds.yaml"]))
    clouds.update(content["clouds"])

# A new file under a name of its own: commands that run meanwhile read the old one whole.
path = os.environ["OS_CLIENT_CONFIG_FILE"]
part = f"{path}.{os.getpid()}"
with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
    yaml.safe_dump({"clouds": clouds}, file)
os.replace(part, path)
