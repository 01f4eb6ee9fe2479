//! Which of a server's budgets a request spends from: GitHub's `search` and `core`, Discord's buckets.
//!
//! A budget is a scope of its own beside the one that people named, without a limit but what the server says
//! of it; so all that the docs say of scopes holds of budgets, too. Rules:
//! 1. the route of a request ([`Engine::route`]) leads to its budgets, and the request waits for them as
//!    well; what an answer says of a budget is for that one alone;
//! 2. of a route whose budgets are not known one request is on its way at a time, until its answer names
//!    them; then what waits of it is moved there;
//! 3. a request whose budget is not known may spend from any (`unknown`);
//! 4. an answer whose route is not known holds all.
//!
//! A route may be learned while requests of it are underway, and `settle` must find the scopes that the
//! request left with. Therefore only waiting requests are moved.

use std::{borrow::Cow, sync::Arc};

use autothrottle_reading::route;

use super::{Engine, unknown::PATIENCE};
use crate::{
    config::ScopeConfig,
    decision::{Reason, ScopeId, Ticket},
    feedback::Hint,
    headers::Parts,
    observe::{BudgetStats, Named, Notice, Settled},
    policy::quota::Cost,
    queue::{NONE, Scopes, Stage},
    scope::{family::Family, registry::Role},
    snapshot::Known,
    time::Instant,
};

/// Stands between a scope's name and what is inside it: no host and no header field has it, and people see a
/// space.
const INSIDE: &str = "\u{a0}";
/// The first letter of a budget's name; that of a route is its method's.
const BUDGET: u8 = b'#';
/// Routes beyond these find their budgets by their own answers alone.
const MOST_OPEN: usize = 500;
/// The budgets that an answer is for, where its scope has several.
pub(crate) struct Addressed {
    /// When the request left.
    pub sent: Instant,
    /// Those that it names, in its order.
    pub budgets: Vec<Option<ScopeId>>,
    /// The route, if it is known.
    pub route: Option<ScopeId>,
}

impl Addressed {
    /// The part of an answer for the scope itself; and whether it is the refusal of one of its budgets.
    pub fn rest(&self, whole: &Hint, parts: &Parts) -> (Hint, bool) {
        let rest = Hint::of(&parts.rest);
        if self.route.is_some() {
            return (rest, parts.is_refusal_of_one);
        }
        (Hint { hold: whole.hold, asked: whole.asked, is_quota: whole.is_quota, ..rest }, false) // 4
    }
}

impl Engine {
    /// Whether the [route](Engine::route) of a request is to be named: its scope is its only one and has
    /// several budgets, and its route is not known. With `has_fields` the request is about to be settled with
    /// header fields, which may be the first to name a budget.
    pub fn wants_route(&self, ticket: Ticket, has_fields: bool) -> bool {
        self.unrouted(ticket, has_fields).is_some()
    }

    /// The same for an answer that names these budgets, before [`Engine::hear`]: whether they are several
    /// now, and the route was not named.
    pub(crate) fn lacks_route(&self, ticket: Ticket, named: &[Cow<str>], is_one_of_several: bool) -> bool {
        if self.named.as_ref().is_some_and(|&(of, _)| of == ticket) {
            return false;
        }
        let Some(scope) = self.unrouted(ticket, !named.is_empty()) else { return false };
        match &self.registry[scope].family {
            Some(family) => family.would_split(named, is_one_of_several),
            None => is_one_of_several,
        }
    }

    /// The scope of a request whose route is to be named.
    fn unrouted(&self, ticket: Ticket, has_fields: bool) -> Option<u32> {
        let entry = self.queue.get(ticket)?;
        let [scope] = *self.queue.scopes_of(entry) else { return None };
        let is_in_flight = matches!(entry.stage, Stage::InFlight { .. } | Stage::Express { .. });
        let may_be_first = has_fields && is_in_flight && self.is_plain(scope);
        (may_be_first || self.is_split(scope)).then_some(scope)
    }

    /// Names the route of a request that waits or is in flight: its method and URL. Where the engine does not
    /// [want it](Engine::wants_route) no state changes. With an answer that may be the first to name a budget
    /// it is named right before that is settled.
    pub fn route(&mut self, now: Instant, ticket: Ticket, method: &str, url: &str) {
        self.route_by(now, ticket, &route::of(method, url));
    }

    /// The same for a route that was read elsewhere.
    pub(crate) fn route_by(&mut self, now: Instant, ticket: Ticket, text: &str) {
        self.advance(now);
        self.named = None;
        let Some(scope) = self.unrouted(ticket, true) else { return };
        if self.is_split(scope) {
            self.enrol_express(ticket);
            self.follow_route(ticket, scope, text);
        } else {
            self.named = Some((ticket, text.into()));
        }
    }

    /// Whether a scope is known to have several budgets.
    pub(super) fn is_split(&self, scope: u32) -> bool {
        self.registry[scope].family.as_ref().is_some_and(|family| family.is_split)
    }

    /// A request of this scope, which has several budgets, goes by its route from here on.
    fn follow_route(&mut self, ticket: Ticket, scope: u32, text: &str) {
        let name = [&self.registry[scope].name, INSIDE, text].concat();
        let id = self.intern(&name).0.index;
        if !self.leads(id).is_some_and(|leads| leads.iter().all(|&lead| self.registry.knows(lead))) {
            self.lead_by_family(scope, id, text);
        }
        self.transfer(ticket.0.index, &self.scopes_by(scope, id));
    }

    /// The answer to a request that is in flight names budgets, with what it says of each. Gives whom it is
    /// for where the scope has several budgets; else what it says is for the scope. `is_good`: one that names
    /// none says so.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        ticket: Ticket,
        named: &[Cow<str>],
        is_one_of_several: bool,
        is_good: bool,
    ) -> Option<Addressed> {
        let route = self.named.take().filter(|(of, _)| *of == ticket);
        if named.is_empty() && !self.has_budgets {
            return None;
        }
        if !is_one_of_several && self.is_known_one(ticket, named) {
            return None; // as most answers of its server do
        }
        self.enrol_express(ticket);
        let (sent, mut scopes) = self.flying(ticket)?;
        self.advance(now);
        if named.is_empty() && scopes.len() == 1 {
            return None;
        }
        let mut plain = scopes.iter().filter(|&&scope| self.is_plain(scope));
        let (&scope, None) = (plain.next()?, plain.next()) else { return None };
        if !self.is_split(scope) {
            if named.is_empty() {
                return None;
            }
            let family = self.registry[scope].family.get_or_insert_default();
            if !family.splits(named, is_one_of_several) {
                return None;
            }
            self.split(scope);
            if let Some((_, text)) = route {
                self.follow_route(ticket, scope, &text);
                scopes = self.flying(ticket)?.1;
            }
        }
        let mut addressed = Addressed { sent, budgets: Vec::new(), route: None };
        let Some(route) = self.route_of(&scopes) else {
            for name in named {
                addressed.budgets.push(self.budget(scope, name, None));
            }
            return Some(addressed); // 4
        };
        addressed.route = Some(self.registry.id(route));
        if named.is_empty() && (self.leads(route).is_some() || !is_good) {
            return Some(addressed);
        }
        let is_new = self.leads(route).is_none();
        self.lead(scope, route, named);
        for &lead in self.leads(route).unwrap_or_default().iter().take(named.len()) {
            addressed.budgets.push(Some(lead));
        }
        if addressed.budgets.len() < named.len() {
            addressed.budgets.clear();
            addressed.route = None; // there are too many: for all
        }
        let name = self.registry[route].name.clone();
        let text = split(&name).map_or("", |(_, text)| text);
        let now = self.now;
        let open = self.registry[scope].family.as_deref_mut().and_then(|family| {
            if is_new && !is_good {
                family.vain = now + PATIENCE;
            }
            let is_news = family.learn(&route::pattern(text), &route::family(text), named);
            is_news.then(|| core::mem::take(&mut family.open))
        });
        for id in open.into_iter().flatten() {
            self.resolve(scope, id);
        }
        Some(addressed)
    }

    /// Whether the only scope of a request has one budget, and these names say so once more.
    fn is_known_one(&self, ticket: Ticket, named: &[Cow<str>]) -> bool {
        let Some(entry) = self.queue.get(ticket) else { return false };
        let [scope] = *self.queue.scopes_of(entry) else { return false };
        self.is_plain(scope) && self.registry[scope].family.as_ref().is_some_and(|of| of.is_one_of(named))
    }

    /// When a request left that is in flight, and its scopes.
    fn flying(&self, ticket: Ticket) -> Option<(Instant, Scopes)> {
        let entry = self.queue.get(ticket)?;
        let Stage::InFlight { sent } = entry.stage else { return None };
        Some((sent, self.queue.lane_at(self.queue.class(entry.class).lane).scopes.clone()))
    }

    /// Reads an answer about budgets. A refusal holds its route, too: another answer of the same flight may
    /// name another budget.
    pub(crate) fn report_budgets(
        &mut self,
        now: Instant,
        addressed: &Addressed,
        parts: &Parts,
        is_bad: bool,
    ) {
        self.advance(now);
        let mut longest = None;
        for (budget, (_, hints)) in addressed.budgets.iter().zip(&parts.budgets) {
            let hint = Hint::of(hints);
            if let Some(index) = budget.and_then(|budget| self.known(budget)) {
                self.report_budget(index, addressed.sent, &hint, is_bad);
                let held = self.registry[index].scope.hold_until(self.now);
                longest = longest.max(held.filter(|_| hint.hold.is_some()));
            }
        }
        if let Some(route) = addressed.route.and_then(|route| self.known(route))
            && let Some(longest) = longest.filter(|_| is_bad)
        {
            self.registry[route].scope.hold(longest);
            self.refresh(route);
        }
    }

    fn report_budget(&mut self, index: u32, sent: Instant, hint: &Hint, is_bad: bool) {
        let (now, watch) = (self.now, self.watch);
        let entry = &mut self.registry[index];
        let before = entry.take_seen(now, watch);
        let wait = entry.scope.on_hint(now, sent, hint, is_bad, &mut self.rng);
        let settled = Settled { wait, ..Settled::default() };
        if let Some(before) = before {
            self.notify(index, before, &settled);
        }
        self.notify_always(index, &settled, false);
        self.refresh(index);
        let Role::Budget(of, _) = self.registry[index].role else { return };
        let Some(scope) = self.known(of) else { return };
        if self.registry[scope].family.as_ref().is_some_and(|family| family.explorers > 0) {
            self.refresh_inside(scope);
        }
        if !self.registry[scope].waiters.is_quiet() {
            self.refresh(scope);
        }
    }

    /// Whether people named the scope.
    pub(super) fn is_plain(&self, scope: u32) -> bool {
        matches!(self.registry[scope].role, Role::Plain)
    }

    /// The meaning of a name that is not one of people's, and the settings there.
    pub(super) fn inner(&mut self, name: &str) -> Option<(Role, Arc<ScopeConfig>)> {
        let (scope, inner) = split(name)?;
        let of = self.intern(scope);
        let is_budget = inner.as_bytes().first() == Some(&BUDGET);
        let config = &self.registry[of.0.index].scope.config;
        let config = Arc::new(config.budget());
        Some((if is_budget { Role::Budget(of, [NONE; 2]) } else { Role::Route(of, None) }, config))
    }

    /// A scope was made: a budget is one of its server's from here on, and a route is to be learned.
    pub(super) fn enrol(&mut self, id: ScopeId) {
        let index = id.0.index;
        let (of, is_budget) = match self.registry[index].role {
            Role::Plain => return,
            Role::Route(of, _) => (of, false),
            Role::Budget(of, _) => (of, true),
        };
        let Some(scope) = self.known(of) else { return };
        let family = self.registry[scope].family.get_or_insert_default();
        let was_split = family.is_split;
        if is_budget {
            family.is_split = true;
            self.registry.enlist(index, of);
        } else {
            // Those that are known by now make room.
            if family.open.len() >= MOST_OPEN {
                let mut open = core::mem::take(&mut family.open);
                open.retain(|&id| self.known(id).is_some_and(|route| self.leads(route).is_none()));
                self.family(scope).open = open;
            }
            let family = self.family(scope);
            if family.open.len() < MOST_OPEN {
                family.open.push(id);
            }
        }
        if is_budget && !was_split {
            self.split(scope);
        }
    }

    fn family(&mut self, scope: u32) -> &mut Family {
        self.registry[scope].family.get_or_insert_default()
    }

    /// A scope goes on with routes that were learned.
    pub(super) fn restore_routes(&mut self, scope: u32, routes: &[Known]) {
        if routes.is_empty() {
            return;
        }
        let family = self.registry[scope].family.get_or_insert_default();
        let was_split = family.is_split;
        family.restore(routes);
        if !was_split {
            self.split(scope);
        }
    }

    /// The budgets of a scope by their names, for people; `None` where its server has one, as most have.
    pub(super) fn budget_stats(&self, now: Instant, scope: u32) -> Option<Vec<(String, BudgetStats)>> {
        let mut stats = Vec::new();
        for index in self.registry.budgets(scope) {
            let entry = &self.registry[index];
            let name = split(&entry.name).and_then(|(_, name)| name.get(1..)).unwrap_or_default();
            let budget = BudgetStats {
                in_flight: entry.scope.slots.in_flight(),
                waiting: entry.waiters.waiting,
                quota_left: entry.scope.quota_left(now).map(Cost::units),
                recovers_at: entry.scope.recovers(now).map(|at| (at - self.epoch_offset).millis()),
            };
            let place = stats.partition_point(|(before, _): &(String, _)| **before < *name);
            stats.insert(place, (name.into(), budget));
        }
        Some(stats).filter(|stats| !stats.is_empty())
    }

    /// Why the first request waits that waits for a budget of this scope.
    pub(super) fn reason_inside(&self, scope: u32) -> Option<Reason> {
        let family = self.registry[scope].family.as_ref()?;
        let open = family.open.iter().filter_map(|&id| self.known(id));
        let mut inner = self.registry.budgets(scope).chain(open);
        inner.find_map(|index| self.heads(index).bound())
    }

    /// A scope turned out to have several budgets: what was said of one is not for all, and who is on its way
    /// may spend from any.
    fn split(&mut self, scope: u32) {
        self.has_budgets = true;
        let entry = &mut self.registry[scope];
        entry.scope.forget_told();
        if let Some(family) = &mut entry.family {
            family.unknown = entry.scope.slots.in_flight();
        }
        self.notices.push(Notice::Budgets(Named { scope: String::from(&*entry.name) }));
        self.refresh(scope);
    }

    /// The budget of this name. One that ends in `/` is of the route's top-level resource.
    fn budget(&mut self, scope: u32, name: &str, route: Option<u32>) -> Option<ScopeId> {
        let mut full = [&self.registry[scope].name, INSIDE, "#", name].concat();
        if let [.., b'/'] = name.as_bytes() {
            // Without a route its resource is not known.
            match route::major(&self.registry[route?].name) {
                Some(major) => full.push_str(&major),
                None => full.truncate(full.len() - 1),
            }
        }
        let known = self.registry.find(&full);
        if known.is_none() && !self.registry.make_room_inside(scope, &self.config, self.now) {
            return None;
        }
        let id = self.intern(&full);
        self.registry.touch(id.0.index, self.registry.id(scope));
        Some(id)
    }

    /// A route leads to these budgets from here on, and so does what waits of it; one that names none leads
    /// to the one without a name.
    fn lead(&mut self, scope: u32, route: u32, names: &[Cow<str>]) {
        let mut leads = Vec::new();
        for name in names {
            leads.extend(self.budget(scope, name, Some(route)));
        }
        if names.is_empty() {
            leads.extend(self.budget(scope, "", Some(route)));
        }
        let before = self.scopes_by(scope, route);
        let entry = &mut self.registry[route];
        if let Role::Route(of, known) = &entry.role {
            let (of, is_new) = (*of, known.is_none());
            entry.role = Role::Route(of, Some(leads.into()));
            if is_new {
                if entry.waiters.waiting > 0 {
                    self.count_explorers_of(of, -1);
                }
                self.progress(of);
            }
        }
        let after = self.scopes_by(scope, route);
        if before != after {
            self.move_waiting(&before, &after);
        }
    }

    /// A route's budgets by what was learned of others. Whether that is known.
    fn lead_by_family(&mut self, scope: u32, route: u32, text: &str) -> bool {
        let family = self.registry[scope].family.as_deref();
        let names = family.and_then(|family| family.of(&route::pattern(text), &route::family(text)));
        let Some(names) = names else { return false };
        let names: Vec<Cow<str>> = names.iter().map(|name| Cow::Owned(name.clone())).collect();
        self.lead(scope, route, &names);
        true
    }

    /// A route whose budgets are not known: what was learned of another may tell them.
    fn resolve(&mut self, scope: u32, id: ScopeId) {
        let Some(route) = self.known(id).filter(|&route| self.leads(route).is_none()) else { return };
        let name = self.registry[route].name.clone();
        let text = split(&name).map_or("", |(_, text)| text);
        if !self.lead_by_family(scope, route, text)
            && let Some(family) = self.registry[scope].family.as_deref_mut()
        {
            family.open.push(id);
        }
    }

    /// The budgets of a route, once they are known.
    fn leads(&self, route: u32) -> Option<&[ScopeId]> {
        match &self.registry[route].role {
            Role::Route(_, leads) => leads.as_deref(),
            _ => None,
        }
    }

    /// The scopes of a request by this route.
    fn scopes_by(&self, scope: u32, route: u32) -> Vec<u32> {
        let mut scopes = vec![scope];
        include(&mut scopes, route);
        for &lead in self.leads(route).unwrap_or_default() {
            if let Some(budget) = self.known(lead) {
                include(&mut scopes, budget);
            }
        }
        scopes
    }

    fn route_of(&self, scopes: &[u32]) -> Option<u32> {
        scopes.iter().copied().find(|&scope| matches!(self.registry[scope].role, Role::Route(..)))
    }

    /// A request is about to wait again: its route may have been learned meanwhile.
    pub(super) fn follow(&mut self, index: u32) {
        let class = self.queue.entry(index).class;
        let lane = self.queue.class(class).lane;
        let scopes = &self.queue.lane_at(lane).scopes;
        if scopes.len() < 2 {
            return;
        }
        let plain = scopes.iter().copied().find(|&scope| self.is_plain(scope));
        let (Some(route), Some(scope)) = (self.route_of(scopes), plain) else { return };
        self.transfer(index, &self.scopes_by(scope, route));
    }

    /// Moves what waits with these scopes.
    fn move_waiting(&mut self, from: &[u32], to: &[u32]) {
        for is_free in [false, true] {
            let Some(lane) = self.queue.find_lane(from, is_free) else { continue };
            for index in self.queue.waiting_in(lane) {
                self.transfer(index, to);
            }
        }
    }

    /// Gives a request that has been let in other scopes. It keeps its age.
    fn transfer(&mut self, index: u32, scopes: &[u32]) {
        let (class, stage) = (self.queue.entry(index).class, self.queue.entry(index).stage);
        let old_lane = self.queue.class(class).lane;
        let old = self.queue.lane_at(old_lane).scopes.clone();
        if *old == *scopes {
            return;
        }
        let costs = self.queue.class(class).need.costs.clone();
        let cost = costs.of(0);
        let waits = matches!(stage, Stage::Waiting { .. } | Stage::Early { .. });
        let mut from = NONE;
        if waits {
            from = self.lift(old_lane);
            self.queue.remove(index);
            if self.queue.lane_at(old_lane).head != NONE {
                self.put_back(old_lane, NONE);
            }
        }
        for &scope in scopes.iter().filter(|scope| !old.contains(scope)) {
            match stage {
                Stage::InFlight { sent } => {
                    self.registry.mark_used(scope);
                    self.registry[scope].scope.adopt(self.now, sent, cost, true, &mut self.rng);
                }
                _ => self.begin_waiting(scope),
            }
        }
        if matches!(stage, Stage::InFlight { .. }) {
            self.count_unknown(&old, false);
            self.count_unknown(scopes, true);
        }
        let lane =
            self.queue.lane(&Scopes::Many(scopes.into()), &costs, &mut self.registry[scopes[0]].waiters);
        if let Some(gone) = self.queue.change_lane(index, lane) {
            self.part(&gone);
        }
        for &scope in old.iter().filter(|scope| !scopes.contains(scope)) {
            if !matches!(stage, Stage::InFlight { .. }) {
                self.stop_waiting(scope);
            }
            self.registry.mark_idle(scope);
        }
        if waits {
            self.join(index);
        }
        if from != NONE {
            self.refresh(from);
        }
    }
}

/// Puts one into a list in order. By insertion: there are few, and a general sort is kilobytes of code.
#[inline(never)]
fn include(scopes: &mut Vec<u32>, scope: u32) {
    let place = scopes.iter().position(|&other| other >= scope).unwrap_or(scopes.len());
    if scopes.get(place) != Some(&scope) {
        scopes.insert(place, scope);
    }
}

/// A scope's name, and that of what is inside it.
fn split(name: &str) -> Option<(&str, &str)> {
    let at = name.as_bytes().windows(INSIDE.len()).position(|bytes| *bytes == *INSIDE.as_bytes())?;
    Some((name.get(..at)?, name.get(at + INSIDE.len()..)?))
}
