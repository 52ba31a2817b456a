//! What was asked of the cloud and written to the API server, told apart.

use std::{collections::BTreeMap, fmt};

use kupenstack_testkit::sim::{Entry, Sim};

/// Requests to the cloud since its journal was cleared.
#[derive(Debug)]
pub(crate) struct Requests {
    /// By projects' users, by verb and path.
    pub(crate) own: BTreeMap<String, usize>,
    /// By the administrator, likewise. What follows the first page of a list is part of that.
    pub(crate) shared: BTreeMap<String, usize>,
    /// Of those, lists of all servers: not only of the changed ones.
    pub(crate) whole_lists_of_servers: usize,
    /// Logins, and what is asked before one.
    pub(crate) sessions: usize,
    /// Answers that there is a conflict.
    pub(crate) conflicts: usize,
    /// From the first to the last of them.
    pub(crate) seconds: f64,
}

impl Requests {
    pub(crate) fn of(sim: &Sim) -> Self {
        let cloud = sim.cloud();
        let admin = cloud.keystone.find("users", "admin").unwrap().id.clone();
        let (mut own, mut shared) = (BTreeMap::new(), BTreeMap::new());
        let (mut sessions, mut conflicts, mut whole_lists_of_servers) = (0, 0, 0);
        for entry in cloud.journal.entries() {
            conflicts += usize::from(entry.status == Some(409));
            match &entry.user_id {
                None => sessions += 1,
                _ if entry.template == "/v3/auth/tokens" => sessions += 1,
                Some(user) if *user != admin => *own.entry(what(entry)).or_default() += 1,
                Some(_) if entry.query.contains("marker=") => {}
                Some(_) => {
                    let is_of_servers = entry.template == "/v2.1/servers/detail";
                    whole_lists_of_servers += usize::from(is_of_servers && !entry.query.contains("changes-since="));
                    *shared.entry(what(entry)).or_default() += 1;
                }
            }
        }
        let times = || cloud.journal.entries().map(|entry| entry.at);
        let seconds = times().min().zip(times().max()).map_or(0.0, |(from, to)| to.duration_since(from).as_secs_f64());
        Self { own, shared, whole_lists_of_servers, sessions, conflicts, seconds }
    }

    pub(crate) fn all_own(&self) -> usize {
        self.own.values().sum()
    }

    pub(crate) fn own_with(&self, verb: &str) -> usize {
        self.own.iter().filter(|(what, _)| what.starts_with(verb)).map(|(_, count)| count).sum()
    }

    /// The list that was made most often, and how often in a second: what is between the first and the last.
    pub(crate) fn busiest_list(&self) -> (String, f64) {
        let lists = self.shared.iter().filter(|(what, _)| what.starts_with("GET") && !what.contains('{'));
        let busiest = lists.max_by_key(|(_, count)| **count).map(|(what, count)| (what.clone(), *count));
        let (what, count) = busiest.unwrap_or_default();
        (what, float(count.saturating_sub(1)) / self.seconds.max(1.0))
    }
}

/// Seconds of processors, by the names of the programs: this one, which has the cloud, and those that it has started.
#[derive(Debug)]
pub(crate) struct Processors(BTreeMap<String, f64>);

impl Processors {
    pub(crate) fn now() -> Self {
        let own = std::process::id().to_string();
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let stats =
            all.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok().map(|stat| (pid, stat)));
        let mut spent = BTreeMap::new();
        for (pid, stat) in stats {
            let (head, rest) = stat.rsplit_once(')').unwrap();
            let fields: Vec<&str> = rest.split_whitespace().collect();
            if pid == own || fields[1] == own {
                let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
                let name = head.split_once('(').unwrap().1.to_owned();
                // a tick is a hundredth of a second on every Linux
                *spent.entry(name).or_default() += f64::from(ticks) / 100.0;
            }
        }
        Self(spent)
    }

    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (name, spent) in &mut self.0 {
            *spent -= before.0.get(name).copied().unwrap_or_default();
        }
        self
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.0.iter().map(|(name, spent)| format!("{name} {spent:.1} s")).collect();
        f.write_str(&each.join(", "))
    }
}

fn what(entry: &Entry) -> String {
    format!("{} {}", entry.method, entry.template)
}

/// What was written in between.
pub(crate) fn between(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since = after.iter().map(|(what, count)| (what.clone(), count - before.get(what).copied().unwrap_or_default()));
    since.filter(|(_, count)| *count > 0).collect()
}

/// Writes to a resource and its parts.
pub(crate) fn to(written: &BTreeMap<String, u64>, resource: &str) -> usize {
    let of_it = |what: &str| what.split([' ', '/']).nth(1) == Some(resource);
    let counts = written.iter().filter(|(what, _)| of_it(what)).map(|(_, count)| usize::try_from(*count).unwrap());
    counts.sum()
}

pub(crate) fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// How much of it falls to each.
pub(crate) fn each(count: usize, of: usize) -> f64 {
    float(count) / float(of)
}

/// The duration under which this part of all is.
pub(crate) fn percentile(all: &mut [f64], percent: usize) -> f64 {
    all.sort_by(f64::total_cmp);
    all[(all.len() * percent).div_ceil(100).max(1) - 1]
}
