use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn spec(interval: Option<&str>, active: Option<i32>) -> Fernet {
    Fernet { rotation_interval: interval.map(str::to_owned), active_keys: active }
}

fn fresh_repository() -> Repository {
    Repository { keys: BTreeMap::from([(0, b"a".to_vec()), (1, b"b".to_vec())]), needed: BTreeMap::new() }
}

#[rstest]
#[case::defaults(None, None, json!({}), 5)]
#[case::every_hour(Some("1h"), None, json!({}), 62)]
#[case::more_than_needed(None, Some(9), json!({}), 9)]
#[case::short_tokens(None, None, json!({"expiration": 3600, "allow_expired_window": "0"}), 3)]
#[case::an_interval_with_minutes(Some("36h30m"), None, json!({}), 4)]
fn as_many_keys_are_kept_as_tokens_need(
    #[case] interval: Option<&str>,
    #[case] active: Option<i32>,
    #[case] token: Value,
    #[case] expected: usize,
) {
    let values = json!({"conf": {"keystone": {"token": token}}});
    assert_eq!(Schedule::of(Some(&spec(interval, active)), &values).unwrap().active, expected);
}

#[rstest]
#[case::too_few(spec(None, Some(4)), json!({}), "spec.fernet.activeKeys")]
#[case::too_often(spec(Some("1h"), None), json!({"expiration": 10_000_000}), "spec.fernet.rotationInterval")]
#[case::no_duration(spec(Some("1x"), None), json!({}), "spec.fernet.rotationInterval")]
fn what_cannot_be_is_refused_by_the_name_of_its_field(#[case] spec: Fernet, #[case] token: Value, #[case] field: &str) {
    let refusal = Schedule::of(Some(&spec), &json!({"conf": {"keystone": {"token": token}}})).unwrap_err();
    assert!(refusal.starts_with(field), "{refusal}");
}

#[test]
fn the_default_expiration_is_the_charts() {
    let chart = kupenstack_testkit::repository().join("charts/openstack/keystone/values.yaml");
    let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(chart).unwrap()).unwrap();
    assert_eq!(seconds(&values, "expiration"), Some(EXPIRATION));
    assert_eq!(seconds(&values, "allow_expired_window"), None);
}

#[test]
fn the_staged_key_becomes_the_primary() {
    let schedule = Schedule::of(None, &json!({})).unwrap();
    let next = fresh_repository().rotated(&schedule, at(0), b"c".to_vec()).unwrap();
    let expected = BTreeMap::from([(0, b"c".to_vec()), (1, b"b".to_vec()), (2, b"a".to_vec())]);
    assert_eq!(next.keys, expected);
    assert_eq!(Repository::default().rotated(&schedule, at(0), b"c".to_vec()), None);
}

#[test]
fn rotation_is_due_when_the_interval_has_passed() {
    let schedule = Schedule::of(Some(&spec(Some("2h"), None)), &json!({})).unwrap();
    assert_eq!(schedule.next_rotation(at(0), at(1800)), Duration::from_mins(90));
    assert!(schedule.next_rotation(at(0), at(7200)).is_zero());
    assert!(schedule.next_rotation(at(0), at(90_000)).is_zero());
}

#[test]
fn a_patch_changes_one_version_and_holds_no_key_that_stays() {
    let schedule = Schedule { interval: INTERVAL, active: 2, life: SignedDuration::ZERO };
    let mut before = fresh_repository();
    before.needed.insert(1, at(-1));
    let after = before.rotated(&schedule, at(0), b"c".to_vec()).unwrap();
    let patch = after.patch(&before, Some("7"), at(0));
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["metadata"]["annotations"][ROTATED], "1970-01-01T00:00:00Z");
    assert_eq!(patch["data"], json!({"0": ByteString(b"c".to_vec()), "1": null, "2": ByteString(b"a".to_vec())}));
}

/// One change of the schedule: interval in seconds, life of a token, and for how many rotations it holds.
fn schedules() -> impl Strategy<Value = Vec<(i64, i64, usize)>> {
    prop::collection::vec((600..200_000_i64, 0..200_000_i64, 1..20_usize), 1..6)
}

proptest! {
    /// Tokens are made all the time, by pods that may lag behind. Whatever the schedule was and becomes, no key goes
    /// while a token made with it is of use, and the primary of now was in every pod an interval ago.
    #[test]
    fn every_key_that_could_have_made_a_live_token_stays(schedules in schedules()) {
        let mut repository = fresh_repository();
        let mut now = 0;
        // by content: when the last token made with a key ends
        let mut live: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        for (interval, life, rotations) in schedules {
            let interval = SignedDuration::from_secs(interval);
            let active = usize::try_from(least_keys(life, interval)).unwrap();
            let schedule = Schedule { interval, active, life: SignedDuration::from_secs(life) };
            for _ in 0..rotations {
                now += interval.as_secs();
                let primary = repository.keys.values().last().cloned().unwrap();
                let staged = repository.keys[&0].clone();
                // a pod without the new keys makes its last token with the former primary a little later
                live.insert(primary, now + REFRESH.as_secs() + life);
                repository = repository.rotated(&schedule, at(now), now.to_string().into_bytes()).unwrap();
                prop_assert_eq!(repository.keys.values().last(), Some(&staged));
                live.retain(|_, end| *end > now);
                for key in live.keys() {
                    prop_assert!(repository.keys.values().any(|k| k == key), "a key in use is gone");
                }
            }
        }
    }

    /// Under one schedule the number of keys settles at what the schedule says, give or take the refresh of pods.
    #[test]
    fn the_number_of_keys_settles(interval in 3600..200_000_i64, life in 0..400_000_i64) {
        let interval = SignedDuration::from_secs(interval);
        let active = usize::try_from(least_keys(life, interval)).unwrap();
        let schedule = Schedule { interval, active, life: SignedDuration::from_secs(life) };
        let mut repository = fresh_repository();
        for round in 0..200 {
            repository = repository.rotated(&schedule, at(round * interval.as_secs()), vec![0]).unwrap();
        }
        prop_assert!((active..=active + 1).contains(&repository.keys.len()), "{} for {active}", repository.keys.len());
    }
}
