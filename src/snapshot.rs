//! The learned state, as plain data that survives a process and a change of clock.
//!
//! An instant of one machine's clock has no meaning on another's, so only spans are kept, and the wall time
//! at which they were taken. The last send is kept too, so a restored engine starts without a burst. A
//! snapshot that is wrong in one place is not restored at all. Waiting requests are not part of it.

use crate::{
    error::{ConfigError, Problems},
    policies::Memory,
    policy::{backoff, quota::Cost, server},
    time::{Instant, LONGEST_MS, Span},
    value::{Value, item_path, join, number_text, text},
};

/// The only version there is.
const VERSION: f64 = 1.0;

/// The most scopes and spans that a snapshot may hold in one list: a bound for hostile input.
const MOST: usize = 10_000_000;

/// Everything that an engine learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Milliseconds since 1970 at which it was taken; `None` if unknown.
    pub wall_ms: Option<f64>,
    /// By name. Scopes that look like new are left out.
    pub scopes: Vec<(String, Learned)>,
}

/// The learned state of one scope. All spans are counted back from, or on from, the moment of the snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// How much older than the snapshot it is: an engine writes all at once, others put several together.
    pub age: Span,
    /// Since the last send.
    pub since_send: Option<Span>,
    /// Since the last send of each slot that still rests, or was in flight.
    pub rests: Vec<Span>,
    /// The memory of the policies that a scope may have or not.
    pub policies: Memory,
    /// The rest of a hold.
    pub hold: Option<Span>,
    /// Whether the scope was paused.
    pub is_paused: bool,
    /// The spent parts of quotas.
    pub quotas: Vec<Spent>,
    /// The delay that robots.txt asks for.
    pub crawl: Option<Span>,
    /// Where backoff stands.
    pub backoff: Option<BackedOff>,
    /// The rest of a quota, as the server stated it.
    pub left: Option<Left>,
    /// Which routes spend from which of its budgets.
    pub routes: Vec<Known>,
}

/// Where backoff stands. See [`backoff::State`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BackedOff {
    /// The delay in force; none if only a memory is left.
    pub pace: Span,
    /// The good delay to go back to; none if none is on trial.
    pub good: Span,
    /// The delay that failed; none if none is known.
    pub failed_delay: Span,
    /// Slots allowed; 0 for no bound.
    pub slots: u32,
    /// Steps in force.
    pub steps: u32,
    /// Quiet windows spent beside that delay.
    pub rested: u8,
    /// How long there was no bad answer and no step.
    pub quiet: Span,
    /// Whether there is evidence for a step back.
    pub is_good: bool,
}

/// The rest of a quota, as the server stated it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// Units.
    pub cost: Cost,
    /// For so long.
    pub span: Span,
    /// The delay that spreads them.
    pub pace: Span,
}

/// The budget that a route, or a family of them, spends from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// A pattern, or the beginning of several.
    pub key: String,
    /// Names of budgets.
    pub budgets: Vec<String>,
    /// How many routes said so; 255 for a family that disagrees.
    pub routes: u8,
}

impl BackedOff {
    pub(crate) fn of(state: &backoff::State, now: Instant) -> Self {
        Self {
            pace: state.pace,
            good: state.good,
            failed_delay: state.failed_delay,
            slots: if state.slots == u32::MAX { 0 } else { state.slots },
            steps: state.steps,
            rested: state.rested,
            quiet: now.since(state.quiet).min(Span::from_millis(LONGEST_MS)),
            is_good: state.is_good,
        }
    }

    /// The state, with `offline` passed since. Sends before that are forgotten, so all sends from now on are
    /// news.
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
            failed_delay: self.failed_delay,
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
        server::State { left: self.cost, reported: self.cost, until, pace: self.pace, ..server::State::NEW }
    }
}

/// The spent part of one quota.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// The quota's window.
    pub window: Span,
    /// Whether it rolls.
    pub is_strict: bool,
    /// How long ago, and how much. A fixed window has one entry, its start.
    pub sends: Vec<(Span, Cost)>,
    /// The amount by which the windows after this one are reduced.
    pub owed: Cost,
}

impl Snapshot {
    /// Reads a snapshot. Everything that is wrong is reported at once, with its path.
    pub fn parse(value: Value) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        let mut snapshot = Self::default();
        read(&mut snapshot, value, "", &mut problems);
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

impl From<Snapshot> for Value {
    fn from(mut snapshot: Snapshot) -> Self {
        written(&mut snapshot)
    }
}

impl Learned {
    /// Whether it is empty.
    pub(crate) fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

/// Each field once, for both ways: on the way out it is given and stays, on the way in it is what stood
/// there.
trait Fields {
    fn fields(&mut self, visit: &mut Visit);
}

impl Fields for Snapshot {
    fn fields(&mut self, visit: &mut Visit) {
        let version = visit.number("version", Some(VERSION), f64::MAX);
        if version.is_none_or(|version| version != VERSION) {
            let got = version.map_or("nothing".into(), number_text);
            visit.problem("version", "1, the only version this release knows", &got);
        }
        self.wall_ms = visit.number("wallMs", self.wall_ms, 1e15);
        if visit.is_missing("scopes") {
            visit.problem("scopes", "an object", "nothing");
        }
        if visit.problems.is_none() {
            let scope = |(name, mut learned)| (name, written(&mut learned));
            visit.put("scopes", Value::Map(self.scopes.drain(..).map(scope).collect()));
        } else if let (Some((value, path)), Some(problems)) = (visit.take("scopes"), &mut visit.problems) {
            for (name, value) in entries(value, &path, problems) {
                if value != Value::Nothing {
                    let mut learned = Learned::default();
                    read(&mut learned, value, &join(&path, &name), problems);
                    self.scopes.push((name, learned));
                }
            }
        }
    }
}

impl Fields for Learned {
    fn fields(&mut self, visit: &mut Visit) {
        let age = visit.span("age", Some(self.age).filter(|&age| age > Span::ZERO));
        self.age = age.unwrap_or_default();
        self.since_send = visit.span("sinceSend", self.since_send);
        let rests = core::mem::take(&mut self.rests);
        let mut out = rests.into_iter().map(|span| span.millis().into());
        visit.list("rests", &mut out, &mut |value, path, problems| {
            self.rests.extend(read_number(&value, path, problems, LONGEST_MS).map(Span::from_millis));
        });
        self.policies.each(&mut |key, most, number| *number = visit.number(key, *number, most));
        self.hold = visit.span("hold", self.hold);
        self.is_paused = visit.flag("isPaused", self.is_paused);
        let mut quotas = core::mem::take(&mut self.quotas);
        let mut out = quotas.iter_mut().map(|spent| written(spent));
        visit.list("quotas", &mut out, &mut |value, path, problems| {
            let mut spent = Spent::default();
            read(&mut spent, value, path, problems);
            self.quotas.push(spent);
        });
        self.crawl = visit.span("crawlDelay", self.crawl);
        let mut backoff = self.backoff.unwrap_or_default();
        self.backoff = visit.object("backoff", &mut backoff, self.backoff.is_some()).then_some(backoff);
        let mut left = self.left.unwrap_or_default();
        self.left = visit.object("left", &mut left, self.left.is_some()).then_some(left);
        let routes = core::mem::take(&mut self.routes);
        let mut out = routes.into_iter().map(Known::written);
        visit.list("routes", &mut out, &mut |value, path, problems| {
            self.routes.extend(Known::read(&value, path, problems));
        });
    }
}

impl Known {
    /// `["GET /search/*", 2, "search"]`.
    fn written(self) -> Value {
        let mut items = vec![Value::Text(self.key), f64::from(self.routes).into()];
        items.extend(self.budgets.into_iter().map(Value::Text));
        Value::List(items)
    }

    fn read(value: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        if let Value::List(items) = value
            && let [Value::Text(key), Value::Number(routes), budgets @ ..] = &items[..]
            && (1.0..=255.0).contains(routes)
        {
            let mut known = Self { key: key.clone(), budgets: Vec::new(), routes: *routes as u8 };
            for budget in budgets {
                let Value::Text(name) = budget else { break };
                known.budgets.push(name.clone());
            }
            if known.budgets.len() == budgets.len() {
                return Some(known);
            }
        }
        problems.add(path, "[route, how many, budget, …]", value.describe());
        None
    }
}

impl Fields for BackedOff {
    fn fields(&mut self, visit: &mut Visit) {
        self.pace = visit.some_span("pace", self.pace);
        self.good = visit.some_span("good", self.good);
        self.failed_delay = visit.some_span("wall", self.failed_delay);
        self.slots = visit.count("slots", self.slots, 1e6);
        self.steps = visit.count("steps", self.steps, 1e6);
        self.rested = visit.count("rested", self.rested.into(), 255.0) as u8;
        self.quiet = visit.some_span("quiet", self.quiet);
        self.is_good = visit.flag("isGood", self.is_good);
    }
}

impl Fields for Left {
    fn fields(&mut self, visit: &mut Visit) {
        self.cost = visit.cost("units", Some(self.cost));
        self.span = visit.some_span("span", self.span);
        self.pace = visit.some_span("pace", self.pace);
    }
}

impl Fields for Spent {
    fn fields(&mut self, visit: &mut Visit) {
        self.window = visit.some_span("window", self.window);
        self.is_strict = visit.flag("strict", self.is_strict);
        let sends = core::mem::take(&mut self.sends);
        let pair = |(ago, cost): (Span, Cost)| Value::List(vec![ago.millis().into(), cost.units().into()]);
        visit.list("sends", &mut sends.into_iter().map(pair), &mut |value, path, problems| {
            self.sends.extend(read_send(&value, path, problems));
        });
        self.owed = visit.cost("owed", Some(self.owed).filter(|&owed| owed > Cost::ZERO));
        if self.sends.windows(2).any(|pair| pair[0].0 < pair[1].0) {
            visit.problem("sends", "the oldest first", "another order");
        }
    }
}

/// One object on its way in or out.
struct Visit<'a> {
    /// In: those that were not asked for yet. Out: those so far.
    entries: Vec<(String, Value)>,
    path: &'a str,
    /// None on the way out.
    problems: Option<&'a mut Problems>,
}

/// Takes in an item of a list, with its path.
type Each<'a> = &'a mut dyn FnMut(Value, &str, &mut Problems);

// Each of these is called a dozen times: where they are inlined, reading a snapshot is half of its weight.
impl Visit<'_> {
    /// On the way out: gives a value away.
    #[inline(never)]
    fn put(&mut self, key: &str, value: Value) {
        if value != Value::Nothing {
            self.entries.push((key.into(), value));
        }
    }

    /// On the way in: what stands there, if anything does, with its path.
    #[inline(never)]
    fn take(&mut self, key: &str) -> Option<(Value, String)> {
        let place = self.entries.iter().position(|(name, _)| name == key)?;
        let value = self.entries.remove(place).1;
        (value != Value::Nothing).then(|| (value, join(self.path, key)))
    }

    #[inline(never)]
    fn number(&mut self, key: &str, field: Option<f64>, most: f64) -> Option<f64> {
        if self.problems.is_none() {
            self.put(key, field.into());
            return field;
        }
        let (value, path) = self.take(key)?;
        read_number(&value, &path, self.problems.as_mut()?, most)
    }

    #[inline(never)]
    fn span(&mut self, key: &str, field: Option<Span>) -> Option<Span> {
        self.number(key, field.map(Span::millis), LONGEST_MS).map(Span::from_millis)
    }

    #[inline(never)]
    fn some_span(&mut self, key: &str, field: Span) -> Span {
        self.span(key, Some(field)).unwrap_or_default()
    }

    #[inline(never)]
    fn cost(&mut self, key: &str, field: Option<Cost>) -> Cost {
        let units = self.number(key, field.map(Cost::units), Cost::MOST_UNITS);
        units.and_then(Cost::from_units).unwrap_or_default()
    }

    #[inline(never)]
    fn count(&mut self, key: &str, field: u32, most: f64) -> u32 {
        self.number(key, Some(field.into()), most).unwrap_or_default() as u32
    }

    #[inline(never)]
    fn flag(&mut self, key: &str, field: bool) -> bool {
        if self.problems.is_none() {
            self.put(key, field.then_some(true).into());
            return field;
        }
        match (self.take(key), &mut self.problems) {
            (Some((Value::Bool(flag), _)), _) => flag,
            (Some((value, path)), Some(problems)) => {
                problems.add(&path, "true or false", value.describe());
                false
            }
            _ => false,
        }
    }

    /// True if the object is there, which is in `item` then.
    fn object(&mut self, key: &str, item: &mut dyn Fields, is_there: bool) -> bool {
        if self.problems.is_none() {
            self.put(key, if is_there { written(item) } else { Value::Nothing });
            return is_there;
        }
        let (Some((value, path)), Some(problems)) = (self.take(key), &mut self.problems) else {
            return false;
        };
        read(item, value, &path, problems);
        true
    }

    /// A list: `out` gives its items, `each` hears of those that stood there.
    fn list(&mut self, key: &str, out: &mut dyn Iterator<Item = Value>, each: Each) {
        if self.problems.is_none() {
            let items: Vec<Value> = out.collect();
            return self.put(key, if items.is_empty() { Value::Nothing } else { Value::List(items) });
        }
        match (self.take(key), &mut self.problems) {
            (Some((Value::List(items), path)), Some(problems)) if items.len() <= MOST => {
                for (index, item) in items.into_iter().enumerate() {
                    each(item, &item_path(&path, index), problems);
                }
            }
            (Some((other, path)), Some(problems)) => problems.add(&path, "a list", other.describe()),
            _ => {}
        }
    }

    fn is_missing(&self, key: &str) -> bool {
        !self.entries.iter().any(|(name, value)| name == key && *value != Value::Nothing)
    }

    #[inline(never)]
    fn problem(&mut self, key: &str, want: &str, got: &str) {
        let path = join(self.path, key);
        if let Some(problems) = &mut self.problems
            && problems.0.last().is_none_or(|problem| problem.path != path)
        {
            problems.add(&path, want, got);
        }
    }
}

fn written(item: &mut dyn Fields) -> Value {
    let mut visit = Visit { entries: Vec::new(), path: "", problems: None };
    item.fields(&mut visit);
    Value::Map(visit.entries)
}

fn read(item: &mut dyn Fields, value: Value, path: &str, problems: &mut Problems) {
    let mut visit = Visit { entries: entries(value, path, problems), path, problems: Some(problems) };
    item.fields(&mut visit);
    for (key, value) in visit.entries {
        if value != Value::Nothing {
            problems.add(&join(path, &key), "a key of a snapshot", value.describe());
        }
    }
}

fn entries(value: Value, path: &str, problems: &mut Problems) -> Vec<(String, Value)> {
    match value {
        Value::Map(entries) if entries.len() <= MOST => entries,
        other => {
            problems.add(path, "an object", other.describe());
            Vec::new()
        }
    }
}

fn read_number(value: &Value, path: &str, problems: &mut Problems, most: f64) -> Option<f64> {
    match value {
        Value::Number(number) if (0.0..=most).contains(number) => Some(*number),
        other => {
            problems.add(path, text(&["a number from 0 to ", &number_text(most)]), other.describe());
            None
        }
    }
}

fn read_send(value: &Value, path: &str, problems: &mut Problems) -> Option<(Span, Cost)> {
    match value {
        Value::List(pair) if pair.len() == 2 => {
            let ago = read_number(&pair[0], &item_path(path, 0), problems, LONGEST_MS);
            let units = read_number(&pair[1], &item_path(path, 1), problems, Cost::MOST_UNITS);
            ago.map(Span::from_millis).zip(units.and_then(Cost::from_units))
        }
        other => {
            problems.add(path, "[milliseconds ago, units]", other.describe());
            None
        }
    }
}
