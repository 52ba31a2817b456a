//! Where the calls go.

use std::{
    collections::BTreeMap,
    env, fs,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use kupenstack_testkit::sim::Sim;
use serde_json::{Value, json};

use super::{
    Seen,
    calls::{Call, Who},
    shape,
};

/// When every process of Keystone has heard of a revocation, and a server is gone.
const SETTLED: Duration = Duration::from_secs(30);
/// When whatever a server goes through is over.
const DONE: Duration = Duration::from_secs(90);

/// A cloud, and its administrator.
pub(super) struct Target {
    auth_url: String,
    login: Value,
    region: String,
    interface: String,
    /// Services whose address in the catalogue can't be reached from here.
    overrides: BTreeMap<String, String>,
}

impl Target {
    pub(super) fn simulated(sim: &Sim) -> Self {
        Self::from_yaml(&sim.clouds_yaml(), None)
    }

    pub(super) fn real() -> Self {
        let path = env::var("KUPENSTACK_CONTRACT_CLOUDS")
            .unwrap_or_else(|_| panic!("KUPENSTACK_CONTRACT_CLOUDS names no clouds.yaml"));
        Self::from_yaml(&fs::read_to_string(path).unwrap(), env::var("KUPENSTACK_CONTRACT_CLOUD").ok().as_deref())
    }

    fn from_yaml(yaml: &str, name: Option<&str>) -> Self {
        let clouds: Value = serde_saphyr::from_str(yaml).unwrap();
        let clouds = clouds["clouds"].as_object().unwrap();
        let cloud = match name {
            Some(name) => &clouds[name],
            None => clouds.values().next().unwrap(),
        };
        let auth = &cloud["auth"];
        let text = |value: &Value, default: &str| value.as_str().unwrap_or(default).to_owned();
        let domain = |key: &str| match auth[format!("{key}_domain_id")].as_str() {
            Some(id) => json!({"id": id}),
            None => json!({"name": text(&auth[format!("{key}_domain_name")], "Default")}),
        };
        let user = json!({"name": auth["username"], "password": auth["password"], "domain": domain("user")});
        Self {
            auth_url: text(&auth["auth_url"], "").trim_end_matches("/v3").trim_end_matches('/').to_owned(),
            login: json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": auth["project_name"], "domain": domain("project")}},
            }}),
            region: text(&cloud["region_name"], "RegionOne"),
            interface: text(&cloud["interface"], "public"),
            overrides: ["image", "compute", "network"]
                .into_iter()
                .filter_map(|service| Some((service, cloud[format!("{service}_endpoint_override")].as_str()?)))
                .map(|(service, url)| (service.to_owned(), url.to_owned()))
                .collect(),
        }
    }
}

/// One run of the calls: what was learned from earlier answers.
pub(super) struct Run<'a> {
    target: &'a Target,
    http: reqwest::Client,
    values: BTreeMap<String, String>,
}

impl<'a> Run<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        kupenstack_testkit::install_tls_provider();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let values = [
            ("run", format!("contract-{millis:x}")),
            ("image", format!("00000000-0000-4000-8000-{millis:012x}")),
            ("flavor", format!("flavor-{millis:x}")),
            ("identity", target.auth_url.clone()),
        ];
        let values = values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self { target, http: http.pool_max_idle_per_host(0).build().unwrap(), values }
    }

    /// Whether the cloud has a service, as far as is known yet.
    pub(super) fn has(&self, service: &str) -> bool {
        self.values.get(&format!("{service}_url")).is_none_or(|url| !url.is_empty())
    }

    /// A text with the values of this run in the place of their names.
    fn filled(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    /// The reverse, the longest value first. Other identifiers are alike, and so is how far a service has come.
    fn masked(&self, text: &str) -> String {
        let mut values: Vec<_> = self.values.iter().filter(|(_, value)| value.len() > 4).collect();
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let text =
            values.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("{{{name}}}")));
        let others = [
            ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "{id}"),
            ("[0-9a-f]{32}", "{id}"),
            (r"ggregate \d+", "ggregate {number}"),
            // by Nova's own number of it
            (r"(exists|found) for (flavor )?[^ ]+ (and|/)", "$1 for $2{number} $3"),
            (r"maximum is \d+\.\d+", "maximum is {newest}"),
        ];
        others.into_iter().fold(text, |text, (pattern, name)| {
            regex::Regex::new(pattern).unwrap().replace_all(&text, name).into_owned()
        })
    }

    /// Sends a call, again until what takes time has come: each process of Keystone may take an ended token once more, and a
    /// server takes a while for everything.
    pub(super) async fn send(&mut self, call: &Call) -> Result<Seen, String> {
        let begin = Instant::now();
        loop {
            let (seen, json) = self.send_once(call).await.map_err(|error| error.to_string())?;
            let has_come = match call.until {
                Some((pointer, value)) => json.pointer(pointer).is_some_and(|now| now == value),
                None => !call.settles || seen.status >= 400 || begin.elapsed() > SETTLED,
            };
            if has_come {
                return Ok(seen);
            }
            // whatever follows would be otherwise too
            if begin.elapsed() > DONE {
                return Err(format!("{:?} did not come: {json}", call.until));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn send_once(&mut self, call: &Call) -> reqwest::Result<(Seen, Value)> {
        let base = match call.service {
            "identity" => self.target.auth_url.clone(),
            service => self.values.get(&format!("{service}_url")).cloned().unwrap_or_default(),
        };
        let method = call.method.parse().unwrap();
        let mut request =
            self.http.request(method, format!("{base}{}", self.filled(&call.path))).header("accept", call.accept);
        let wrong = "gAAAAABno-such-token".to_owned();
        let token = match call.who {
            Who::Nobody => None,
            Who::Admin => self.values.get("admin_token"),
            Who::Member => self.values.get("member_token"),
            Who::Wrong => Some(&wrong),
        };
        if let Some(token) = token {
            request = request.header("x-auth-token", token);
        }
        if let Some((media_type, body)) = &call.body {
            let body = if body == "{login}" { self.target.login.to_string() } else { self.filled(body) };
            request = request.header("content-type", *media_type).body(body);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, self.filled(value));
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let header = |name: &str| {
            answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let media_type = header("content-type").split(';').next().unwrap_or_default().to_owned();
        let subject = header("x-subject-token");
        let body = answer.text().await?;
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        self.learn(call, &json, &subject);
        // however JSON is spaced and ordered
        let body = if json.is_null() { body } else { json.to_string() };
        let words = if status >= 400 { self.masked(&body).trim().to_owned() } else { String::new() };
        let shape = if json.is_null() || !words.is_empty() { Value::Null } else { self.masked_keys(shape(&json)) };
        let state = self.state(call, &json);
        // an empty body has no type worth comparing
        let media_type = if body.is_empty() { String::new() } else { media_type };
        Ok((Seen { status, media_type, state, shape, words }, json))
    }

    /// Names of networks and properties are keys too.
    fn masked_keys(&self, shape: Value) -> Value {
        let text = shape.to_string();
        serde_json::from_str(&self.masked(&text)).unwrap_or(shape)
    }

    fn state(&self, call: &Call, json: &Value) -> String {
        if !call.tells.is_empty() {
            let told =
                call.tells.iter().map(|pointer| json.pointer(pointer).map_or_else(String::new, Value::to_string));
            return self.masked(&told.collect::<Vec<_>>().join(", "));
        }
        match json.pointer("/limit/resource_limit") {
            Some(amount) => amount.to_string(),
            None => json["status"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn learn(&mut self, call: &Call, json: &Value, subject: &str) {
        for (name, pointer) in &call.keep {
            let value = match *pointer {
                "token" => Some(subject.to_owned()),
                pointer => match pointer.strip_suffix(" endpoint") {
                    Some(service) => {
                        self.target.overrides.get(service).cloned().or_else(|| self.endpoint(service, json))
                    }
                    None => json
                        .pointer(pointer)
                        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
                },
            };
            self.values.insert((*name).to_owned(), value.unwrap_or_default());
        }
    }

    /// Where a service answers for itself rather than for a version of its API.
    fn endpoint(&self, service: &str, json: &Value) -> Option<String> {
        let services = json.pointer("/token/catalog")?.as_array()?;
        let service = services.iter().find(|listed| listed["type"] == service)?;
        let fits = |endpoint: &&Value| {
            endpoint["interface"] == self.target.interface.as_str()
                && endpoint["region_id"] == self.target.region.as_str()
        };
        let endpoint = service["endpoints"].as_array()?.iter().find(fits)?;
        Some(endpoint["url"].as_str()?.trim_end_matches('/').trim_end_matches("/v2.1").to_owned())
    }
}
