#!/usr/bin/env python3
"""Write a one-layer OCI image archive from files of this machine, without a builder.

The archive depends on its inputs only (no times, no owners), so the same files give the same digest.
"""
import argparse
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
PLATFORM = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()], "os": "linux"}


def digest(blob):
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def add(tar, name, data=b"", mode=0o644, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name.lstrip("/"))
    info.size, info.mode, info.type, info.linkname = len(data), mode, kind, target
    tar.addfile(info, io.BytesIO(data))


def layer(files, links, folders):
    out = io.BytesIO()
    made = set()

    with tarfile.open(fileobj=out, mode="w") as tar:

        def parents(path):
            parts = path.strip("/").split("/")[:-1]
            for n in range(1, len(parts) + 1):
                folder = "/".join(parts[:n])
                if folder not in made:
                    made.add(folder)
                    add(tar, folder, mode=0o755, kind=tarfile.DIRTYPE)

        for folder in folders:
            path, _, mode = folder.partition(":")
            parents(path)
            made.add(path.strip("/"))
            add(tar, path, mode=int(mode or "755", 8), kind=tarfile.DIRTYPE)
        for pair in files:
            source, _, path = pair.partition("=")
            parents(path)
            with open(source, "rb") as content:
                add(tar, path, content.read(), 0o755 if os.access(source, os.X_OK) else 0o644)
        for pair in links:
            path, _, target = pair.partition("=")
            parents(path)
            add(tar, path, mode=0o777, kind=tarfile.SYMTYPE, target=target)
    return out.getvalue()


def with_libraries(program):
    """The program and the shared libraries it is linked with, each at its own path."""
    linked = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return [f"{os.path.realpath(path)}={path}" for path in [program, *re.findall(r"(/\S+) \(0x", linked)]]


def descriptor(kind, blob, **more):
    return {"mediaType": kind, "digest": digest(blob), "size": len(blob), **more}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="archive to write")
    parser.add_argument("name", help="full image name, host/name:tag")
    parser.add_argument("files", nargs="*", metavar="SOURCE=PATH")
    parser.add_argument("--entrypoint", metavar="PROGRAM")
    parser.add_argument("--link", action="append", default=[], metavar="PATH=TARGET")
    parser.add_argument("--folder", action="append", default=[], metavar="PATH[:MODE]")
    parser.add_argument("--program", action="append", default=[], help="a program, added with its shared libraries")
    args = parser.parse_intermixed_args()

    files = args.files + [pair for program in args.program for pair in with_libraries(program)]
    content = layer(dict.fromkeys(files), args.link, args.folder)
    config = json.dumps({
        **PLATFORM,
        "config": {"Entrypoint": [args.entrypoint] if args.entrypoint else None, "WorkingDir": "/",
                   "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(content)]},
    }).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config), "layers": [descriptor(LAYER, content)],
    }).encode()
    index = json.dumps({"schemaVersion": 2, "manifests": [descriptor(
        MANIFEST, manifest, platform=PLATFORM,
        annotations={"io.containerd.image.name": args.name, "org.opencontainers.image.ref.name": args.name},
    )]}).encode()

    with tarfile.open(args.out, "w") as tar:
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add(tar, "index.json", index)
        for blob in (config, manifest, content):
            add(tar, "blobs/" + digest(blob).replace(":", "/"), blob)


main()
