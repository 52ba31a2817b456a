"""Make a service's user, service and endpoints in Keystone. Repeating it changes nothing.

The administrator is OS_*, the service's own user SERVICE_OS_*; SERVICE_NAME, SERVICE_TYPE and SERVICE_ENDPOINTS
(JSON of interface to URL) tell what goes into the catalogue. SERVICE_LIMITS, where it is set, has what every project may
use of the service's resources (JSON of resource to number). Speaks the Identity API itself: the client libraries
take seconds to load.
"""
import json
import os
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    def __init__(self, status, what):
        super().__init__(f"{status}: {what}")
        self.status = status


class Keystone:
    def __init__(self, url):
        self.url = url.rstrip("/")
        self.token = None

    def call(self, method, path, body=None, **query):
        target = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["X-Auth-Token"] = self.token
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(target, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return (json.loads(text) if text else {}), answer.headers
        except urllib.error.HTTPError as error:
            raise Refused(error.code, f"{method} {path}: {error.read(500).decode(errors='replace')}") from error

    def issue_token(self, user):
        """A token for the user's project; `user` has the keys of `identity_from`."""
        scope = {"project": {"name": user["project"], "domain": {"name": user["project_domain"]}}}
        return self.authenticate(user, scope)

    def authenticate(self, user, scope):
        who = {"name": user["name"], "password": user["password"], "domain": {"name": user["user_domain"]}}
        auth = {"identity": {"methods": ["password"], "password": {"user": who}}, "scope": scope}
        _, headers = self.call("POST", "/auth/tokens", {"auth": auth})
        return headers["X-Subject-Token"]

    def password_works(self, user):
        try:
            self.authenticate(user, "unscoped")
        except Refused as error:
            if error.status == 401:
                return False
            raise
        return True

    def list(self, kind, **query):
        return self.call("GET", f"/{kind}", **query)[0][kind]

    def find_or_create(self, kind, one, query, body):
        """The only object that the query finds, or a new one."""
        found = self.list(kind, **query)
        if found:
            return found[0], False
        return self.call("POST", f"/{kind}", {one: body})[0][one], True


class Registration:
    def __init__(self, keystone):
        self.keystone = keystone
        self.done = []

    def domain(self, name):
        found = self.keystone.list("domains", name=name)
        if not found:
            raise SystemExit(f"domain {name} does not exist")
        return found[0]["id"]

    def user(self, user):
        user_domain, project_domain = self.domain(user["user_domain"]), self.domain(user["project_domain"])
        project, made = self.keystone.find_or_create(
            "projects", "project", {"name": user["project"], "domain_id": project_domain},
            {"name": user["project"], "domain_id": project_domain})
        self.note(made, f"project {user['project']} created")
        account, made = self.keystone.find_or_create(
            "users", "user", {"name": user["name"], "domain_id": user_domain},
            {"name": user["name"], "domain_id": user_domain, "password": user["password"],
             "default_project_id": project["id"]})
        self.note(made, f"user {user['name']} created")
        # Setting a password revokes the user's tokens, so one that works is left alone.
        if not made and not self.keystone.password_works(user):
            self.keystone.call("PATCH", f"/users/{account['id']}", {"user": {"password": user["password"]}})
            self.note(True, f"password of {user['name']} set")
        for role in user["roles"]:
            self.role(role, project["id"], account["id"])

    def role(self, name, project, account):
        role, made = self.keystone.find_or_create("roles", "role", {"name": name}, {"name": name})
        self.note(made, f"role {name} created")
        query = {"user.id": account, "scope.project.id": project, "role.id": role["id"]}
        if not self.keystone.list("role_assignments", **query):
            self.keystone.call("PUT", f"/projects/{project}/users/{account}/roles/{role['id']}")
            self.note(True, f"role {name} given")

    def service(self, name, kind):
        """The service of this name and type; Keystone lets several exist, so all but one go."""
        found = [s for s in self.keystone.list("services", type=kind, name=name) if s["name"] == name]
        kept, *spare = sorted(found, key=lambda s: s["id"]) or [None]
        for service in spare:
            self.keystone.call("DELETE", f"/services/{service['id']}")
            self.note(True, f"second service {name} removed")
        if kept:
            return kept["id"]
        self.note(True, f"service {name} created")
        return self.keystone.call("POST", "/services", {"service": {"name": name, "type": kind}})[0]["service"]["id"]

    def endpoint(self, service, region, interface, url):
        found = [e for e in self.keystone.list("endpoints", service_id=service, interface=interface)
                 if e["region_id"] == region]
        kept, *spare = sorted(found, key=lambda e: e["id"]) or [None]
        for endpoint in spare:
            self.keystone.call("DELETE", f"/endpoints/{endpoint['id']}")
            self.note(True, f"second {interface} endpoint removed")
        if kept is None:
            body = {"service_id": service, "region_id": region, "interface": interface, "url": url}
            self.keystone.call("POST", "/endpoints", {"endpoint": body})
            self.note(True, f"{interface} endpoint created")
        elif kept["url"] != url:
            self.keystone.call("PATCH", f"/endpoints/{kept['id']}", {"endpoint": {"url": url}})
            self.note(True, f"{interface} endpoint moved")

    def limit(self, service, region, resource, default):
        """What every project may use, unless somebody has decided that already."""
        query = {"service_id": service, "region_id": region, "resource_name": resource}
        if not self.keystone.list("registered_limits", **query):
            self.keystone.call("POST", "/registered_limits", {"registered_limits": [{**query, "default_limit": default}]})
            self.note(True, f"limit {resource} registered")

    def note(self, happened, what):
        if happened:
            self.done.append(what)


def identity_from(prefix):
    env = {key: os.environ[f"{prefix}OS_{key}"] for key in (
        "USERNAME", "PASSWORD", "PROJECT_NAME", "USER_DOMAIN_NAME", "PROJECT_DOMAIN_NAME", "ROLES")}
    return {
        "name": env["USERNAME"], "password": env["PASSWORD"], "user_domain": env["USER_DOMAIN_NAME"],
        "project": env["PROJECT_NAME"], "project_domain": env["PROJECT_DOMAIN_NAME"],
        "roles": [role.strip() for role in env["ROLES"].split(",") if role.strip()],
    }


def main():
    name, region = os.environ["SERVICE_NAME"], os.environ["SERVICE_OS_REGION_NAME"]
    keystone = Keystone(os.environ["OS_AUTH_URL"])
    keystone.token = keystone.issue_token(identity_from(""))
    registration = Registration(keystone)
    registration.user(identity_from("SERVICE_"))
    service = registration.service(name, os.environ["SERVICE_TYPE"])
    for interface, url in sorted(json.loads(os.environ["SERVICE_ENDPOINTS"]).items()):
        registration.endpoint(service, region, interface, url)
    for resource, default in sorted(json.loads(os.environ.get("SERVICE_LIMITS", "{}")).items()):
        registration.limit(service, region, resource, default)
    print(f"catalogue {name}: {', '.join(registration.done) or 'nothing to do'}")


if __name__ == "__main__":
    main()
