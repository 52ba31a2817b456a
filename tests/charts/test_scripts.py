"""The scripts that the charts' jobs and pods run, against stand-ins of what they talk to."""
import base64
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import charts
from fake_keystone import FakeKeystone

URLS = {interface: "http://glance:9292" for interface in ("public", "internal", "admin")}


def run_main(module, env):
    """What main() prints."""
    out = io.StringIO()
    with unittest.mock.patch.dict(os.environ, env), contextlib.redirect_stdout(out):
        module.main()
    return out.getvalue().strip()


class KsRegister(unittest.TestCase):
    def setUp(self):
        self.module = charts.script(charts.ROOT / "toolkit" / "files" / "ks-register.py")
        self.keystone = self.enterContext(FakeKeystone())

    def register(self, password="glance-pw", urls=None, limits=None):
        self.keystone.changes.clear()
        domains = {"USER_DOMAIN_NAME": "Default", "PROJECT_DOMAIN_NAME": "Default", "REGION_NAME": "default"}
        admin = {"USERNAME": "admin", "PASSWORD": "admin-pw", "PROJECT_NAME": "admin", "ROLES": "", **domains}
        user = {"USERNAME": "glance", "PASSWORD": password, "PROJECT_NAME": "service", "ROLES": "admin,service", **domains}
        env = {"OS_AUTH_URL": self.keystone.url, "SERVICE_NAME": "glance", "SERVICE_TYPE": "image",
               "SERVICE_ENDPOINTS": json.dumps(urls or URLS)}
        env |= {"SERVICE_LIMITS": json.dumps(limits)} if limits else {}
        env |= {f"OS_{key}": value for key, value in admin.items()}
        env |= {f"SERVICE_OS_{key}": value for key, value in user.items()}
        return run_main(self.module, env)

    def test_everything_is_made(self):
        said = self.register()
        self.assertIn("user glance created", said)
        self.assertTrue(self.keystone.password_is("glance", "glance-pw"))
        self.assertEqual(len(self.keystone.assignments), 2)
        self.assertEqual({(e["interface"], e["region_id"]) for e in self.keystone.things["endpoints"]},
                         {(interface, "default") for interface in URLS})

    def test_again_changes_nothing(self):
        self.register()
        self.assertEqual(self.register(), "catalogue glance: nothing to do")
        self.assertEqual(self.keystone.changes, [])

    def test_password_that_no_longer_works_is_set(self):
        self.register()
        self.assertEqual(self.register(password="new"), "catalogue glance: password of glance set")
        self.assertTrue(self.keystone.password_is("glance", "new"))

    def test_moved_endpoint(self):
        self.register()
        said = self.register(urls={**URLS, "public": "https://image.example.org"})
        self.assertEqual(said, "catalogue glance: public endpoint moved")
        self.assertEqual(len(self.keystone.changes), 1)

    def test_doubles_are_removed_and_the_same_ones_stay(self):
        self.register()
        first = self.keystone.things["services"][0]["id"]
        self.keystone.add("services", name="glance", type="image")
        self.keystone.add("endpoints", service_id=first, interface="public", region_id="default", url=URLS["public"])
        said = self.register()
        self.assertEqual(said, "catalogue glance: second service glance removed, second public endpoint removed")
        self.assertEqual([s["id"] for s in self.keystone.things["services"]], [first])
        self.assertEqual(len(self.keystone.things["endpoints"]), 3)
        self.assertEqual(self.register(), "catalogue glance: nothing to do")

    def test_others_are_left_alone(self):
        other = self.keystone.add("services", name="swift-images", type="image")
        here = self.keystone.add("endpoints", service_id=other["id"], interface="public", region_id="default", url="x")
        self.register()
        abroad = self.keystone.add("endpoints", service_id=self.keystone.things["services"][-1]["id"],
                                   interface="public", region_id="elsewhere", url="y")
        self.register()
        self.assertIn(other, self.keystone.things["services"])
        self.assertIn(here, self.keystone.things["endpoints"])
        self.assertIn(abroad, self.keystone.things["endpoints"])

    def test_limits_are_registered_once_and_never_changed(self):
        self.assertIn("limit image_count_total registered", self.register(limits={"image_count_total": -1}))
        [limit] = self.keystone.things["registered_limits"]
        self.assertEqual((limit["region_id"], limit["default_limit"]), ("default", -1))
        self.assertEqual(limit["service_id"], self.keystone.things["services"][0]["id"])
        limit["default_limit"] = 50
        self.assertEqual(self.register(limits={"image_count_total": -1}), "catalogue glance: nothing to do")
        self.assertEqual(limit["default_limit"], 50)

    def test_wrong_administrator(self):
        self.keystone.things["users"][0]["password"] = "other"
        with self.assertRaisesRegex(Exception, "^401: POST /auth/tokens"):
            self.register()
        self.assertEqual(self.keystone.changes, [])


class FakeDatabase:
    """Stands in for PyMySQL: accounts, databases and who may use them."""

    class OperationalError(Exception):
        pass

    def __init__(self):
        self.accounts, self.databases, self.grants, self.statements = {"root": "root-pw"}, set(), set(), []
        self.err = types.SimpleNamespace(OperationalError=self.OperationalError)

    def connect(self, host, port, user, password, database=None):
        self.address = (host, port)
        if self.accounts.get(user) != password:
            raise self.OperationalError(1045, "access denied")
        if database and (user, database) not in self.grants:
            raise self.OperationalError(1044, "access denied to the database")
        return self

    def execute(self, statement, args=()):
        self.found = None
        text = statement % tuple(repr(a) for a in args) if args else statement
        words = text.replace("`", "").split()
        if words[0] == "SELECT":
            self.found = (1,) if args[0] in self.databases else None
            return
        self.statements.append(text)
        if words[:2] == ["CREATE", "DATABASE"]:
            self.databases.add(words[5])
        elif words[0] == "CREATE":
            self.accounts.setdefault(args[0], None)
        elif words[0] == "ALTER":
            self.accounts[args[0]] = args[2]
        elif words[0] == "GRANT":
            self.grants.add((args[0], words[4].split(".")[0].replace("\\", "")))

    def fetchone(self):
        return self.found

    def cursor(self):
        return self

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class DbInit(unittest.TestCase):
    def setUp(self):
        self.database = FakeDatabase()
        with unittest.mock.patch.dict(sys.modules, {"pymysql": self.database}):
            self.module = charts.script(charts.ROOT / "toolkit" / "files" / "db-init.py")

    def init(self, user="keystone", password="secret", database="keystone"):
        self.database.statements.clear()
        return run_main(self.module, {
            "ROOT_DB_CONNECTION": "mysql+pymysql://root:root-pw@mariadb.cloud:3306",
            "DB_CONNECTION": f"mysql+pymysql://{user}:{password}@mariadb.cloud:3306/{database}?charset=utf8mb4"})

    def test_fresh(self):
        self.assertEqual(self.init(), "database keystone: database created, user keystone may use it")
        self.assertEqual(self.database.address, ("mariadb.cloud", 3306))
        self.assertIn(("keystone", "keystone"), self.database.grants)

    def test_again_changes_nothing(self):
        self.init()
        self.assertEqual(self.init(), "database keystone: nothing to do")
        self.assertEqual(self.database.statements, [])

    def test_new_password(self):
        self.init()
        self.init(password="other")
        self.assertEqual(self.database.accounts["keystone"], "other")

    def test_password_is_decoded(self):
        self.init(password="p%40ss%20%25%2F")
        self.assertEqual(self.database.accounts["keystone"], "p@ss %/")

    def test_underscore_is_no_wildcard_in_a_grant(self):
        self.init(user="nova", database="nova_api")
        self.assertTrue(any(r"nova\_api" in s for s in self.database.statements if s.startswith("GRANT")))

    def test_database_down_is_an_error(self):
        def refused(**_):
            raise self.database.OperationalError(2003, "can't connect")
        self.database.connect = refused
        with self.assertRaises(self.database.OperationalError):
            self.init()


class CreateKeys(unittest.TestCase):
    def test_keys_are_good_and_fresh(self):
        module = charts.script(charts.ROOT / "keystone" / "files" / "create-keys.py")
        keys = module.secret("keystone-fernet-keys")["stringData"]
        self.assertEqual(set(keys), {"0", "1"})
        self.assertEqual({len(base64.urlsafe_b64decode(k)) for k in keys.values()}, {32})
        self.assertNotEqual(keys["0"], keys["1"])
        self.assertNotEqual(keys, module.secret("keystone-fernet-keys")["stringData"])


FAKE_INSTALL = """#!/bin/bash
for word; do case $word in --datadir=*) mkdir -p "${word#*=}/mysql"; : > "${word#*=}/half"; esac; done
[[ ! -e $FAIL_INSTALL ]] || exit 1
"""
FAKE_SERVER = """#!/bin/bash
[[ " $* " == *" --bootstrap "* ]] || { echo "serving"; exit 0; }
cat > "$SQL"
"""


class MariadbStart(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "bin").mkdir()
        (self.folder / "volume").mkdir()
        (self.folder / "secret").write_text("it's a \\ pass")
        for name, text in (("mariadb-install-db", FAKE_INSTALL), ("mariadbd", FAKE_SERVER)):
            path = self.folder / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        script = (charts.ROOT / "mariadb" / "files" / "start.sh").read_text()
        # The script's paths are those of its container.
        script = script.replace("/var/lib/mysql", f"{self.folder}/volume").replace("/secrets/password", f"{self.folder}/secret")
        (self.folder / "start.sh").write_text(script)

    def start(self):
        env = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "ROOT_USER": "root",
               "SQL": f"{self.folder}/sql", "FAIL_INSTALL": f"{self.folder}/fail"}
        return subprocess.run(["bash", self.folder / "start.sh"], env=env, capture_output=True, text=True, check=False)

    def test_first_start(self):
        run = self.start()
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (0, "serving"), run.stderr)
        self.assertTrue((self.folder / "volume" / "data" / "mysql").is_dir())
        self.assertIn(r"IDENTIFIED BY 'it\'s a \\ pass'", (self.folder / "sql").read_text())

    def test_second_start_prepares_nothing(self):
        self.start()
        (self.folder / "sql").unlink()
        self.assertEqual(self.start().stdout, "serving\n")
        self.assertFalse((self.folder / "sql").exists())

    def test_first_start_that_fails_half_way(self):
        (self.folder / "fail").touch()
        self.assertNotEqual(self.start().returncode, 0)
        self.assertFalse((self.folder / "volume" / "data").exists())
        (self.folder / "fail").unlink()
        self.assertEqual(self.start().stdout.splitlines()[-1], "serving")
        self.assertTrue((self.folder / "volume" / "data").is_dir())
        self.assertFalse((self.folder / "volume" / "data.new").exists())


if __name__ == "__main__":
    unittest.main()
