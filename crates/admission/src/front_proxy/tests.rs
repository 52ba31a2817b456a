use std::time::Duration;

use http::HeaderValue;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rstest::rstest;

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority() -> Authority {
    let mut params = named("authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn client(authority: &Authority, purpose: ExtendedKeyUsagePurpose) -> CertificateDer<'static> {
    let mut params = named("aggregator");
    params.extended_key_usages = vec![purpose];
    params.not_after = rcgen::date_time_ymd(2040, 1, 1);
    params.signed_by(&KeyPair::generate().unwrap(), authority).unwrap().der().clone()
}

fn told(authorities: &str, names: &str) -> BTreeMap<String, String> {
    [(AUTHORITIES, authorities), (NAMES, names)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_hours(24 * 365 * 56))
}

#[rstest]
#[case::its_name(r#"["other", "aggregator"]"#)]
#[case::any_name("[]")]
fn a_certificate_of_the_authority_with_an_allowed_name_is_the_api_servers(#[case] names: &str) {
    let authority = authority();
    let chain = [client(&authority, ExtendedKeyUsagePurpose::ClientAuth)];
    assert_eq!(check(&told(&authority.pem(), names), &chain, now()), Ok(()));
    // while the authority is replaced there are two
    let two = super::tests::authority().pem() + &authority.pem();
    assert_eq!(check(&told(&two, names), &chain, now()), Ok(()));
}

#[test]
fn nobody_else_is() {
    let (authority, other) = (authority(), super::tests::authority());
    let chain = [client(&authority, ExtendedKeyUsagePurpose::ClientAuth)];
    let ours = told(&authority.pem(), r#"["aggregator"]"#);
    assert_eq!(check(&ours, &[], now()), Err(Stranger::NoCertificate));
    let foreign = [client(&other, ExtendedKeyUsagePurpose::ClientAuth)];
    assert!(matches!(check(&ours, &foreign, now()), Err(Stranger::Untrusted(_))));
    let server = [client(&authority, ExtendedKeyUsagePurpose::ServerAuth)];
    assert!(matches!(check(&ours, &server, now()), Err(Stranger::Untrusted(_))));
    let late = UnixTime::since_unix_epoch(Duration::from_hours(24 * 365 * 90));
    assert!(matches!(check(&ours, &chain, late), Err(Stranger::Untrusted(_))));
    let other_name = told(&authority.pem(), r#"["other"]"#);
    assert_eq!(check(&other_name, &chain, now()), Err(Stranger::Name("aggregator".to_owned())));
    assert_eq!(check(&told(&authority.pem(), "aggregator"), &chain, now()), Err(Stranger::NoAuthority));
    assert_eq!(check(&told("", "[]"), &chain, now()), Err(Stranger::NoAuthority));
    assert_eq!(check(&BTreeMap::new(), &chain, now()), Err(Stranger::NoAuthority));
}

fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
    let all = all.iter().map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    all.fold(HeaderMap::new(), |mut headers, (name, value)| {
        headers.append(name, value);
        headers
    })
}

#[test]
fn the_headers_tell_the_user_with_all_groups_and_extras() {
    let headers = headers(&[
        ("x-remote-user", "alice"),
        ("x-remote-group", "people"),
        ("x-remote-group", "system:authenticated"),
        ("x-remote-extra-example.org%2fscopes", "a"),
        ("x-remote-extra-example.org%2fscopes", "b"),
        ("x-remote-uid", "forged"),
    ]);
    let user = User::of(&headers).unwrap();
    assert_eq!(
        (user.name.as_str(), user.groups.as_slice()),
        ("alice", &["people".to_owned(), "system:authenticated".to_owned()][..])
    );
    assert_eq!(user.extra, [("example.org/scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into());
}

#[rstest]
#[case::none(&[])]
#[case::empty(&[("x-remote-user", "")])]
#[case::two(&[("x-remote-user", "alice"), ("x-remote-user", "root")])]
#[case::unreadable_extra(&[("x-remote-user", "alice"), ("x-remote-extra-%ff", "a")])]
fn a_user_that_is_not_told_clearly_is_none(#[case] all: &[(&'static str, &'static str)]) {
    assert_eq!(User::of(&headers(all)), Err(Stranger::NoUser));
}
