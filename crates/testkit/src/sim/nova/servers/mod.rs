//! Servers: what they go through, where they find room, and what a test does behind Nova's back.

mod actions;
mod changes;
mod create;
mod list;
mod ports;
mod server;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use self::server::{ACTIVE, DELETED, DELETING, ERROR, RESIZED, SPAWNING, STOPPED};
pub use self::server::{Server, ServerFault};
use super::{Flavor, Nova, ServerGroup, hosts::Hosts};
use crate::sim::{
    SimOptions,
    clock::later,
    http::Refusal,
    neutron::Neutron,
    service::{Call, Peers},
    table::Table,
};

/// How much of a server is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What a list without details has.
    Brief,
    /// What a change is answered with.
    Changed,
    /// All of it.
    Whole,
}

/// Nova's servers, and what is being done with them.
pub(super) struct Servers {
    all: Table<Server>,
    /// What is being done, by when it is.
    due: BTreeMap<(Timestamp, u64), Due>,
    steps: u64,
    /// Servers and those of their ports that are being disconnected, by when they are.
    detaching: BTreeMap<(Timestamp, u64), (String, String)>,
    /// Those that have gone, as lists of changes show them.
    gone: VecDeque<Arc<Server>>,
    /// Servers that a test has taken away, whose ports are still to be disconnected.
    vanished: Vec<String>,
    /// How many servers find a host; none for as many as there are.
    room: Option<usize>,
    /// Whether a resize is confirmed by itself.
    confirms: bool,
    takes: Duration,
}

/// Something that is done with a server, unless something else is by then.
struct Due {
    server: String,
    task: Option<&'static str>,
    step: Step,
}

/// What comes of it.
enum Step {
    /// It runs, if it found a host; else this is why not.
    Build(&'static str),
    /// It is in this state.
    Become(&'static str),
    /// It waits with another flavor.
    Resize(Box<Flavor>),
    /// It keeps the flavor that it has, and is in the state that it was in.
    Confirm(&'static str),
    /// It has the flavor that it had.
    Revert,
    /// It is gone.
    Delete,
}

/// Nova's words, with what they end in, when no host has room.
const NO_HOST: &str = "No valid host was found. ";
/// The same when none of those with room is one to choose.
const NO_HOST_LEFT: &str = "No valid host was found. There are not enough hosts available.";
/// So many servers that have gone are remembered; Nova remembers all.
const MOST_GONE: usize = 10_000;
/// The index of servers that have a host.
const PLACED: &str = "placed";

impl Servers {
    pub(super) fn new(options: &SimOptions) -> Self {
        Self {
            all: Table::new(options.history),
            due: BTreeMap::new(),
            steps: 0,
            detaching: BTreeMap::new(),
            gone: VecDeque::new(),
            vanished: Vec::new(),
            room: None,
            confirms: false,
            takes: options.build_time,
        }
    }

    /// A host for one more server, of a group or of none, or for one that is on a host now.
    fn free_host(
        &self,
        hosts: &Hosts,
        flavor: &Flavor,
        group: Option<&ServerGroup>,
        now_on: Option<&str>,
    ) -> Result<String, &'static str> {
        if self.room.is_some_and(|room| self.all.by(PLACED, "").count() >= room) {
            return Err(NO_HOST);
        }
        let Some(group) = group else { return hosts.place(flavor, now_on).ok_or(NO_HOST) };
        group.host(&hosts.fitting(flavor), &self.all).cloned().ok_or(NO_HOST_LEFT)
    }

    /// Begins to do something with a server.
    fn begin(&mut self, now: Timestamp, mut server: Server, task: Option<&'static str>, step: Step) {
        server.task_state = task;
        server.updated_at = now;
        self.steps += 1;
        self.due.insert((later(now, self.takes), self.steps), Due { server: server.id.clone(), task, step });
        self.all.put(now, server);
    }

    /// Begins to disconnect a server's port, whatever else is done with the server.
    fn begin_to_detach(&mut self, now: Timestamp, server: &str, port: &str) {
        self.steps += 1;
        let at = (later(now, self.takes), self.steps);
        self.detaching.insert(at, (server.to_owned(), port.to_owned()));
    }

    fn put(&mut self, now: Timestamp, mut server: Server) {
        server.updated_at = now;
        self.all.put(now, server);
    }

    /// What was begun is done, unless who is to do it is dead. Whatever was begun with the server since has taken its place.
    fn end(&mut self, now: Timestamp, due: Due, hosts: &Hosts, neutron: &mut Neutron) {
        let Some(mut server) = self.all.get(&due.server).filter(|server| server.task_state == due.task).cloned() else {
            return;
        };
        if server.host.as_deref().is_some_and(|host| !hosts.obeys(host)) {
            return;
        }
        let server = Arc::make_mut(&mut server);
        server.task_state = None;
        match due.step {
            Step::Build(_) if server.host.is_some() => server.launch(now),
            Step::Build(why) => server.fail(now, why),
            Step::Become(state) => server.vm_state = state,
            Step::Resize(flavor) => {
                // without a host, nobody is told
                if let Ok(host) = self.free_host(hosts, &flavor, None, server.host.as_deref()) {
                    let former = std::mem::replace(&mut server.flavor, *flavor);
                    let left = move_to(now, server, Some(host), neutron);
                    server.launched_at = Some(now);
                    if !self.confirms {
                        server.former = Some((former, server.vm_state));
                        server.former_host = left;
                        server.vm_state = RESIZED;
                    }
                }
            }
            Step::Confirm(state) if server.vm_state == RESIZED => server.vm_state = state,
            Step::Confirm(_) => {}
            Step::Revert => {
                if let Some((flavor, state)) = server.former.take() {
                    (server.flavor, server.vm_state, server.launched_at) = (flavor, state, Some(now));
                    let host = server.former_host.take();
                    move_to(now, server, host, neutron);
                }
            }
            Step::Delete => return self.remove(now, &due.server, neutron),
        }
        self.put(now, server.clone());
    }

    fn remove(&mut self, now: Timestamp, id: &str, neutron: &mut Neutron) {
        self.take_away(now, id);
        disconnect_all(now, id, neutron);
    }

    /// False if there is none.
    fn take_away(&mut self, now: Timestamp, id: &str) -> bool {
        let Some(mut server) = self.all.remove(now, id) else { return false };
        let gone = Arc::make_mut(&mut server);
        (gone.vm_state, gone.task_state, gone.updated_at) = (DELETED, None, now);
        gone.metadata.clear();
        self.gone.push_back(server);
        if self.gone.len() > MOST_GONE {
            self.gone.pop_front();
        }
        true
    }
}

/// Takes a server to another host, with its ports. Returns the one that it was on.
fn move_to(now: Timestamp, server: &mut Server, host: Option<String>, neutron: &mut Neutron) -> Option<String> {
    let ports: Vec<String> = neutron.ports_of_server(&server.id).map(|port| port.id.clone()).collect();
    for port in ports {
        neutron.connect(now, &port, &server.id, host.as_deref().unwrap_or_default());
    }
    std::mem::replace(&mut server.host, host)
}

/// Ports stay when their server goes.
fn disconnect_all(now: Timestamp, server: &str, neutron: &mut Neutron) {
    let ports: Vec<String> = neutron.ports_of_server(server).map(|port| port.id.clone()).collect();
    for port in ports {
        neutron.disconnect(now, &port);
    }
}

impl Nova {
    /// Lets happen what has fallen due.
    pub(in crate::sim) fn pass_time(&mut self, now: Timestamp, neutron: &mut Neutron) {
        for server in std::mem::take(&mut self.servers.vanished) {
            disconnect_all(now, &server, neutron);
        }
        while let Some(due) = self.servers.detaching.first_entry().filter(|due| due.key().0 <= now) {
            let ((at, _), (server, port)) = due.remove_entry();
            if neutron.ports_of_server(&server).any(|own| own.id == port) {
                neutron.disconnect(at, &port);
            }
        }
        while let Some(due) = self.servers.due.first_entry().filter(|due| due.key().0 <= now) {
            let ((at, _), due) = due.remove_entry();
            self.servers.end(at, due, &self.hosts, neutron);
        }
    }

    /// All servers, the oldest first.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.all.all().map(|server| &**server)
    }

    /// A server by its id.
    pub fn server(&self, id: &str) -> Option<&Server> {
        self.servers.all.get(id).map(|server| &**server)
    }

    /// Puts a server there, or another in its place, as if somebody had made it so.
    pub fn put_server(&mut self, now: Timestamp, server: Server) {
        self.servers.put(now, server);
    }

    /// Changes a server as if somebody had done so. False if there is none.
    pub fn edit_server(&mut self, now: Timestamp, id: &str, edit: impl FnOnce(&mut Server)) -> bool {
        let Some(mut server) = self.server(id).cloned() else { return false };
        edit(&mut server);
        self.put_server(now, server);
        true
    }

    /// Takes a server away as if somebody had deleted it; its ports are free at the next look at the cloud. False if
    /// there is none.
    pub fn remove_server(&mut self, now: Timestamp, id: &str) -> bool {
        let is_there = self.servers.take_away(now, id);
        if is_there {
            self.servers.vanished.push(id.to_owned());
        }
        is_there
    }

    /// Has a server go wrong, whatever is being done with it. False if there is none.
    pub fn fail_server(&mut self, now: Timestamp, id: &str, message: &str) -> bool {
        self.edit_server(now, id, |server| server.fail(now, message))
    }

    /// Sets how many servers find a host, those counted that have one: of more, each ends in an error. A resize needs as
    /// much as one more server, and without is none. Not set, there is room for all.
    pub fn set_room(&mut self, room: Option<usize>) {
        self.servers.room = room;
    }

    /// Sets whether a resize that is done is confirmed by itself, as with Nova's option `resize_confirm_window`.
    pub fn confirm_resizes(&mut self, by_itself: bool) {
        self.servers.confirms = by_itself;
    }

    /// The server that a call is about, if the caller may see it.
    fn own_server(&self, call: &Call<'_>) -> Result<Server, Refusal> {
        let server = self.server(call.param(0)).filter(|server| server.is_visible_to(&call.caller));
        server.cloned().ok_or_else(|| no_server(call))
    }
}

fn no_server(call: &Call<'_>) -> Refusal {
    Refusal::not_found(format!("Instance {} could not be found.", call.param(0)))
}

/// The services that Nova asks. They are taken from the call, so that both can be used.
fn peers<'a>(call: &mut Call<'a>) -> Result<Peers<'a>, Refusal> {
    call.peers.take().ok_or_else(|| {
        let words = "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log \
                     if possible.";
        Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR, words)
    })
}

/// A request in a state that does not allow for it.
fn wrong_state(action: &str, server: &Server, attribute: &str, state: &str) -> Refusal {
    Refusal::conflict(format!("Cannot '{action}' instance {} while it is in {attribute} {state}", server.id))
}
