//! Nova, as our own client and as any other sees it.

use futures::TryStreamExt;
use kupenstack_openstack::{Client, ErrorKind, Flavor, KeyPair, NewFlavor};
use kupenstack_testkit::sim::{self, Effect, Rule, Sim};
use serde_json::{Value, json};

use crate::support::{ID, admin, member, start};

fn new_flavor(id: &str, name: &str) -> NewFlavor {
    NewFlavor {
        id: id.to_owned(),
        name: name.to_owned(),
        vcpus: 2,
        ram: 2048,
        disk: 20,
        ephemeral: 5,
        swap: 512,
        is_public: false,
        description: "for all mark".to_owned(),
    }
}

async fn names(client: &Client) -> Vec<String> {
    let all: Vec<Flavor> = client.compute().survey_flavors().try_collect().await.unwrap();
    all.into_iter().map(|flavor| flavor.name).collect()
}

/// An answer to a request at some microversion, with the administrator's token.
async fn ask(
    sim: &Sim,
    method: reqwest::Method,
    path: &str,
    version: Option<&str>,
    body: Option<Value>,
) -> (u16, Value) {
    let admin = json!({"name": "admin", "domain": {"id": "default"}, "password": sim.options().admin_password});
    let login = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": admin}},
        "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
    }});
    let http = reqwest::Client::new();
    let tokens = format!("{}/auth/tokens", sim.auth_url());
    let token = http.post(tokens).body(login.to_string()).send().await.unwrap().headers()["x-subject-token"].clone();
    let mut request = http.request(method, format!("{}/compute{path}", sim.url())).header("x-auth-token", token);
    if let Some(version) = version {
        request = request.header("openstack-api-version", format!("compute {version}"));
    }
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[tokio::test]
async fn a_flavor_lives_and_dies() {
    let sim = start();
    let admin = admin(&sim);
    let compute = admin.compute();
    assert_eq!(admin.probe("compute", "/").await.unwrap(), 200);
    assert_eq!(compute.get_flavor(ID).await.unwrap(), None);
    let flavor = compute.create_flavor(&new_flavor(ID, "small")).await.unwrap();
    assert_eq!((flavor.vcpus, flavor.ram, flavor.disk, flavor.ephemeral, flavor.swap), (2, 2048, 20, 5, 512));
    assert_eq!((flavor.is_public, flavor.description.as_deref()), (false, Some("for all mark")));
    assert!(flavor.extra_specs.is_empty());

    let specs = [("hw:cpu_policy", "dedicated"), ("a", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    compute.set_extra_specs(ID, &specs).await.unwrap();
    compute.set_extra_specs(ID, &[("a".to_owned(), "2".to_owned())].into()).await.unwrap();
    assert_eq!(compute.describe_flavor(ID, "for some mark").await.unwrap().extra_specs.len(), 2);
    assert!(compute.remove_extra_spec(ID, "hw:cpu_policy").await.unwrap());
    assert!(!compute.remove_extra_spec(ID, "hw:cpu_policy").await.unwrap());
    let flavor = compute.get_flavor(ID).await.unwrap().unwrap();
    assert_eq!(flavor.extra_specs, [("a".to_owned(), "2".to_owned())].into());
    assert_eq!(flavor.description.as_deref(), Some("for some mark"));

    assert!(compute.delete_flavor(ID).await.unwrap());
    assert!(!compute.delete_flavor(ID).await.unwrap());
    // unlike Glance, Nova gives an identifier again
    compute.create_flavor(&new_flavor(ID, "small")).await.unwrap();
}

#[tokio::test]
async fn an_identifier_and_a_name_are_taken_once() {
    let sim = start();
    let compute = admin(&sim).compute();
    compute.create_flavor(&new_flavor("1", "m1.tiny")).await.unwrap();
    for (id, name, words) in [("1", "other", "with ID 1 already"), ("2", "m1.tiny", "with name m1.tiny already")] {
        let error = compute.create_flavor(&new_flavor(id, name)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains(words), "{error}");
    }
    assert_eq!(compute.get_flavor("1/../1").await.unwrap(), None);
}

#[tokio::test]
async fn only_an_administrator_makes_flavors_and_sees_those_that_are_not_public() {
    let sim = start();
    let admin = admin(&sim);
    let member = member(&sim, &admin, "shop");
    let now = sim.clock().now();
    sim.cloud().nova.put_flavor(now, sim::Flavor { is_public: false, ..sim::Flavor::new("1", "hidden") });
    sim.cloud().nova.put_flavor(now, sim::Flavor::new("2", "shown"));
    assert_eq!(names(&admin).await, ["hidden", "shown"]);
    assert_eq!(names(&member).await, ["shown"]);
    let compute = member.compute();
    assert_eq!(compute.get_flavor("1").await.unwrap(), None);
    assert!(compute.get_flavor("2").await.unwrap().is_some());
    let refused = [
        compute.create_flavor(&new_flavor(ID, "mine")).await.map(drop),
        compute.describe_flavor("2", "mine").await.map(drop),
        compute.set_extra_specs("2", &[("a".to_owned(), "b".to_owned())].into()).await,
        compute.delete_flavor("2").await.map(drop),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Forbidden);
    }
}

#[tokio::test]
async fn what_is_no_flavor_is_refused() {
    let sim = start();
    let compute = admin(&sim).compute();
    for new in [
        NewFlavor { vcpus: 0, ..new_flavor(ID, "a") },
        NewFlavor { ram: u32::MAX, ..new_flavor(ID, "a") },
        NewFlavor { description: "two\nlines".to_owned(), ..new_flavor(ID, "a") },
        new_flavor("a/b", "a"),
        new_flavor(ID, ""),
    ] {
        assert_eq!(compute.create_flavor(&new).await.unwrap_err().kind(), ErrorKind::BadRequest, "{new:?}");
    }
    compute.create_flavor(&new_flavor(ID, "a")).await.unwrap();
    for (name, value) in [("a/b", "1".to_owned()), ("a", "v".repeat(256))] {
        let specs = [(name.to_owned(), value)].into();
        assert_eq!(compute.set_extra_specs(ID, &specs).await.unwrap_err().kind(), ErrorKind::BadRequest);
    }
}

#[tokio::test]
async fn flavors_come_in_pages_in_the_order_of_their_ids() {
    let sim = start();
    let now = sim.clock().now();
    for number in (0..1003).rev() {
        sim.cloud().nova.put_flavor(now, sim::Flavor::new(&format!("{number:04}"), &format!("flavor-{number}")));
    }
    let all = names(&admin(&sim)).await;
    assert_eq!((all.len(), all[0].as_str(), all[1002].as_str()), (1003, "flavor-0", "flavor-1002"));
    assert_eq!(sim.cloud().journal.count("GET", "/v2.1/flavors/detail"), 2);
    let (status, body) = ask(&sim, reqwest::Method::GET, "/v2.1/flavors?marker=nil", None, None).await;
    assert_eq!((status, &body["badRequest"]["message"]), (400, &json!("marker [nil] not found")));
}

#[tokio::test]
async fn what_an_answer_has_depends_on_its_microversion() {
    let sim = start();
    let now = sim.clock().now();
    sim.cloud().nova.put_flavor(now, sim::Flavor::new("1", "m1.tiny"));
    let flavor = async |version| {
        let (status, mut body) = ask(&sim, reqwest::Method::GET, "/v2.1/flavors/1", version, None).await;
        assert_eq!(status, 200);
        body["flavor"].take()
    };
    let has = |flavor: &Value, key: &str| flavor.get(key).is_some();
    let oldest = flavor(None).await;
    assert!(!has(&oldest, "description") && !has(&oldest, "extra_specs") && oldest["swap"] == "");
    let middle = flavor(Some("2.61")).await;
    assert!(has(&middle, "description") && has(&middle, "extra_specs") && middle["swap"] == "");
    assert_eq!(flavor(Some("2.75")).await["swap"], 0);
    let described = json!({"flavor": {"name": "a", "ram": 1, "vcpus": 1, "disk": 0, "description": "d"}});
    let (status, _) = ask(&sim, reqwest::Method::POST, "/v2.1/flavors", Some("2.54"), Some(described)).await;
    assert_eq!(status, 400, "a description is unknown before 2.55");
    for (version, status) in [("2.999", 406), ("two", 400)] {
        assert_eq!(ask(&sim, reqwest::Method::GET, "/v2.1/flavors/1", Some(version), None).await.0, status);
    }
}

/// Of a list without extra specs, one would conclude that there are none.
#[tokio::test]
async fn an_answer_at_another_microversion_is_not_believed() {
    let sim = start();
    let compute = admin(&sim).compute();
    let other = Effect::Microversion { value: "compute 2.1".to_owned() };
    sim.cloud().faults.add(Rule::on("compute", "POST", "/v2.1/flavors", other).once());
    let error = compute.create_flavor(&new_flavor(ID, "small")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains(r#"microversion "compute 2.1", asked for "compute 2.61""#), "{error}");
    let too_old = r#"{"computeFault": {"code": 406, "message": "Version 2.61 is not supported by the API."}}"#;
    let too_old = Effect::Answer { status: 406, body: Some(too_old.to_owned()), retry_after: None, commit: false };
    sim.cloud().faults.add(Rule::on("compute", "GET", "/v2.1/flavors/*", too_old).once());
    assert_eq!(compute.get_flavor(ID).await.unwrap_err().kind(), ErrorKind::Protocol);
    assert!(compute.get_flavor(ID).await.unwrap().is_some());
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f somebody@somewhere";

async fn key_pairs(client: &Client, user_id: Option<&str>) -> Vec<String> {
    let all: Vec<KeyPair> = client.compute().list_key_pairs(user_id).try_collect().await.unwrap();
    all.into_iter().map(|key_pair| key_pair.name).collect()
}

#[tokio::test]
async fn each_user_has_his_own_key_pairs() {
    let sim = start();
    let admin = admin(&sim);
    let (one, other) = (member(&sim, &admin, "one"), member(&sim, &admin, "other"));
    let made = one.compute().create_key_pair("laptop", KEY).await.unwrap();
    assert_eq!((made.name.as_str(), made.public_key.as_str()), ("laptop", KEY));
    assert_eq!(made.fingerprint.split(':').count(), 16);
    let taken = one.compute().create_key_pair("laptop", KEY).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
    other.compute().create_key_pair("laptop", KEY).await.unwrap();

    assert_eq!(one.compute().get_key_pair("laptop", None).await.unwrap(), Some(made.clone()));
    assert_eq!(key_pairs(&one, None).await, ["laptop"]);
    assert_eq!((key_pairs(&admin, None).await.len(), key_pairs(&admin, Some("user-one")).await.len()), (0, 1));
    assert_eq!(admin.compute().get_key_pair("laptop", Some("user-one")).await.unwrap(), Some(made));
    let refused = other.compute().get_key_pair("laptop", Some("user-one")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);

    assert!(admin.compute().delete_key_pair("laptop", Some("user-one")).await.unwrap());
    assert!(!one.compute().delete_key_pair("laptop", None).await.unwrap());
    assert_eq!(key_pairs(&other, None).await, ["laptop"]);
}

#[tokio::test]
async fn key_pairs_come_in_pages_and_are_limited() {
    let sim = start();
    let admin = admin(&sim);
    let client = member(&sim, &admin, "shop");
    let now = sim.clock().now();
    for number in 0..1003 {
        sim.cloud().nova.put_key_pair(now, sim::KeyPair::new("user-shop", &format!("{number:04}"), KEY));
    }
    assert_eq!(key_pairs(&client, None).await.len(), 1003);
    assert_eq!(sim.cloud().journal.count("GET", "/v2.1/os-keypairs"), 2);
    let page = async |limit| {
        let path = format!("/v2.1/os-keypairs?user_id=user-shop&limit={limit}");
        ask(&sim, reqwest::Method::GET, &path, Some("2.61"), None).await
    };
    for (limit, number) in [("2", 2), ("0", 1000), ("5000", 1000)] {
        let (_, body) = page(limit).await;
        assert_eq!(body["keypairs"].as_array().unwrap().len(), number, "{limit}");
        assert_eq!(body["keypairs_links"][0]["rel"], "next", "{limit}");
    }
    assert_eq!(page("many").await.0, 400);
    sim.cloud().quotas.set_default("key_pairs", 1003);
    let error = client.compute().create_key_pair("more", KEY).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Quota, Some(403)));
}

#[tokio::test]
async fn what_is_no_key_pair_is_refused() {
    let sim = start();
    let compute = admin(&sim).compute();
    for (name, key) in
        [("a.b", KEY), ("", KEY), ("a", "ssh-ed25519"), ("a", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAAB"), ("a", "x y")]
    {
        let error = compute.create_key_pair(name, key).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{name}: {error}");
    }
}
