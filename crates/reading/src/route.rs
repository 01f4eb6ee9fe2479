//! Routes: a method and the pattern of a path, as the key by which a request's budget is known.
//!
//! `GET /api/v10/channels/123/messages/456` is the route `GET /api/v10/channels/123/messages/:`. Discord's
//! buckets are one for each channel, guild or webhook (*Rate Limits*, top-level resources), so that name
//! stays; in the [pattern] it is gone, and in the [family] all but the first word.
//!
//! No reader can tell a slug from a word: `/users/octocat`, `/users/search`. Families are for that: where all
//! routes of one have the same budget, so has the next.

use crate::scan::{Scan, cut, is};

/// The parts before the name of a resource of Discord's that has buckets of its own.
const MAJOR: [&str; 3] = ["channels", "guilds", "webhooks"];
/// Parts of a path beyond this many do not tell routes apart.
const MOST_PARTS: usize = 8;
/// A part of a path that is longer is a name.
const MOST_BYTES: usize = 40;

/// The route of a request.
pub fn of(method: &str, url: &str) -> String {
    let mut rest = Scan(url.as_bytes());
    if let [b'/', ..] = rest.0 {
    } else {
        // `https:`, an empty part, the host.
        for _ in 0..3 {
            rest.until(b'/');
        }
    }
    let path = cut(cut(rest.0, b'?').0, b'#').0;
    let letters = method.bytes().filter(u8::is_ascii_alphabetic).take(MOST_BYTES);
    let mut route = String::new();
    for letter in letters {
        add(&mut route, &[letter.to_ascii_uppercase()]);
    }
    add(&mut route, b" ");
    let mut before = &b""[..];
    for part in parts(path).filter(|part| !part.is_empty()).take(MOST_PARTS) {
        let is_kept = is_major(before) && part.len() <= MOST_BYTES || !is_name(part);
        add(&mut route, b"/");
        add(&mut route, if is_kept { part } else { b":" });
        before = part;
    }
    route
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
}

/// A character beyond ASCII is escaped in a URL, and so in a name.
#[inline(never)]
fn add(text: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        text.push(if byte.is_ascii() { char::from(byte) } else { ':' });
    }
}

fn is_major(part: &[u8]) -> bool {
    MAJOR.iter().any(|major| is(part, major))
}

/// A part of a path that names one of many: a number, a hash, escaped text.
fn is_name(part: &[u8]) -> bool {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_number = digits == part.len() || digits > 0 && part.len() >= 8;
    is_number || part.len() > MOST_BYTES || part.iter().any(|&byte| byte == b'%' || !byte.is_ascii())
}

/// The resource of Discord's that has buckets of its own: `123`.
pub fn major(route: &str) -> Option<String> {
    let mut parts = parts(route.as_bytes());
    parts.find(|part| is_major(part))?;
    let mut name = String::new();
    add(&mut name, parts.next()?);
    Some(name)
}

/// The route without that.
pub fn pattern(route: &str) -> String {
    let mut pattern = String::new();
    let mut is_next = false;
    for part in parts(route.as_bytes()) {
        if !pattern.is_empty() {
            add(&mut pattern, b"/");
        }
        add(&mut pattern, if is_next { b":" } else { part });
        is_next = is_major(part);
    }
    pattern
}

/// The family of a route and its neighbours: `GET /repos/*`.
pub fn family(route: &str) -> String {
    let mut family = String::new();
    for part in parts(route.as_bytes()) {
        add(&mut family, part);
        add(&mut family, b"/");
        let is_version = matches!(part, [b'v', digits @ ..] if digits.iter().all(u8::is_ascii_digit));
        if !(matches!(part, [.., b' ']) || is(part, "api") || is_version) {
            break;
        }
    }
    add(&mut family, b"*");
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_left_out() {
        for (method, url, route) in [
            ("get", "https://api.example/search/code?q=1#a", "GET /search/code"),
            ("GET", "https://api.example", "GET "),
            ("GET", "/v1/models/", "GET /v1/models"),
            ("GET", "https://a.example/orders/17/lines/0b9f3c2e-11aa", "GET /orders/:/lines/:"),
            ("PUT", "https://a.example/x/%F0%9F%98%80/@me", "PUT /x/:/@me"),
            (
                "DELETE", "https://d.example/api/v10/channels/12/messages/34",
                "DELETE /api/v10/channels/12/messages/:",
            ),
        ] {
            assert_eq!(of(method, url), route);
        }
        let deep = of("GET", "https://a.example/a/b/c/d/e/f/g/h/i/j");
        assert_eq!(deep, "GET /a/b/c/d/e/f/g/h");
    }

    #[test]
    fn routes_have_this_in_common() {
        let route = of("GET", "https://d.example/api/v10/channels/12/messages/34");
        assert_eq!(major(&route), Some("12".into()));
        assert_eq!(pattern(&route), "GET /api/v10/channels/:/messages/:");
        assert_eq!(family(&route), "GET /api/v10/channels/*");
        assert_eq!(major("GET /search/code"), None);
        assert_eq!(pattern("GET /search/code"), "GET /search/code");
        assert_eq!(family("GET /search/code"), "GET /search/*");
        assert_eq!(family("GET "), "GET /*");
    }
}
