//! What goes wrong, by rule.

use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};

/// What happens to a request that a rule fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Effect {
    /// This answer instead of the service's own.
    Answer {
        /// The status.
        status: u16,
        /// The body; without one, the service's own words for the status.
        #[serde(default)]
        body: Option<String>,
        /// `Retry-After`, in seconds.
        #[serde(default)]
        retry_after: Option<u64>,
        /// Whether the request is carried out nevertheless.
        #[serde(default)]
        commit: bool,
    },
    /// The connection ends without an answer.
    Drop {
        /// Whether the request is carried out before.
        commit: bool,
    },
    /// The connection is reset without an answer.
    Reset {
        /// Whether the request is carried out before.
        commit: bool,
    },
    /// There is no answer, and the connection stays open.
    Hang {
        /// Whether the request is carried out.
        commit: bool,
    },
    /// The connection ends without an answer, and the request is carried out so many seconds later by the cloud's clock.
    CommitLater {
        /// The seconds.
        seconds: f64,
    },
    /// The request waits before it is carried out. Other rules may fit it too.
    Delay {
        /// The milliseconds, of real time.
        millis: u64,
    },
    /// The answer's second half is missing, with nothing to tell it by but its syntax.
    Malformed,
    /// A read sees what was there so many seconds ago, as far as the cloud remembers: see
    /// [`SimOptions::history`](super::SimOptions::history).
    Stale {
        /// The seconds.
        seconds: f64,
    },
    /// The times in the answer to a login are wrong by so many seconds.
    ClockSkew {
        /// When the token is said to be issued.
        issued: i64,
        /// When it is said to end.
        expires: i64,
    },
    /// The answer claims this microversion.
    Microversion {
        /// The value of the header, such as `compute 2.1`.
        value: String,
    },
}

impl Effect {
    /// A refusal in the service's own words; the request is not carried out.
    pub fn refusal(status: u16) -> Self {
        Self::Answer { status, body: None, retry_after: None, commit: false }
    }

    /// A refusal in these words; the request is not carried out.
    pub fn refusal_saying(status: u16, message: &str) -> Self {
        let body = serde_json::json!({"message": message}).to_string();
        Self::Answer { status, body: Some(body), retry_after: None, commit: false }
    }

    /// The request is carried out, and answered as if the service were down.
    pub fn lost_answer() -> Self {
        Self::Answer { status: 503, body: None, retry_after: None, commit: true }
    }

    /// The word for it in the journal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answer { commit: false, .. } => "answer",
            Self::Answer { commit: true, .. } => "answer after commit",
            Self::Drop { commit: false } => "drop",
            Self::Drop { commit: true } => "drop after commit",
            Self::Reset { commit: false } => "reset",
            Self::Reset { commit: true } => "reset after commit",
            Self::Hang { commit: false } => "hang",
            Self::Hang { commit: true } => "hang after commit",
            Self::CommitLater { .. } => "commit later",
            Self::Delay { .. } => "delay",
            Self::Malformed => "malformed",
            Self::Stale { .. } => "stale",
            Self::ClockSkew { .. } => "clock skew",
            Self::Microversion { .. } => "microversion",
        }
    }
}

/// Which requests meet which fault. What is not set fits every request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The type of the service, such as `image`.
    #[serde(default)]
    pub service: Option<String>,
    /// The verb.
    #[serde(default)]
    pub method: Option<String>,
    /// The path below the service's prefix, or its template. `*` stands for anything, `/` included.
    #[serde(default)]
    pub path: Option<String>,
    /// The query as it came. `*` stands for anything.
    #[serde(default)]
    pub query: Option<String>,
    /// A text in the body. It fits no data that is streamed.
    #[serde(default)]
    pub body: Option<String>,
    /// The project of the caller's token.
    #[serde(default)]
    pub project_id: Option<String>,
    /// How many requests that fit are let through first.
    #[serde(default)]
    pub skip: u32,
    /// How many requests meet it; none means all.
    #[serde(default)]
    pub times: Option<u32>,
    /// The share of the fitting requests that meet it, drawn with the cloud's seed.
    #[serde(default = "always")]
    pub probability: f64,
    /// What happens to them.
    pub effect: Effect,
}

fn always() -> f64 {
    1.0
}

impl Rule {
    /// What happens to every request, unless it is narrowed down.
    pub fn every(effect: Effect) -> Self {
        Self {
            service: None,
            method: None,
            path: None,
            query: None,
            body: None,
            project_id: None,
            skip: 0,
            times: None,
            probability: 1.0,
            effect,
        }
    }

    /// What happens to requests of a service with a method and a path, each time.
    pub fn on(service: &str, method: &str, path: &str, effect: Effect) -> Self {
        Self {
            service: Some(service.to_owned()),
            method: Some(method.to_owned()),
            path: Some(path.to_owned()),
            ..Self::every(effect)
        }
    }

    /// The service is down.
    pub fn down(service: &str) -> Self {
        Self { service: Some(service.to_owned()), ..Self::outage() }
    }

    /// All services are down.
    pub fn outage() -> Self {
        Self::every(Effect::refusal(503))
    }

    /// So many requests to a service are refused with 401, whatever their token.
    pub fn unauthorized(service: &str, times: u32) -> Self {
        Self { service: Some(service.to_owned()), ..Self::every(Effect::refusal(401)) }.times(times)
    }

    /// Only requests with a token of this project.
    #[must_use]
    pub fn in_project(mut self, id: &str) -> Self {
        self.project_id = Some(id.to_owned());
        self
    }

    /// Only requests with this query; `*` stands for anything.
    #[must_use]
    pub fn with_query(mut self, query: &str) -> Self {
        self.query = Some(query.to_owned());
        self
    }

    /// Only requests with this text in their body.
    #[must_use]
    pub fn with_body(mut self, text: &str) -> Self {
        self.body = Some(text.to_owned());
        self
    }

    /// Only the first request that fits.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only so many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Only the nth request that fits, counted from 1.
    #[must_use]
    pub fn nth(mut self, number: u32) -> Self {
        self.skip = number.saturating_sub(1);
        self.once()
    }

    /// Only this share of the requests that fit.
    #[must_use]
    pub fn with_probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    fn fits(&self, arrival: &Arrival<'_>) -> bool {
        let same = |wanted: Option<&String>, is: &str| wanted.is_none_or(|wanted| wanted == is);
        same(self.service.as_ref(), arrival.service)
            && same(self.method.as_ref(), arrival.method)
            && self.project_id.as_ref().is_none_or(|id| arrival.project_id == Some(id))
            && self.path.as_ref().is_none_or(|path| matches(path, arrival.path) || path == arrival.template)
            && self.query.as_ref().is_none_or(|query| matches(query, arrival.query))
            && self.body.as_ref().is_none_or(|text| contains(arrival.body, text.as_bytes()))
    }
}

/// A request as rules see it.
pub(super) struct Arrival<'a> {
    pub(super) service: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) template: &'a str,
    pub(super) query: &'a str,
    pub(super) project_id: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// The rules in force.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<(u64, Rule)>,
    next: u64,
    random: StdRng,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self { rules: Vec::new(), next: 0, random: StdRng::seed_from_u64(seed) }
    }

    /// Adds a rule; the number takes it away again. Of several that fit, the oldest wins.
    pub fn add(&mut self, rule: Rule) -> u64 {
        self.next += 1;
        self.rules.push((self.next, rule));
        self.next
    }

    /// Takes a rule away. False if it is not there, or used up.
    pub fn remove(&mut self, number: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|(of, _)| *of != number);
        self.rules.len() < before
    }

    /// Takes all rules away.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// The rules that are not used up, with their numbers.
    pub fn rules(&self) -> &[(u64, Rule)] {
        &self.rules
    }

    /// What happens to a request: its delays, and at most one other effect.
    pub(super) fn strike(&mut self, arrival: &Arrival<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (_, rule) in &mut self.rules {
            let only_delays = effects.iter().all(|effect| matches!(effect, Effect::Delay { .. }));
            if !rule.fits(arrival) || !(only_delays || matches!(rule.effect, Effect::Delay { .. })) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times != Some(0) && self.random.random_bool(rule.probability.clamp(0.0, 1.0)) {
                rule.times = rule.times.map(|times| times - 1);
                effects.push(rule.effect.clone());
            }
        }
        self.rules.retain(|(_, rule)| rule.times != Some(0));
        effects
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

/// Whether a text fits a pattern with `*` in it.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fits) in [
            ("/v2/images", "/v2/images", true),
            ("/v2/images", "/v2/images/x", false),
            ("/v2/images/*", "/v2/images/x/file", true),
            ("/v2/images/*/file", "/v2/images/x/file", true),
            ("/v2/images/*/file", "/v2/images/x", false),
            ("*", "", true),
            ("*s*s", "/v3/users/projects", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
