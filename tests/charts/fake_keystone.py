"""A Keystone that knows just enough of the Identity API for ks-register.py, and remembers what was changed."""
import http.server
import itertools
import json
import threading
import urllib.parse

ONE = {"projects": "project", "users": "user", "roles": "role", "services": "service", "endpoints": "endpoint"}


class FakeKeystone:
    def __init__(self):
        self.numbers = itertools.count(1)
        self.changes = []
        self.things = {
            "domains": [{"id": "default", "name": "Default"}],
            "projects": [{"id": "p0", "name": "admin", "domain_id": "default"}],
            "users": [{"id": "u0", "name": "admin", "domain_id": "default", "password": "admin-pw"}],
            "roles": [{"id": "r0", "name": "admin"}],
            "services": [],
            "endpoints": [],
            "registered_limits": [],
        }
        self.assignments = []

    def add(self, kind, **fields):
        thing = {"id": f"{kind[0]}{next(self.numbers):03}", **fields}
        self.things[kind].append(thing)
        return thing

    def password_is(self, name, password):
        return any(u["name"] == name and u["password"] == password for u in self.things["users"])

    def answer(self, method, path, query, body):
        """(status, body, headers) of a request."""
        parts = path.strip("/").split("/")[1:]
        if parts == ["auth", "tokens"]:
            user = body["auth"]["identity"]["password"]["user"]
            good = self.password_is(user["name"], user["password"])
            return (201, {"token": {}}, {"X-Subject-Token": user["name"]}) if good else (401, {"error": {}}, {})
        if method != "GET":
            self.changes.append(f"{method} /{'/'.join(parts)}")
        if parts[0] == "role_assignments":
            wanted = (query["scope.project.id"], query["user.id"], query["role.id"])
            return 200, {"role_assignments": [{}] if wanted in self.assignments else []}, {}
        if method == "PUT":
            _, project, _, user, _, role = parts
            self.assignments.append((project, user, role))
            return 204, None, {}
        return self.crud(method, *parts, query=query, body=body)

    def crud(self, method, kind, name=None, *, query, body):
        if method == "GET":
            return 200, {kind: [t for t in self.things[kind] if all(t.get(k) == v for k, v in query.items())]}, {}
        if method == "POST" and kind == "registered_limits":
            return 201, {kind: [self.add(kind, **fields) for fields in body[kind]]}, {}
        if method == "POST":
            fields = body[ONE[kind]]
            return 201, {ONE[kind]: self.add(kind, **fields)}, {}
        thing = next(t for t in self.things[kind] if t["id"] == name)
        if method == "PATCH":
            thing.update(body[ONE[kind]])
            return 200, {ONE[kind]: thing}, {}
        self.things[kind].remove(thing)
        self.things["endpoints"] = [e for e in self.things["endpoints"] if e.get("service_id") != name]
        return 204, None, {}

    def __enter__(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                url = urllib.parse.urlsplit(self.path)
                status, answer, headers = fake.answer(
                    self.command, url.path, dict(urllib.parse.parse_qsl(url.query)), body)
                text = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                for key, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v3"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
