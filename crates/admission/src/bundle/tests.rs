use std::time::Duration;

use rstest::rstest;

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn names() -> Vec<String> {
    vec!["kupenstack-webhook.kupenstack-system.svc".to_owned(), "127.0.0.1".to_owned()]
}

fn lifetimes() -> Lifetimes {
    Lifetimes::default()
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn new() -> Bundle {
    Bundle::new(&names(), &lifetimes(), start()).unwrap()
}

fn next(bundle: &Bundle, after: Duration, is_trusted: bool) -> Option<Bundle> {
    bundle.next(&names(), &lifetimes(), start() + after, is_trusted).unwrap()
}

/// A certificate that is served has to be signed by an authority that was announced long enough ago.
fn sound(bundle: &Bundle, announced: &[(String, Timestamp)], now: Timestamp) {
    let serving = &bundle.serving.certificate;
    assert!(serving.expires > now && serving.is_for(&names()), "expired at {now}");
    let issuer = bundle.authorities().find(|authority| serving.is_signed_by(authority)).expect("a trusted issuer");
    let since = announced.iter().find(|(pem, _)| *pem == issuer.pem).map(|(_, since)| *since).unwrap();
    assert!(since == start() || serving.issued >= since + lifetimes().overlap, "served before it was announced");
}

#[test]
fn what_was_made_is_read_again() {
    let bundle = new();
    let read = Bundle::read(&bundle.data()).expect("whole");
    assert_eq!(read.data(), bundle.data());
    assert_eq!(serving(&bundle.data()).unwrap().0, bundle.serving.certificate.pem);
    assert!(next(&bundle, Duration::ZERO, true).is_none());
}

#[rstest]
#[case::nothing(&[], &[])]
#[case::no_key(&["tls.key"], &[])]
#[case::no_authority(&["ca.crt"], &[])]
#[case::garbage(&[], &["tls.crt"])]
#[case::foreign_key(&[], &["tls.key"])]
#[case::foreign_authority_key(&[], &["ca.key"])]
#[case::foreign_authority(&[], &["ca.crt", "ca.key"])]
fn what_does_not_belong_together_is_none(#[case] missing: &[&str], #[case] foreign: &[&str]) {
    let mut data = if missing.is_empty() && foreign.is_empty() { Data::new() } else { new().data() };
    let other = new().data();
    for key in missing {
        data.remove(*key);
    }
    for key in foreign {
        let value = if *key == "tls.crt" { ByteString(b"x".to_vec()) } else { other[*key].clone() };
        data.insert((*key).to_owned(), value);
    }
    assert!(Bundle::read(&data).is_none());
}

#[test]
fn a_certificate_is_renewed_after_two_thirds_of_its_life_by_the_same_authority() {
    let bundle = new();
    assert!(next(&bundle, DAY * 59, true).is_none());
    let renewed = next(&bundle, DAY * 60, true).expect("renewed");
    assert_eq!(renewed.trusted(), bundle.trusted());
    assert_ne!(renewed.serving.certificate, bundle.serving.certificate);
    assert!(next(&renewed, DAY * 60, true).is_none());
}

#[test]
fn another_name_takes_a_new_certificate_at_once() {
    let other = vec!["other.svc".to_owned()];
    let renewed = new().next(&other, &lifetimes(), start(), false).unwrap().expect("renewed");
    assert!(renewed.serving.certificate.is_for(&other));
}

#[test]
fn a_new_authority_is_announced_then_signs_and_then_the_former_one_goes() {
    let mut bundle = new();
    let two_thirds = DAY * 365 * 2 / 3;
    // as it would be after some renewals
    bundle.serving = bundle.authority.serving(&names(), start() + two_thirds, DAY * 90).unwrap();
    let announced = next(&bundle, two_thirds, true).expect("announced");
    assert!(announced.trusted().contains(&bundle.trusted()) && announced.former.len() == 1);
    assert_eq!(announced.serving.certificate, bundle.serving.certificate);

    let minutes = |minutes| two_thirds + Duration::from_mins(minutes);
    assert!(next(&announced, minutes(4), true).is_none(), "API servers may not know it yet");
    assert!(next(&announced, minutes(6), false).is_none(), "API servers were not told");
    let signed = next(&announced, minutes(6), true).expect("signed");
    assert!(signed.serving.certificate.is_signed_by(&signed.authority.certificate));
    assert_eq!(signed.trusted(), announced.trusted());

    assert!(next(&signed, minutes(10), true).is_none(), "a replica may serve the former one");
    let alone = next(&signed, minutes(12), true).expect("alone");
    assert!(alone.former.is_empty());
    assert!(next(&alone, minutes(12), true).is_none());
}

#[test]
fn what_has_expired_is_made_anew_at_once() {
    let late = next(&new(), DAY * 91, false).expect("a certificate");
    assert_eq!(late.trusted(), new_trusted(&late));
    let all = next(&new(), DAY * 366, false).expect("an authority");
    assert!(all.former.is_empty() && all.serving.certificate.is_signed_by(&all.authority.certificate));
}

fn new_trusted(bundle: &Bundle) -> String {
    bundle.authority.certificate.pem.clone()
}

/// Three years, looked at whenever it asks for it.
#[test]
fn at_every_time_what_is_served_is_valid_and_trusted() {
    let mut bundle = new();
    let mut now = start();
    let mut announced = vec![(bundle.authority.certificate.pem.clone(), now)];
    let mut renewals = 0;
    while now < start() + DAY * 1095 {
        while let Some(following) = bundle.next(&names(), &lifetimes(), now, true).unwrap() {
            for authority in following.authorities() {
                if announced.iter().all(|(pem, _)| *pem != authority.pem) {
                    announced.push((authority.pem.clone(), now));
                }
            }
            renewals += usize::from(following.serving.certificate != bundle.serving.certificate);
            bundle = Bundle::read(&following.data()).expect("it belongs together");
        }
        sound(&bundle, &announced, now);
        now += bundle.rest(&lifetimes(), now).max(Duration::from_secs(1));
    }
    assert!(announced.len() >= 4 && renewals >= 18, "{} authorities, {renewals} renewals", announced.len());
    assert!(bundle.former.len() <= 1);
}
