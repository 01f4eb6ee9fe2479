//! What was learned, as plain data that survives a process and a change of clock.
//!
//! The traps: an instant of one machine's clock means nothing on another's, so only spans are kept, and the wall
//! time at which they were taken; a restored engine must not forget its last send and start with a burst; and a
//! snapshot that is wrong in one place must not be half restored. Waiting requests are not part of it.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use crate::{
    config::{
        reader::{Problems, join},
        value::{Value, number_text},
    },
    error::ConfigError,
    observe::ByName,
    policy::{backoff, quota::Cost, server},
    time::{Instant, LONGEST_MS, Span},
};

/// The only version there is.
const VERSION: f64 = 1.0;

/// The most scopes and spans that a snapshot may hold in one list: a bound for hostile input.
const MOST: usize = 10_000_000;

/// Everything that an engine learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since 1970 at which it was taken; `None` if nobody said.
    pub wall_ms: Option<f64>,
    /// By name. Scopes that look like new are left out.
    pub scopes: Vec<(String, Learned)>,
}

/// What one scope learned. All spans are counted back from, or on from, the moment of the snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Since the last send.
    pub since_send: Option<Span>,
    /// Since the last send of each slot that still rests, or was in flight.
    pub rests: Vec<Span>,
    /// `AutoThrottle`'s delay in seconds.
    pub delay_s: Option<f64>,
    /// What is left of a hold.
    pub hold: Option<Span>,
    /// Whether the scope was paused.
    pub is_paused: bool,
    /// What was consumed of quotas.
    pub quotas: Vec<Spent>,
    /// How far the rate's schedule is ahead.
    pub rate: Option<Span>,
    /// The gap that rampup has come to.
    pub gap: Option<Span>,
    /// What robots.txt asks for.
    pub crawl: Option<Span>,
    /// Where backoff stands.
    pub backoff: Option<BackedOff>,
    /// What the server said is left of its quota.
    pub left: Option<Left>,
}

/// Where backoff stands. See [`backoff::State`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BackedOff {
    /// The delay in force; none if only a memory is left.
    pub pace: Span,
    /// The good delay to go back to; none if none is on trial.
    pub good: Span,
    /// The delay that failed; none if none is known.
    pub wall: Span,
    /// Slots allowed; 0 for no bound.
    pub slots: u32,
    /// Steps in force.
    pub steps: u32,
    /// Quiet windows spent beside the wall.
    pub rested: u8,
    /// How long ago nothing bad came and no step was taken.
    pub quiet: Span,
    /// Whether there is evidence for a step back.
    pub is_good: bool,
}

/// What the server said is left of its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// Units.
    pub cost: Cost,
    /// For so long.
    pub span: Span,
    /// The delay that spreads them.
    pub pace: Span,
}

impl BackedOff {
    pub(crate) fn of(state: &backoff::State, now: Instant) -> Self {
        Self {
            pace: state.pace,
            good: state.good,
            wall: state.wall,
            slots: if state.slots == u32::MAX { 0 } else { state.slots },
            steps: state.steps,
            rested: state.rested,
            quiet: now.since(state.quiet).min(Span::from_millis(LONGEST_MS)),
            is_good: state.is_good,
        }
    }

    /// The state, with `offline` passed since. What was sent before is forgotten, so all that is sent now is news.
    pub(crate) fn state(self, now: Instant, offline: Span) -> backoff::State {
        let quiet = now - (self.quiet + offline);
        backoff::State {
            pace: self.pace,
            slots: if self.slots == 0 { u32::MAX } else { self.slots },
            steps: self.steps,
            stepped: None,
            since: quiet,
            quiet,
            is_good: self.is_good,
            good: self.good,
            wall: self.wall,
            rested: self.rested,
        }
    }
}

impl Left {
    pub(crate) fn of(state: &server::State, now: Instant) -> Option<Self> {
        Some(Self { cost: state.left, span: state.until?.since(now), pace: state.pace })
    }

    pub(crate) fn state(self, now: Instant, offline: Span) -> server::State {
        let until = (self.span > offline).then(|| now + (self.span - offline));
        server::State { left: self.cost, told: self.cost, until, pace: self.pace, ..server::State::NEW }
    }
}

/// What was consumed of one quota.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// The quota's window.
    pub window: Span,
    /// Whether it rolls.
    pub is_strict: bool,
    /// How long ago, and how much. A fixed window has one entry, its start.
    pub sends: Vec<(Span, Cost)>,
}

impl Snapshot {
    /// Reads a snapshot. Everything that is wrong is reported at once, with its path.
    pub fn parse(value: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let snapshot = read_snapshot(value, &mut problems);
        if problems.0.is_empty() { Ok(snapshot) } else { Err(ConfigError { problems: problems.0 }) }
    }

    /// The time that passed between the snapshot and `wall_ms`; none if that clock went back.
    pub(crate) fn offline(&self, wall_ms: Option<f64>) -> Span {
        match (self.wall_ms, wall_ms) {
            (Some(then), Some(now)) => Span::from_millis((now - then).floor()),
            _ => Span::ZERO,
        }
    }
}

impl Learned {
    /// Whether there is nothing to remember.
    pub(crate) fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

fn read_snapshot(value: Value, problems: &mut Problems) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut version = None;
    object(value, "", problems, |key, value, path, problems| {
        match key {
            "version" => match value {
                Value::Number(VERSION) => version = Some(()),
                other => {
                    version = Some(());
                    problems.add(path, "1, the only version this release knows", other.describe());
                }
            },
            "wallMs" => snapshot.wall_ms = number(&value, path, 1e15, problems),
            "scopes" => object(value, path, problems, |name, value, path, problems| {
                snapshot.scopes.push((name.to_string(), read_learned(value, path, problems)));
                true
            }),
            _ => return false,
        }
        true
    });
    if version.is_none() {
        problems.add("version", "1", "nothing");
    }
    snapshot
}

fn read_learned(value: Value, path: &str, problems: &mut Problems) -> Learned {
    let mut learned = Learned::default();
    object(value, path, problems, |key, value, path, problems| {
        match key {
            "sinceSend" => learned.since_send = span(&value, path, problems),
            "rests" => list(value, path, problems, |value, path, problems| {
                learned.rests.extend(span(&value, path, problems));
            }),
            "delaySeconds" => learned.delay_s = number(&value, path, LONGEST_MS / 1000.0, problems),
            "hold" => learned.hold = span(&value, path, problems),
            "isPaused" => match value {
                Value::Bool(flag) => learned.is_paused = flag,
                other => problems.add(path, "true or false", other.describe()),
            },
            "rateAhead" => learned.rate = span(&value, path, problems),
            "gap" => learned.gap = span(&value, path, problems),
            "crawlDelay" => learned.crawl = span(&value, path, problems),
            "backoff" => learned.backoff = Some(read_backoff(value, path, problems)),
            "left" => learned.left = Some(read_left(value, path, problems)),
            "quotas" => list(value, path, problems, |value, path, problems| {
                learned.quotas.push(read_spent(value, path, problems));
            }),
            _ => return false,
        }
        true
    });
    learned
}

fn read_backoff(value: Value, path: &str, problems: &mut Problems) -> BackedOff {
    let mut backoff = BackedOff::default();
    object(value, path, problems, |key, value, path, problems| {
        let mut take = |most| number(&value, path, most, problems).unwrap_or_default();
        match key {
            "pace" => backoff.pace = Span::from_millis(take(LONGEST_MS)),
            "good" => backoff.good = Span::from_millis(take(LONGEST_MS)),
            "wall" => backoff.wall = Span::from_millis(take(LONGEST_MS)),
            "slots" => backoff.slots = take(1e6) as u32,
            "steps" => backoff.steps = take(1e6) as u32,
            "rested" => backoff.rested = take(255.0) as u8,
            "quiet" => backoff.quiet = Span::from_millis(take(LONGEST_MS)),
            "isGood" => match value {
                Value::Bool(flag) => backoff.is_good = flag,
                other => problems.add(path, "true or false", other.describe()),
            },
            _ => return false,
        }
        true
    });
    backoff
}

fn read_left(value: Value, path: &str, problems: &mut Problems) -> Left {
    let mut left = Left::default();
    object(value, path, problems, |key, value, path, problems| {
        let mut take = |most| number(&value, path, most, problems).unwrap_or_default();
        match key {
            "units" => left.cost = Cost::from_units(take(Cost::MOST_UNITS)).unwrap_or_default(),
            "span" => left.span = Span::from_millis(take(LONGEST_MS)),
            "pace" => left.pace = Span::from_millis(take(LONGEST_MS)),
            _ => return false,
        }
        true
    });
    left
}

fn read_spent(value: Value, path: &str, problems: &mut Problems) -> Spent {
    let mut spent = Spent::default();
    object(value, path, problems, |key, value, path, problems| {
        match key {
            "window" => spent.window = span(&value, path, problems).unwrap_or_default(),
            "strict" => match value {
                Value::Bool(flag) => spent.is_strict = flag,
                other => problems.add(path, "true or false", other.describe()),
            },
            "sends" => list(value, path, problems, |value, path, problems| match &value {
                Value::List(pair) if pair.len() == 2 => {
                    let ago = span(&pair[0], &format!("{path}[0]"), problems);
                    let cost = number(&pair[1], &format!("{path}[1]"), Cost::MOST_UNITS, problems);
                    spent.sends.extend(ago.zip(cost.and_then(Cost::from_units)));
                }
                other => problems.add(path, "[milliseconds ago, units]", other.describe()),
            }),
            _ => return false,
        }
        true
    });
    if spent.sends.windows(2).any(|pair| pair[0].0 < pair[1].0) {
        problems.add(&join(path, "sends"), "the oldest first", "another order");
    }
    spent
}

fn object(
    value: Value,
    path: &str,
    problems: &mut Problems,
    mut each: impl FnMut(&str, Value, &str, &mut Problems) -> bool,
) {
    match value {
        Value::Map(entries) if entries.len() <= MOST => {
            for (key, value) in entries {
                let got = value.describe();
                let path = join(path, &key);
                if value != Value::Nothing && !each(&key, value, &path, problems) {
                    problems.add(&path, "a key of a snapshot", got);
                }
            }
        }
        other => problems.add(path, "an object", other.describe()),
    }
}

fn list(value: Value, path: &str, problems: &mut Problems, mut each: impl FnMut(Value, &str, &mut Problems)) {
    match value {
        Value::List(items) if items.len() <= MOST => {
            for (index, item) in items.into_iter().enumerate() {
                each(item, &format!("{path}[{index}]"), problems);
            }
        }
        other => problems.add(path, "a list", other.describe()),
    }
}

fn span(value: &Value, path: &str, problems: &mut Problems) -> Option<Span> {
    number(value, path, LONGEST_MS, problems).map(Span::from_millis)
}

fn number(value: &Value, path: &str, most: f64, problems: &mut Problems) -> Option<f64> {
    match value {
        Value::Number(number) if (0.0..=most).contains(number) => Some(*number),
        other => {
            problems.add(path, format!("a number from 0 to {}", number_text(most)), other.describe());
            None
        }
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Snapshot", 3)?;
        fields.serialize_field("version", &VERSION)?;
        if let Some(wall_ms) = self.wall_ms {
            fields.serialize_field("wallMs", &wall_ms)?;
        }
        fields.serialize_field("scopes", &ByName(&self.scopes))?;
        fields.end()
    }
}

impl Serialize for Learned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(span) = self.since_send {
            map.serialize_entry("sinceSend", &span.millis())?;
        }
        if !self.rests.is_empty() {
            map.serialize_entry("rests", &Millis(&self.rests))?;
        }
        if let Some(seconds) = self.delay_s {
            map.serialize_entry("delaySeconds", &seconds)?;
        }
        if let Some(span) = self.hold {
            map.serialize_entry("hold", &span.millis())?;
        }
        if self.is_paused {
            map.serialize_entry("isPaused", &true)?;
        }
        if !self.quotas.is_empty() {
            map.serialize_entry("quotas", &self.quotas)?;
        }
        if let Some(span) = self.rate {
            map.serialize_entry("rateAhead", &span.millis())?;
        }
        if let Some(span) = self.gap {
            map.serialize_entry("gap", &span.millis())?;
        }
        if let Some(span) = self.crawl {
            map.serialize_entry("crawlDelay", &span.millis())?;
        }
        if let Some(backoff) = &self.backoff {
            map.serialize_entry("backoff", backoff)?;
        }
        if let Some(left) = &self.left {
            map.serialize_entry("left", left)?;
        }
        map.end()
    }
}

impl Serialize for BackedOff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("pace", &self.pace.millis())?;
        map.serialize_entry("good", &self.good.millis())?;
        map.serialize_entry("wall", &self.wall.millis())?;
        map.serialize_entry("slots", &self.slots)?;
        map.serialize_entry("steps", &self.steps)?;
        map.serialize_entry("rested", &self.rested)?;
        map.serialize_entry("quiet", &self.quiet.millis())?;
        map.serialize_entry("isGood", &self.is_good)?;
        map.end()
    }
}

impl Serialize for Left {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("units", &self.cost.units())?;
        map.serialize_entry("span", &self.span.millis())?;
        map.serialize_entry("pace", &self.pace.millis())?;
        map.end()
    }
}

impl Serialize for Spent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Spent", 3)?;
        fields.serialize_field("window", &self.window.millis())?;
        fields.serialize_field("strict", &self.is_strict)?;
        fields.serialize_field("sends", &Sends(&self.sends))?;
        fields.end()
    }
}

struct Millis<'a>(&'a [Span]);

impl Serialize for Millis<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|span| span.millis()))
    }
}

struct Sends<'a>(&'a [(Span, Cost)]);

impl Serialize for Sends<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for (ago, cost) in self.0 {
            seq.serialize_element(&[ago.millis(), cost.units()])?;
        }
        seq.end()
    }
}
