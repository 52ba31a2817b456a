#!/bin/bash
# options.sh RELEASE...: write which options the services of a release have into the operator's source, read from the
# image that they run from. To be run when lock-RELEASE.txt changed. Needs root, as building the image does.
set -euo pipefail
HERE=$(dirname "$(readlink -f "$0")")
OUT=$HERE/../../crates/deployment/options

# tree_of ARCHIVE FOLDER: the image's file system.
tree_of() {
  python3 - "$1" "$2" << 'PYTHON'
import json, subprocess, sys, tarfile

archive, folder = sys.argv[1:]
with tarfile.open(archive) as tar:
    def read(digest):
        return tar.extractfile("blobs/" + digest.replace(":", "/"))

    index = json.load(tar.extractfile("index.json"))
    for layer in json.load(read(index["manifests"][0]["digest"]))["layers"]:
        unpack = ["tar", "-xp", "-C", folder, "--numeric-owner"] + (["-z"] if layer["mediaType"].endswith("gzip") else [])
        with subprocess.Popen(unpack, stdin=subprocess.PIPE) as process:
            for chunk in iter(lambda blob=read(layer["digest"]): blob.read(1 << 20), b""):
                process.stdin.write(chunk)
        if process.returncode:
            sys.exit("a layer can't be unpacked")
PYTHON
}

TREE=$(mktemp -d)
trap 'rm -rf --one-file-system "$TREE"' EXIT

for release; do
  archive=$("$HERE/../build.sh" "openstack-$release" | cut -f 3)
  mkdir "$TREE/$release"
  tree_of "$archive" "$TREE/$release"
  install -m644 "$HERE/options.py" "$TREE/$release/tmp/options.py"
  mkdir -p "$OUT/$release"
  for service in keystone glance placement neutron nova; do
    chroot "$TREE/$release" /opt/openstack/bin/python -W ignore /tmp/options.py "$service" > "$TREE/options"
    install -m644 "$TREE/options" "$OUT/$release/$service.txt"
    echo "$release $service: $(grep -vc '^\[' "$OUT/$release/$service.txt") names"
  done
done
