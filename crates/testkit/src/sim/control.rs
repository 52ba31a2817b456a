//! How a program outside steers the cloud: a few calls below `/_sim`, none of which is in the journal.
//!
//! | call | what |
//! | --- | --- |
//! | `GET /_sim/journal` | the requests that are remembered |
//! | `DELETE /_sim/journal` | forgets them |
//! | `GET /_sim/faults` | the rules in force, by their numbers |
//! | `POST /_sim/faults` | adds a rule (a [`Rule`] in JSON), answers its number |
//! | `DELETE /_sim/faults`, `DELETE /_sim/faults/{number}` | takes all rules away, or one |
//! | `POST /_sim/clock` | `{"advance": seconds}` |
//! | `PUT /_sim/quotas` | `{"resource": …, "limit": …}`, with `project_id` for one project |

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Shared,
    fault::Rule,
    http::{Answer, Request},
};

pub(super) fn is_control(request: &Request) -> bool {
    request.path.starts_with("/_sim/")
}

pub(super) fn answer(shared: &Shared, request: &Request) -> Answer {
    let segments = request.segments();
    let path: Vec<&str> = segments.iter().map(String::as_str).collect();
    let mut cloud = shared.cloud();
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["journal"]) => Answer::ok(&json!(cloud.journal.entries().collect::<Vec<_>>())),
        ("DELETE", ["journal"]) => {
            cloud.journal.clear();
            done()
        }
        ("GET", ["faults"]) => Answer::ok(&json!(cloud.faults.rules())),
        ("POST", ["faults"]) => match serde_json::from_slice::<Rule>(&request.body) {
            Ok(rule) => Answer::json(StatusCode::CREATED, &json!({"number": cloud.faults.add(rule)})),
            Err(error) => problem(&error.to_string()),
        },
        ("DELETE", ["faults"]) => {
            cloud.faults.clear();
            done()
        }
        ("DELETE", ["faults", number]) => {
            let removed = number.parse().is_ok_and(|number| cloud.faults.remove(number));
            if removed { done() } else { Answer::empty(StatusCode::NOT_FOUND) }
        }
        ("POST", ["clock"]) => match request.json()["advance"].as_f64().map(Duration::try_from_secs_f64) {
            Some(Ok(by)) => {
                shared.clock.advance(by);
                done()
            }
            _ => problem("advance: not a number of seconds"),
        },
        ("PUT", ["quotas"]) => set_quota(&mut cloud.quotas, &request.json()),
        _ => Answer::empty(StatusCode::NOT_FOUND),
    }
}

fn set_quota(quotas: &mut super::Quotas, body: &Value) -> Answer {
    match (body["project_id"].as_str(), body["resource"].as_str(), body["limit"].as_i64()) {
        (Some(project), Some(resource), Some(limit)) => quotas.set(project, resource, limit),
        (None, Some(resource), Some(limit)) => quotas.set_default(resource, limit),
        _ => return problem("resource and limit are required"),
    }
    done()
}

fn done() -> Answer {
    Answer::empty(StatusCode::NO_CONTENT)
}

fn problem(text: &str) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, &json!({"error": text}))
}
