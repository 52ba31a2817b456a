use rstest::rstest;
use secrecy::ExposeSecret;

use super::*;

const CLOUDS: &str = r#"
clouds:
  full:
    auth:
      auth_url: https://keystone.example/v3
      username: admin
      password: "s3cret: #1"
      user_domain_name: Users
      project_name: admin
      project_domain_id: default
    region_name: RegionOne
    interface: internalURL
    identity_api_version: 3
    cacert: /etc/ssl/ca.pem
  short:
    auth: {auth_url: "http://keystone:5000", username: u, password: 0123}
  broken:
    auth: {auth_url: "http://keystone:5000", username: u}
  token:
    auth_type: v3token
    auth: {auth_url: "http://keystone:5000"}
  insecure:
    auth: {auth_url: "http://keystone:5000", username: u, password: p}
    verify: false
"#;

#[test]
fn a_full_entry_is_read() {
    let config = CloudConfig::from_clouds_yaml(CLOUDS, "full").unwrap();
    assert_eq!(config.auth_url.as_str(), "https://keystone.example/v3");
    assert_eq!(config.credentials.username, "admin");
    assert_eq!(config.credentials.password.expose_secret(), "s3cret: #1");
    assert_eq!(config.credentials.user_domain, DomainRef::Name("Users".to_owned()));
    let domain = DomainRef::Id("default".to_owned());
    assert_eq!(config.credentials.project, Some(ProjectScope::Name { name: "admin".to_owned(), domain }));
    assert_eq!(config.region.as_deref(), Some("RegionOne"));
    assert_eq!(config.interface, Interface::Internal);
}

#[test]
fn a_short_entry_gets_the_tools_defaults() {
    let config = CloudConfig::from_clouds_yaml(CLOUDS, "short").unwrap();
    assert_eq!(config.credentials.password.expose_secret(), "0123");
    assert_eq!(config.credentials.user_domain, DomainRef::Id("default".to_owned()));
    assert_eq!(config.credentials.project, None);
    assert_eq!(config.interface, Interface::Public);
    assert_eq!(config.region, None);
}

#[rstest]
#[case("broken", "password is missing")]
#[case("token", "auth_type \"v3token\" is not supported")]
#[case("insecure", "verify \"false\" is not supported")]
#[case("none", "no cloud \"none\" in clouds.yaml")]
fn what_can_not_be_used_is_named(#[case] cloud: &str, #[case] message: &str) {
    assert_eq!(CloudConfig::from_clouds_yaml(CLOUDS, cloud).unwrap_err().to_string(), message);
}

#[rstest]
#[case::not_yaml("clouds: {a: {auth: {password: hunter2")]
#[case::wrong_shape("clouds:\n  a:\n    auth: [hunter2]\n")]
#[case::wrong_type("clouds:\n  a:\n    auth: {password: hunter2}\n    verify: hunter2\n")]
fn a_malformed_file_is_not_quoted(#[case] yaml: &str) {
    let error = CloudConfig::from_clouds_yaml(yaml, "a").unwrap_err();
    assert!(matches!(error, ConfigError::Malformed { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[rstest]
#[case("plain")]
#[case("0123")]
#[case("yes")]
#[case("with: colon #and 'quotes' \"both\" \\ ")]
#[case("line\nbreak")]
#[case("{{ template }}")]
fn what_is_written_is_read_back(#[case] password: &str) {
    let config = CloudConfig {
        auth_url: "http://keystone.openstack.svc:5000/v3".parse().unwrap(),
        credentials: Credentials {
            username: "shop".to_owned(),
            password: password.to_owned().into(),
            user_domain: DomainRef::default(),
            project: Some(ProjectScope::Id("f00d".to_owned())),
        },
        region: Some("RegionOne".to_owned()),
        interface: Interface::Internal,
        ca_certificate: None,
    };
    let yaml = config.to_clouds_yaml("shop").unwrap();
    assert!(!yaml.expose_secret().contains("null"), "{}", yaml.expose_secret());
    let read = CloudConfig::from_clouds_yaml(yaml.expose_secret(), "shop").unwrap();
    assert_eq!(read.credentials.password.expose_secret(), password);
    // The password is hidden from Debug, so this compares all the rest.
    assert_eq!(format!("{read:?}"), format!("{config:?}"));
}

#[rstest]
#[case("http://k:5000", Some("http://k:5000/v3"))]
#[case("http://k:5000/", Some("http://k:5000/v3"))]
#[case("http://k:5000/v3/", Some("http://k:5000/v3"))]
#[case("https://api.example/identity", Some("https://api.example/identity/v3"))]
#[case("https://api.example/v2.0", Some("https://api.example/v2.0"))]
#[case("ftp://k/v3", None)]
#[case("http://user:hunter2@k/v3", None)]
fn the_address_gets_its_version(#[case] auth_url: &str, #[case] expected: Option<&str>) {
    let mut config = CloudConfig::from_clouds_yaml(CLOUDS, "short").unwrap();
    config.auth_url = auth_url.parse().unwrap();
    let url = config.identity_url();
    assert_eq!(url.as_ref().ok().map(Url::as_str), expected);
    assert!(!format!("{url:?}").contains("hunter2"));
}
