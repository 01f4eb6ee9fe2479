//! The only place where state changes: `submit`, `poll`, `settle`, `cancel`, and what changes a scope.
//!
//! | file | concern |
//! |---|---|
//! | here | the verbs, and how a request ends |
//! | [`ahead`] | requests that leave at an instant to come |
//! | [`express`] | requests that nothing keeps: they leave and end in one piece |
//! | [`request`] | a request as it is handed in: its scopes, its costs, whether it makes sense |
//! | [`scopes`] | handles of scopes, their settings, holds and pauses |
//! | [`budgets`] | which budget of a server's a request spends from |
//! | [`unknown`] | requests of which that is not known |
//! | [`schedule`] | who is asked next, who waits where, when to wake |
//! | [`report`] | statistics, notices, settings without effect |
//!
//! The limit of the whole throttle is no scope but a gate in front of all scopes: while it is closed no
//! request is asked and no request moves.

mod ahead;
mod budgets;
mod express;
mod report;
mod request;
mod schedule;
mod scopes;
mod unknown;

pub use self::{
    request::{Peek, Request},
    scopes::Robots,
};
use crate::{
    config::Config,
    decision::{Cause, Decision, Reason, ScopeId, Ticket, Verdict},
    error::SubmitError,
    feedback::{Answer, Feedback},
    observe::{Notice, Settled, Watch, Word},
    policy::quota::Cost,
    queue::{Entry, IndexedHeap, NONE, Need, Queue, Rank, Scopes, Stage, priority_key},
    rng::Rng,
    scope::{Scope, registry::Registry},
    snapshot::{Learned, Snapshot},
    sorted::SortedIndex,
    time::{Instant, LONGEST_MS, Span},
};

/// A request that left so shortly before a snapshot was taken may be missing from it, since the message takes
/// time. It counts twice rather than not at all.
const ON_ITS_WAY: Span = Span::from_micros(100_000);

/// Decides when requests may be sent. See the crate's documentation for the loop.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    registry: Registry,
    queue: Queue,
    ready: IndexedHeap<Rank>,
    timers: IndexedHeap<Instant>,
    parked: IndexedHeap<Instant>,
    rng: Rng,
    now: Instant,
    /// Added to every instant that comes in, taken from every one that goes out: what a snapshot remembers
    /// lies before the driver's origin.
    epoch_offset: Span,
    /// When the snapshot was taken that this engine goes on from: what left until then is in it.
    remembered: Option<Instant>,
    in_flight: u32,
    paused: bool,
    /// Until when the caller was last asked to wait.
    alarm: Option<Instant>,
    /// The cause that blocked the last lane that was asked in vain.
    last_block: Option<Cause>,
    totals: Totals,
    /// Whether a scope has several budgets.
    has_budgets: bool,
    /// The route of the request whose answer is to come next, where no budget of its scope is known.
    named: Option<(Ticket, String)>,
    watch: Watch,
    notices: Vec<Notice>,
    /// The paths of all diagnostics there ever were, and their order.
    found: Vec<String>,
    found_by_path: SortedIndex,
}

/// The feedback for scopes about the end of a request. Most often it is the same for all, and needs no copy.
#[derive(Clone, Copy)]
pub(crate) enum News<'a> {
    Same(&'a Feedback),
    Each(&'a dyn Fn(ScopeId) -> Feedback),
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
        let mut engine = Self::with(config);
        engine.report_known();
        engine
    }

    fn with(config: Config) -> Self {
        Self {
            registry: Registry::default(),
            queue: Queue::default(),
            ready: IndexedHeap::default(),
            timers: IndexedHeap::default(),
            parked: IndexedHeap::default(),
            rng: Rng::new(config.seed.unwrap_or(0)),
            now: Instant::default(),
            epoch_offset: Span::ZERO,
            remembered: None,
            in_flight: 0,
            paused: false,
            alarm: None,
            last_block: None,
            totals: Totals::default(),
            has_budgets: false,
            named: None,
            watch: Watch::Nothing,
            notices: Vec::new(),
            found: Vec::new(),
            found_by_path: SortedIndex::default(),
            config,
        }
    }

    /// An engine that goes on where a snapshot was taken. `wall_ms` is the wall time now, if the driver knows
    /// it: the time that passed meanwhile counts.
    pub fn restore(config: Config, snapshot: &Snapshot, now: Instant, wall_ms: Option<f64>) -> Self {
        let mut engine = Self::new(config);
        engine.epoch_offset = Span::from_millis(LONGEST_MS) + Span::from_millis(LONGEST_MS);
        engine.advance(now);
        let offline = snapshot.offline(wall_ms);
        engine.remembered = Some(engine.now - offline - ON_ITS_WAY);
        for (name, learned) in &snapshot.scopes {
            let index = engine.intern(name).0.index;
            engine.registry[index].scope.restore(engine.now, offline, learned);
            engine.restore_routes(index, &learned.routes);
        }
        engine
    }

    /// The learned state, for [`Engine::restore`] in another process. `wall_ms` is the wall time now, if the
    /// driver knows it.
    pub fn snapshot(&self, now: Instant, wall_ms: Option<f64>) -> Snapshot {
        let mut scopes = self.learned(now, self.registry.iter().map(|(_, id)| id.0.index).collect());
        scopes.retain(|(_, learned)| !learned.is_new());
        Snapshot { wall_ms, scopes }
    }

    /// The same of these scopes and their budgets alone, also where they look like new: in a list of scopes
    /// the last word of each counts.
    pub fn snapshot_of(&self, now: Instant, wall_ms: Option<f64>, scopes: &[ScopeId]) -> Snapshot {
        let mut all = Vec::with_capacity(scopes.len());
        for index in scopes.iter().filter_map(|&id| self.known(id)) {
            all.push(index);
            all.extend(self.registry.budgets(index));
        }
        Snapshot { wall_ms, scopes: self.learned(now, all) }
    }

    fn learned(&self, now: Instant, scopes: Vec<u32>) -> Vec<(String, Learned)> {
        let now = self.to_engine_time(now);
        let mut flying: Vec<Vec<Instant>> = Vec::new();
        for (sent, scopes) in self.queue.flying() {
            for &scope in scopes {
                let index = scope as usize;
                flying.resize_with(flying.len().max(index + 1), Vec::new);
                flying[index].push(sent);
            }
        }
        let learned = scopes.into_iter().map(|index| {
            let flying = flying.get(index as usize).map_or(&[][..], Vec::as_slice);
            let entry = &self.registry[index];
            let mut learned = entry.scope.learned(now, flying);
            learned.routes = entry.family.as_ref().map_or_else(Vec::new, |family| family.routes().into());
            (String::from(&*entry.name), learned)
        });
        learned.collect()
    }

    /// Gives the seed that the options did not name. Only the first draw after it is affected.
    pub fn seed(&mut self, seed: u64) {
        self.rng = Rng::new(seed);
    }

    /// The latest instant that the engine knows.
    pub fn now(&self) -> Instant {
        self.now - self.epoch_offset
    }

    /// The options.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes a request in. It waits, also if it could leave at once: `poll` says when.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<Ticket, SubmitError> {
        self.advance(now);
        let (scopes, need) = self.checked(&request)?;
        let lane = self.queue.lane(&scopes, &need.costs, &mut self.registry[scopes[0]].waiters);
        let since = self.now - Span::from_millis(request.waited_ms);
        let ticket = self.queue.admit(lane, need, self.now, since);
        for &scope in &*scopes {
            self.begin_waiting(scope);
        }
        self.enter(ticket.0.index, request.delay_ms);
        Ok(ticket)
    }

    /// `submit` and the first `poll` in one, where no request waits and no limit keeps this one: the ticket
    /// of a request that is to be sent now. `None` if it would have to wait, or something else does; then no
    /// state has changed, and `submit` is the way. Once in flight it is like any other.
    ///
    /// All that is left out is what would be undone at once: the state is the same as after `submit` and
    /// `poll`, which `tests/native/reference.rs` compares.
    pub fn send_at_once(&mut self, now: Instant, request: Request) -> Result<Option<Ticket>, SubmitError> {
        if let [id] = *request.scopes
            && request.is_plain()
            && let Some(ticket) = self.send_express(now, id)
        {
            return Ok(Some(ticket));
        }
        self.send_in_full(now, request)
    }

    /// The same of any request, one step after another.
    pub(crate) fn send_in_full(
        &mut self,
        now: Instant,
        request: Request,
    ) -> Result<Option<Ticket>, SubmitError> {
        self.advance(now);
        if self.waiting() > 0 || request.delay_ms > 0.0 || self.global_block().is_some() {
            return Ok(None);
        }
        let (scopes, need) = self.checked(&request)?;
        let are_gone = match &scopes {
            // By its route it may have to wait.
            Scopes::One([scope]) if self.is_split(*scope) => false,
            Scopes::One([scope]) => self.leave_one_at_once(*scope, need.costs.of(0)),
            Scopes::Many(many) => self.leave_at_once(many, &need.costs),
        };
        if !are_gone {
            return Ok(None);
        }
        self.count_unknown(&scopes, true);
        let lane = self.queue.lane(&scopes, &need.costs, &mut self.registry[scopes[0]].waiters);
        let ticket = self.queue.send_at_once(lane, need, self.now);
        self.in_flight += 1;
        self.totals.sent += 1;
        Ok(Some(ticket))
    }

    /// Takes in a request that another engine has sent, `sent_ago` before now, and that is in flight still:
    /// it has its slots, its cost is taken, and gaps count from its send. No limit refuses it. A request that
    /// left before the snapshot that this engine [goes on from](Engine::restore) was taken has its slots
    /// only: the rest is in there. From here on it is like any other.
    ///
    /// No snapshot has the requests in flight, so a group whose engine changes would give a limit away twice.
    /// Tell the oldest first; where an older one comes late, the later time counts.
    pub fn adopt(&mut self, now: Instant, request: Request, sent_ago: Span) -> Result<Ticket, SubmitError> {
        self.advance(now);
        let sent = self.now - sent_ago;
        self.adopt_sent(request, sent, self.remembered.is_none_or(|remembered| sent > remembered))
    }

    /// The same where it is known whether the snapshot has it, and no time has to tell.
    pub fn adopt_known(
        &mut self,
        now: Instant,
        request: Request,
        sent_ago: Span,
        is_counted: bool,
    ) -> Result<Ticket, SubmitError> {
        self.advance(now);
        self.adopt_sent(request, self.now - sent_ago, !is_counted)
    }

    fn adopt_sent(&mut self, request: Request, sent: Instant, is_new: bool) -> Result<Ticket, SubmitError> {
        let (scopes, need) = self.understood(&request)?;
        let lane = self.queue.lane(&scopes, &need.costs, &mut self.registry[scopes[0]].waiters);
        for (position, &scope) in scopes.iter().enumerate() {
            self.registry.mark_used(scope);
            let cost = need.costs.of(position);
            let entry = &mut self.registry[scope];
            entry.scope.adopt(self.now, sent, cost, is_new, &mut self.rng);
            if let (true, Some(meter)) = (is_new, &mut entry.meter) {
                meter.on_send(self.now);
            }
        }
        self.count_unknown(&scopes, true);
        let since = sent - Span::from_millis(request.waited_ms);
        let ticket = self.queue.admit(lane, need, self.now, since);
        self.queue.adopt(ticket.0.index, sent);
        self.in_flight += 1;
        self.totals.sent += u64::from(is_new);
        for &scope in &*scopes {
            self.refresh(scope);
        }
        Ok(ticket)
    }

    /// The next step. Ask again after every [`Decision::Send`].
    pub fn poll(&mut self, now: Instant) -> Decision {
        self.advance(now);
        self.registry.next_turn();
        while let Some((at, index)) = self.parked.first()
            && at <= self.now
        {
            self.unpark(index);
            self.follow(index);
            self.join(index);
        }
        if let Some(reason) = self.global_block() {
            let because = (self.waiting() > 0).then_some(Cause { scope: None, reason });
            self.alarm = None;
            return Decision::Idle { because };
        }
        while let Some((at, scope)) = self.timers.first()
            && at <= self.now
        {
            self.refresh(scope);
        }
        while let Some((rank, lane)) = self.ready.first() {
            if let Some(ticket) = self.send_next(lane) {
                return Decision::Send(ticket);
            }
            match self.ask(lane, rank) {
                (Verdict::Go, _) => return Decision::Send(self.send(lane)),
                (verdict, scope) => self.block(lane, rank, scope, verdict),
            }
        }
        let answer = self.answer();
        self.alarm = match answer {
            Decision::Wait { until, .. } => Some(until + self.epoch_offset),
            _ => None,
        };
        answer
    }

    /// The request that was given to be sent left only at `now`: gaps and rolling windows of its scopes count
    /// from there, also where the engine has heard of a later time. An unknown ticket, or one that was not
    /// sent, is ignored.
    ///
    /// Without it a caller that is slow between the two (a busy event loop) sends two requests closer
    /// together than the delay: the next one is on time.
    pub fn sent_at(&mut self, now: Instant, ticket: Ticket) {
        let sent_at = now + self.epoch_offset;
        self.advance(now);
        self.enrol_express(ticket);
        let Some(granted) = self.send_time(ticket) else { return };
        let class = self.queue.entry(ticket.0.index).class;
        let lane = self.queue.class(class).lane;
        for (position, &scope) in self.queue.lane_at(lane).scopes.clone().iter().enumerate() {
            let cost = self.queue.class(class).need.costs.of(position);
            self.registry[scope].scope.on_sent_at(self.now, (granted, sent_at), cost);
            self.refresh(scope);
        }
        self.queue.adopt(ticket.0.index, granted.max(sent_at));
    }

    /// The request that was sent ended. An unknown ticket, or one that was not sent, is ignored.
    pub fn settle(&mut self, now: Instant, ticket: Ticket, feedback: &Feedback) {
        if let Some(status) = feedback.plain()
            && self.settle_at_once(now, ticket, status, feedback.latency_ms.unwrap_or(f64::NAN))
        {
            return;
        }
        self.settle_with(now, ticket, News::Same(feedback), None);
    }

    /// The same where it was not the same news for all of its scopes: a target that fails behind an API that
    /// does not. False for an unknown ticket, or one that was not sent.
    pub fn settle_each(&mut self, now: Instant, ticket: Ticket, of: impl Fn(ScopeId) -> Feedback) -> bool {
        self.settle_with(now, ticket, News::Each(&of), None)
    }

    pub(crate) fn settle_with(&mut self, now: Instant, ticket: Ticket, news: News, word: Word) -> bool {
        let is_known = self.apply_feedback(now, ticket, news, word);
        if self.queue.express(ticket).is_some() {
            self.queue.forget_express(ticket.0.index);
        } else if is_known {
            self.forget(ticket.0.index);
        }
        is_known
    }

    /// The request that was sent ended so that it is to be sent again, not before `delay_ms` from now: the
    /// same ticket waits again and keeps its place by age. `of` gives what it means for each of its
    /// scopes. False for an unknown ticket, one that was not sent, and a delay that is none.
    pub fn retry_each(
        &mut self,
        now: Instant,
        ticket: Ticket,
        of: impl Fn(ScopeId) -> Feedback,
        delay_ms: f64,
    ) -> bool {
        self.retry_with(now, ticket, News::Each(&of), delay_ms)
    }

    pub(crate) fn retry_with(&mut self, now: Instant, ticket: Ticket, news: News, delay_ms: f64) -> bool {
        if !(0.0..=LONGEST_MS).contains(&delay_ms) {
            return false;
        }
        self.enrol_express(ticket);
        if !self.apply_feedback(now, ticket, news, Some(true)) {
            return false;
        }
        let class = self.queue.entry(ticket.0.index).class;
        let lane = self.queue.class(class).lane;
        for &scope in &*self.queue.lane_at(lane).scopes.clone() {
            self.begin_waiting(scope);
        }
        self.queue.entry(ticket.0.index).stage = Stage::Parked { position: NONE };
        self.follow(ticket.0.index);
        self.enter(ticket.0.index, delay_ms);
        true
    }

    /// The caller gave up: a waiting request waits no longer; one that was allowed to leave but never did
    /// gives its slot and its cost back. An unknown ticket is ignored.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.advance(now);
        self.enrol_express(ticket);
        let Some(entry) = self.queue.get(ticket) else { return };
        self.totals.cancelled += 1;
        let lane = self.queue.class(entry.class).lane;
        match entry.stage {
            Stage::InFlight { sent } => {
                self.end(ticket, None, |_, scope, now, cost, _| {
                    scope.on_cancel(now, sent, cost);
                    Settled::default()
                });
                self.forget(ticket.0.index);
                return;
            }
            Stage::Express { .. } => return,
            Stage::Parked { .. } => self.unpark(ticket.0.index),
            Stage::Waiting { .. } | Stage::Early { .. } => {
                let from = self.lift(lane);
                self.queue.remove(ticket.0.index);
                self.put_back(lane, from);
            }
        }
        for &scope in &*self.queue.lane_at(lane).scopes.clone() {
            self.stop_waiting(scope);
            self.registry.mark_idle(scope);
            self.observe(scope);
        }
        self.forget(ticket.0.index);
    }

    /// Gives a waiting request another priority; it keeps its age. A request that does not wait, an unknown
    /// ticket and a priority that is no finite number change no state.
    pub fn prioritize(&mut self, now: Instant, ticket: Ticket, priority: f64) {
        self.advance(now);
        let Some(stage) = self.queue.get(ticket).map(|entry| entry.stage) else { return };
        if !priority.is_finite() || matches!(stage, Stage::InFlight { .. } | Stage::Express { .. }) {
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
        self.queue.remove(ticket.0.index);
        self.queue.reclass(ticket.0.index, need);
        self.queue.join(ticket.0.index);
        self.put_back(lane, from);
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

    /// A clock that goes back stands still.
    fn advance(&mut self, now: Instant) {
        self.now = self.to_engine_time(now);
    }

    /// The driver's `now` in the engine's own reckoning.
    fn to_engine_time(&self, now: Instant) -> Instant {
        self.now.max(now + self.epoch_offset)
    }

    /// How late the caller's timer is, if it was asked to wait.
    #[inline(always)]
    fn late(&self, now: Instant) -> Span {
        self.alarm.map_or(Span::ZERO, |at| now.since(at))
    }

    fn global_block(&self) -> Option<Reason> {
        if self.paused {
            Some(Reason::Paused)
        } else if self.in_flight >= self.config.max_in_flight {
            Some(Reason::Global)
        } else {
            None
        }
    }

    /// A request in flight stands in the place of one that had no answer.
    pub(crate) fn mark_repeated(&mut self, ticket: Ticket) {
        self.enrol_express(ticket);
        if self.queue.get(ticket).is_some() {
            self.queue.entry(ticket.0.index).has_failed = true;
        }
    }

    /// Lets the scopes hear how a request ended. False if it was not in flight; else its ticket is still
    /// there.
    fn apply_feedback(&mut self, now: Instant, ticket: Ticket, news: News, word: Word) -> bool {
        self.advance(now);
        let Some(&Entry { stage, has_failed: is_repeat, .. }) = self.queue.get(ticket) else { return false };
        let (Stage::InFlight { sent } | Stage::Express { sent }) = stage else { return false };
        self.totals.settled += 1;
        let (stall_after, mut has_failed) = (self.config.stall_after, is_repeat);
        self.end(ticket, word, |id, scope, now, cost, rng| {
            let own;
            let feedback = match news {
                News::Same(feedback) => feedback,
                News::Each(of) => {
                    own = of(id);
                    &own
                }
            };
            has_failed |= matches!(feedback.answer, Answer::Failed(_));
            scope.on_settle(now, (sent, cost), feedback, is_repeat, stall_after, rng)
        });
        if has_failed {
            self.queue.entry(ticket.0.index).has_failed = true;
        }
        true
    }

    /// Ends what is in flight: `hear` tells each of its scopes. The ticket is still there.
    fn end(
        &mut self,
        ticket: Ticket,
        word: Word,
        mut hear: impl FnMut(ScopeId, &mut Scope, Instant, Cost, &mut Rng) -> Settled,
    ) {
        self.in_flight -= 1;
        let class = self.queue.entry(ticket.0.index).class;
        let express = self.queue.express(ticket);
        let scopes = if let Some(scope) = express {
            self.registry.mark_used(scope);
            Scopes::One([scope])
        } else {
            self.queue.lane_at(self.queue.class(class).lane).scopes.clone()
        };
        self.count_unknown(&scopes, false);
        for (position, &scope) in scopes.iter().enumerate() {
            let costs = || self.queue.class(class).need.costs.of(position);
            let cost = if express.is_some() { Cost::ONE } else { costs() };
            let (id, entry) = self.registry.entry(scope);
            let before = entry.take_seen(self.now, self.watch);
            let settled = hear(id, &mut entry.scope, self.now, cost, &mut self.rng);
            let is_silent = word.is_some_and(|has_word| entry.silence.hear(has_word));
            if let (Some(ms), Some(meter)) = (settled.latency, &mut entry.meter) {
                meter.on_latency(ms);
            }
            if let Some(before) = before {
                self.notify(scope, before, &settled);
            }
            self.notify_always(scope, &settled, is_silent);
            self.registry.mark_idle(scope);
            self.refresh(scope);
        }
    }

    #[inline]
    fn send_time(&self, ticket: Ticket) -> Option<Instant> {
        match self.queue.get(ticket)?.stage {
            Stage::InFlight { sent } => Some(sent),
            _ => None,
        }
    }
}
