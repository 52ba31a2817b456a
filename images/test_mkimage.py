"""Layers and images, byte by byte: python3 -m unittest discover images."""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

MKIMAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mkimage.py")
NEWEST = 1_000_000_000


def mkimage(*args):
    return subprocess.run([sys.executable, MKIMAGE, *args], capture_output=True, text=True, check=False)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.tree = folder.name, os.path.join(folder.name, "tree")
        os.mkdir(self.tree)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, data="x", mode=0o644):
        path = os.path.join(self.tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(data)
        os.chmod(path, mode)
        return path

    def layer(self, *options, name="layer.tar"):
        out = self.path(name)
        done = mkimage("layer", out, self.tree, "--newest", str(NEWEST), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def members(self, *options):
        with tarfile.open(self.layer(*options)) as archive:
            return {member.name: member for member in archive.getmembers()}


class Layers(InFolder):
    def test_keep_kinds_modes_and_links(self):
        self.write("bin/tool", "tool", 0o4755)
        os.link(self.path("tree/bin/tool"), self.path("tree/bin/tool2"))
        os.symlink("tool", self.path("tree/bin/link"))
        os.mkdir(self.path("tree/tmp"))
        os.chmod(self.path("tree/tmp"), 0o1777)
        members = self.members()
        self.assertEqual(sorted(members), ["bin", "bin/link", "bin/tool", "bin/tool2", "tmp"])
        self.assertEqual((members["bin/tool"].mode, members["tmp"].mode), (0o4755, 0o1777))
        self.assertTrue(members["bin/link"].issym() and members["bin/link"].linkname == "tool")
        self.assertTrue(members["bin/tool2"].islnk() and members["bin/tool2"].linkname == "bin/tool")
        self.assertEqual((members["bin/tool"].uname, members["bin/tool"].gname), ("", ""))

    def test_no_time_is_later_than_the_newest(self):
        os.utime(self.write("old"), (5, 5))
        self.write("new")
        members = self.members()
        self.assertEqual((members["old"].mtime, members["new"].mtime), (5, NEWEST))

    def test_same_tree_same_bytes(self):
        for name in ("b", "a/c", "a/b"):
            self.write(name)
        first = pathlib.Path(self.layer()).read_bytes()
        os.rename(self.path("tree/b"), self.path("tree/moved"))
        os.rename(self.path("tree/moved"), self.path("tree/b"))
        os.utime(self.path("tree/b"))
        second = pathlib.Path(self.layer(name="second.tar")).read_bytes()
        self.assertEqual(hashlib.sha256(first).hexdigest(), hashlib.sha256(second).hexdigest())

    def test_excludes_and_sockets_stay_out(self):
        self.write("tmp/a")
        self.write("keep")
        os.mkfifo(self.path("tree/pipe"))
        self.assertEqual(sorted(self.members("--exclude", "tmp/*")), ["keep", "tmp"])

    def test_one_path_with_its_parents(self):
        self.write("opt/app/bin/run")
        self.write("etc/passwd")
        self.assertEqual(sorted(self.members("--path", "opt/app")), ["opt", "opt/app", "opt/app/bin", "opt/app/bin/run"])

    @unittest.skipUnless(os.geteuid() == 0, "device nodes need root")
    def test_whiteouts_of_an_overlay(self):
        self.write("etc/new")
        try:
            os.mknod(self.path("tree/etc/gone"), 0o600 | 0o020000, 0)
        except PermissionError:
            self.skipTest("no right to make device nodes here")
        os.mkdir(self.path("tree/replaced"))
        os.setxattr(self.path("tree/replaced"), "trusted.overlay.opaque", b"y")
        members = self.members()
        self.assertEqual(sorted(members), ["etc", "etc/.wh.gone", "etc/new", "replaced", "replaced/.wh..wh..opq"])
        self.assertTrue(members["etc/.wh.gone"].isreg())

    def test_the_digest_is_beside_it(self):
        self.write("a")
        out = self.layer()
        digest = hashlib.sha256(pathlib.Path(out).read_bytes()).hexdigest()
        self.assertEqual(pathlib.Path(out + ".sha256").read_text(encoding="ascii").strip(), digest)


class Images(InFolder):
    def image(self, *options):
        self.write("a", "first")
        first = self.layer(name="first.tar")
        self.write("b", "second")
        second = self.layer(name="second.tar")
        out = self.path("image.tar")
        done = mkimage("image", out, "example.local/app:1", *options, first, second)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(out) as archive:
            return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}

    def test_every_blob_is_what_its_name_says(self):
        for name, data in self.image().items():
            if name.startswith("blobs/sha256/"):
                self.assertEqual(hashlib.sha256(data).hexdigest(), name.rsplit("/", 1)[1])

    def test_leads_from_the_index_to_the_layers_in_order(self):
        files = self.image("--env", "A=1", "--env", "B=2", "--user", "65532")

        def follow(descriptor):
            data = files["blobs/" + descriptor["digest"].replace(":", "/")]
            self.assertEqual(descriptor["size"], len(data))
            return data

        self.assertEqual(json.loads(files["oci-layout"]), {"imageLayoutVersion": "1.0.0"})
        entry, = json.loads(files["index.json"])["manifests"]
        self.assertEqual(entry["annotations"]["io.containerd.image.name"], "example.local/app:1")
        manifest = json.loads(follow(entry))
        config = json.loads(follow(manifest["config"]))
        self.assertEqual(config["config"], {"Env": ["A=1", "B=2"], "User": "65532", "WorkingDir": "/"})
        self.assertEqual(config["rootfs"]["diff_ids"], [layer["digest"] for layer in manifest["layers"]])
        contents = [tarfile.open(fileobj=io.BytesIO(follow(layer))).getnames() for layer in manifest["layers"]]
        self.assertEqual(contents, [["a"], ["a", "b"]])


if __name__ == "__main__":
    unittest.main()
