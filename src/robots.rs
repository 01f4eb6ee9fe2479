//! robots.txt, as far as pace is concerned: `Crawl-delay` and `Request-rate`. Which pages may be fetched is the business of
//! the optional entry `autothrottle/robots`.
//!
//! Rules (RFC 9309 §2.1–2.2 for groups and lines; the directives themselves are folklore):
//! 1. groups that name our product token are merged, and only if there are none, those of `*`;
//! 2. a token matches whole and without regard to case; a version behind `/` is ignored, ours and theirs;
//! 3. of several delays the largest counts, and `Request-rate` when it is slower;
//! 4. a delay is a finite decimal from 0, perhaps with `s` or `seconds`; anything else is no delay;
//! 5. what lies beyond 500 KiB is not read.
//!
//! The trap is a substring match: `foo` is not `foobot`. And `*` is not inherited: a group of our own without a delay
//! means that there is none.

/// RFC 9309 §2.5.
const MOST_BYTES: usize = 512_000;

/// The delay in milliseconds that a robots.txt asks of `user_agent`, a product token or a whole User-Agent header;
/// `None` if it asks for none. 0 is a statement too.
pub fn crawl_delay_ms(bytes: &[u8], user_agent: &str) -> Option<f64> {
    let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let ours = tokens(user_agent);
    let (mut own, mut any) = (None, None);
    let (mut is_own, mut is_any, mut is_closed) = (false, false, true);
    for line in text.split(['\r', '\n']) {
        let Some((key, value)) = directive(line) else { continue };
        if key == "useragent" {
            if is_closed {
                (is_own, is_any, is_closed) = (false, false, false);
            }
            let token = value.split('/').next().unwrap_or("").trim().to_ascii_lowercase();
            is_any |= token == "*";
            if !token.is_empty() && ours.contains(&token) {
                is_own = true;
                own = own.or(Some(None));
            }
            continue;
        }
        let delay = match &key[..] {
            "crawldelay" => delay(value),
            "requestrate" => rate(value),
            "allow" | "disallow" => None,
            _ => continue, // Sitemap and whatever else belongs to no group and ends none
        };
        is_closed = true;
        let slower =
            |old: Option<f64>| delay.map_or(old, |delay| Some(old.map_or(delay, |old| old.max(delay))));
        if is_own {
            own = Some(slower(own.flatten()));
        }
        if is_any {
            any = slower(any);
        }
    }
    own.unwrap_or(any)
}

/// The product tokens of a User-Agent, in lower case: `Mozilla/5.0 (compatible; foobot/2.1; …)` is a foobot.
fn tokens(user_agent: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words: Vec<&str> =
        user_agent.split([' ', ';', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
    let products = words.iter().filter_map(|word| match word.split_once('/') {
        Some((name, version)) => version.starts_with(|c: char| c.is_ascii_digit()).then_some(name),
        None => (words.len() == 1).then_some(*word),
    });
    let mut tokens: Vec<String> =
        products.filter(|name| name.chars().all(is_part)).map(str::to_ascii_lowercase).collect();
    if tokens.len() > 1 {
        tokens.retain(|token| token != "mozilla");
    }
    tokens
}

/// The key of a line, reduced to letters, and its value. Some write no colon.
fn directive(line: &str) -> Option<(String, &str)> {
    let line = line.split('#').next().unwrap_or("").trim();
    let (key, value) = line.split_once(':').or_else(|| line.split_once(char::is_whitespace))?;
    let key = key.trim();
    if key.len() > 32 || !key.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_') {
        return None;
    }
    let key = key.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
    Some((key, value.trim()))
}

/// Milliseconds of `10`, `0.5`, `.5`, `10s`, `10 seconds`.
fn delay(value: &str) -> Option<f64> {
    let value = value.strip_prefix('+').unwrap_or(value);
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    if !["", "s", "sec", "secs", "second", "seconds"].contains(&&unit[..]) {
        return None;
    }
    millis(number)
}

/// Milliseconds between two requests of `1/10` (one in ten seconds), `30/1m`.
fn rate(value: &str) -> Option<f64> {
    let value = value.split_whitespace().next()?;
    let (requests, span) = value.split_once('/')?;
    let end = span.find(|c: char| !c.is_ascii_digit()).unwrap_or(span.len());
    let (number, unit) = span.split_at(end);
    let scale = match unit {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let requests = millis(requests).filter(|&requests| requests > 0.0)?;
    Some(millis(number)? * scale * 1000.0 / requests)
}

/// A decimal in thousandths. However many digits there are, the result is finite.
fn millis(number: &str) -> Option<f64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digit = |sum: u128, digit: u8| sum.saturating_mul(10).saturating_add(u128::from(digit - b'0'));
    let digits = |text: &str| text.bytes().fold(0, digit) as f64;
    let fraction = format!("{fraction:0<3}");
    Some(digits(whole) * 1000.0 + digits(&fraction[..3]))
}
