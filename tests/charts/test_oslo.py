"""How maps become oslo.config files."""
import unittest
import urllib.parse

import charts


def option(value, *args):
    """The lines that keystone.conf has for conf.keystone.probe.option."""
    values = {"conf": {"keystone": {"probe": {"option": value}}}} if not args else {}
    return charts.conf("keystone", values, *args).get("probe", [])


class Rendering(unittest.TestCase):
    def assert_refused(self, value, pattern):
        with self.assertRaisesRegex(charts.RenderError, pattern):
            option(value)

    def test_scalars(self):
        for value, text in (("plain", "plain"), ("", ""), ("%(asctime)s $x # no comment", "%(asctime)s $x # no comment"),
                            (True, "true"), (False, "false"), (0, "0"), (-1, "-1")):
            with self.subTest(value=value):
                self.assertEqual(option(value), [f"option = {text}"])

    def test_numbers_are_printed_as_written(self):
        for value, text in ((1000000, "1000000"), (9007199254740991, "9007199254740991"), (0.5, "0.5"), (1e6, "1000000"),
                            (3600.0, "3600"), (12.25, "12.25")):
            with self.subTest(value=value):
                self.assertEqual(option(value), [f"option = {text}"])

    def test_numbers_given_on_the_command_line(self):
        self.assertEqual(option(None, "--set", "conf.keystone.probe.option=1000000"), ["option = 1000000"])
        self.assertEqual(option(None, "--set-json", "conf.keystone.probe.option=1000000"), ["option = 1000000"])

    def test_numbers_in_the_defaults(self):
        self.assertIn("expiration = 43200", charts.conf("keystone")["token"])

    def test_number_too_large_to_be_exact(self):
        self.assert_refused(12345678901234567890, "conf.keystone.probe.option: a number this large loses digits")

    def test_lists(self):
        self.assertEqual(option(["a", 1, True]), ["option = a,1,true"])
        self.assertEqual(option([]), ["option = "])
        self.assertEqual(option({"type": "csv", "values": ["a", "b"]}), ["option = a,b"])
        self.assert_refused(["a,b"], "conf.keystone.probe.option: the list item .a,b. holds a comma")

    def test_repeated_option(self):
        self.assertEqual(option({"type": "multistring", "values": ["a,b", "c", 1000000]}),
                         ["option = a,b", "option = c", "option = 1000000"])

    def test_null_is_left_out(self):
        self.assertEqual(option(None), [])
        without = {"conf": {"keystone": {"token": {"provider": None}}}}
        self.assertEqual(charts.conf("keystone", without)["token"], ["expiration = 43200"])

    def test_line_breaks_are_refused(self):
        self.assert_refused("a\nadmin_token = evil", "conf.keystone.probe.option holds a line break")
        self.assert_refused({"type": "multistring", "values": ["a\nb"]}, "holds a line break")

    def test_indented_lines_go_on_with_the_value(self):
        self.assertEqual(option("a\n    admin_token = evil"), ["option = a", "    admin_token = evil"])
        for value in ("a\n", "a\n  ", "a\n\n  b", "a\n  \n  b", "a\n  b\nc"):
            with self.subTest(value=value):
                self.assert_refused(value, "holds a line break")

    def test_names_that_would_break_the_file(self):
        for name in ("a=b", "a\nb", "[x]", "#x", " x"):
            with self.subTest(name=name), self.assertRaises(charts.RenderError):
                charts.conf("keystone", {"conf": {"keystone": {"probe": {name: "v"}}}})
        with self.assertRaises(charts.RenderError):
            charts.conf("keystone", {"conf": {"keystone": {"a]\n[b": {"x": "v"}}}})

    def test_maps_are_refused_with_the_options_name(self):
        self.assert_refused({"deep": 1}, "/conf/keystone/probe/option")

    def test_the_user_overrides_what_follows_from_endpoints(self):
        values = {"conf": {"keystone": {"database": {"connection": "sqlite://"}, "cache": {"enabled": False}}}}
        sections = charts.conf("keystone", values)
        self.assertIn("connection = sqlite://", sections["database"])
        self.assertIn("enabled = false", sections["cache"])

    def test_policy_and_logging(self):
        values = {"conf": {"policy": {"identity:list_users": "role:admin"}, "logging": {"loggers": {"keys": ["root"]}}}}
        files = charts.etc(charts.objects("keystone", values))
        self.assertEqual(files["policy.yaml"].strip(), "identity:list_users: role:admin")
        self.assertEqual(files["logging.conf"], "[loggers]\nkeys = root\n")
        self.assertIn("policy_file = /etc/keystone/policy.yaml", files["keystone.conf"])
        self.assertIn("log_config_append = /etc/keystone/logging.conf", files["keystone.conf"])

    def test_paste_takes_the_place_of_the_images_own(self):
        values = {"conf": {"paste": {"app:root": {"use": "egg:x"}}}}
        files = charts.etc(charts.objects("glance", values))
        self.assertEqual(files["glance-api-paste.ini"], "[app:root]\nuse = egg:x\n")
        self.assertIn("config_file = /etc/glance/glance-api-paste.ini", files["glance-api.conf"])
        self.assertIn("config_file = /opt/", charts.etc(charts.defaults("glance"))["glance-api.conf"])

    def test_whole_file(self):
        self.assertEqual(charts.etc(charts.defaults("mariadb"))["my.cnf"].splitlines()[:3],
                         ["[mysqld]", "bind_address = 0.0.0.0", "character_set_server = utf8mb4"])


class Secrets(unittest.TestCase):
    AWKWARD = "p@ss:/ w%rd$x'\"#+&?=\\"

    def with_password(self, chart, path):
        values = self.AWKWARD
        for key in reversed(path.split(".")):
            values = {key: values}
        return charts.conf(chart, values)

    def test_password_in_a_url(self):
        lines = self.with_password("keystone", "endpoints.oslo_db.auth.keystone.password")["database"]
        url = next(line for line in lines if line.startswith("connection = ")).removeprefix("connection = ")
        self.assertEqual(urllib.parse.unquote(urllib.parse.urlsplit(url).password), self.AWKWARD)
        self.assertNotIn("$", url)

    def test_password_as_an_option(self):
        sections = self.with_password("glance", "endpoints.identity.auth.glance.password")
        for section in ("keystone_authtoken", "oslo_limit"):
            lines = sections[section]
            text = next(line for line in lines if line.startswith("password = ")).removeprefix("password = ")
            self.assertEqual((text[0], text[-1]), ('"', '"'))
            self.assertEqual(text[1:-1].replace("$$", "$"), self.AWKWARD)

    def test_glance_asks_keystone_for_the_limits_of_its_own_endpoint(self):
        values = {"endpoints": {"identity": {"auth": {"glance": {"region_name": "north"}}}}}
        sections = charts.conf("glance", values)
        self.assertIn("use_keystone_limits = true", sections["DEFAULT"])
        for line in ("endpoint_service_type = image", "endpoint_interface = internal", "endpoint_region_name = north",
                     "username = glance"):
            self.assertIn(line, sections["oslo_limit"])

    def test_password_with_a_line_break(self):
        values = {"endpoints": {"identity": {"auth": {"glance": {"password": "a\nb"}}}}}
        with self.assertRaisesRegex(charts.RenderError, "endpoints.identity.auth.glance.password holds a line break"):
            charts.template("glance", values)



if __name__ == "__main__":
    unittest.main()
