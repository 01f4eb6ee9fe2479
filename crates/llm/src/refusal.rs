//! Reads a refusal: how long to wait, whether any wait helps, and which budget has no room.
//!
//! A refusal may say how long to wait although no wait will help: a quota is used up, or the request is above
//! the whole limit. Its text is prose. It is read once from front to back, the first [`READ`] bytes of it.

use crate::Kind;

/// Bytes of a refusal that are read.
const READ: usize = 64_000;
/// The longest wait that is believed, in milliseconds: the most that a timer takes.
const LONGEST: f64 = 2_147_483_648.0;

/// How a call was refused: what a host has read of it already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    /// Its status.
    pub status: u16,
    /// The wait that its header fields ask for, in milliseconds; 0 where they ask for none.
    pub wait_ms: f64,
    /// Whether it has a field `Retry-After`.
    pub has_retry_after: bool,
    /// Whether its field `x-should-retry` is `false`.
    pub is_told_final: bool,
    /// Whether Anthropic said it, which names a wait wherever one helps.
    pub is_anthropic: bool,
}

/// A refusal, as read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// Milliseconds to wait; `None` where it does not say.
    pub wait_ms: Option<f64>,
    /// No wait helps.
    pub is_final: bool,
    /// Which budget has no room.
    pub kind: Option<Kind>,
}

/// Reads a refusal: the header fields count first, then its text.
pub fn refusal(refused: &Refused, text: &[u8]) -> Refusal {
    let text = &text[..text.len().min(READ)];
    let mut wait = refused.wait_ms;
    let (mut is_over, mut kind, mut is_steep) = (false, None, false);
    for at in 0..text.len() {
        let rest = &text[at..];
        match rest[0] {
            b't' if wait <= 0.0 && rest.starts_with(b"try again in ") => wait = span(&rest[13..]),
            b'"' if wait <= 0.0 && rest.starts_with(b"\"retryDelay\"") => {
                let value = past(&rest[12..], b":\"");
                wait = span(value);
            }
            b'"' if rest.starts_with(b"\"limit\"") => is_over |= is_zero(past(&rest[7..], b":\"")),
            b'l' if rest.starts_with(b"limit: ") => is_over |= is_zero(&rest[7..]),
            b'i' if rest.starts_with(b"insufficient_quota") => is_over = true,
            b'i' if rest.starts_with(b"increase rate") => is_steep = true,
            b'R' if rest.starts_with(b"Request too large") => is_over = true,
            _ => {}
        }
        kind = kind.or_else(|| kind_at(rest));
    }
    is_over |= refused.is_anthropic && refused.status == 429 && !refused.has_retry_after;
    Refusal {
        wait_ms: (wait > 0.0).then(|| wait.min(LONGEST)),
        is_final: refused.is_told_final || refused.status < 500 && is_over,
        // A rise that is too steep ("usage increase rate for input tokens") says no word of a level.
        kind: kind.filter(|_| !is_steep),
    }
}

/// "This request would exceed … 10,000 input tokens": the first word is not the budget.
fn kind_at(rest: &[u8]) -> Option<Kind> {
    let is = |from: usize, word: &str| {
        rest.get(from..from + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    match rest[0] | 0x20 {
        b'i' if is(0, "input") && is(6, "token") => Some(Kind::Input),
        b'o' if is(0, "output") && is(7, "token") => Some(Kind::Output),
        b't' if is(0, "token") => Some(Kind::Tokens),
        b'r' if is(0, "request") && !is(8, "would") && !is(7, "_id") => Some(Kind::Requests),
        _ => None,
    }
}

/// The rest of a text after some signs and blanks, in this order; empty where another does.
fn past<'a>(text: &'a [u8], signs: &[u8]) -> &'a [u8] {
    let mut rest = text;
    for &sign in signs {
        // Four blanks are as many as a printer makes.
        for _ in 0..4 {
            rest = rest.strip_prefix(b" ").unwrap_or(rest);
        }
        rest = match rest.strip_prefix(&[sign]) {
            Some(rest) => rest,
            None if sign == b'"' => rest,
            None => return &[],
        };
    }
    rest
}

/// A zero that is a whole word.
fn is_zero(text: &[u8]) -> bool {
    text.first() == Some(&b'0')
        && !text.get(1).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// A span such as `1h2m3.5s`, `20ms`, `46s`, `5 seconds` in milliseconds; 0 where there is none.
fn span(text: &[u8]) -> f64 {
    let (mut sum, mut at) = (0.0, 0);
    // Hours, minutes, seconds and their thousandths, and each once.
    for _ in 0..4 {
        let number = text[at..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let blank = usize::from(text.get(at + number) == Some(&b' '));
        let start = at + number + blank;
        let unit = text[start.min(text.len())..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let millis = match text.get(start..start + unit).unwrap_or_default() {
            b"ms" => 1.0,
            b"s" | b"sec" | b"second" | b"seconds" => 1000.0,
            b"m" | b"min" | b"minute" | b"minutes" => 60_000.0,
            b"h" | b"hour" | b"hours" => 3_600_000.0,
            _ => break,
        };
        // Twenty digits are none of a wait.
        let Some(number) = Some(&text[at..at + number]).filter(|digits| (1..20).contains(&digits.len()))
        else {
            break;
        };
        let Some(number) = decimal(number) else { break };
        sum += number * millis;
        at = start + unit;
    }
    if sum.is_finite() { sum } else { 0.0 }
}

fn decimal(digits: &[u8]) -> Option<f64> {
    let (mut whole, mut below) = (0.0, 0.0);
    for &digit in digits {
        if digit == b'.' {
            if below > 0.0 {
                return None;
            }
            below = 1.0;
            continue;
        }
        whole = whole * 10.0 + f64::from(digit - b'0');
        below *= 10.0;
    }
    Some(if below > 1.0 { whole / below } else { whole })
}
