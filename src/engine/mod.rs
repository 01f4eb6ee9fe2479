//! The only place where state changes: `submit`, `poll`, `settle`, `cancel`, and what changes a scope.
//!
//! Nothing here scans what waits. A lane is in one place (`queue.rs`): *ready*, or in line at the scope that
//! blocked it. A scope with a line has at most one entry in the heap of times, for when the first in its line
//! could go; when it opens, that one becomes its *champion* and is asked. If the champion is sent or blocked
//! elsewhere, the scope is looked at again ([`Engine::refresh`]). So a decision costs a few heap operations,
//! whatever waits.
//!
//! The limit of the whole throttle is no scope but a gate in front of everything: while it is shut nothing is
//! asked and nothing moves.

use crate::{
    config::{Config, ScopeConfig, value::Value},
    decision::{Cause, Decision, Reason, ScopeId, Ticket, Verdict},
    error::{ConfigError, SubmitError},
    feedback::Feedback,
    observe::{Activity, Effective, Finding, Meter, Notice, ScopeStats, Seen, Stats, Watch},
    policy::quota::Cost,
    queue::{Costs, Heap, NONE, Need, Place, Queue, Rank, Scopes, Stage, priority_key},
    rng::Rng,
    scope::{
        Scope, Settled,
        registry::{ByName, Registry},
    },
    snapshot::Snapshot,
    time::{Instant, LONGEST_MS, Span},
};

/// A request as the engine sees it: no URL, no body, only what decides when it may leave.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The scopes that must all agree; at least one. Order and repetitions do not matter.
    pub scopes: &'a [ScopeId],
    /// Expected cost in each scope, beside `scopes`; the last one holds for all further scopes, none means 1.
    pub costs: &'a [f64],
    /// Higher first. Any finite number.
    pub priority: f64,
    /// The request's own delay in milliseconds: not sent before so long after now.
    pub delay_ms: f64,
}

impl<'a> Request<'a> {
    /// A request of cost 1 and priority 0.
    pub const fn new(scopes: &'a [ScopeId]) -> Self {
        Self { scopes, costs: &[], priority: 0.0, delay_ms: 0.0 }
    }
}

/// When a request could be sent as things stand, and why not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The instant; `None` if it depends on something that has no time (an answer, a `resume`).
    pub at: Option<Instant>,
    /// The strictest obstacle now; `None` if it could be sent now.
    pub because: Option<Cause>,
}

/// Decides when requests may be sent. See the crate's documentation for the loop.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    registry: Registry,
    queue: Queue,
    ready: Heap<Rank>,
    timers: Heap<Instant>,
    parked: Heap<Instant>,
    rng: Rng,
    now: Instant,
    /// Added to every instant that comes in, taken from every one that goes out: what a snapshot remembers lies
    /// before the driver's origin.
    shift: Span,
    in_flight: u32,
    paused: bool,
    /// Who blocked the last lane that was asked in vain.
    last_block: Option<Cause>,
    totals: Totals,
    watch: Watch,
    notices: Vec<Notice>,
    /// The paths of all findings there ever were.
    found: ByName,
}

/// What robots.txt changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Robots {
    /// The scope keeps to it.
    Applied,
    /// The user gave this very scope another pace, which it keeps.
    Overruled,
    /// The user told the scope not to listen, or nothing was asked for and nothing changed.
    Ignored,
}

/// The first of one kind in a scope's line.
struct Head {
    verdict: Verdict,
    rank: Rank,
    lane: u32,
}

/// The first of each kind in a scope's line.
struct Heads([Option<Head>; 2]);

impl Heads {
    fn iter(&self) -> impl Iterator<Item = &Head> {
        self.0.iter().flatten()
    }

    /// What keeps the first of all.
    fn bound(&self) -> Option<Reason> {
        self.iter().min_by_key(|head| head.rank)?.verdict.reason()
    }
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent: u64,
    settled: u64,
    cancelled: u64,
}

impl Engine {
    /// An engine for these options.
    pub fn new(config: Config) -> Self {
        Self {
            registry: Registry::default(),
            queue: Queue::default(),
            ready: Heap::default(),
            timers: Heap::default(),
            parked: Heap::default(),
            rng: Rng::new(config.seed.unwrap_or(0)),
            now: Instant::default(),
            shift: Span::ZERO,
            in_flight: 0,
            paused: false,
            last_block: None,
            totals: Totals::default(),
            watch: Watch::Nothing,
            notices: Vec::new(),
            found: ByName::new(),
            config,
        }
    }

    /// An engine that goes on where a snapshot was taken. `wall_ms` is the wall time now, if the driver knows it:
    /// the time that passed meanwhile counts.
    pub fn restore(config: Config, snapshot: &Snapshot, now: Instant, wall_ms: Option<f64>) -> Self {
        let mut engine = Self::new(config);
        engine.shift = Span::from_millis(LONGEST_MS) + Span::from_millis(LONGEST_MS);
        engine.advance(now);
        let offline = snapshot.offline(wall_ms);
        for (name, learned) in &snapshot.scopes {
            let index = engine.intern(name).0.index;
            engine.registry[index].scope.restore(engine.now, offline, learned);
        }
        engine
    }

    /// What was learned, for [`Engine::restore`] in another process. `wall_ms` is the wall time now, if the driver
    /// knows it.
    pub fn snapshot(&self, now: Instant, wall_ms: Option<f64>) -> Snapshot {
        let now = self.inward(now);
        let mut flying: Vec<Vec<Instant>> = Vec::new();
        for (sent, scopes) in self.queue.flying() {
            for &scope in scopes {
                let index = scope as usize;
                flying.resize_with(flying.len().max(index + 1), Vec::new);
                flying[index].push(sent);
            }
        }
        let learned = self.registry.iter().map(|(name, id)| {
            let flying = flying.get(id.0.index as usize).map_or(&[][..], Vec::as_slice);
            (name.to_string(), self.registry[id.0.index].scope.learned(now, flying))
        });
        Snapshot { wall_ms, scopes: learned.filter(|(_, learned)| !learned.is_new()).collect() }
    }

    /// Gives the seed that the options did not name. Only the first draw after it is affected.
    pub fn seed(&mut self, seed: u64) {
        self.rng = Rng::new(seed);
    }

    /// The latest instant that the engine was told.
    pub fn now(&self) -> Instant {
        self.now - self.shift
    }

    /// What the engine was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The handle of a scope, which is made on first use and kept until it is [released](Engine::release).
    pub fn scope(&mut self, name: &str) -> ScopeId {
        let scope = self.intern(name);
        self.registry.pin(scope.0.index);
        scope
    }

    /// The handle of a scope, which is made on first use and may be forgotten when the scope is idle: use it at
    /// once, or [`Engine::touch`] it before using it again.
    pub fn intern(&mut self, name: &str) -> ScopeId {
        self.registry.intern(name, &self.config, self.now)
    }

    /// The handle of a scope that the engine knows. Makes none and keeps none.
    pub fn find(&self, name: &str) -> Option<ScopeId> {
        self.registry.find(name)
    }

    /// Where a setting of this scope is set: `defaults.quota`, or `scopes."api.example".quota` for a scope with
    /// settings of its own.
    pub fn config_path(&self, scope: ScopeId, setting: &str) -> Option<String> {
        let entry = &self.registry[self.known(scope)?];
        Some(self.config.path_of(&entry.name, &entry.scope.config, setting))
    }

    /// Whether the handle still means what it meant.
    pub fn knows(&self, scope: ScopeId) -> bool {
        self.registry.knows(scope)
    }

    /// Whether the handle still means what it meant; if so, the scope stays at least until the next poll.
    pub fn touch(&mut self, scope: ScopeId) -> bool {
        let is_known = self.registry.knows(scope);
        if is_known {
            self.registry.touch(scope.0.index);
        }
        is_known
    }

    /// Gives a handle of [`Engine::scope`] back: the scope may be forgotten when it is idle.
    pub fn release(&mut self, scope: ScopeId) {
        if let Some(index) = self.known(scope) {
            self.registry.unpin(index);
        }
    }

    /// How many scopes the engine knows.
    pub fn scopes(&self) -> usize {
        self.registry.len()
    }

    /// The name behind a handle.
    pub fn name(&self, scope: ScopeId) -> Option<&str> {
        self.registry.knows(scope).then(|| &*self.registry[scope.0.index].name)
    }

    /// Takes a request in. It waits, also if it could leave at once: `poll` says when.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<Ticket, SubmitError> {
        self.advance(now);
        let (scopes, need) = self.checked(&request)?;
        let lane = self.queue.lane(&scopes, &need.costs, &mut self.registry[scopes[0]].line);
        let ticket = self.queue.admit(lane, need);
        for &scope in &*scopes {
            self.begin_waiting(scope);
        }
        self.enter(ticket.0.index, request.delay_ms);
        Ok(ticket)
    }

    /// `submit` and the first `poll` in one, where nobody waits and nothing keeps the request: the ticket of a request
    /// that is to be sent now. `None` if it would have to wait, or something else does; then nothing has changed, and
    /// `submit` is the way. Once in flight it is like any other.
    ///
    /// The trap is a second engine in here. All that is left out is what would be undone at once: the state is the same as
    /// after `submit` and `poll`, which `tests/native/reference.rs` compares.
    pub fn send_at_once(&mut self, now: Instant, request: Request) -> Result<Option<Ticket>, SubmitError> {
        self.advance(now);
        if self.waiting() > 0 || request.delay_ms > 0.0 || self.shut().is_some() {
            return Ok(None);
        }
        let (scopes, need) = self.checked(&request)?;
        for (position, &scope) in scopes.iter().enumerate() {
            if self.registry[scope].scope.verdict(self.now, need.costs.of(position)) != Verdict::Go {
                return Ok(None);
            }
        }
        self.registry.next_turn();
        for (position, &scope) in scopes.iter().enumerate() {
            self.registry.rouse(scope);
            self.registry[scope].scope.on_wait(self.now);
            self.look(scope);
            self.depart(scope, need.costs.of(position));
            self.note(scope, None);
        }
        let lane = self.queue.lane(&scopes, &need.costs, &mut self.registry[scopes[0]].line);
        let ticket = self.queue.admit(lane, need);
        self.queue.send_at_once(ticket.0.index, lane, self.now);
        self.in_flight += 1;
        self.totals.sent += 1;
        Ok(Some(ticket))
    }

    /// The scopes of a request and what it needs, if it makes sense and there is room.
    fn checked(&self, request: &Request) -> Result<(Scopes, Need), SubmitError> {
        let delay_ok = request.delay_ms >= 0.0 && request.delay_ms <= LONGEST_MS;
        if !delay_ok || !request.priority.is_finite() {
            return Err(SubmitError::NotANumber);
        }
        self.check_scopes(request)?;
        if self.config.max_waiting.is_some_and(|most| self.waiting() >= most) {
            return Err(SubmitError::QueueFull);
        }
        let (scopes, costs) = Self::scopes_and_costs(request)?;
        let mut share = 0;
        for (position, &index) in scopes.iter().enumerate() {
            let scope = &self.registry[index].scope;
            let cost = costs.of(position);
            if !scope.can_afford(cost) {
                return Err(SubmitError::CostExceedsQuota { scope: self.registry.id(index) });
            }
            share = share.max(scope.share(cost));
        }
        Ok((scopes, Need { priority: priority_key(request.priority), share: !share, costs }))
    }

    /// What to do now. Ask again after every [`Decision::Send`].
    pub fn poll(&mut self, now: Instant) -> Decision {
        self.advance(now);
        self.registry.next_turn();
        while let Some((at, index)) = self.parked.first()
            && at <= self.now
        {
            self.unpark(index);
            self.join(index);
        }
        if let Some(reason) = self.shut() {
            let because = (self.waiting() > 0).then_some(Cause { scope: None, reason });
            return Decision::Idle { because };
        }
        while let Some((at, scope)) = self.timers.first()
            && at <= self.now
        {
            self.refresh(scope);
        }
        while let Some((_, lane)) = self.ready.first() {
            match self.ask(lane) {
                (Verdict::Go, _) => return Decision::Send(self.send(lane)),
                (verdict, scope) => self.block(lane, scope, verdict),
            }
        }
        self.rest()
    }

    /// The request that was sent ended. An unknown ticket, or one that was not sent, is ignored.
    pub fn settle(&mut self, now: Instant, ticket: Ticket, feedback: &Feedback) {
        self.settle_each(now, ticket, |_| *feedback);
    }

    /// The same where it was not the same news for all of its scopes: a target that fails behind an API that does not.
    pub fn settle_each(&mut self, now: Instant, ticket: Ticket, of: impl Fn(ScopeId) -> Feedback) {
        if self.hear(now, ticket, of) {
            self.forget(ticket.0.index);
        }
    }

    /// The request that was sent ended so that it is to be sent again, not before `delay_ms` from now: the same ticket
    /// waits again and keeps its place by age. False for an unknown ticket, one that was not sent, and a delay that is none.
    pub fn retry(&mut self, now: Instant, ticket: Ticket, feedback: &Feedback, delay_ms: f64) -> bool {
        self.retry_each(now, ticket, |_| *feedback, delay_ms)
    }

    /// The same where it was not the same news for all of its scopes.
    pub fn retry_each(
        &mut self,
        now: Instant,
        ticket: Ticket,
        of: impl Fn(ScopeId) -> Feedback,
        delay_ms: f64,
    ) -> bool {
        if !(0.0..=LONGEST_MS).contains(&delay_ms) || !self.hear(now, ticket, of) {
            return false;
        }
        let class = self.queue.entry(ticket.0.index).class;
        let lane = self.queue.class(class).lane;
        for &scope in &*self.queue.lane_at(lane).scopes.clone() {
            self.begin_waiting(scope);
        }
        self.queue.entry(ticket.0.index).stage = Stage::Parked { position: NONE };
        self.enter(ticket.0.index, delay_ms);
        true
    }

    /// The caller gave up: a waiting request leaves the line; one that was allowed to leave but never did
    /// gives its slot and its cost back. An unknown ticket is ignored.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.advance(now);
        let Some(entry) = self.queue.get(ticket) else { return };
        self.totals.cancelled += 1;
        let lane = self.queue.class(entry.class).lane;
        match entry.stage {
            Stage::InFlight { sent } => {
                self.end(ticket.0.index, |_, scope, now, cost| {
                    scope.on_cancel(now, sent, cost);
                    Settled::default()
                });
                self.forget(ticket.0.index);
                return;
            }
            Stage::Parked { .. } => self.unpark(ticket.0.index),
            Stage::Waiting { .. } | Stage::Early => {
                let from = self.lift(lane);
                self.queue.leave(ticket.0.index);
                self.put_back(lane, from);
            }
        }
        for &scope in &*self.queue.lane_at(lane).scopes.clone() {
            self.registry[scope].line.waiting -= 1;
            self.registry.rest(scope);
            self.observe(scope);
        }
        self.forget(ticket.0.index);
    }

    /// Gives a waiting request another priority; it keeps its age. A request that does not wait, an unknown ticket
    /// and a priority that is no finite number change nothing.
    pub fn prioritize(&mut self, now: Instant, ticket: Ticket, priority: f64) {
        self.advance(now);
        let Some(stage) = self.queue.get(ticket).map(|entry| entry.stage) else { return };
        if !priority.is_finite() || matches!(stage, Stage::InFlight { .. }) {
            return;
        }
        let class = self.queue.entry(ticket.0.index).class;
        let lane = self.queue.class(class).lane;
        let need = Need { priority: priority_key(priority), ..self.queue.class(class).need.clone() };
        if matches!(stage, Stage::Parked { .. }) {
            self.queue.reclass(ticket.0.index, need);
            return;
        }
        let from = self.lift(lane);
        self.queue.leave(ticket.0.index);
        self.queue.reclass(ticket.0.index, need);
        self.queue.join(ticket.0.index);
        self.put_back(lane, from);
    }

    /// When a request of these scopes and costs could be sent as things stand. Changes nothing.
    pub fn peek(&self, now: Instant, request: Request) -> Result<Peek, SubmitError> {
        let now = self.inward(now);
        self.check_scopes(&request)?;
        let (scopes, costs) = Self::scopes_and_costs(&request)?;
        let mut strictest = self.shut().map_or(Verdict::Go, Verdict::Blocked);
        let mut who = None;
        for (position, &index) in scopes.iter().enumerate() {
            let verdict = self.registry[index].scope.verdict(now, costs.of(position));
            if verdict > strictest {
                strictest = verdict;
                who = Some(self.registry.id(index));
            }
        }
        let at = match strictest {
            Verdict::Go => Some(now),
            Verdict::NotBefore(at, _) => Some(at),
            Verdict::Blocked(_) => None,
        };
        let because = strictest.reason().map(|reason| Cause { scope: who, reason });
        Ok(Peek { at: at.map(|at| at - self.shift), because })
    }

    /// Changes settings of one scope. Waiting requests feel it at once, in both directions.
    pub fn configure(&mut self, now: Instant, scope: ScopeId, partial: Value) -> Result<(), ConfigError> {
        let changed = match self.known(scope) {
            Some(index) => self.registry[index].scope.config.changed(partial)?,
            None => return Ok(()),
        };
        self.config.follow(&changed);
        self.change(now, scope, |scope, now| scope.configure(now, changed.into()));
        if let Some(index) = self.known(scope)
            && let Some(meter) = &mut self.registry[index].meter
        {
            meter.on_configure();
        }
        Ok(())
    }

    /// What the robots.txt of this scope asks for: one slot and this delay, in place of what the defaults say.
    pub fn crawl_delay(&mut self, now: Instant, scope: ScopeId, delay: Option<Span>) -> Robots {
        let Some(index) = self.known(scope) else { return Robots::Ignored };
        let state = &self.registry[index].scope;
        let config = &state.config;
        let is_same = delay.is_none_or(|delay| config.concurrency == 1 && config.delay_span() == delay);
        if config.ignore_robots_txt || delay == state.crawl() || config.has_own_pace() && is_same {
            return Robots::Ignored;
        }
        if config.has_own_pace() {
            return Robots::Overruled;
        }
        self.change(now, scope, |scope, _| scope.set_crawl_delay(delay));
        Robots::Applied
    }

    /// Sends nothing of this scope for `span`. A hold that is longer already stays.
    pub fn hold(&mut self, now: Instant, scope: ScopeId, span: Span) {
        self.change(now, scope, |scope, now| scope.hold(now + span));
    }

    /// Sends nothing of this scope until [`Engine::resume`].
    pub fn pause(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.paused = true);
    }

    /// Ends a pause of this scope.
    pub fn resume(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.paused = false);
    }

    /// Forgets what this scope learned and lifts its hold. Its settings and what is in flight stay.
    pub fn reset(&mut self, now: Instant, scope: ScopeId) {
        self.change(now, scope, |scope, _| scope.reset());
    }

    /// Pauses everything, or ends that pause.
    pub fn pause_all(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Requests submitted and not sent.
    pub fn waiting(&self) -> u32 {
        self.queue.waiting + self.parked.len()
    }

    /// Requests sent and not settled.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The state of one scope, for people.
    pub fn scope_stats(&self, now: Instant, id: ScopeId) -> Option<ScopeStats> {
        let now = self.inward(now);
        let index = self.known(id)?;
        let entry = &self.registry[index];
        let head = entry.line.lanes.iter().filter_map(Heap::first).min().map(|(_, lane)| lane);
        let cost = head.map_or(Cost::ONE, |lane| self.queue.head_cost_at(lane, index));
        let reason = self.shut().or(entry.scope.verdict(now, cost).reason());
        let waiting = entry.line.waiting;
        Some(ScopeStats {
            reason: reason.filter(|_| waiting > 0),
            waiting,
            effective: entry.meter.as_ref().map_or_else(Effective::default, |meter| meter.effective(now)),
            without_effect: self
                .finding(index)
                .map(|finding| format!("{}: {}", finding.setting, finding.why)),
            ..ScopeStats::of(now, self.shift, &entry.scope)
        })
    }

    /// The state of everything, for people.
    pub fn stats(&self, now: Instant) -> Stats {
        let scopes = self.registry.iter().filter_map(|(name, id)| Some((name, self.scope_stats(now, id)?)));
        Stats {
            waiting: self.waiting(),
            in_flight: self.in_flight,
            sent: self.totals.sent,
            settled: self.totals.settled,
            cancelled: self.totals.cancelled,
            paused: self.paused,
            scopes: scopes.map(|(name, stats)| (name.to_string(), stats)).collect(),
        }
    }

    /// What people should know, since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        core::mem::take(&mut self.notices)
    }

    /// How much is told of answers from now on.
    pub fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    /// Whether there is something that nobody has taken.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// A clock that goes back stands still.
    fn advance(&mut self, now: Instant) {
        self.now = self.inward(now);
    }

    /// The driver's `now` in the engine's own reckoning.
    fn inward(&self, now: Instant) -> Instant {
        self.now.max(now + self.shift)
    }

    fn shut(&self) -> Option<Reason> {
        if self.paused {
            Some(Reason::Paused)
        } else if self.in_flight >= self.config.concurrency {
            Some(Reason::Global)
        } else {
            None
        }
    }

    /// The answer when nothing can be sent: wait for the earliest time there is, or for an event.
    fn rest(&self) -> Decision {
        let timer = self.timers.first().map(|(at, index)| {
            let strictest = self.heads(index).iter().map(|head| head.verdict).min();
            let reason = strictest.and_then(Verdict::reason).unwrap_or(Reason::Delay);
            (at, Cause { scope: Some(self.registry.id(index)), reason })
        });
        let parked =
            self.parked.first().map(|(at, _)| (at, Cause { scope: None, reason: Reason::RequestDelay }));
        let earliest = match (timer, parked) {
            (Some(timer), Some(parked)) => Some(if parked.0 < timer.0 { parked } else { timer }),
            (timer, parked) => timer.or(parked),
        };
        match earliest {
            Some((until, because)) => Decision::Wait { until: until - self.shift, because },
            None => Decision::Idle { because: self.last_block.filter(|_| self.waiting() > 0) },
        }
    }

    /// Asks all scopes of a lane's head; the strictest verdict wins, and its scope.
    fn ask(&self, lane: u32) -> (Verdict, u32) {
        let rank = self.queue.rank(lane);
        let mut strictest = (Verdict::Go, NONE);
        for (position, &scope) in self.queue.lane_at(lane).scopes.iter().enumerate() {
            let cost = self.reserved(scope, rank, self.queue.head_cost(lane, position));
            let verdict = self.registry[scope].scope.verdict(self.now, cost);
            if verdict > strictest.0 {
                strictest = (verdict, scope);
            }
        }
        strictest
    }

    /// The cost that must fit before a lane of this rank may consume `cost`: no smaller than that of whoever
    /// waits before it. Otherwise the cheap would keep the expensive waiting for ever.
    fn reserved(&self, scope: u32, rank: Rank, cost: Cost) -> Cost {
        match self.registry[scope].line.lanes[0].first() {
            Some((before, lane)) if cost > Cost::ZERO && before < rank => {
                cost.max(self.queue.head_cost_at(lane, scope))
            }
            _ => cost,
        }
    }

    fn send(&mut self, lane: u32) -> Ticket {
        let from = self.lift(lane);
        let scopes = self.queue.lane_at(lane).scopes.clone();
        for (position, &scope) in scopes.iter().enumerate() {
            self.depart(scope, self.queue.head_cost(lane, position));
            self.registry[scope].line.waiting -= 1;
        }
        let ticket = self.queue.send_head(lane, self.now);
        self.in_flight += 1;
        self.totals.sent += 1;
        self.put_back(lane, from);
        for &scope in &*scopes {
            if scope != from {
                self.observe(scope);
            }
        }
        ticket
    }

    /// A request leaves one of its scopes.
    fn depart(&mut self, scope: u32, cost: Cost) {
        let entry = &mut self.registry[scope];
        entry.scope.on_send(self.now, cost, &mut self.rng);
        if let Some(meter) = &mut entry.meter {
            meter.on_send(self.now);
        }
    }

    /// Lets the scopes hear how a request ended. False if it was not in flight; else its ticket is still there.
    fn hear(&mut self, now: Instant, ticket: Ticket, of: impl Fn(ScopeId) -> Feedback) -> bool {
        self.advance(now);
        let Some(sent) = self.sent_at(ticket) else { return false };
        self.totals.settled += 1;
        let stall_after = self.config.stall_after;
        self.end(ticket.0.index, |id, scope, now, cost| {
            scope.on_settle(now, sent, cost, &of(id), stall_after)
        });
        true
    }

    /// Ends what is in flight: `hear` tells each of its scopes. The ticket is still there.
    fn end(&mut self, index: u32, hear: impl Fn(ScopeId, &mut Scope, Instant, Cost) -> Settled) {
        self.in_flight -= 1;
        let class_index = self.queue.entry(index).class;
        let lane = self.queue.class(class_index).lane;
        for (position, &scope) in self.queue.lane_at(lane).scopes.clone().iter().enumerate() {
            let cost = self.queue.class(class_index).need.costs.of(position);
            let id = self.registry.id(scope);
            let before = self.seen(scope);
            let settled = hear(id, &mut self.registry[scope].scope, self.now, cost);
            if let Some(before) = before {
                self.tell(scope, before, &settled);
            }
            if let Some(span) = settled.stall {
                self.notices.push(Notice::Stalled { scope: self.registry[scope].name.to_string(), span });
            }
            self.registry.rest(scope);
            self.refresh(scope);
        }
    }

    /// What was last told of a scope that is watched.
    fn seen(&mut self, scope: u32) -> Option<Seen> {
        let entry = &mut self.registry[scope];
        if self.watch == Watch::Nothing && !entry.scope.config.is_managed {
            return None;
        }
        Some(entry.seen.take().map_or_else(|| Seen::of(&entry.scope, self.now), |seen| *seen))
    }

    /// Tells what an answer changed in a scope, and remembers what was told.
    fn tell(&mut self, scope: u32, before: Seen, settled: &Settled) {
        let entry = &mut self.registry[scope];
        let after = Seen::of(&entry.scope, self.now);
        if self.watch >= Watch::Changes {
            self.notices.extend(before.changes(after, entry, self.now, self.shift, settled));
        }
        if self.watch >= Watch::Answers || entry.scope.config.is_managed {
            self.notices.extend(before.answer(after, entry, self.shift, settled));
        }
        entry.seen = Some(Box::new(after));
    }

    /// One more request of this scope waits.
    fn begin_waiting(&mut self, scope: u32) {
        self.registry[scope].line.waiting += 1;
        self.registry.rouse(scope);
        if self.registry[scope].line.waiting == 1 {
            self.registry[scope].scope.on_wait(self.now);
            self.observe(scope);
        }
    }

    /// Puts an admitted request in line, at once or when its own delay is over.
    fn enter(&mut self, index: u32, delay_ms: f64) {
        if delay_ms > 0.0 {
            self.park(index, self.now + Span::from_millis(delay_ms));
        } else {
            self.join(index);
        }
    }

    /// Puts an admitted request in line, and its lane where it can be asked.
    fn join(&mut self, index: u32) {
        let class = self.queue.entry(index).class;
        let lane = self.queue.class(class).lane;
        let before = (self.queue.lane_at(lane).head != NONE).then(|| self.queue.rank(lane));
        self.queue.join(index);
        if before != Some(self.queue.rank(lane)) {
            let from = self.lift(lane);
            self.put_back(lane, from);
        }
    }

    /// Takes a lane out of wherever it is. Gives the scope whose champion it was, or in whose line it stood.
    fn lift(&mut self, lane: u32) -> u32 {
        let (place, position) = self.queue.unplace(lane);
        let lanes = self.queue.lanes_mut();
        match place {
            Place::Nowhere => NONE,
            Place::Ready { from } => {
                self.ready.remove(position, &mut Queue::place_lane(lanes));
                if from != NONE {
                    self.registry[from].line.champion = None;
                }
                from
            }
            Place::At { scope, heap } => {
                let heap = &mut self.registry[scope].line.lanes[heap as usize];
                heap.remove(position, &mut Queue::place_lane(lanes));
                scope
            }
        }
    }

    /// Makes a lane ready to be asked if anybody waits in it, and looks again at the scope it came from.
    fn put_back(&mut self, lane: u32, from: u32) {
        if self.queue.lane_at(lane).head != NONE {
            self.make_ready(lane, NONE);
        }
        if from != NONE {
            self.refresh(from);
        }
    }

    /// Puts a lane that was asked in vain in line at the scope that blocked it.
    fn block(&mut self, lane: u32, scope: u32, verdict: Verdict) {
        let who = Some(self.registry.id(scope));
        self.last_block = verdict.reason().map(|reason| Cause { scope: who, reason });
        let from = self.lift(lane);
        self.line_up(lane, scope);
        self.refresh(scope);
        if from != NONE && from != scope {
            self.refresh(from);
        }
    }

    /// Puts a lane that is nowhere among those to be asked; `from` is the scope whose champion it is.
    fn make_ready(&mut self, lane: u32, from: u32) {
        let rank = self.queue.rank(lane);
        self.queue.lane_mut(lane).place = Place::Ready { from };
        self.ready.push(rank, lane, &mut Queue::place_lane(self.queue.lanes_mut()));
    }

    /// Puts a lane that is nowhere in line at a scope.
    fn line_up(&mut self, lane: u32, scope: u32) {
        let rank = self.queue.rank(lane);
        let heap = u8::from(self.queue.head_cost_at(lane, scope) == Cost::ZERO);
        self.queue.lane_mut(lane).place = Place::At { scope, heap };
        let line = &mut self.registry[scope].line;
        line.lanes[heap as usize].push(rank, lane, &mut Queue::place_lane(self.queue.lanes_mut()));
    }

    /// Looks at a scope after anything about it changed: sends the best in its line to be asked if the scope is
    /// open for it, and sets its time for who must wait.
    ///
    /// A champion may not be asked for long (while the gate is shut). Until then it must stay the best: it goes
    /// back in line when the scope closes or a better one could go, now or in time.
    fn refresh(&mut self, scope: u32) {
        if self.registry[scope].line.is_quiet() {
            return self.note(scope, None);
        }
        let mut heads = self.heads(scope);
        if let Some(champion) = self.registry[scope].line.champion {
            let rank = self.queue.rank(champion);
            let is_best = heads.iter().all(|head| head.verdict != Verdict::Go || rank < head.rank);
            if !is_best || self.verdict_at(scope, champion) != Verdict::Go {
                self.lift(champion);
                self.line_up(champion, scope);
                heads = self.heads(scope);
            }
        }
        if self.registry[scope].line.champion.is_none() {
            let open = heads.iter().filter(|head| head.verdict == Verdict::Go);
            if let Some(lane) = open.min_by_key(|head| head.rank).map(|head| head.lane) {
                self.lift(lane);
                self.registry[scope].line.champion = Some(lane);
                self.make_ready(lane, scope);
                heads = self.heads(scope);
            }
        }
        let champion = self.registry[scope].line.champion.map(|lane| self.queue.rank(lane));
        let times = heads.iter().filter_map(|head| match head.verdict {
            Verdict::NotBefore(at, _) if champion.is_none_or(|champion| head.rank < champion) => Some(at),
            _ => None,
        });
        let earliest = times.min();
        self.set_timer(scope, earliest);
        self.note(scope, heads.bound());
    }

    /// The first of each kind in a scope's line, with this scope's verdict on it.
    fn heads(&self, scope: u32) -> Heads {
        let line = &self.registry[scope].line;
        let head = |kind: usize| {
            let (rank, lane) = line.lanes[kind].first()?;
            Some(Head { verdict: self.verdict_at(scope, lane), rank, lane })
        };
        Heads([head(0), head(1)])
    }

    /// One scope's verdict on a lane's head.
    fn verdict_at(&self, scope: u32, lane: u32) -> Verdict {
        self.registry[scope].scope.verdict(self.now, self.queue.head_cost_at(lane, scope))
    }

    /// Lets a scope's meter see what is going on now.
    fn observe(&mut self, scope: u32) {
        let is_empty = self.registry[scope].line.lanes.iter().all(Heap::is_empty);
        let bound = if is_empty { None } else { self.heads(scope).bound() };
        self.note(scope, bound);
    }

    /// The same, for whoever knows which limit of the scope keeps the head of its line.
    fn note(&mut self, scope: u32, bound: Option<Reason>) {
        let entry = &mut self.registry[scope];
        let in_flight = entry.scope.slots.in_flight();
        let activity = Activity { in_flight, is_waiting: entry.line.waiting > 0, bound };
        let meter = entry.meter.get_or_insert_with(|| Box::new(Meter::new(self.now)));
        if meter.note(self.now, activity) {
            self.find_without_effect(scope);
        }
    }

    /// Lets a scope's meter see that time has passed.
    fn look(&mut self, scope: u32) {
        let meter = self.registry[scope].meter.get_or_insert_with(|| Box::new(Meter::new(self.now)));
        if meter.look(self.now) {
            self.find_without_effect(scope);
        }
    }

    fn find_without_effect(&mut self, scope: u32) {
        if let Some(finding) = self.finding(scope) {
            self.report(finding);
        }
    }

    /// The scope's setting that has had no effect for long, if there is one.
    fn finding(&self, scope: u32) -> Option<Finding> {
        let entry = &self.registry[scope];
        let (config, meter) = (&entry.scope.config, entry.meter.as_deref()?);
        let slots = config.concurrency;
        let (setting, why) = if slots > self.config.concurrency {
            (
                "concurrency",
                format!("{slots} slots; the limit of all scopes together is {}", self.config.concurrency),
            )
        } else if slots > 1 && meter.never_bound(Reason::Concurrency) {
            (
                "concurrency",
                format!("{slots} slots; {} were ever in use while requests waited", meter.most_in_flight()),
            )
        } else if config.slot_delay != ScopeConfig::default().slot_delay
            && meter.never_bound(Reason::SlotDelay)
        {
            ("slotDelay", "no request ever waited for it while requests waited".into())
        } else {
            return None;
        };
        let path = self.config.path_of(&entry.name, config, setting);
        Some(Finding { scope: entry.name.to_string(), setting, path, why })
    }

    /// Keeps a finding until somebody asks; each path once.
    fn report(&mut self, finding: Finding) {
        if self.found.insert(finding.path.as_str().into(), 0).is_none() {
            self.notices.push(Notice::NoEffect(finding));
        }
    }

    fn set_timer(&mut self, scope: u32, at: Option<Instant>) {
        debug_assert!(at.is_none_or(|at| at > self.now), "a time that is over would be asked for ever");
        let old = self.registry[scope].line.timer;
        if let (Some(position), Some(at)) = (old, at)
            && self.timers.key(position) == at
        {
            return;
        }
        let registry = &mut self.registry;
        if let Some(position) = old {
            registry[scope].line.timer = None;
            self.timers.remove(position, &mut |scope, position| registry[scope].line.timer = Some(position));
        }
        if let Some(at) = at {
            self.timers.push(at, scope, &mut |scope, position| registry[scope].line.timer = Some(position));
        }
    }

    fn park(&mut self, index: u32, until: Instant) {
        let queue = &mut self.queue;
        self.parked.push(until, index, &mut |index, position| {
            queue.entry(index).stage = Stage::Parked { position };
        });
    }

    fn unpark(&mut self, index: u32) {
        let Stage::Parked { position } = self.queue.entry(index).stage else { return };
        let queue = &mut self.queue;
        self.parked.remove(position, &mut |index, position| {
            queue.entry(index).stage = Stage::Parked { position };
        });
    }

    fn forget(&mut self, index: u32) {
        if let Some(lane) = self.queue.forget(index)
            && let [scope] = lane.scopes[..]
        {
            self.registry[scope].line.solo[usize::from(lane.is_free)] = None;
        }
    }

    fn change(&mut self, now: Instant, id: ScopeId, with: impl FnOnce(&mut Scope, Instant)) {
        self.advance(now);
        if let Some(index) = self.known(id) {
            with(&mut self.registry[index].scope, self.now);
            self.refresh(index);
        }
    }

    fn known(&self, id: ScopeId) -> Option<u32> {
        self.registry.knows(id).then_some(id.0.index)
    }

    fn sent_at(&self, ticket: Ticket) -> Option<Instant> {
        match self.queue.get(ticket)?.stage {
            Stage::InFlight { sent } => Some(sent),
            _ => None,
        }
    }

    fn check_scopes(&self, request: &Request) -> Result<(), SubmitError> {
        let are_known = !request.scopes.is_empty() && request.scopes.iter().all(|&id| self.knows(id));
        if are_known { Ok(()) } else { Err(SubmitError::UnknownScope) }
    }

    /// Sorted scopes without repetitions, and what the request costs in each.
    fn scopes_and_costs(request: &Request) -> Result<(Scopes, Costs), SubmitError> {
        let cost = |position: usize| match request.costs.get(position).or(request.costs.last()) {
            None => Ok(Cost::ONE),
            Some(&units) => Cost::from_units(units).ok_or(SubmitError::NotANumber),
        };
        if let [scope] = request.scopes {
            return Ok((Scopes::One([scope.0.index]), Costs::Each(cost(0)?)));
        }
        let mut pairs = Vec::with_capacity(request.scopes.len());
        for (position, scope) in request.scopes.iter().enumerate() {
            pairs.push((scope.0.index, cost(position)?));
        }
        pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        pairs.dedup_by_key(|pair| pair.0);
        let costs = if pairs.iter().all(|pair| pair.1 == pairs[0].1) {
            Costs::Each(pairs[0].1)
        } else {
            Costs::Many(pairs.iter().map(|pair| pair.1).collect())
        };
        let scopes = match &pairs[..] {
            [(scope, _)] => Scopes::One([*scope]),
            _ => Scopes::Many(pairs.iter().map(|pair| pair.0).collect()),
        };
        Ok((scopes, costs))
    }
}
