//! The calls, in their order: a project, a user, a role, images, a flavor, a key pair, networks, security groups, a server; and
//! what is refused along the way.

use super::{neutron, nova, ports, routers, security_groups, servers, subnets};

/// Whose token a call carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    Nobody,
    Admin,
    Member,
    Wrong,
}

/// One call. `{name}` in it stands for a value of this run.
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) who: Who,
    pub(super) service: &'static str,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) accept: &'static str,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<(&'static str, String)>,
    /// Values for later calls: a name, and where it is in the answer.
    pub(super) keep: Vec<(&'static str, &'static str)>,
    /// Where in the answer there are values that have to be alike too.
    pub(super) tells: Vec<&'static str>,
    /// Whether it is to be refused, before long.
    pub(super) settles: bool,
    /// What is to come before long: a place in the answer, and its value there.
    pub(super) until: Option<(&'static str, &'static str)>,
}

impl Call {
    pub(super) fn body(mut self, body: &str) -> Self {
        self.body = Some(("application/json", body.to_owned()));
        self
    }

    fn patch(mut self, body: &str) -> Self {
        self.body = Some(("application/openstack-images-v2.1-json-patch", body.to_owned()));
        self
    }

    fn data(mut self, body: &str) -> Self {
        self.body = Some(("application/octet-stream", body.to_owned()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(super) fn settles(mut self) -> Self {
        self.settles = true;
        self
    }

    pub(super) fn until(mut self, pointer: &'static str, value: &'static str) -> Self {
        self.until = Some((pointer, value));
        self
    }

    pub(super) fn tells(mut self, pointers: &[&'static str]) -> Self {
        self.tells.extend(pointers);
        self
    }

    pub(super) fn keep(mut self, name: &'static str, from: &'static str) -> Self {
        self.keep.push((name, from));
        self
    }
}

pub(super) fn call(name: &'static str, who: Who, service: &'static str, request: &str) -> Call {
    let (method, path) = request.split_once(' ').unwrap();
    let method = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].into_iter().find(|known| *known == method).unwrap();
    Call {
        name,
        who,
        service,
        method,
        path: path.to_owned(),
        accept: "application/json",
        headers: Vec::new(),
        body: None,
        keep: Vec::new(),
        tells: Vec::new(),
        settles: false,
        until: None,
    }
}

fn keystone(name: &'static str, who: Who, request: &str) -> Call {
    call(name, who, "identity", request)
}

fn glance(name: &'static str, who: Who, request: &str) -> Call {
    call(name, who, "image", request)
}

pub(super) const NIL: &str = "00000000-0000-4000-8000-0000000000ff";

pub(super) fn all() -> Vec<Call> {
    let mut all = logins();
    all.extend(projects());
    all.extend(users());
    all.extend(application_credentials());
    all.extend(limits());
    all.extend(images());
    all.extend(image_refusals());
    all.extend(nova::flavors());
    all.extend(nova::key_pairs());
    all.extend(neutron::networks());
    all.extend(neutron::refusals());
    all.extend(neutron::lists());
    all.extend(neutron::changes());
    all.extend(neutron::of_others());
    all.extend(neutron::quotas());
    all.extend(subnets::subnets());
    all.extend(subnets::refusals());
    all.extend(subnets::changes());
    all.extend(security_groups::groups());
    all.extend(security_groups::rules());
    all.extend(security_groups::refusals());
    all.extend(security_groups::changes());
    all.extend(ports::ports());
    all.extend(ports::refusals());
    all.extend(ports::changes());
    all.extend(routers::routers());
    all.extend(routers::floating_ips());
    all.extend(servers::groups());
    all.extend(servers::access());
    all.extend(servers::aggregates());
    all.extend(servers::creation());
    all.extend(servers::servers());
    all.extend(servers::changes());
    all.extend(servers::actions());
    all.extend(ends());
    all
}

fn member_login(password: &str) -> String {
    format!(
        r#"{{"auth": {{"identity": {{"methods": ["password"], "password": {{"user": {{"id": "{{user}}", "password": "{password}"}}}}}},
            "scope": {{"project": {{"id": "{{project}}"}}}}}}}}"#
    )
}

fn logins() -> Vec<Call> {
    use Who::{Admin, Nobody, Wrong};
    vec![
        keystone("versions", Nobody, "GET /"),
        keystone("version", Nobody, "GET /v3"),
        keystone("login", Nobody, "POST /v3/auth/tokens")
            .body("{login}")
            .keep("admin_token", "token")
            .keep("image_url", "image endpoint")
            .keep("compute_url", "compute endpoint")
            .keep("network_url", "network endpoint")
            .keep("admin_user", "/token/user/id")
            .keep("admin_project", "/token/project/id"),
        keystone("login with a wrong password", Nobody, "POST /v3/auth/tokens").body(
            r#"{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "admin", "domain": {"id": "default"}, "password": "wrong"}}}}}"#,
        ),
        keystone("token", Admin, "GET /v3/auth/tokens").header("x-subject-token", "{admin_token}"),
        keystone("no token", Nobody, "GET /v3/projects"),
        keystone("a wrong token", Wrong, "GET /v3/projects"),
        keystone("catalogue", Admin, "GET /v3/auth/catalog"),
        keystone("own projects", Admin, "GET /v3/auth/projects"),
        keystone("domain", Admin, "GET /v3/domains/default"),
        keystone("domains by name", Admin, "GET /v3/domains?name=Default"),
        keystone("no such domain", Admin, "GET /v3/domains/nil"),
        keystone("roles", Admin, "GET /v3/roles"),
        keystone("role", Admin, "GET /v3/roles?name=member").keep("role", "/roles/0/id"),
        keystone("services", Admin, "GET /v3/services?type=image").keep("image_service", "/services/0/id"),
        keystone("no such path", Admin, "GET /v3/nil"),
    ]
}

fn projects() -> Vec<Call> {
    use Who::Admin;
    vec![
        keystone("create a project", Admin, "POST /v3/projects")
            .body(r#"{"project": {"name": "{run}", "domain_id": "default", "description": "d", "tags": ["{run}"], "my-mark": "m"}}"#)
            .keep("project", "/project/id"),
        keystone("create it again", Admin, "POST /v3/projects").body(r#"{"project": {"name": "{run}", "domain_id": "default"}}"#),
        keystone("a project without a name", Admin, "POST /v3/projects").body(r#"{"project": {"domain_id": "default"}}"#),
        keystone("a project in no domain", Admin, "POST /v3/projects").body(r#"{"project": {"name": "{run}-2", "domain_id": "nil"}}"#),
        keystone("a project with an empty name", Admin, "POST /v3/projects").body(r#"{"project": {"name": ""}}"#),
        keystone("project", Admin, "GET /v3/projects/{project}"),
        keystone("no such project", Admin, "GET /v3/projects/nil"),
        keystone("projects by name", Admin, "GET /v3/projects?name={run}&domain_id=default"),
        keystone("projects by tag", Admin, "GET /v3/projects?tags={run}"),
        keystone("a full page of projects", Admin, "GET /v3/projects?name={run}&domain_id=default&limit=1"),
        keystone("the page of projects after it", Admin, "GET /v3/projects?name={run}&limit=1&marker={project}"),
        keystone("a page of projects without the tag", Admin, "GET /v3/projects?tags={run}-nil&limit=1"),
        keystone("a marker that is no project", Admin, "GET /v3/projects?limit=1&marker=nil"),
        keystone("projects by a name that is none", Admin, "GET /v3/projects?name={run}-nil"),
        keystone("change a project", Admin, "PATCH /v3/projects/{project}").body(r#"{"project": {"description": "e"}}"#),
        keystone("change no project", Admin, "PATCH /v3/projects/nil").body(r#"{"project": {"description": "e"}}"#),
    ]
}

fn users() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let grant = "/v3/projects/{project}/users/{user}/roles/{role}";
    vec![
        keystone("create a user", Admin, "POST /v3/users")
            .body(r#"{"user": {"name": "{run}", "domain_id": "default", "description": "", "password": "first-pass-word", "mark": "m"}}"#)
            .keep("user", "/user/id"),
        keystone("create the user again", Admin, "POST /v3/users")
            .body(r#"{"user": {"name": "{run}", "domain_id": "default", "password": "p"}}"#),
        keystone("user", Admin, "GET /v3/users/{user}"),
        keystone("no such user", Admin, "GET /v3/users/nil"),
        keystone("users by name", Admin, "GET /v3/users?name={run}"),
        keystone("a full page of users", Admin, "GET /v3/users?name={run}&domain_id=default&limit=1"),
        keystone("the page of users after it", Admin, "GET /v3/users?name={run}&limit=1&marker={user}"),
        keystone("give a user a default project", Admin, "PATCH /v3/users/{user}")
            .body(r#"{"user": {"default_project_id": "{project}"}}"#),
        keystone("login without a role", Nobody, "POST /v3/auth/tokens").body(&member_login("first-pass-word")),
        keystone("no grant yet", Admin, &format!("GET {grant}")),
        keystone("grant", Admin, &format!("PUT {grant}")),
        keystone("grant again", Admin, &format!("PUT {grant}")),
        keystone("grant is there", Admin, &format!("HEAD {grant}")),
        keystone("grant of no role", Admin, "PUT /v3/projects/{project}/users/{user}/roles/nil"),
        keystone("grants", Admin, "GET /v3/projects/{project}/users/{user}/roles"),
        keystone("assignments", Admin, "GET /v3/role_assignments?user.id={user}&include_names=true"),
        keystone("assignments without names", Admin, "GET /v3/role_assignments?user.id={user}"),
        keystone("login of a member", Nobody, "POST /v3/auth/tokens")
            .body(&member_login("first-pass-word"))
            .keep("member_token", "token"),
        keystone("own user", Member, "GET /v3/users/{user}"),
        keystone("own project", Member, "GET /v3/projects/{project}"),
        keystone("another project", Member, "GET /v3/projects/{admin_project}"),
        keystone("projects of a member", Member, "GET /v3/projects"),
        keystone("users of a member", Member, "GET /v3/users"),
        keystone("assignments of a member", Member, "GET /v3/role_assignments"),
        keystone("project by a member", Member, "POST /v3/projects").body(r#"{"project": {"name": "{run}-3"}}"#),
        keystone("user's projects", Member, "GET /v3/users/{user}/projects"),
    ]
}

fn application_credentials() -> Vec<Call> {
    use Who::{Member, Nobody};
    let path = "/v3/users/{user}/application_credentials";
    let login = r#"{"auth": {"identity": {"methods": ["application_credential"], "application_credential": {"id": "{credential}", "secret": "{secret}"}}}}"#;
    vec![
        keystone("create an application credential", Member, &format!("POST {path}"))
            .body(r#"{"application_credential": {"name": "{run}"}}"#)
            .keep("credential", "/application_credential/id")
            .keep("secret", "/application_credential/secret"),
        keystone("create the credential again", Member, &format!("POST {path}"))
            .body(r#"{"application_credential": {"name": "{run}"}}"#),
        keystone("application credentials", Member, &format!("GET {path}")),
        keystone("application credential", Member, &format!("GET {path}/{{credential}}")),
        keystone("login with a credential", Nobody, "POST /v3/auth/tokens").body(login),
        keystone("delete a credential", Member, &format!("DELETE {path}/{{credential}}")),
        keystone("no such credential", Member, &format!("GET {path}/{{credential}}")),
        keystone("login with no credential", Nobody, "POST /v3/auth/tokens").body(login),
    ]
}

fn limits() -> Vec<Call> {
    use Who::{Admin, Member};
    let registered =
        r#"{"registered_limits": [{"service_id": "{image_service}", "resource_name": "{run}", "default_limit": -1}]}"#;
    let limit = |amount: &str| {
        let of = r#""service_id": "{image_service}", "project_id": "{project}", "resource_name": "{run}""#;
        format!(r#"{{"limits": [{{{of}, "resource_limit": {amount}, "description": "d"}}]}}"#)
    };
    let change = |name, to: &str| {
        let body = format!(r#"{{"limit": {{"resource_limit": {to}}}}}"#);
        keystone(name, Admin, "PATCH /v3/limits/{limit}").body(&body)
    };
    vec![
        keystone("a limit of what is not registered", Admin, "POST /v3/limits").body(&limit("1")),
        keystone("register a limit", Admin, "POST /v3/registered_limits")
            .body(registered)
            .keep("registered", "/registered_limits/0/id"),
        keystone("register it again", Admin, "POST /v3/registered_limits").body(registered),
        keystone("registered limits", Member, "GET /v3/registered_limits?resource_name={run}"),
        keystone("register as a member", Member, "POST /v3/registered_limits").body(registered),
        keystone("a limit", Admin, "POST /v3/limits").body(&limit("1")).keep("limit", "/limits/0/id"),
        keystone("the limit again", Admin, "POST /v3/limits").body(&limit("2")),
        keystone("a limit that is too much", Admin, "POST /v3/limits").body(&limit("2147483648")),
        keystone("a limit that is too little", Admin, "POST /v3/limits").body(&limit("-2")),
        keystone("a limit of no project", Admin, "POST /v3/limits").body(&limit("1").replace("{project}", "nil")),
        keystone("limits of a project", Admin, "GET /v3/limits?project_id={project}&resource_name={run}"),
        keystone("limits of no project", Admin, "GET /v3/limits?project_id={image_service}"),
        keystone("limits of the own project", Member, "GET /v3/limits"),
        change("change a limit", "7"),
        change("change a limit to nothing", "0"),
        change("lift a limit", "-1"),
        keystone("change no limit", Admin, "PATCH /v3/limits/nil").body(r#"{"limit": {"resource_limit": 7}}"#),
        keystone("limit", Admin, "GET /v3/limits/{limit}"),
        keystone("no such limit", Admin, "GET /v3/limits/nil"),
        keystone("a limit by a member", Member, "POST /v3/limits").body(&limit("1")),
        keystone("change a limit as a member", Member, "PATCH /v3/limits/{limit}")
            .body(r#"{"limit": {"resource_limit": 7}}"#),
        keystone("delete a limit as a member", Member, "DELETE /v3/limits/{limit}"),
        keystone("change what is registered and used", Admin, "PATCH /v3/registered_limits/{registered}")
            .body(r#"{"registered_limit": {"default_limit": 7}}"#),
        keystone("delete what is registered and used", Admin, "DELETE /v3/registered_limits/{registered}"),
    ]
}

fn images() -> Vec<Call> {
    use Who::{Member, Nobody};
    let create = r#"{"id": "{image}", "name": "{run}", "disk_format": "raw", "container_format": "bare", "visibility": "private",
        "min_disk": 1, "min_ram": 64, "tags": ["t"], "mark": "m"}"#;
    vec![
        glance("health", Nobody, "GET /healthcheck"),
        glance("create an image", Member, "POST /v2/images").body(create),
        glance("create the image again", Member, "POST /v2/images").body(create),
        glance("image", Member, "GET /v2/images/{image}"),
        glance("images by name", Member, "GET /v2/images?name={run}&limit=200"),
        glance("a full page", Member, "GET /v2/images?name={run}&limit=1"),
        glance("the page after it", Member, "GET /v2/images?name={run}&limit=1&marker={image}"),
        glance("no image of this name", Member, "GET /v2/images?name={run}-nil"),
        glance("download of nothing", Member, "GET /v2/images/{image}/file"),
        glance("upload", Member, "PUT /v2/images/{image}/file").data("abc"),
        glance("upload again", Member, "PUT /v2/images/{image}/file").data("abc"),
        glance("active", Member, "GET /v2/images/{image}"),
        glance("download", Member, "GET /v2/images/{image}/file").accept("*/*"),
        glance("change", Member, "PATCH /v2/images/{image}").patch(
            r#"[{"op": "add", "path": "/min_disk", "value": 2}, {"op": "add", "path": "/a", "value": "b"}, {"op": "remove", "path": "/mark"}]"#,
        ),
        glance("add a tag", Member, "PUT /v2/images/{image}/tags/u"),
        glance("remove a tag", Member, "DELETE /v2/images/{image}/tags/u"),
        glance("remove no tag", Member, "DELETE /v2/images/{image}/tags/nil"),
        glance("protect", Member, "PATCH /v2/images/{image}").patch(r#"[{"op": "replace", "path": "/protected", "value": true}]"#),
        glance("delete what is protected", Member, "DELETE /v2/images/{image}"),
        glance("no longer", Member, "PATCH /v2/images/{image}").patch(r#"[{"op": "replace", "path": "/protected", "value": false}]"#),
    ]
}

fn image_refusals() -> Vec<Call> {
    use Who::{Member, Nobody, Wrong};
    let patch =
        |name, operation: &str| glance(name, Member, "PATCH /v2/images/{image}").patch(&format!("[{operation}]"));
    vec![
        glance("images without a token", Nobody, "GET /v2/images"),
        glance("images with a wrong token", Wrong, "GET /v2/images"),
        glance("no such image", Member, &format!("GET /v2/images/{NIL}")),
        glance("no such image in HTML", Member, &format!("GET /v2/images/{NIL}")).accept("text/html"),
        glance("no such image as text", Member, &format!("GET /v2/images/{NIL}")).accept("text/plain"),
        glance("delete no image", Member, &format!("DELETE /v2/images/{NIL}")),
        glance("upload to no image", Member, &format!("PUT /v2/images/{NIL}/file")).data("abc"),
        glance("change no image", Member, &format!("PATCH /v2/images/{NIL}")).patch("[]"),
        glance("publish", Member, "POST /v2/images").body(r#"{"name": "x", "visibility": "public"}"#),
        glance("a marker that is none", Member, &format!("GET /v2/images?marker={NIL}")),
        glance("a sort key that is none", Member, "GET /v2/images?sort_key=nil"),
        glance("a limit that is none", Member, "GET /v2/images?limit=-1"),
        patch("remove no property", r#"{"op": "remove", "path": "/nil"}"#),
        patch("replace no property", r#"{"op": "replace", "path": "/nil", "value": "x"}"#),
        patch("remove an attribute", r#"{"op": "remove", "path": "/name"}"#),
        patch("set what is read-only", r#"{"op": "add", "path": "/status", "value": "active"}"#),
        patch("set what is reserved", r#"{"op": "add", "path": "/deleted", "value": "x"}"#),
        patch("change the format", r#"{"op": "add", "path": "/disk_format", "value": "qcow2"}"#),
        patch("publish later", r#"{"op": "add", "path": "/visibility", "value": "public"}"#),
        patch("no operation", r#"{"op": "nil", "path": "/a", "value": "x"}"#),
        glance("a patch of another type", Member, "PATCH /v2/images/{image}").body("[]"),
        glance("members of a private image", Member, "POST /v2/images/{image}/members")
            .body(r#"{"member": "{admin_project}"}"#),
        glance("no such path in Glance", Member, "GET /v2/nil"),
    ]
}

/// What leaves nothing behind.
pub(super) fn ends() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let mut ends = servers::ends();
    ends.extend(nova::ends());
    ends.extend(routers::ends());
    ends.extend(ports::ends());
    ends.extend(security_groups::ends());
    ends.extend(subnets::ends());
    ends.extend(neutron::ends());
    ends.extend([
        glance("delete", Member, "DELETE /v2/images/{image}"),
        glance("delete again", Member, "DELETE /v2/images/{image}"),
        glance("an id that is used up", Member, "POST /v2/images").body(r#"{"id": "{image}", "name": "{run}"}"#),
        keystone("set a password", Admin, "PATCH /v3/users/{user}")
            .body(r#"{"user": {"password": "second-pass-word"}}"#),
        keystone("a token of before", Member, "GET /v3/users/{user}").settles(),
        keystone("login with the old password", Nobody, "POST /v3/auth/tokens").body(&member_login("first-pass-word")),
        keystone("login with the new password", Nobody, "POST /v3/auth/tokens")
            .body(&member_login("second-pass-word"))
            .keep("member_token", "token"),
        keystone("delete a limit", Admin, "DELETE /v3/limits/{limit}"),
        keystone("delete no limit", Admin, "DELETE /v3/limits/{limit}"),
        keystone("delete what is registered", Admin, "DELETE /v3/registered_limits/{registered}"),
        keystone("delete what is not registered", Admin, "DELETE /v3/registered_limits/{registered}"),
        keystone("delete the project", Admin, "DELETE /v3/projects/{project}"),
        keystone("delete no project", Admin, "DELETE /v3/projects/{project}"),
        keystone("a token of a project that is gone", Member, "GET /v3/users/{user}"),
        glance("images of a project that is gone", Member, "GET /v2/images"),
        keystone("delete the user", Admin, "DELETE /v3/users/{user}"),
        keystone("delete no user", Admin, "DELETE /v3/users/{user}"),
        keystone("revoke", Admin, "DELETE /v3/auth/tokens").header("x-subject-token", "{admin_token}"),
        keystone("a revoked token", Admin, "GET /v3/projects?name={run}").settles(),
    ]);
    ends
}
