use rstest::rstest;
use serde_json::json;

use super::*;

/// Words: `wrong` and `worse` are faults, `odd` is a warning.
fn rules() -> Vec<Rule> {
    vec![Rule::new("example.org", "words", |object: &Value| {
        let words: Vec<_> =
            object["spec"]["words"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let told = |known: &[&str]| {
            words.iter().filter(|w| known.contains(w)).map(|w| format!("spec.words: {w}")).collect::<Vec<_>>()
        };
        Findings { faults: told(&["wrong", "worse"]), warnings: told(&["odd"]) }
    })]
}

fn object(words: &[&str]) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Word", "metadata": {"name": "w"}, "spec": {"words": words}})
}

fn review(operation: &str, object: Value, old: Value) -> Value {
    let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "name": "w",
        "kind": {"group": "example.org", "version": "v1", "kind": "Word"},
        "resource": {"group": "example.org", "version": "v1", "resource": "words"},
        "userInfo": {"username": "u"},
    }});
    review["request"]["object"] = object;
    review["request"]["oldObject"] = old;
    review
}

/// Whether it is allowed, the message, the warnings.
fn answered(review: &Value) -> (bool, String, Vec<String>) {
    let (body, ..) = answer(&rules(), review.to_string().as_bytes()).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["kind"], &body["apiVersion"]), (&json!("AdmissionReview"), &json!("admission.k8s.io/v1")));
    let response = &body["response"];
    assert_eq!(response["uid"], "u-1");
    let warnings = serde_json::from_value(response["warnings"].clone()).unwrap_or_default();
    let message = response["status"]["message"].as_str().unwrap_or_default().to_owned();
    (response["allowed"].as_bool().unwrap(), message, warnings)
}

#[test]
fn a_fault_refuses_and_a_warning_warns() {
    assert_eq!(answered(&review("CREATE", object(&["fine"]), Value::Null)), (true, String::new(), vec![]));
    let (allowed, message, warnings) = answered(&review("CREATE", object(&["wrong", "odd", "worse"]), Value::Null));
    assert_eq!((allowed, message.as_str()), (false, "spec.words: wrong; spec.words: worse"));
    assert_eq!(warnings, ["spec.words: odd"]);
    assert_eq!(answered(&review("CREATE", object(&["odd"]), Value::Null)).2, ["spec.words: odd"]);
}

#[rstest]
#[case::the_same(&["wrong", "odd"], &["wrong", "odd"], true)]
#[case::better(&["wrong"], &["wrong", "worse"], true)]
#[case::another_edit(&["wrong", "fine"], &["wrong"], true)]
#[case::worse(&["wrong", "worse"], &["wrong"], false)]
#[case::first_fault(&["wrong"], &["fine"], false)]
fn an_update_is_judged_by_what_it_brings_in(#[case] new: &[&str], #[case] old: &[&str], #[case] allowed: bool) {
    assert_eq!(answered(&review("UPDATE", object(new), object(old))).0, allowed);
}

#[test]
fn metadata_of_an_object_that_is_wrong_may_be_changed_and_it_may_go() {
    let mut edited = object(&["wrong", "odd"]);
    edited["metadata"] = json!({"name": "w", "labels": {"a": "b"}, "finalizers": ["c"]});
    assert_eq!(answered(&review("UPDATE", edited, object(&["wrong", "odd"]))), (true, String::new(), vec![]));
    let mut going = object(&["worse"]);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(answered(&review("UPDATE", going, object(&["fine"]))).0);
    assert!(answered(&review("DELETE", Value::Null, object(&["wrong"]))).0);
    assert!(answered(&review("CONNECT", object(&["wrong"]), Value::Null)).0);
    let mut status = review("UPDATE", object(&["wrong"]), object(&["fine"]));
    status["request"]["subResource"] = json!("status");
    assert!(answered(&status).0);
}

#[test]
fn what_no_rule_covers_or_can_read_is_allowed() {
    let mut other = review("CREATE", object(&["wrong"]), Value::Null);
    other["request"]["resource"]["resource"] = json!("sentences");
    assert!(answered(&other).0);
    let strict = [Rule::new("example.org", "words", |_: &Vec<u8>| Findings::fault("never"))];
    let (body, verdict, _) =
        answer(&strict, review("CREATE", object(&[]), Value::Null).to_string().as_bytes()).unwrap();
    assert_eq!(verdict, Verdict::Warned);
    assert!(String::from_utf8(body).unwrap().contains("can't read this object"));
}

#[test]
fn a_refusal_names_so_many_faults_and_no_more() {
    let many = [Rule::new("example.org", "words", |_: &Value| Findings {
        faults: (0..1000).map(|n| format!("fault {n}")).collect(),
        warnings: Vec::new(),
    })];
    let (body, ..) = answer(&many, review("CREATE", object(&[]), Value::Null).to_string().as_bytes()).unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("fault 9; and 990 more") && !body.contains("fault 10;"), "{body}");
}

#[rstest]
#[case::empty("")]
#[case::text("hello")]
#[case::cut(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"#)]
#[case::list("[]")]
#[case::number("1e999")]
#[case::another_kind(r#"{"apiVersion":"v1","kind":"Pod"}"#)]
#[case::another_version(r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#)]
#[case::no_request(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#)]
#[case::no_user(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}"#)]
fn garbage_gets_no_answer(#[case] body: &str) {
    assert!(answer(&rules(), body.as_bytes()).is_err());
}

/// JSON that nests deeper than any parser should follow, in a place that nothing looks at.
#[test]
fn depth_is_refused_before_the_stack_ends() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(answer(&rules(), deep.as_bytes()).is_err());
}
