//! Which of a server's budgets a request spends from, in a group.
//!
//! The engine of the leader learns it by the routes of requests, as an engine alone does: see
//! `src/engine/budgets.rs`. A member names a route where the leader needs it: where the scope is known to
//! have several budgets, and with an answer that names one. That answer's header fields travel as they are,
//! for only the leader knows which part is for which budget; what else an answer says travels as numbers.

use std::sync::Arc;

use autothrottle::{Instant, Value, boundary::Outcome};

use crate::{
    api::{MemberId, Ticket},
    codec::{Number, Plain},
    frame::{Act, Digest, Request, Said},
    leader::Leader,
    member::Member,
    split::{Split, split_by},
};

impl Digest {
    /// With these numbers, whose records name the leader's scopes.
    pub fn outcome<'a>(&'a self, numbers: &'a [f64]) -> Outcome<'a> {
        let outcome = Outcome::decode(numbers);
        match &self.fields {
            Some((lines, wall)) => Outcome { lines, wall_ms: wall.0, ..outcome },
            None => outcome,
        }
    }
}

impl Member {
    /// Whether the route of a request is to be named: see [`crate::Shared::wants_route`].
    pub fn wants_route(&self, id: Ticket, has_fields: bool, split: &Split) -> bool {
        self.requests.get(&id).is_some_and(|pending| match &pending.what.names[..] {
            [name] if pending.what.route.is_none() => {
                let may_be_first = has_fields && pending.route.is_none() && self.is_flying(id);
                may_be_first || split.has(name)
            }
            _ => false,
        })
    }

    /// The route of one that waits or is in flight. `split`: scopes of which each request's is to be known.
    pub fn route(&mut self, now: Instant, id: Ticket, route: String, split: &Split) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        let [name] = &pending.what.names[..] else { return };
        let is_split = split.has(name);
        if pending.what.route.is_none() {
            pending.route = Some(route);
        }
        if is_split {
            self.say_route(now, id);
        }
    }

    /// It is said with what else is new.
    pub(crate) fn say_route(&mut self, now: Instant, id: Ticket) {
        let Some(pending) = self.requests.get_mut(&id) else { return };
        if let Some(route) = pending.route.take() {
            Arc::make_mut(&mut pending.what).route = Some(route.clone());
            self.act(now, Act::Route(id, route));
        }
    }

    /// Whether the scope of one whose route was named has several budgets; `None` where it was not.
    pub fn routed(&self, id: Ticket, split: &Split) -> Option<bool> {
        let pending = self.requests.get(&id)?;
        let is_named = pending.route.is_some() || pending.what.route.is_some();
        is_named.then(|| pending.what.names.first().is_some_and(|name| split.has(name)))
    }
}

impl Leader {
    /// The engine hears by which route a request goes, if that is known.
    pub(crate) fn route(&mut self, now: Instant, ticket: u64, what: &Request) {
        if let Some(route) = &what.route {
            let engine_now = self.now(now);
            self.engine.route_by(engine_now, ticket as f64, route);
        }
    }

    /// A member names the route of a request.
    pub(crate) fn names_route(&mut self, now: Instant, from: MemberId, id: u64, route: String) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(held) = peer.requests.get_mut(&id) else { return };
        Arc::make_mut(&mut held.what).route = Some(route);
        let (ticket, what) = (held.ticket, held.what.clone());
        self.route(now, ticket, &what);
    }

    /// Members that are new hear which servers name several budgets.
    pub(crate) fn report_split(&mut self, now: Instant) {
        let notice = |scope: &String| {
            Value::object(vec![("kind", "budgets".into()), ("scope", scope.as_str().into())])
        };
        let notices: Vec<_> = self.split.scopes().map(notice).collect();
        if notices.is_empty() {
            return;
        }
        let notices = Plain(Value::List(notices));
        let now = Number(self.now(now));
        self.tells.push(Said::Tell { now, notices, of: None, latency: Number(f64::NAN) });
    }

    /// The budgets in notices are for members that come later, too.
    pub(crate) fn note_split(&mut self, notices: &Value) {
        for scope in split_by(notices) {
            self.split.add(scope);
        }
    }
}
