//! The header fields that matter, repeated ones joined with commas as `Headers` does it.
//!
//! An answer may bring a field of a megabyte, or a hundred thousand of them. The kept part is bounded here,
//! so that every reader behind may look at all of it.

use std::borrow::Cow;

use super::dialects::SAYS_SOMETHING;
use crate::scan::{Scan, cut, holds, is};

/// More quotas than that are hostile.
pub(super) const MOST_QUOTAS: usize = 64;
/// More fields than that are, too: each quota has up to four.
const MOST_FIELDS: usize = 4 * MOST_QUOTAS;
/// Fields beyond this sum of bytes are not read: Node's own limit for all fields.
const MOST_BYTES: usize = 16_384;
/// Names are for people: a longer one is cut.
const MOST_NAME: usize = 200;

/// Fields that are asked for by their whole names, and are no vendor's.
const STANDARD: [&str; 4] = ["ratelimit", "ratelimit-policy", "date", "age"];

/// Whether a field of this name may say something of limits.
pub fn matters(name: &str) -> bool {
    is_standard(name.as_bytes()) || says_something(name.as_bytes())
}

/// Most differ in length.
fn is_standard(name: &[u8]) -> bool {
    STANDARD.iter().any(|known| known.len() == name.len() && is(name, known))
}

/// Fields by name, in the order in which they came.
#[derive(Default)]
pub(super) struct Fields<'a> {
    kept: Vec<(&'a [u8], Cow<'a, [u8]>)>,
    /// Whether one of them is not standard.
    has_others: bool,
    bytes: usize,
}

impl<'a> Fields<'a> {
    /// Those of `name: value` lines.
    pub fn from_lines(lines: &'a str) -> Self {
        let mut fields = Self::default();
        let mut left = Scan(lines.as_bytes());
        while !left.is_done() {
            if let (name, Some(value)) = cut(left.until(b'\n'), b':') {
                fields.add(name, value);
            }
        }
        fields
    }

    /// Adds a field if it matters.
    pub fn add(&mut self, name: &'a [u8], value: &'a [u8]) {
        let (name, value) = (name.trim_ascii(), value.trim_ascii());
        let is_standard = is_standard(name);
        if value.is_empty() || !(is_standard || says_something(name)) {
            return;
        }
        // Also what is dropped below counts, so that a hundred thousand names are not compared with all.
        let bytes = self.bytes + name.len() + value.len();
        if bytes > MOST_BYTES {
            return;
        }
        self.bytes = bytes;
        let known = self.kept.iter_mut().find(|(other, _)| other.eq_ignore_ascii_case(name));
        if let Some((_, joined)) = known {
            joined.to_mut().extend(b", ");
            joined.to_mut().extend(value);
        } else if self.kept.len() < MOST_FIELDS {
            self.has_others |= !is_standard;
            self.kept.push((name, Cow::Borrowed(value)));
        }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.len() == name.len() && is(other, name)).map(|(_, value)| value)
    }

    /// Whether a vendor's field is among them, or one with a wait: only then is it worth looking for those.
    pub fn have_others(&self) -> bool {
        self.has_others
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &[u8])> {
        self.kept.iter().map(|(name, value)| (*name, &value[..]))
    }

    /// Whether any of them tells of a quota.
    pub fn tell_of_quotas(&self) -> bool {
        self.iter().any(|(name, _)| is_of_quota(name))
    }
}

/// Whether a field of this name tells of a limit.
pub fn says_something(name: &[u8]) -> bool {
    SAYS_SOMETHING.iter().any(|word| holds(name, word))
}

fn is_of_quota(name: &[u8]) -> bool {
    SAYS_SOMETHING[2..].iter().any(|word| holds(name, word))
}

/// A name for people. Characters beyond ASCII are shown as they are.
pub(super) fn name(bytes: &[u8]) -> String {
    if bytes.len() <= MOST_NAME
        && bytes.is_ascii()
        && let Ok(text) = str::from_utf8(bytes)
    {
        return text.into();
    }
    let shown = |&byte: &u8| if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER };
    bytes.iter().take(MOST_NAME).map(shown).collect()
}

/// A part of a field's name, in lower case.
pub(super) fn lower(bytes: &[u8]) -> String {
    let mut text = name(bytes);
    text.make_ascii_lowercase();
    text
}
