//! Numbers, spans and instants as header fields hold them, in whole milliseconds.
//!
//! The trap is a general number parser: it takes `1e3`, `0x10`, `Infinity` and loses fractions. Here a number is up to
//! fifteen digits with an optional fraction, and what is rounded is rounded up: never too early.

use super::date;

/// From here on a number of seconds is a date: 2001, or 31 years from now.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// From here on it is a date in milliseconds.
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// When something may happen again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    pub at: At,
    /// Whether the server speaks whole seconds: many cut the rest off.
    pub is_whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// In so many milliseconds.
    In(u64),
    /// At this many milliseconds since 1970, by the server's clock.
    Epoch(i64),
}

impl When {
    /// Milliseconds from the server's now; nothing for what is over.
    pub fn after(self, server_ms: i64) -> u64 {
        match self.at {
            At::In(ms) => ms,
            At::Epoch(ms) => u64::try_from(ms - server_ms).unwrap_or(0),
        }
    }
}

/// A delta, an instant since 1970, a Go duration or a date. `is_millis`: a plain number means milliseconds.
pub(super) fn when(text: &str, is_millis: bool, now_ms: i64) -> Option<When> {
    let text = text.trim();
    if let Some((whole, thousandths, is_whole)) = decimal(text) {
        let ms = whole * 1000 + thousandths;
        return Some(if whole >= EPOCH_MILLIS {
            When { at: At::Epoch(whole as i64), is_whole: false }
        } else if whole >= EPOCH_SECONDS {
            When { at: At::Epoch(ms as i64), is_whole }
        } else if is_millis {
            When { at: At::In(whole + thousandths.min(1)), is_whole: false }
        } else {
            When { at: At::In(ms), is_whole }
        });
    }
    if let Some((ms, is_whole)) = duration(text) {
        return Some(When { at: At::In(ms), is_whole });
    }
    date::parse(text, now_ms).map(|ms| When { at: At::Epoch(ms), is_whole: ms % 1000 == 0 })
}

/// The largest of several waits: a field that was sent twice is joined with commas, and dates hold one themselves.
pub(super) fn latest(text: &str, is_millis: bool, now_ms: i64, server_ms: Option<i64>) -> Option<When> {
    let mut members: Vec<String> = Vec::new();
    for part in text.split(',').take(64) {
        match members.last_mut() {
            Some(weekday)
                if !weekday.is_empty() && weekday.bytes().all(|byte| byte.is_ascii_alphabetic()) =>
            {
                weekday.push_str(part);
            }
            _ => members.push(part.trim().to_string()),
        }
    }
    let known = members
        .iter()
        .filter_map(|member| when(member, is_millis, now_ms))
        .filter(|when| server_ms.is_some() || matches!(when.at, At::In(_)));
    known.max_by_key(|when| when.after(server_ms.unwrap_or(0)))
}

/// A whole number that may be −1; fractions are cut off. Anything else is unknown.
pub(super) fn count(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    decimal(digits).map(|(whole, ..)| sign * whole as i64)
}

/// Units per second as thousandths: `0.5`.
pub(super) fn thousandths(text: &str) -> Option<u64> {
    decimal(text.trim()).map(|(whole, thousandths, _)| whole * 1000 + thousandths)
}

/// Whole part, thousandths rounded up, and whether there was no fraction.
fn decimal(text: &str) -> Option<(u64, u64, bool)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() > 15 {
        return None;
    }
    let mut thousandths = 0;
    for place in 0..3 {
        thousandths =
            thousandths * 10 + fraction.as_bytes().get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    let is_more = fraction.bytes().skip(3).any(|digit| digit != b'0');
    let whole = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole, thousandths + u64::from(is_more), fraction.is_empty()))
}

/// `6m0s`, `2m59.56s`, `17ms`, `1h2m3.5s`, `30s`: milliseconds, and whether they are whole seconds.
fn duration(text: &str) -> Option<(u64, bool)> {
    let mut left = text;
    let (mut ms, mut is_whole) = (0_u64, true);
    while !left.is_empty() {
        let digits = left.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = left.split_at(digits);
        let unit = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let (whole, thousandths, _) = decimal(number)?;
        let scale = match &rest[..unit] {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1000,
            "ms" => 1,
            _ => return None,
        };
        ms = ms.checked_add(whole.checked_mul(scale)?)?.checked_add((thousandths * scale).div_ceil(1000))?;
        is_whole &= scale > 1 && thousandths == 0;
        left = &rest[unit..];
    }
    (text.len() <= 32 && !text.is_empty() && ms < EPOCH_MILLIS * 1000).then_some((ms, is_whole))
}
