//! Names ↔ handles, each name kept once.
//!
//! A crawl sees a million hosts once. Scopes without a waiting request or one in flight stand in a list,
//! least recently used first. A new name lets the first of them go if they look like new, and beyond
//! `maxScopes` also if they learned something. A scope stays if it holds, is paused, has used quota, or if a
//! program keeps its handle. A scope that was configured at run time stays, too, unless its host makes it
//! anew.
//!
//! A server may name budgets without end. Those of one stand in a list of their own, least recently named
//! first; beyond [`MOST_BUDGETS`] the first of them goes that is not used up.

use std::sync::Arc;

use super::{
    Scope,
    family::{Ends, Family, MOST_BUDGETS},
};
use crate::{
    config::{Config, ScopeConfig},
    decision::{Reason, ScopeId},
    observe::{Activity, Meter, Seen, Silence, Watch},
    queue::{LazyWaitQueue, NONE},
    slab::Slab,
    sorted::SortedIndex,
    time::Instant,
};

/// The role of a scope.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// One that people named.
    Plain,
    /// The requests of this scope to one route, and the budgets that they spend from, once those are known.
    Route(ScopeId, Option<Box<[ScopeId]>>),
    /// A budget of this scope's server, and its neighbours among those.
    Budget(ScopeId, [u32; 2]),
}

/// A scope with its name and the requests that wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// (Its `to_string` brings the formatter along, and `String::from` does not.)
    pub name: Arc<str>,
    pub scope: Scope,
    pub waiters: LazyWaitQueue,
    /// Made with the first request; gone after a long time without a request.
    pub meter: Option<Box<Meter>>,
    /// The state that watchers saw last.
    pub seen: Option<Box<Seen>>,
    /// How many callers keep the handle.
    pins: u32,
    /// The turn in which the name was last asked for: a request that is being put together keeps its scopes.
    turn: u32,
    /// Neighbours in one of the lists of idle scopes; `None` when the scope is in neither.
    idle: Option<[u32; 2]>,
    /// When the last express request left, as an age.
    pub served: u64,
    is_asleep: bool,
    /// Whether a notice said that a wait was cut.
    pub is_cut_reported: bool,
    pub silence: Silence,
    pub role: Role,
    /// The record of its server's budgets, if there are several.
    pub family: Option<Box<Family>>,
}

/// All scopes that the engine knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    entries: Slab<Entry>,
    by_name: SortedIndex,
    /// The scope that was last met by its name.
    last_met: Option<ScopeId>,
    turn: u32,
    /// Idle for minutes; and the others, used later than any of those.
    asleep: Ends,
    awake: Ends,
}

impl Entry {
    /// The scope's meter, which is made with the first request.
    #[inline]
    pub fn meter(&mut self, now: Instant) -> &mut Meter {
        self.meter.get_or_insert_with(|| Box::new(Meter::new(now)))
    }

    /// Lets the meter see what is going on now; `bound` is the limit of the scope that keeps the head of its
    /// queue. True when it is time to look for settings without effect.
    #[inline]
    pub fn note(&mut self, now: Instant, bound: Option<Reason>) -> bool {
        let in_flight = self.scope.slots.in_flight();
        let activity = Activity { in_flight, is_waiting: self.waiters.waiting > 0, bound };
        self.meter(now).note(now, activity)
    }

    /// Whether it is a scope by itself: no budget of a server, and no server with several.
    #[inline(always)]
    pub fn is_undivided(&self) -> bool {
        matches!(self.role, Role::Plain) && self.family.as_ref().is_none_or(|family| !family.is_split)
    }

    /// Whether the program keeps its handle, or configured it at run time.
    fn is_kept(&self, config: &Config) -> bool {
        let is_theirs = matches!(self.role, Role::Plain) && !self.scope.config.is_passing;
        self.pins > 0 || is_theirs && !Arc::ptr_eq(&self.scope.config, config.scope(&self.name))
    }

    /// Whether the scope is as good as one that is made of its name alone.
    fn is_new(&self, now: Instant) -> bool {
        let is_heard = self.silence.is_over() && self.family.is_none();
        is_heard && !self.scope.config.is_passing && self.scope.is_new(now)
    }

    /// The last reported state of the scope, if it is watched.
    pub fn take_seen(&mut self, now: Instant, watch: Watch) -> Option<Seen> {
        if watch == Watch::Nothing && !self.scope.config.is_managed {
            return None;
        }
        Some(self.seen.take().map_or_else(|| self.scope.seen(now), |seen| *seen))
    }
}

/// How many idle scopes a new name looks at: two leave for one that comes, so a backlog shrinks.
const LOOKS: usize = 2;
/// The same of budgets. Those that hold are many where a server has many, and without room for its budget an
/// answer is for all of the server.
const LOOKS_AT_BUDGETS: usize = 8;

impl Registry {
    /// The handle of `name`, which is new.
    pub fn make(
        &mut self,
        name: &str,
        (role, of): (Role, Arc<ScopeConfig>),
        config: &Config,
        now: Instant,
    ) -> ScopeId {
        self.make_room(config, now);
        let scope = Scope::new(of);
        let waiters = LazyWaitQueue::default();
        let (turn, meter, seen) = (self.turn, None, None);
        let entry = Entry {
            name: name.into(),
            scope,
            waiters,
            meter,
            is_cut_reported: false,
            silence: Silence::default(),
            seen,
            pins: 0,
            turn,
            idle: None,
            served: 0,
            is_asleep: false,
            role,
            family: None,
        };
        let id = self.entries.insert(entry);
        self.by_name.insert(id.index, &|other| (*self.entries[other].name).cmp(name));
        self.mark_idle(id.index);
        ScopeId(id)
    }

    /// A request was put together: scopes that were asked for before may go again.
    pub fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// A scope was asked for by its name, and most often is again: it is kept until the next turn.
    pub fn meet(&mut self, id: ScopeId) {
        self.last_met = Some(id);
        self.keep_alive(id.0.index);
    }

    /// Keeps a scope until the next turn.
    pub fn keep_alive(&mut self, index: u32) {
        self[index].turn = self.turn;
    }

    /// Keeps a scope for as long as the program keeps its handle.
    pub fn pin(&mut self, index: u32) {
        self[index].pins = self[index].pins.saturating_add(1);
    }

    /// One keeper less. A scope that is as good as new goes at once.
    pub fn unpin(&mut self, index: u32, config: &Config, now: Instant) {
        self[index].pins = self[index].pins.saturating_sub(1);
        let entry = &self[index];
        if entry.idle.is_some() && entry.meter.is_none() && entry.is_new(now) && !entry.is_kept(config) {
            self.mark_used(index);
            self.forget(index);
        }
    }

    /// Puts a scope at the end of the idle list if it has no request that waits or is in flight.
    #[inline]
    pub fn mark_idle(&mut self, index: u32) {
        let entry = &self.entries[index];
        if entry.idle.is_some() || entry.waiters.waiting > 0 || entry.scope.slots.in_flight() > 0 {
            return;
        }
        self.push_idle(index, false);
    }

    /// A request of a scope leaves in one piece, and most often ends before another's leaves. The scope that
    /// was used last stays in the list of idle ones meanwhile; [`Registry::least`] takes it out.
    #[inline(always)]
    pub fn mark_used_in_passing(&mut self, index: u32) {
        if self.awake.latest != index {
            self.mark_used(index);
        }
    }

    /// The last request of a scope has ended in one piece.
    #[inline(always)]
    pub fn mark_idle_in_passing(&mut self, index: u32) {
        if self.awake.latest != index {
            self.mark_used(index);
            self.mark_idle(index);
        }
    }

    /// Takes a scope out of the list of idle ones: it is used.
    #[inline]
    pub fn mark_used(&mut self, index: u32) {
        let entry = &mut self.entries[index];
        let is_asleep = entry.is_asleep;
        let Some([before, after]) = entry.idle.take() else { return };
        match before {
            NONE => self.list(is_asleep).least = after,
            before => self.link(before, 1, after),
        }
        match after {
            NONE => self.list(is_asleep).latest = before,
            after => self.link(after, 0, before),
        }
    }

    /// The least recently used scope of a list. One with a request in flight is not idle.
    fn least(&mut self, is_asleep: bool) -> u32 {
        loop {
            let index = self.list(is_asleep).least;
            if index == NONE || self[index].scope.slots.in_flight() == 0 {
                return index;
            }
            self.mark_used(index);
        }
    }

    /// Puts a scope that is in neither list at the end of one.
    fn push_idle(&mut self, index: u32, is_asleep: bool) {
        let before = core::mem::replace(&mut self.list(is_asleep).latest, index);
        let entry = &mut self.entries[index];
        (entry.idle, entry.is_asleep) = (Some([before, NONE]), is_asleep);
        match before {
            NONE => self.list(is_asleep).least = index,
            before => self.link(before, 1, index),
        }
    }

    fn list(&mut self, is_asleep: bool) -> &mut Ends {
        if is_asleep { &mut self.asleep } else { &mut self.awake }
    }

    /// How many scopes are known.
    pub fn len(&self) -> usize {
        self.entries.len() as usize
    }

    fn link(&mut self, index: u32, end: usize, neighbour: u32) {
        if let Some(idle) = &mut self[index].idle {
            idle[end] = neighbour;
        }
    }

    /// Forgets scopes that look like new and puts others to sleep that have been idle for minutes; beyond the
    /// bound forgets the least recently used ones.
    fn make_room(&mut self, config: &Config, now: Instant) {
        for _ in 0..LOOKS {
            let index = self.least(false);
            if index == NONE {
                break;
            }
            let entry = &self[index];
            let may_go = entry.is_new(now) && !self.is_kept(index, config);
            let may_sleep = entry.meter.as_ref().is_none_or(|meter| meter.is_stale(now));
            if !may_go && !may_sleep {
                break;
            }
            self.mark_used(index);
            if may_go {
                self.forget(index);
                continue;
            }
            let entry = &mut self[index];
            entry.meter = None;
            entry.waiters.sleep();
            entry.scope.sleep(now);
            let is_asleep = entry.scope.is_free(now);
            self.push_idle(index, is_asleep);
        }
        // Those that were idle for longest go first; each list is looked at as often as the other.
        for is_asleep in [true, false].into_iter().cycle().take(2 * LOOKS) {
            let index = self.least(is_asleep);
            if self.entries.len() < config.max_scopes {
                return;
            }
            if index == NONE {
                continue;
            }
            self.mark_used(index);
            if self.is_free(index, now) && !self.is_kept(index, config) {
                self.forget(index);
            } else {
                self.push_idle(index, is_asleep);
            }
        }
    }

    /// Whether it owes no wait, and no budget of its server does.
    fn is_free(&self, index: u32, now: Instant) -> bool {
        let entry = &self[index];
        entry.scope.is_free(now) && self.budgets(index).all(|budget| self.entries[budget].scope.is_free(now))
    }

    /// The budgets of a scope, least recently named first.
    pub fn budgets(&self, scope: u32) -> impl Iterator<Item = u32> {
        let first = self[scope].family.as_ref().map(|family| family.budgets.least);
        core::iter::successors(first.and_then(known), |&index| self.budget_after(index))
    }

    /// The same, most recently named first.
    pub fn latest_budgets(&self, scope: u32) -> impl Iterator<Item = u32> {
        let first = self[scope].family.as_ref().map(|family| family.budgets.latest);
        core::iter::successors(first.and_then(known), |&index| known(self.near(index)[0]))
    }

    /// The budget of the same scope that was named next after this one.
    pub fn budget_after(&self, index: u32) -> Option<u32> {
        known(self.near(index)[1])
    }

    /// Puts a budget that is in no list at the end of that of its scope.
    pub fn enlist(&mut self, index: u32, of: ScopeId) {
        let Some(family) = self.family_of(of) else { return };
        family.many += 1;
        let before = core::mem::replace(&mut family.budgets.latest, index);
        if before == NONE {
            family.budgets.least = index;
        } else {
            self.link_budget(before, 1, index);
        }
        self[index].role = Role::Budget(of, [before, NONE]);
    }

    /// Takes a budget out of the list of its scope, if the engine still knows that.
    fn delist(&mut self, index: u32) {
        let Role::Budget(of, [before, after]) = self[index].role else { return };
        let Some(family) = self.family_of(of) else { return };
        family.many -= 1;
        if before == NONE {
            family.budgets.least = after;
        }
        if after == NONE {
            family.budgets.latest = before;
        }
        self.link_budget(before, 1, after);
        self.link_budget(after, 0, before);
    }

    /// A budget of this scope was named: it is the most recently used one.
    pub fn touch(&mut self, index: u32, of: ScopeId) {
        self.delist(index);
        self.enlist(index, of);
    }

    /// Whether there is room for one more budget of a scope. The least recently named ones go for it, but for
    /// those that are used up.
    pub fn make_room_inside(&mut self, scope: u32, config: &Config, now: Instant) -> bool {
        for _ in 0..LOOKS_AT_BUDGETS {
            let Some(family) = &self[scope].family else { break };
            let index = family.budgets.least;
            if family.many < MOST_BUDGETS {
                break;
            }
            let entry = &self[index];
            if entry.idle.is_some() && entry.scope.is_passable(now) && !self.is_kept(index, config) {
                self.mark_used(index);
                self.forget(index);
            } else {
                self.touch(index, self.id(scope));
            }
        }
        self[scope].family.as_ref().is_none_or(|family| family.many < MOST_BUDGETS)
    }

    fn family_of(&mut self, of: ScopeId) -> Option<&mut Family> {
        self.knows(of).then(|| self[of.0.index].family.as_deref_mut())?
    }

    fn near(&self, index: u32) -> [u32; 2] {
        match self[index].role {
            Role::Budget(_, near) => near,
            _ => [NONE; 2],
        }
    }

    fn link_budget(&mut self, index: u32, end: usize, neighbour: u32) {
        if index != NONE
            && let Role::Budget(_, near) = &mut self[index].role
        {
            near[end] = neighbour;
        }
    }

    /// Whether the program needs this very scope, or configured it at run time.
    fn is_kept(&self, index: u32, config: &Config) -> bool {
        let entry = &self[index];
        entry.turn == self.turn || entry.is_kept(config)
    }

    fn forget(&mut self, index: u32) {
        // The budgets inside go with it.
        for budget in self.budgets(index).collect::<Vec<_>>() {
            let entry = &self[budget];
            if entry.idle.is_some() && entry.pins == 0 && entry.turn != self.turn {
                self.mark_used(budget);
                self.forget(budget);
            }
        }
        self.delist(index);
        let name = &*self.entries[index].name;
        self.by_name.remove(&|other| (*self.entries[other].name).cmp(name));
        self.entries.remove(index);
    }

    /// The handle of `name` if the engine knows it.
    pub fn find(&self, name: &str) -> Option<ScopeId> {
        if let Some(id) = self.last_met
            && self.get(id).is_some_and(|entry| *entry.name == *name)
        {
            return Some(id);
        }
        self.by_name.get(&|other| (*self.entries[other].name).cmp(name)).map(|index| self.id(index))
    }

    /// The scope, if the handle still means what it meant.
    #[inline(always)]
    pub fn get(&self, id: ScopeId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// Whether the handle still means what it meant.
    #[inline]
    pub fn knows(&self, id: ScopeId) -> bool {
        self.entries.get(id.0).is_some()
    }

    /// All scopes, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, ScopeId)> {
        self.by_name.iter().map(|&index| (&self.entries[index].name, self.id(index)))
    }

    /// The scope at an index, with its full handle.
    #[inline(always)]
    pub fn entry(&mut self, index: u32) -> (ScopeId, &mut Entry) {
        let (id, entry) = self.entries.item_mut(index);
        (ScopeId(id), entry)
    }

    /// The same of a handle that still means what it meant.
    #[inline(always)]
    pub fn get_mut(&mut self, id: ScopeId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0)
    }

    /// The full handle of an index.
    pub fn id(&self, index: u32) -> ScopeId {
        ScopeId(self.entries.id(index))
    }
}

/// An index that may be none.
fn known(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}

impl core::ops::Index<u32> for Registry {
    type Output = Entry;
    #[inline]
    fn index(&self, index: u32) -> &Entry {
        &self.entries[index]
    }
}

impl core::ops::IndexMut<u32> for Registry {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index]
    }
}
