#!/usr/bin/env python3
"""Write OCI layers and images without a container engine.

    mkimage.py layer OUT.tar TREE --newest EPOCH [--path P] [--exclude GLOB]...
    mkimage.py image OUT.tar REF [--env K=V]... [--user UID] LAYER.tar...

The same tree always gives the same bytes: names are sorted, owners are numeric and no time is later than
EPOCH. A TREE may be the upper directory of an overlay mount; its whiteouts become OCI whiteouts.
Layers stay uncompressed, because they travel only from this disk to the container runtime beside it.
"""
import argparse
import fnmatch
import hashlib
import io
import json
import os
import stat
import sys
import tarfile

CHUNK = 1 << 22
MEDIA = "application/vnd.oci.image."


class Hashing:
    """A write-only stream that keeps the SHA-256 and the size of what passes through."""

    def __init__(self, stream):
        self.stream, self.hash, self.size = stream, hashlib.sha256(), 0

    def write(self, data):
        self.hash.update(data)
        self.size += len(data)
        return self.stream.write(data)


def is_whiteout(status):
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(path):
    return any(a == "trusted.overlay.opaque" for a in os.listxattr(path, follow_symlinks=False))


def refuse_capabilities(path):
    """Charts drop every capability, so an image that counts on file capabilities would fail only in a cluster."""
    if "security.capability" in os.listxattr(path, follow_symlinks=False):
        raise SystemExit(f"mkimage: {path} has file capabilities, which these images do not carry")


class LayerWriter:
    def __init__(self, archive, root, excludes, newest):
        self.archive, self.root, self.newest = archive, root, newest
        self.excludes = excludes
        self.first_name = {}

    def excluded(self, name):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.excludes)

    def marker(self, name):
        info = tarfile.TarInfo(name)
        info.mtime = self.newest
        self.archive.addfile(info)

    def header(self, name, status):
        path = os.path.join(self.root, name)
        info = tarfile.TarInfo(name)
        info.mode = stat.S_IMODE(status.st_mode)
        info.uid, info.gid = status.st_uid, status.st_gid
        info.mtime = min(int(status.st_mtime), self.newest)
        if stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISLNK(status.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
        elif stat.S_ISREG(status.st_mode):
            first = self.first_name.setdefault((status.st_dev, status.st_ino), name)
            if first != name:
                info.type, info.linkname = tarfile.LNKTYPE, first
            else:
                info.size = status.st_size
        else:
            return None  # sockets, pipes and devices have no place in an image
        return info

    def add(self, name):
        if self.excluded(name):
            return
        path = os.path.join(self.root, name)
        status = os.lstat(path)
        if is_whiteout(status):
            self.marker(os.path.join(os.path.dirname(name), ".wh." + os.path.basename(name)))
            return
        info = self.header(name, status)
        if info is None:
            return
        if info.type == tarfile.REGTYPE:
            refuse_capabilities(path)
            with open(path, "rb") as data:
                self.archive.addfile(info, data)
        else:
            self.archive.addfile(info)
        if info.type == tarfile.DIRTYPE:
            if is_opaque(path):
                self.marker(os.path.join(name, ".wh..wh..opq"))
            self.add_children(name)

    def add_children(self, name):
        for child in sorted(os.listdir(os.path.join(self.root, name))):
            self.add(os.path.join(name, child))

    def add_parents(self, name):
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            parent = "/".join(parts[:depth])
            self.archive.addfile(self.header(parent, os.lstat(os.path.join(self.root, parent))))


def write_layer(args):
    with open(args.out, "wb") as raw:
        stream = Hashing(raw)
        with tarfile.open(fileobj=stream, mode="w|", bufsize=CHUNK, format=tarfile.PAX_FORMAT) as archive:
            writer = LayerWriter(archive, args.tree, args.exclude, args.newest)
            if args.path:
                writer.add_parents(args.path)
                writer.add(args.path)
            else:
                writer.add_children("")
    with open(args.out + ".sha256", "w", encoding="ascii") as side:
        side.write(stream.hash.hexdigest() + "\n")


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_layer(path):
    with open(path + ".sha256", encoding="ascii") as side:
        return {"path": path, "digest": "sha256:" + side.read().strip(), "size": os.path.getsize(path)}


def build_config(args, layers):
    return to_json({
        "architecture": "amd64", "os": "linux",
        "config": {"Env": args.env, "User": args.user, "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
    })


def build_manifest(config, layers):
    return to_json({
        "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
        "config": {"mediaType": MEDIA + "config.v1+json", "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": MEDIA + "layer.v1.tar", "digest": layer["digest"], "size": layer["size"]}
                   for layer in layers],
    })


def build_index(manifest, ref):
    return to_json({"schemaVersion": 2, "manifests": [{
        "mediaType": MEDIA + "manifest.v1+json", "digest": digest(manifest), "size": len(manifest),
        "platform": {"architecture": "amd64", "os": "linux"},
        "annotations": {"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref},
    }]})


def write_image(args):
    layers = [read_layer(path) for path in args.layers]
    config = build_config(args, layers)
    manifest = build_manifest(config, layers)
    with tarfile.open(args.out, "w", format=tarfile.PAX_FORMAT) as archive:
        def add(name, stream, size):
            info = tarfile.TarInfo(name)
            info.size, info.mode = size, 0o644
            archive.addfile(info, stream)

        def add_bytes(name, data):
            add(name, io.BytesIO(data), len(data))

        def blob(of):
            return "blobs/" + of.replace(":", "/")

        add_bytes("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add_bytes("index.json", build_index(manifest, args.ref))
        add_bytes(blob(digest(config)), config)
        add_bytes(blob(digest(manifest)), manifest)
        for layer in {layer["digest"]: layer for layer in layers}.values():
            with open(layer["path"], "rb") as data:
                add(blob(layer["digest"]), data, layer["size"])


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    layer = commands.add_parser("layer")
    layer.add_argument("out")
    layer.add_argument("tree")
    layer.add_argument("--newest", type=int, required=True)
    layer.add_argument("--path", default="")
    layer.add_argument("--exclude", action="append", default=[])
    layer.set_defaults(run=write_layer)
    image = commands.add_parser("image")
    image.add_argument("out")
    image.add_argument("ref")
    image.add_argument("layers", nargs="+")
    image.add_argument("--env", action="append", default=[])
    image.add_argument("--user", default="")
    image.set_defaults(run=write_image)
    return parser.parse_args(argv)


if __name__ == "__main__":
    arguments = parse(sys.argv[1:])
    arguments.run(arguments)
