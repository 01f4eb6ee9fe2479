//! robots.txt: the pace that it asks for (`Crawl-delay` and `Request-rate`), and in [`rules`] which pages may
//! be fetched.
//!
//! Rules (RFC 9309 §2.1–2.2 for groups and lines; the directives of pace are folklore):
//! 1. groups that name our product token are merged, and only if there are none, those of `*`;
//! 2. a token matches whole and without regard to case; a version behind `/` is ignored, ours and theirs, and
//!    so is a `*` behind theirs (`foobot*`), as Google does it;
//! 3. of several delays the largest counts, and `Request-rate` when it is slower;
//! 4. a delay is a finite decimal from 0, perhaps with `s` or `seconds`; anything else is no delay;
//! 5. a key counts by its letters: `Crawl-delay`, `Crawl delay`, `crawldelay`;
//! 6. what lies beyond 500 KiB is not read;
//! 7. a line of another kind is no part of a group and ends none (§2.2.4).
//!
//! Names are compared whole: `foo` is not `foobot`. And `*` is not inherited: a group of our own without a
//! delay means that there is none.

pub mod rules;

use crate::scan::{Scan, cut, is, is_digit, is_letter};

/// RFC 9309 §2.5: so much of a robots.txt counts, and a host reads no more.
pub const MOST_BYTES: usize = 512_000;
/// A longer key is none of ours.
const MOST_KEY: usize = 32;
/// A User-Agent is not read beyond this.
const MOST_AGENT: usize = 4096;

/// The delay in milliseconds that a robots.txt asks of `user_agent`, a product token or a whole User-Agent
/// header; `None` if it asks for none. 0 is a statement too.
#[inline(never)] // into a caller that is compiled for speed
pub fn crawl_delay_ms(bytes: &[u8], user_agent: &str) -> Option<f64> {
    let slower = |known: &mut Option<f64>, key, value: &[u8]| {
        let delay = match key {
            Key::CrawlDelay => delay(value),
            Key::RequestRate => rate(value),
            _ => None,
        };
        if let Some(delay) = delay {
            *known = Some(known.map_or(delay, |known| known.max(delay)));
        }
    };
    read(bytes, user_agent, slower)
}

/// The results of `add` for the lines of our groups, and if there are none, of those of `*`.
fn read<T: Default>(bytes: &[u8], user_agent: &str, add: impl Fn(&mut T, Key, &[u8])) -> T {
    let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
    let ours = Products::of(user_agent.as_bytes());
    let (mut own, mut any) = (Group::default(), Group::default());
    let mut is_closed = true;
    let mut text = Scan(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    while !text.is_done() {
        let line = text.take(|byte| byte != b'\r' && byte != b'\n');
        text.take(|byte| byte == b'\r' || byte == b'\n');
        let Some((key, value)) = directive(line) else { continue };
        if let Key::UserAgent = key {
            (own.is_open, any.is_open) = (own.is_open && !is_closed, any.is_open && !is_closed);
            is_closed = false;
            own.name(ours.include(value));
            any.name(value == b"*");
            continue;
        }
        is_closed = true;
        for group in [&mut own, &mut any] {
            if group.is_open {
                add(&mut group.says, key, value);
            }
        }
    }
    if own.is_named { own.says } else { any.says }
}

/// The lines of all groups for one agent.
#[derive(Default)]
struct Group<T> {
    is_named: bool,
    /// Whether the group at hand is for it.
    is_open: bool,
    says: T,
}

impl<T> Group<T> {
    fn name(&mut self, is_it: bool) {
        self.is_named |= is_it;
        self.is_open |= is_it;
    }
}

/// The product tokens of a User-Agent: `Mozilla/5.0 (compatible; foobot/2.1; …)` is a foobot.
struct Products<'a>(Vec<&'a [u8]>);

impl<'a> Products<'a> {
    fn of(user_agent: &'a [u8]) -> Self {
        let is_apart = |byte: &u8| b" ;(),".contains(byte);
        let agent = user_agent.get(..MOST_AGENT).unwrap_or(user_agent);
        let words = || agent.split(is_apart).filter(|word| !word.is_empty());
        let is_alone = words().nth(1).is_none();
        let product = |word: &'a [u8]| {
            let (name, version) = cut(word, b'/');
            let is_product =
                version.map_or(is_alone, |version| version.first().copied().is_some_and(is_digit));
            (is_product && name.iter().copied().all(is_of_token)).then_some(name)
        };
        let mut tokens: Vec<&[u8]> = words().filter_map(product).collect();
        if tokens.len() > 1 {
            tokens.retain(|token| !is(token, "mozilla"));
        }
        Self(tokens)
    }

    /// Whether a line's value names one of them.
    fn include(&self, value: &[u8]) -> bool {
        let mut token = cut(value, b'/').0.trim_ascii();
        while let [start @ .., b'*'] = token {
            token = start;
        }
        !token.is_empty() && self.0.iter().any(|ours| ours.eq_ignore_ascii_case(token))
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// The key of a line.
#[derive(Clone, Copy)]
enum Key {
    UserAgent,
    CrawlDelay,
    RequestRate,
    Allow,
    Disallow,
}

const KEYS: [(&str, Key); 5] = [
    ("useragent", Key::UserAgent),
    ("crawldelay", Key::CrawlDelay),
    ("requestrate", Key::RequestRate),
    ("allow", Key::Allow),
    ("disallow", Key::Disallow),
];

/// The key of a line and its value. Some write no colon. Sitemap and whatever else belongs to no group and
/// ends none.
fn directive(line: &[u8]) -> Option<(Key, &[u8])> {
    let line = cut(line, b'#').0.trim_ascii();
    let (key, value) = match cut(line, b':') {
        (key, Some(value)) => (key, value),
        _ => line.split_at_checked(line.iter().position(u8::is_ascii_whitespace)?)?,
    };
    let is_part = |byte: &u8| is_letter(*byte) || b"-_ \t".contains(byte);
    if key.len() > MOST_KEY || !key.iter().all(is_part) {
        return None;
    }
    let letters = || key.iter().filter(|byte| is_letter(**byte)).map(u8::to_ascii_lowercase);
    let (_, key) = KEYS.iter().find(|(word, _)| letters().eq(word.bytes()))?;
    Some((*key, trim(value)))
}

/// Without blanks, of which editors make no-break spaces.
fn trim(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii();
    while let [0xc2, 0xa0, rest @ ..] | [rest @ .., 0xc2, 0xa0] = text {
        text = rest.trim_ascii();
    }
    text
}

/// Milliseconds of `10`, `0.5`, `.5`, `10s`, `10 seconds`.
fn delay(value: &[u8]) -> Option<f64> {
    let mut scan = Scan(value);
    scan.eat(b'+');
    let number = scan.take(is_of_number);
    scan.skip_blanks();
    let unit = scan.0;
    let is_unit = ["", "s", "sec", "secs", "second", "seconds"].iter().any(|word| is(unit, word));
    if is_unit { millis(number) } else { None }
}

/// Milliseconds between two requests of `1/10` (one in ten seconds), `30/1m`.
fn rate(value: &[u8]) -> Option<f64> {
    let mut scan = Scan(value);
    let requests = millis(scan.take(is_of_number)).filter(|&requests| requests > 0.0)?;
    if !scan.eat(b'/') {
        return None;
    }
    let span = millis(scan.take(is_digit))?;
    let scale = match scan.take(|byte| !byte.is_ascii_whitespace()) {
        b"" | b"s" => 1.0,
        b"m" => 60.0,
        b"h" => 3600.0,
        _ => return None,
    };
    Some(span * scale * 1000.0 / requests)
}

fn is_of_number(byte: u8) -> bool {
    is_digit(byte) || byte == b'.'
}

/// A decimal in thousandths, cut off. However many digits there are, the result is finite.
fn millis(number: &[u8]) -> Option<f64> {
    let (whole, fraction) = cut(number, b'.');
    let fraction = fraction.unwrap_or_default();
    if whole.len() + fraction.len() == 0 || fraction.contains(&b'.') {
        return None;
    }
    let thousandths = (0..3).map(|place| fraction.get(place).copied().unwrap_or(b'0'));
    Some(sum(whole.iter().copied()) * 1000.0 + sum(thousandths))
}

/// Digits as a number; what is beyond an integer counts by its size.
fn sum(digits: impl Iterator<Item = u8>) -> f64 {
    let (mut sum, mut scale) = (0_u64, 1.0);
    for digit in digits {
        if sum < u64::MAX / 100 {
            sum = sum * 10 + u64::from(digit - b'0');
        } else {
            scale = f64::min(scale * 10.0, MOST);
        }
    }
    sum as f64 * scale
}

/// Far beyond any delay, and far enough from infinity to be multiplied.
const MOST: f64 = 1e200;
