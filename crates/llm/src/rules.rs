//! How vendors count: the budgets that they have, what a call takes of them, and what their headers tell.
//!
//! A header's reset is the time until a bucket is *full*, not until something is left. `-requests` may be a
//! bucket of a day.

use crate::{LARGEST, Vendor};

/// Milliseconds of a minute and of a day.
pub(crate) const MINUTE: f64 = 60_000.0;
/// See [`MINUTE`].
pub(crate) const DAY: f64 = 86_400_000.0;
const WINDOWS: [f64; 5] = [1000.0, 10_000.0, MINUTE, 3_600_000.0, DAY];

/// A budget of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are names")]
pub enum Kind {
    /// Of requests that ask no model.
    Other,
    Requests,
    Day,
    Tokens,
    Project,
    Input,
    Output,
}

impl Kind {
    /// Each of them, by its number.
    pub const ALL: [Self; 7] =
        [Self::Other, Self::Requests, Self::Day, Self::Tokens, Self::Project, Self::Input, Self::Output];
    /// Their names in scopes, in this order.
    pub const NAMES: [&str; 7] = ["other", "requests", "day", "tokens", "project", "input", "output"];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|&known| known == name).map(|at| Self::ALL[at])
    }

    /// Counted in requests, not in tokens.
    pub(crate) fn is_count(self) -> bool {
        matches!(self, Self::Other | Self::Requests | Self::Day)
    }
}

/// How a vendor counts.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a column of a table")]
pub(crate) struct Rules {
    /// Budgets that a call may spend from.
    pub kinds: &'static [Kind],
    /// `tokens` is charged the larger of input and output, not both.
    pub is_larger: bool,
    /// True usage is charged.
    pub is_actual: bool,
    /// Reserve what may come out at most, not what usually does.
    pub is_max: bool,
    pub is_sliding: bool,
    pub is_cached_free: bool,
    /// A day's requests come back evenly, not at midnight.
    pub is_even_day: bool,
    /// Its requests are of a day, where the headers leave that open.
    pub is_daily: bool,
    /// Requests of a minute may be counted by the second.
    pub is_spread: bool,
    /// It estimates input from characters, as `OpenAI` does, and not from tokens.
    pub is_by_characters: bool,
    /// How far what the headers say may be off: Anthropic rounds tokens to thousands.
    pub rounding: f64,
}

/// A request that asks no model.
static OTHER: Rules = NONE;
const NONE: Rules = Rules {
    kinds: &[Kind::Other],
    is_larger: false,
    is_actual: false,
    is_max: false,
    is_sliding: false,
    is_cached_free: false,
    is_even_day: false,
    is_daily: false,
    is_spread: false,
    is_by_characters: false,
    rounding: 0.0,
};
const ACTUAL: Rules = Rules { kinds: &[Kind::Requests, Kind::Day, Kind::Tokens], is_actual: true, ..NONE };
const RESERVED: Rules = Rules { is_actual: false, is_max: true, is_by_characters: true, ..ACTUAL };
/// By the number of the vendor.
static VENDORS: [Rules; 7] = [
    Rules {
        kinds: &[Kind::Requests, Kind::Day, Kind::Tokens, Kind::Project],
        is_larger: true,
        is_even_day: true,
        ..RESERVED
    },
    Rules {
        kinds: &[Kind::Requests, Kind::Input, Kind::Output],
        is_cached_free: true,
        is_spread: true,
        rounding: 500.0,
        ..ACTUAL
    },
    Rules { is_sliding: true, ..RESERVED },
    ACTUAL,
    Rules { is_even_day: true, is_daily: true, ..ACTUAL },
    ACTUAL,
    Rules { kinds: &[Kind::Requests, Kind::Day, Kind::Input, Kind::Tokens], ..ACTUAL },
];

impl Rules {
    /// Those of a vendor; `None` where no model is asked.
    pub fn of(vendor: Option<Vendor>) -> &'static Self {
        vendor.map_or(&OTHER, |vendor| &VENDORS[vendor as usize])
    }
}

/// A budget as the headers tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// Which one.
    pub kind: Kind,
    /// The amount of a window.
    pub limit: f64,
    /// The amount that is left of it.
    pub left: Option<f64>,
    /// Milliseconds of a window.
    pub per: f64,
}

/// The budget that a quota of the headers is. `remaining` and `reset_ms`: NaN and 0 where they are not known.
///
/// The window follows from what is missing and the time until it is back. Where too little is missing to
/// tell, it is the usual one: a minute, and Groq's requests a day.
pub fn reported(
    vendor: Option<Vendor>,
    policy: &str,
    limit: f64,
    remaining: f64,
    reset_ms: f64,
) -> Option<Reported> {
    let rules = Rules::of(vendor);
    let of_day = policy.strip_suffix("-day");
    let plain = of_day.or_else(|| policy.strip_suffix("-minute"));
    let what = plain.unwrap_or(policy);
    let what = what.strip_suffix("-tokens").unwrap_or(what);
    let kind = if what == "req" { Kind::Requests } else { Kind::named(what)? };
    let is_sound = limit > 0.0 && limit <= LARGEST;
    if !is_sound || kind == Kind::Other || !rules.kinds.contains(&kind) {
        return None;
    }
    let left = (remaining >= 0.0).then(|| remaining.min(limit));
    let is_requests = kind == Kind::Requests;
    let guess = reset_ms * limit / (limit - left.unwrap_or(limit));
    let is_clear = !rules.is_spread && plain.is_none() && guess > 0.0 && guess < 1e15;
    let per = if is_clear {
        let off = |per: f64| (per / guess).max(guess / per);
        WINDOWS.into_iter().reduce(|best, each| if off(each) < off(best) { each } else { best })?
    } else if of_day.is_some() || rules.is_daily && is_requests {
        DAY
    } else {
        MINUTE
    };
    let is_day = is_requests && per > MINUTE && rules.kinds.contains(&Kind::Day);
    Some(Reported { kind: if is_day { Kind::Day } else { kind }, limit, left, per })
}
