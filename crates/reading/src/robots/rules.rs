//! Allow and Disallow (RFC 9309 §2.2.2, §2.2.3): which URLs a robots.txt allows one crawler.
//!
//! 1. A rule matches from the start of a path and its query, `*` is any text, `$` at the end is the end.
//! 2. The rule with the most octets counts; of an Allow and a Disallow that are as long, the Allow. A URL
//!    that no rule matches is allowed, and so is `/robots.txt`.
//! 3. Both sides are percent-encoded in one way before they are compared: a letter is the same with and
//!    without it, `ü` is `%C3%BC`, and `%2A` and `%24` are the characters. A slash that is encoded is another
//!    text than a slash.
//! 4. A rule that begins with neither `/` nor `*` matches no path, and one without a value is none.
//!
//! A judgement costs at most the rules times the length of the URL, whatever they are made of.

use super::{Key, read};
use crate::scan::cut;

/// The rules of a robots.txt for `user_agent`, to be kept and given to [`allows`]: a line each, `+` or `-`
/// and the pattern.
#[inline(never)] // into a caller that is compiled for speed
pub fn rules(bytes: &[u8], user_agent: &str) -> Vec<u8> {
    read(bytes, user_agent, |rules: &mut Vec<u8>, key, value| {
        let sign = match key {
            Key::Allow => b'+',
            Key::Disallow => b'-',
            _ => return,
        };
        if let [b'/' | b'*', ..] = value {
            rules.push(sign);
            encode(value, true, rules);
            rules.push(b'\n');
        }
    })
}

/// Whether [`rules`] allow a URL, or a path and its query.
#[inline(never)] // into a caller that is compiled for speed
pub fn allows(rules: &[u8], url: &str) -> bool {
    let path = path_of(url.as_bytes());
    if cut(&path, b'?').0 == b"/robots.txt" {
        return true;
    }
    let (mut is_allowed, mut most) = (true, 0);
    for rule in rules.split(|&byte| byte == b'\n') {
        let [sign, pattern @ ..] = rule else { continue };
        let is_stronger = pattern.len() > most || pattern.len() == most && *sign == b'+';
        if is_stronger && matches(pattern, &path) {
            (is_allowed, most) = (*sign == b'+', pattern.len());
        }
    }
    is_allowed
}

/// The path and the query of a URL, encoded.
fn path_of(url: &[u8]) -> Vec<u8> {
    let url = cut(url, b'#').0;
    let colon = url.iter().position(|byte| b":/?".contains(byte)).unwrap_or_default();
    let path = match url.split_at_checked(colon) {
        Some((_, [b':', b'/', b'/', rest @ ..])) => {
            let host = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
            rest.get(host..).unwrap_or_default()
        }
        _ => url,
    };
    let mut encoded = Vec::with_capacity(path.len() + 1);
    if path.first() != Some(&b'/') {
        encoded.push(b'/');
    }
    encode(path, false, &mut encoded);
    encoded
}

/// Percent-encodes in one way. In a pattern `*`, and `$` at the end, keep their meaning.
fn encode(mut text: &[u8], is_pattern: bool, into: &mut Vec<u8>) {
    while let [byte, rest @ ..] = text {
        text = rest;
        let (mut byte, mut is_plain) = (*byte, is_plain(*byte));
        if let (b'%', [high, low, rest @ ..]) = (byte, text)
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            text = rest;
            byte = high * 16 + low;
            is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        } else if is_pattern && (byte == b'*' || byte == b'$' && text.is_empty()) {
            is_plain = true;
        }
        if is_plain {
            into.push(byte);
        } else {
            into.extend([b'%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
}

/// Whether a byte stands in a URL as it is. Apostrophes and brackets do in some places, so they never do
/// here.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/?#@:!&()+,;=".contains(&byte)
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

fn hex(half: u8) -> u8 {
    if half < 10 { b'0' + half } else { b'A' + half - 10 }
}

/// Whether a pattern matches a path. Each part between stars is looked for once, behind the one before.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_whole) = match pattern {
        [start @ .., b'$'] => (start, true),
        _ => (pattern, false),
    };
    let mut parts = pattern.split(|&byte| byte == b'*');
    let Some(mut left) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !is_whole || left.is_empty();
    }
    while let Some(part) = parts.next() {
        if is_whole && parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(rest) = behind(left, part) else { return false };
        left = rest;
    }
    true
}

/// The text behind the first `part` of another, in time that grows as the two do (Knuth, Morris, Pratt).
fn behind<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    if part.len() > text.len() {
        return None;
    }
    // How long the longest start is that each start of the part also ends with.
    let mut ends = vec![0_usize];
    let step = |ends: &[usize], mut length: usize, byte: u8| {
        while part.get(length) != Some(&byte) {
            match length.checked_sub(1).and_then(|before| ends.get(before)) {
                Some(&shorter) => length = shorter,
                None => return 0,
            }
        }
        length + 1
    };
    for &byte in part.iter().skip(1) {
        let longest = step(&ends, ends.last().copied().unwrap_or_default(), byte);
        ends.push(longest);
    }
    let mut length = 0;
    for (at, &byte) in text.iter().enumerate() {
        if length == part.len() {
            return text.get(at..);
        }
        length = step(&ends, length, byte);
    }
    (length == part.len()).then_some(b"")
}
