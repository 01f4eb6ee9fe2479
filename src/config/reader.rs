//! Takes the fields out of an object one by one, checks each against its row of the table, and collects every
//! problem with its path. It never stops at the first one.

use super::{
    field::{Settings, Source},
    suggestions,
    table::{self, DefaultValue, Kind, Row, Section},
};
pub use crate::{error::Problems, value::join};
use crate::{
    feedback::Failure,
    policy::{jitter, rate},
    record::Plain,
    time::{LONGEST_MS, Span},
    value::{Value, item_path, number_text, quoted, text, whole_text},
};

/// How a function of the driver's language is described.
const FUNCTION: &str = "a function";

/// The expected type of a section.
const OBJECT: &str = "an object";

/// A setting that is a flag or an object of its own section.
pub enum Choice<'a> {
    /// On or off.
    Flag(bool),
    /// On, with settings.
    Fields(Fields<'a>),
}

/// The fields of one object that are not taken yet.
pub struct Fields<'a> {
    pub(super) rows: &'static [Row],
    path: String,
    section: Section,
    left: Vec<(String, Value)>,
    /// Keys that stand one level farther out.
    outer: Vec<String>,
    pub(super) problems: &'a mut Problems,
}

impl<'a> Fields<'a> {
    /// The fields of `value`, which should be an object with the keys of `section`.
    pub fn of(value: Value, path: String, section: Section, problems: &'a mut Problems) -> Self {
        Self::of_table(table::ROWS, value, path, section, problems)
    }

    /// The same with the keys of a section of another table.
    pub fn of_table(
        rows: &'static [Row],
        value: Value,
        path: String,
        section: Section,
        problems: &'a mut Problems,
    ) -> Self {
        // An undefined value is left out, also where a setting beside it would be in its way.
        let is_left_out = |(key, value): &(String, Value)| {
            *value == Value::Nothing && rows.iter().any(|row| row.key == key)
        };
        let left = match value {
            Value::Map(mut entries) => {
                entries.retain(|entry| !is_left_out(entry));
                entries
            }
            Value::Nothing => Vec::new(),
            other => {
                problems.add(&path, Kind::Object(section).wants(), other.describe());
                Vec::new()
            }
        };
        Self { rows, path, section, left, outer: Vec::new(), problems }
    }

    /// The same with fields that stand at the top instead: `delay` is short for `defaults.delay`. A key that
    /// is in both places is a problem.
    pub fn beside(
        short: Vec<(String, Value)>,
        value: Value,
        path: String,
        section: Section,
        problems: &'a mut Problems,
    ) -> Self {
        let mut fields = Self::of(value, path, section, problems);
        for (key, value) in short {
            if fields.has(&key) {
                let want = text(&[&key, " here or in ", &fields.path, ", not in both"]);
                fields.problems.add(&key, want, value.describe());
            } else {
                fields.outer.push(key.clone());
                fields.left.push((key, value));
            }
        }
        fields
    }

    /// Takes all that are settings of another section and none of this one.
    pub fn take_all(&mut self, section: Section) -> Vec<(String, Value)> {
        let is_theirs = |key: &str| {
            table::row(self.rows, self.section, key).is_none()
                && table::row(self.rows, section, key).is_some()
        };
        self.left.extract_if(.., |(key, _)| is_theirs(key)).collect()
    }

    /// Takes `key`; `None` if it isn't there.
    pub fn take(&mut self, key: &str) -> Option<(Value, &'static Row)> {
        let row =
            table::row(self.rows, self.section, key).expect("the reader asks for rows of the table only");
        let at = self.left.iter().position(|(name, _)| name == key)?;
        let (_, value) = self.left.remove(at);
        (value != Value::Nothing).then_some((value, row))
    }

    /// Takes a word of hosts among themselves, which no row has and no one types; whether it was there.
    pub fn mark(&mut self, key: &str) -> bool {
        let at = self.left.iter().position(|(name, _)| name == key);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Whether `key` is there.
    pub fn has(&self, key: &str) -> bool {
        self.left.iter().any(|(name, value)| name == key && *value != Value::Nothing)
    }

    /// Takes a number, a whole number or milliseconds, whichever the row says.
    pub fn number(&mut self, key: &str) -> Option<f64> {
        let (value, row) = self.take(key)?;
        match value {
            Value::Number(number) if row.kind.holds(number) => Some(number),
            other => self.refuse(key, row, &other),
        }
    }

    /// Takes a whole number.
    pub fn whole(&mut self, key: &str) -> Option<u32> {
        self.number(key).map(|number| number as u32)
    }

    /// Takes a number, or the row's default.
    pub fn number_or_default(&mut self, key: &str) -> f64 {
        let default = table::row(self.rows, self.section, key).map(|row| row.default);
        match (self.number(key), default) {
            (Some(number), _) | (None, Some(DefaultValue::Number(number))) => number,
            _ => 0.0,
        }
    }

    /// Takes a function of the driver's.
    pub fn function(&mut self, key: &str) {
        if let Some((value, row)) = self.take(key)
            && value != Value::Other(FUNCTION.into())
        {
            self.refuse::<()>(key, row, &value);
        }
    }

    /// Takes a text that is not empty.
    pub fn text(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            (Value::Text(text), _) if !text.is_empty() => Some(text),
            (other, row) => self.refuse(key, row, &other),
        }
    }

    /// Takes a list of texts of this kind.
    pub fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        self.items(key, |item, _| match item {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// Takes a list, of which each item is read. An item that is none is wrong at its own place.
    pub fn items<T>(&mut self, key: &str, read: impl Fn(&Value, &Row) -> Option<T>) -> Option<Vec<T>> {
        let (value, row) = self.take(key)?;
        let items = match &value {
            Value::List(items) if row.kind != Kind::Amounts || !items.is_empty() => items,
            _ => return self.refuse(key, row, &value),
        };
        let path = self.path_of(key);
        let mut whole = Some(Vec::with_capacity(items.len()));
        for (index, item) in items.iter().enumerate() {
            match (read(item, row), &mut whole) {
                (Some(item), Some(made)) => made.push(item),
                (Some(_), None) => {}
                (None, _) => {
                    self.problems.add(&item_path(&path, index), row.kind.wants_of_item(), item.describe());
                    whole = None;
                }
            }
        }
        whole
    }

    /// Refuses `key`: the driver takes out what is right.
    pub fn none(&mut self, key: &str) {
        if let Some((value, row)) = self.take(key) {
            self.refuse::<()>(key, row, &value);
        }
    }

    /// Takes a number that must be there.
    pub fn number_required(&mut self, key: &str) -> Option<f64> {
        if !self.has(key) {
            self.require(key);
        }
        self.number(key)
    }

    /// Notes that `key` is missing.
    pub fn require(&mut self, key: &str) {
        if let Some(row) = table::row(self.rows, self.section, key)
            && !self.problems.0.iter().any(|problem| {
                problem.path == self.path && problem.want.starts_with(OBJECT)
                    || problem.path == join(&self.path, key)
            })
        {
            self.refuse::<()>(key, row, &Value::Nothing);
        }
    }

    /// Takes milliseconds as a span.
    pub fn millis(&mut self, key: &str) -> Option<Span> {
        self.number(key).map(Span::from_millis)
    }

    /// Takes a span above 0, or false for none; without the key it is what held so far.
    pub fn millis_or_false(&mut self, key: &str, so_far: Option<Span>) -> Option<Span> {
        match self.take(key) {
            None => so_far,
            Some((Value::Bool(false), _)) => None,
            Some((Value::Number(ms), _)) if ms > 0.0 && ms <= LONGEST_MS => Some(Span::from_millis(ms)),
            Some((other, row)) => self.refuse(key, row, &other),
        }
    }

    /// Takes one of the row's words.
    pub fn word(&mut self, key: &str) -> Option<&'static str> {
        let (value, row) = self.take(key)?;
        let word = match (&value, row.kind) {
            (Value::Text(text), Kind::Word(words)) => words.iter().find(|word| *word == text),
            _ => None,
        };
        word.copied().or_else(|| self.refuse(key, row, &value))
    }

    /// Takes a flag.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let (value, row) = self.take(key)?;
        match value {
            Value::Bool(flag) => Some(flag),
            other => self.refuse(key, row, &other),
        }
    }

    /// Takes a jitter: a flag, a number, or two.
    pub fn jitter(&mut self, key: &str) -> Option<jitter::Config> {
        let (value, row) = self.take(key)?;
        match (&value, pair(&value)) {
            (Value::Bool(true), _) => Some(jitter::Config::WIDE),
            (Value::Bool(false), _) => Some(jitter::Config::NONE),
            (Value::Number(spread), _) if (0.0..=1.0).contains(spread) => {
                Some(jitter::Config::around(*spread))
            }
            (_, Some((low, high))) if (-1.0..=10.0).contains(&low) && (low..=10.0).contains(&high) => {
                Some(jitter::Config { low, high })
            }
            _ => self.refuse(key, row, &value),
        }
    }

    /// Takes a number above 0 or the middle of two.
    pub fn target(&mut self, key: &str) -> Option<f64> {
        let (value, row) = self.take(key)?;
        let holds = |number: f64| number > 0.0 && number <= 1000.0;
        match (&value, pair(&value)) {
            (Value::Number(number), _) if holds(*number) => Some(*number),
            (_, Some((low, high))) if holds(low) && holds(high) && low <= high => Some((low + high) / 2.0),
            _ => self.refuse(key, row, &value),
        }
    }

    /// Takes a list of status codes, sorted.
    pub fn codes(&mut self, key: &str) -> Option<Box<[u16]>> {
        let codes = self.items(key, |item, row| match (item, row.kind) {
            (Value::Number(code), Kind::Codes { min })
                if (f64::from(min)..600.0).contains(code) && code.trunc() == *code =>
            {
                Some(*code as u16)
            }
            _ => None,
        })?;
        let mut sorted: Vec<u16> = Vec::new();
        for code in codes {
            if let Err(place) = sorted.binary_search(&code) {
                sorted.insert(place, code); // there are five hundred at most
            }
        }
        Some(sorted.into())
    }

    /// Takes a list of kinds of failure.
    pub fn failures(&mut self, key: &str) -> Option<Vec<Failure>> {
        self.items(key, |item, _| Failure::of(item))
    }

    /// Takes a list of amounts, at least one.
    pub fn amounts(&mut self, key: &str) -> Option<Vec<f64>> {
        self.items(key, |item, _| match item {
            Value::Number(amount) if (0.0..=1e12).contains(amount) => Some(*amount),
            _ => None,
        })
    }

    /// Takes a flag or an object of the section that the row names.
    pub fn flag_or(&mut self, key: &str) -> Option<Choice<'_>> {
        let (value, row) = self.take(key)?;
        match (value, row.kind) {
            (Value::Bool(flag), _) => Some(Choice::Flag(flag)),
            (value @ Value::Map(_), Kind::FlagOr(section)) => Some(Choice::Fields(Fields::of_table(
                self.rows,
                value,
                self.path_of(key),
                section,
                self.problems,
            ))),
            (other, _) => self.refuse(key, row, &other),
        }
    }

    /// Takes an object of its own section, with its path.
    pub fn object(&mut self, key: &str) -> Option<(Value, String)> {
        let (value, _) = self.take(key)?;
        Some((value, self.path_of(key)))
    }

    /// Where problems of nested objects go.
    pub fn problems(&mut self) -> &mut Problems {
        self.problems
    }

    /// The path of the object; empty for the options themselves.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The full path of `key`.
    pub fn path_of(&self, key: &str) -> String {
        let is_outer = self.outer.iter().any(|outer| outer == key);
        join(if is_outer { "" } else { &self.path }, key)
    }

    /// Whatever is left is unknown: each is a problem, with the nearest name that is known.
    pub fn finish(self) {
        for (key, value) in self.left {
            let nearest = suggestions::nearest(self.rows, self.section, &key);
            let want = match nearest {
                Some(name) if name == key => "no such setting here".into(),
                Some(name) => text(&["a known setting (did you mean ", name, "?)"]),
                None => "a known setting".into(),
            };
            self.problems.add(&join(&self.path, &key), want, value.describe());
        }
    }

    pub(super) fn refuse<T>(&mut self, key: &str, row: &Row, value: &Value) -> Option<T> {
        let path = self.path_of(key);
        let got = match pair(value) {
            Some((low, high)) => text(&["[", &number_text(low), ", ", &number_text(high), "]"]),
            None => value.describe(),
        };
        self.problems.add(&path, row.kind.wants(), got);
        None
    }
}

/// The two numbers of a list of two.
fn pair(value: &Value) -> Option<(f64, f64)> {
    match value {
        Value::List(items) => match items[..] {
            [Value::Number(low), Value::Number(high)] => Some((low, high)),
            _ => None,
        },
        _ => None,
    }
}

impl Source for Fields<'_> {
    fn number(&mut self, key: &str) -> Option<f64> {
        self.number(key)
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        self.flag(key)
    }

    fn jitter(&mut self, key: &str) -> Option<jitter::Config> {
        self.jitter(key)
    }

    fn target(&mut self, key: &str) -> Option<f64> {
        self.target(key)
    }

    fn rate(&mut self, key: &str) -> Option<rate::Config> {
        self.rate(key)
    }

    fn millis_or_false(&mut self, key: &str, so_far: Option<Span>) -> Option<Span> {
        self.millis_or_false(key, so_far)
    }

    fn flag_or_object<T: Settings>(&mut self, key: &str, so_far: Option<T>) -> Option<T> {
        match self.flag_or(key) {
            None => so_far,
            Some(Choice::Flag(flag)) => flag.then(|| so_far.unwrap_or_default()),
            Some(Choice::Fields(mut fields)) => {
                let read = T::read(&mut fields, &so_far.unwrap_or_default());
                fields.finish();
                Some(read)
            }
        }
    }
}

impl Kind {
    /// Whether a number is in the row's range.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::Number { above, max } => number > above && number <= max,
            Self::Whole { min, max } => {
                number.trunc() == number && number >= f64::from(min) && number <= f64::from(max)
            }
            Self::Millis { above_zero } => {
                (if above_zero { number > 0.0 } else { number >= 0.0 }) && number <= LONGEST_MS
            }
            Self::Fraction => number > 0.0 && number < 1.0,
            Self::Seed => number.trunc() == number && (0.0..=9_007_199_254_740_991.0).contains(&number),
            _ => false,
        }
    }

    /// The expected type of an item of a list, in words.
    fn wants_of_item(self) -> String {
        match self {
            Self::Codes { min } => text(&["a status from ", &whole_text(min.into()), " to 599"]),
            Self::Failures => "\"timeout\" or \"connection\"".into(),
            Self::Amounts => "a number from 0".into(),
            _ => "a text that is not empty".into(),
        }
    }

    /// The row's range in words, as errors and the documentation say it.
    pub fn wants(self) -> String {
        match self {
            Self::Number { above, max } => {
                let mut wants = text(&["a number above ", &number_text(above)]);
                if max != f64::MAX {
                    wants.push_str(", at most ");
                    wants.push_str(&number_text(max));
                }
                wants
            }
            Self::Whole { min, max } => {
                text(&["a whole number from ", &whole_text(min.into()), " to ", &whole_text(max.into())])
            }
            Self::Millis { above_zero: true } => "milliseconds above 0, at most a year".into(),
            Self::MillisOrFalse => "milliseconds above 0, at most a year; or false".into(),
            Self::Millis { above_zero: false } => "milliseconds from 0 to a year".into(),
            Self::Flag => "true or false".into(),
            Self::Fraction => "a number above 0 and below 1".into(),
            Self::Target => "a number above 0, at most 1000, or [low, high] of those".into(),
            Self::Codes { min } => text(&["a list of statuses from ", &whole_text(min.into()), " to 599"]),
            Self::Failures => "a list of \"timeout\" and \"connection\"".into(),
            Self::Amounts => "a list of numbers from 0, at least one".into(),
            Self::Jitter => {
                "true, false, a number from 0 to 1, or [low, high] with -1 ≤ low ≤ high ≤ 10".into()
            }
            Self::Quota => {
                "units above 0, at most 1000000000000; { limit, window, strict }; or a list of those".into()
            }
            Self::Rate => {
                "requests a second from 0.000001; \"100/min\" (/s, /min, /h, /day); or { limit, window, burst }"
                    .into()
            }
            Self::Seed => "a whole number from 0 to 9007199254740991".into(),
            Self::FlagOr(_) => "true, false or an object".into(),
            Self::Object(Section::Retry) => "an object, such as { limit: 3 }".into(),
            Self::Object(Section::Robots) => "an object, such as { userAgent: \"name\" }".into(),
            Self::Object(_) | Self::Named(_) => OBJECT.into(),
            Self::Word([one, other]) => text(&[&quoted(one), " or ", &quoted(other)]),
            Self::Word(words) => {
                let mut wants = String::from("one of ");
                for (index, word) in words.iter().enumerate() {
                    wants.push_str(if index > 0 { ", " } else { "" });
                    wants.push_str(&quoted(word));
                }
                wants
            }
            Self::Function => FUNCTION.into(),
            Self::Driver(what) | Self::Text(what) | Self::Texts(what) => what.into(),
        }
    }
}
