//! Processes of a group, a store and ways of a millisecond, without chance.

use std::collections::{BTreeMap, VecDeque};

use autothrottle::{
    Instant, Span, Value,
    boundary::{Outcome, Settled},
};
use autothrottle_shared::{
    Ask, Cause, Effect, Input, MOST_PART, MemberId, Offline, Refusal, Role, Settings, Shared, Ticket,
    Warning, is_change,
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub const LEASE: u64 = 1_500_000;
pub const WAY: u64 = 1000;

pub fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// JSON as the engine's value.
pub fn value(json: Json) -> Value {
    Value::deserialize(json).expect("a value")
}

/// One scope with these settings.
pub fn options(scope: Json) -> Value {
    let mut settings = json!({ "delay": 0, "jitter": false, "concurrency": 50 });
    let Json::Object(typed) = scope else { panic!("{scope} are no settings") };
    settings.as_object_mut().expect("an object").extend(typed);
    value(json!({ "seed": 1, "scopes": { "s": settings } }))
}

pub fn settings() -> Settings {
    Settings {
        lease: Span::from_micros(LEASE),
        offline: Some(Offline::Wait),
        members: None,
        prompt: false,
        keep_every: Span::ZERO,
        snapshot: None,
    }
}

#[derive(Clone)]
pub enum News {
    Frame(Vec<u8>),
    Elected(u64, u64, Option<(Vec<u8>, u64)>),
    Refused(u64),
    Renewed(u64),
    Failed(u64),
}

/// Processes, a store that elects, and ways of a millisecond.
#[derive(Default)]
pub struct Group {
    pub now: u64,
    pub processes: Vec<Shared>,
    /// Killed, or left.
    pub dead: Vec<usize>,
    /// No frame reaches these, and what they say arrives.
    pub deaf: Vec<usize>,
    /// These processes send no frame that arrives, and they hear.
    pub mute: Vec<usize>,
    /// The store cannot be reached by these.
    pub cut: Vec<usize>,
    /// The store answers no question and carries no frame; or it refuses all but what is said to the leader.
    pub stands_still: bool,
    pub refuses: bool,
    /// A frame, and an answer of the store, takes so much longer.
    pub far: u64,
    pub holder: Option<(usize, u64, u64)>,
    pub epoch: u64,
    pub stored: Option<(Vec<u8>, u64)>,
    pub news: VecDeque<(u64, usize, News)>,
    pub sent: Vec<(u64, usize, Ticket)>,
    pub failed: Vec<(usize, Refusal)>,
    pub warned: BTreeMap<usize, Vec<Warning>>,
    pub noticed: Vec<(usize, Value)>,
    /// The bytes that a process sent to all at once, and when.
    pub told: Vec<(u64, usize, usize)>,
    /// How many commands a store carries out for what is said; what a leader says in one turn goes together.
    pub commands: usize,
    spoke: Option<(u64, usize)>,
    pub reconnected: usize,
    /// This one is idle.
    pub stands: usize,
}

impl Group {
    pub fn of(count: usize, options: &Value, settings: &Settings) -> Self {
        let mut group = Self { now: 1_000_000, stands: usize::MAX, ..Self::default() };
        for _ in 0..count {
            group.join(options, settings);
        }
        group
    }

    pub fn join(&mut self, options: &Value, settings: &Settings) -> usize {
        let place = self.processes.len();
        let mut id = [0; 16];
        id[0] = place as u8 + 1;
        let process = Shared::new(MemberId(id), options.clone(), settings.clone(), place as u64).unwrap();
        self.processes.push(process);
        place
    }

    pub fn ask(&mut self, of: usize, count: usize) {
        for _ in 0..count {
            let ask = Ask { names: &["s"], costs: &[], priority: 0.0, delay_ms: 0.0 };
            self.processes[of].submit(at(self.now), &ask).unwrap();
        }
    }

    pub fn says(&mut self, of: usize, effect: Effect) {
        let now = self.now;
        let is_cut = self.cut.contains(&of);
        let later = now + 2 * WAY + self.far;
        if self.stands_still && !matches!(effect, Effect::Warn(_) | Effect::Fail { .. }) {
            return;
        }
        let is_cut = is_cut || self.refuses && !matches!(effect, Effect::ToLeader(_));
        let mut tell = |to: usize, news: News| self.news.push_back((later, to, news));
        let is_held = self.holder.is_some_and(|(_, _, until)| until > now);
        if let Effect::ToLeader(bytes) | Effect::ToMember { bytes, .. } | Effect::ToAll { bytes, .. } =
            &effect
        {
            let length = bytes.len();
            assert!(length <= MOST_PART + 256, "a frame of {length} bytes, which a transport may cut");
        }
        if self.mute.contains(&of) && !matches!(effect, Effect::Warn(_) | Effect::Fail { .. }) {
            return;
        }
        match effect {
            Effect::ToLeader(_) => self.commands += 1,
            Effect::ToMember { .. } | Effect::ToAll { .. } => {
                self.commands += if self.spoke.replace((now, of)) == Some((now, of)) { 1 } else { 3 };
            }
            _ => {}
        }
        match effect {
            Effect::Compete { op, .. } | Effect::Renew { op, .. } if is_cut => tell(of, News::Failed(op)),
            Effect::ToLeader(_) | Effect::ToMember { .. } | Effect::ToAll { .. } if is_cut => {}
            Effect::Compete { op, .. } if is_held => tell(of, News::Refused(op)),
            Effect::Compete { op, above } => {
                self.epoch = self.epoch.max(above) + 1;
                self.holder = Some((of, self.epoch, now + LEASE));
                let stored = self.stored.clone().map(|(bytes, at)| (bytes, now - at));
                tell(of, News::Elected(op, self.epoch, stored));
            }
            Effect::Renew { op, epoch, store } => match &mut self.holder {
                Some((holder, held, until)) if *holder == of && *held == epoch => {
                    *until = now + LEASE;
                    tell(of, News::Renewed(op));
                    self.put(store);
                }
                _ => tell(of, News::Refused(op)),
            },
            Effect::Release { epoch, store, .. } => {
                if self.holder.is_some_and(|(holder, held, _)| holder == of && held == epoch) {
                    self.holder = None;
                    self.put(store);
                }
            }
            Effect::ToLeader(bytes) => {
                if let Some((holder, ..)) = self.holder {
                    tell(holder, News::Frame(bytes));
                }
            }
            Effect::ToMember { to, bytes, .. } => tell(usize::from(to.0[0]) - 1, News::Frame(bytes)),
            Effect::ToAll { bytes, .. } => {
                match self.told.last_mut() {
                    Some((at, who, sum)) if (*at, *who) == (now, of) => *sum += bytes.len(),
                    _ => self.told.push((now, of, bytes.len())),
                }
                for to in 0..self.processes.len() {
                    tell(to, News::Frame(bytes.clone()));
                }
            }
            Effect::Reconnect { .. } => self.reconnected += 1,
            Effect::Fail { why, .. } => self.failed.push((of, why)),
            Effect::Warn(warning) => self.warned.entry(of).or_default().push(warning),
            Effect::Notice(notice) => self.noticed.push((of, notice)),
            Effect::Moved => {}
        }
    }

    /// As a store does: what changed is put behind the whole.
    fn put(&mut self, store: Option<Vec<u8>>) {
        let Some(bytes) = store else { return };
        match &mut self.stored {
            Some((kept, at)) if is_change(&bytes) => {
                kept.extend(bytes);
                *at = self.now;
            }
            stored => *stored = Some((bytes, self.now)),
        }
    }

    fn hears(&mut self, of: usize, news: News) {
        if of >= self.processes.len() {
            return;
        }
        if self.deaf.contains(&of) && matches!(news, News::Frame(_)) {
            return;
        }
        if self.dead.contains(&of) || self.cut.contains(&of) && !matches!(news, News::Failed(_)) {
            return;
        }
        let process = &mut self.processes[of];
        let now = at(self.now);
        match news {
            News::Frame(bytes) => process.handle(now, Input::Received(&bytes)),
            News::Elected(op, epoch, stored) => {
                let stored = stored.as_ref().map(|(bytes, age)| (&bytes[..], Span::from_micros(*age)));
                process.handle(now, Input::Elected { op, epoch, stored, first: epoch == 1 });
            }
            News::Refused(op) => process.handle(now, Input::Refused { op }),
            News::Renewed(op) => process.handle(now, Input::Renewed { op }),
            News::Failed(op) => process.handle(now, Input::Failed { op, cause: Cause::Broken("it is away") }),
        }
    }

    /// One process says what it has to say: how many frames to the leader.
    pub fn turn(&mut self, of: usize) -> usize {
        let mut frames = 0;
        while let Some(effect) = self.processes[of].poll_effect(at(self.now)) {
            frames += usize::from(matches!(effect, Effect::ToLeader(_)));
            self.says(of, effect);
        }
        frames
    }

    /// A millisecond at a time; what leaves is answered after `latency`.
    pub fn run(&mut self, span: u64, latency: u64) {
        let end = self.now + span;
        let mut flying: VecDeque<(u64, usize, Ticket)> = VecDeque::new();
        while self.now < end {
            self.now += WAY;
            while self.news.front().is_some_and(|news| news.0 <= self.now) {
                let (_, of, news) = self.news.pop_front().unwrap();
                self.hears(of, news);
            }
            while flying.front().is_some_and(|flight| flight.0 <= self.now) {
                let (_, of, ticket) = flying.pop_front().unwrap();
                if !self.dead.contains(&of) {
                    let ok = Outcome::new(200.0, 10.0, f64::NAN, 0);
                    assert_eq!(self.processes[of].settle(at(self.now), ticket, &ok).settled, Settled::Over);
                }
            }
            for of in 0..self.processes.len() {
                if self.dead.contains(&of) || self.stands == of {
                    continue;
                }
                let now = at(self.now);
                if self.processes[of].wake_at().is_some_and(|wake| wake <= now) {
                    self.processes[of].handle(now, Input::Timeout);
                }
                for _ in 0..2 {
                    while let Some(effect) = self.processes[of].poll_effect(now) {
                        self.says(of, effect);
                    }
                    while let Some(ticket) = self.processes[of].poll(now) {
                        self.sent.push((self.now, of, ticket));
                        if latency > 0 {
                            flying.push_back((self.now + latency, of, ticket));
                        }
                    }
                }
            }
        }
    }

    pub fn role(&self, of: usize) -> Role {
        self.processes[of].status(at(self.now)).role
    }

    pub fn count(&self, of: usize) -> usize {
        self.sent.iter().filter(|sent| sent.1 == of).count()
    }

    pub fn most_within(&self, window: u64) -> usize {
        let within =
            |from: u64| self.sent.iter().filter(|sent| (from..from + window).contains(&sent.0)).count();
        self.sent.iter().map(|sent| within(sent.0)).max().unwrap_or(0)
    }
}

pub fn gap(ms: f64) -> Value {
    options(json!({ "delay": ms }))
}
