//! Counts, rates, spans and instants as header fields hold them.
//!
//! Waits are rounded up and rates down, so no request leaves too early. A count below zero is used up; one
//! that is missing is unknown.

use super::date;
use crate::scan::{Scan, cut, is, is_letter, strip};

/// From here on a number of seconds is a date: 2001, or 31 years from now.
const EPOCH_SECONDS: u64 = 1_000_000_000;
/// From here on it is a date in milliseconds.
const EPOCH_MILLIS: u64 = 1_000_000_000_000;
/// Waits that are joined in one field beyond this number are hostile.
const MOST_WAITS: usize = 64;
/// Go writes no longer duration: `2562047h47m16.854775807s`.
const MOST_DURATION_BYTES: usize = 32;

/// How instants are read.
#[derive(Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "each says its unit")]
pub(super) struct Clock {
    /// Decides the century of a two-digit year.
    pub century_ms: i64,
    /// The server's now; `None` if it is unknown, and then instants have no meaning.
    pub server_ms: Option<i64>,
    /// The same with its fraction, if that is known.
    pub exact_ms: Option<i64>,
}

/// How long something takes from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub ms: u64,
    /// Whether the server speaks whole seconds: many cut the rest off.
    pub is_whole: bool,
    /// By how much it is too long, as `Date` has no fraction.
    pub over_ms: u64,
}

impl Clock {
    /// A delta, an instant since 1970, a Go duration or a date. `is_millis`: a plain number means
    /// milliseconds.
    pub fn wait(self, text: &[u8], is_millis: bool) -> Option<Wait> {
        let text = text.trim_ascii();
        let mut scan = Scan(text);
        let number = scan.decimal();
        let Some(number) = number.filter(|_| scan.is_done()) else {
            return duration(text).or_else(|| self.after(date::parse(text, self.century_ms)?, true));
        };
        let (whole, thousandths) = (number.whole, number.thousandths());
        if whole >= EPOCH_MILLIS {
            self.after(whole as i64, false)
        } else if whole >= EPOCH_SECONDS {
            self.after((whole * 1000 + thousandths) as i64, number.is_whole)
        } else if is_millis {
            Some(Wait { ms: whole + thousandths.min(1), is_whole: false, over_ms: 0 })
        } else {
            Some(Wait { ms: whole * 1000 + thousandths, is_whole: number.is_whole, over_ms: 0 })
        }
    }

    /// The largest of several waits: a field that was sent twice is joined with commas, and dates hold one
    /// themselves.
    pub fn latest(self, text: &[u8], is_millis: bool) -> Option<Wait> {
        let (mut left, mut latest): (_, Option<Wait>) = (Some(text), None);
        for _ in 0..MOST_WAITS {
            let Some(text) = left else { break };
            let (mut member, mut rest) = cut(text, b',');
            if is_weekday(bare(member))
                && let Some(behind) = rest
            {
                let date = cut(behind, b',');
                member = text.get(..member.len() + 1 + date.0.len()).unwrap_or(member);
                rest = date.1;
            }
            let wait = self.wait(without_unit(bare(member)), is_millis);
            latest = wait.filter(|wait| latest.is_none_or(|latest| wait.ms >= latest.ms)).or(latest);
            left = rest;
        }
        latest
    }

    /// The wait until an instant by the server's clock; zero for what is over.
    fn after(self, epoch_ms: i64, is_whole: bool) -> Option<Wait> {
        let until = |from| u64::try_from(epoch_ms.saturating_sub(from)).unwrap_or(0);
        let ms = until(self.server_ms?);
        let exact = self.exact_ms.filter(|_| epoch_ms % 1000 > 0).map_or(ms, until);
        Some(Wait { ms, is_whole: is_whole && epoch_ms % 1000 == 0, over_ms: ms.saturating_sub(exact) })
    }
}

/// Without quotes and parameters: `"30"`, `30; reason=busy`.
fn bare(text: &[u8]) -> &[u8] {
    let text = cut(text, b';').0.trim_ascii();
    // A date has a comma, so its quotes may stand in two members.
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    text.strip_suffix(b"\"").unwrap_or(text).trim_ascii()
}

/// `30 seconds`, `30 s`. A number is first.
fn without_unit(text: &[u8]) -> &[u8] {
    let (number, unit) = cut(text, b' ');
    let unit = unit.unwrap_or_default().trim_ascii();
    let is_unit = ["s", "sec", "secs", "second", "seconds"].iter().any(|word| is(unit, word));
    if is_unit { number } else { text }
}

/// `Sun`, `Sunday`: what stands before the comma of a date.
fn is_weekday(text: &[u8]) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    text.iter().copied().all(is_letter) && DAYS.iter().any(|day| strip(text, day).is_some())
}

/// A whole number that may be below 0; fractions are cut off. Anything else is unknown.
pub(super) fn count(text: &[u8]) -> Option<i64> {
    let mut scan = Scan(text.trim_ascii());
    let sign = if scan.eat(b'-') { -1 } else { 1 };
    let number = scan.decimal()?;
    scan.is_done().then_some(sign * number.whole as i64)
}

/// The same where a number below 0 has no meaning.
pub(super) fn count_up(text: &[u8]) -> Option<u64> {
    count(text).map(|count| u64::try_from(count).unwrap_or(0))
}

/// Units a second, as units in 1,000,000 seconds: `0.0055`. Rounded down.
pub(super) fn rate(text: &[u8]) -> Option<u64> {
    let mut scan = Scan(text.trim_ascii());
    let number = scan.decimal()?;
    scan.is_done().then_some(number.whole.saturating_mul(1_000_000).saturating_add(number.millionths))
}

/// `6m0s`, `2m59.56s`, `17ms`, `300µs`, `1h2m3.5s`: Go's `time.Duration`.
fn duration(text: &[u8]) -> Option<Wait> {
    if text.len() > MOST_DURATION_BYTES {
        return None;
    }
    let mut scan = Scan(text);
    let (mut nanos, mut is_whole) = (0_u64, true);
    while !scan.is_done() {
        let number = scan.decimal()?;
        let unit = nanos_of(scan.take(|byte| !byte.is_ascii_digit()))?;
        let fraction = ((number.millionths + u64::from(number.is_cut)) * unit).div_ceil(1_000_000);
        nanos = nanos.checked_add(number.whole.checked_mul(unit)?)?.checked_add(fraction)?;
        is_whole &= unit >= 1_000_000_000 && fraction == 0;
    }
    Some(Wait { ms: nanos.div_ceil(1_000_000), is_whole, over_ms: 0 }).filter(|_| !text.is_empty())
}

/// Go writes `µs`; `fetch` reads header bytes as Latin-1, and then it is `Âµs`. Any bytes beyond ASCII are
/// therefore a µ.
fn nanos_of(unit: &[u8]) -> Option<u64> {
    Some(match unit {
        b"h" => 3_600_000_000_000,
        b"m" => 60_000_000_000,
        b"s" => 1_000_000_000,
        b"ms" => 1_000_000,
        b"us" => 1000,
        b"ns" => 1,
        [mu @ .., b's'] if !mu.is_empty() && mu.iter().all(|byte| !byte.is_ascii()) => 1000,
        _ => return None,
    })
}
