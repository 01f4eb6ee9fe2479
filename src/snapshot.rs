//! What was learned, as plain data that survives a process and a change of clock.
//!
//! The traps: an instant of one machine's clock means nothing on another's, so only spans are kept, and the wall
//! time at which they were taken; a restored engine must not forget its last send and start with a burst; and a
//! snapshot that is wrong in one place must not be half restored. Waiting requests are not part of it.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use crate::{
    config::{
        reader::{Problems, join},
        value::Value,
    },
    error::ConfigError,
    policy::quota::Cost,
    stats::ByName,
    time::{LONGEST_MS, Span},
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
            "quotas" => list(value, path, problems, |value, path, problems| {
                learned.quotas.push(read_spent(value, path, problems));
            }),
            _ => return false,
        }
        true
    });
    learned
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
            problems.add(path, format!("a number from 0 to {most}"), other.describe());
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
