//! The name of a server by a URL, as the URL Standard has it (§3.5 and §4.4): the same server has one name
//! in every host, so processes of one group have one scope for it.
//!
//! Rules:
//! 1. what stands before the last `@` is no part of it, nor is the scheme's own port;
//! 2. `%61` is `a`, letters are small, a last dot is left out (RFC 1034 §3.1);
//! 3. a name whose last label is a number is an address: `0x7f.1` is `127.0.0.1`;
//! 4. an address of IPv6 stands in brackets, its longest run of zeros left out.
//!
//! A name with letters beyond ASCII is for another reader. It needs tables of 100 kB, and each host brings
//! one.

use std::{fmt::Write, net::Ipv6Addr};

/// The server of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// As it was typed, but for what is written by `%` and two digits.
    pub host: String,
    /// The port, where it is not the scheme's own.
    pub port: Option<u16>,
}

impl Authority {
    /// The server of an absolute URL; `None` without one. The host may be no name: see [`name`].
    pub fn of(url: &str) -> Option<Self> {
        let text: String = url.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
        let text = text.trim_matches(|letter: char| letter <= ' ');
        let (scheme, rest) = text.split_once(':')?;
        let scheme = scheme.to_ascii_lowercase();
        let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
        if !scheme.starts_with(|letter: char| letter.is_ascii_alphabetic()) || !scheme.chars().all(is_scheme)
        {
            return None;
        }
        let own = own_port(&scheme);
        let slashes: &[char] = if own.is_some() { &['/', '\\'] } else { &['/'] };
        let rest = if own.is_some() { rest.trim_start_matches(slashes) } else { rest.strip_prefix("//")? };
        let end = |letter: char| slashes.contains(&letter) || matches!(letter, '?' | '#');
        let rest = rest.split(end).next()?;
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        // An IPv6 address has colons of its own, in brackets.
        let at = rest.rfind(':').filter(|&at| !rest.get(at..).is_some_and(|rest| rest.contains(']')));
        let (host, port) = at.map_or((rest, ""), |at| (&rest[..at], &rest[at + 1..]));
        if host.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
        Some(Self { host: decoded(host), port: port.filter(|_| port != own) })
    }

    /// The name of its scope, whose host is called `name`.
    pub fn scope(&self, name: &str) -> String {
        match self.port {
            Some(port) => [name, ":", &port.to_string()].concat(),
            None => name.into(),
        }
    }
}

/// The scope of an absolute URL: its host, with its port where that is not the scheme's own. `None` without a
/// host, and for one that is no name in ASCII.
pub fn scope_of(url: &str) -> Option<String> {
    if let Some(host) = plain_host(url) {
        return Some(host.into());
    }
    let authority = Authority::of(url)?;
    Some(authority.scope(&name(&authority.host)?))
}

/// The host of a URL whose beginning is plainly written, which is its name as it stands: most are.
fn plain_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(byte);
    let end = rest.bytes().position(|byte| !is_plain(&byte)).unwrap_or(rest.len());
    let is_over = rest.as_bytes().get(end).is_none_or(|byte| b"/?#".contains(byte));
    let host = &rest[..end];
    let last = host.rsplit('.').next()?;
    (is_over && last.starts_with(|letter: char| letter.is_ascii_lowercase())).then_some(host)
}

/// The name of a host in ASCII; `None` where no server has this name.
pub fn name(host: &str) -> Option<String> {
    if let Some(address) = host.strip_prefix('[') {
        return ipv6(address.strip_suffix(']')?);
    }
    let is_forbidden =
        |byte: u8| !byte.is_ascii() || byte <= b' ' || byte == 0x7f || b"#/:<>?@[\\]^|%".contains(&byte);
    if host.is_empty() || host.bytes().any(is_forbidden) {
        return None;
    }
    let host = host.to_ascii_lowercase();
    let name = host.strip_suffix('.').unwrap_or(&host);
    let last = name.rsplit('.').next()?;
    if !last.is_empty() && (last.bytes().all(|byte| byte.is_ascii_digit()) || number(last).is_some()) {
        return ipv4(name);
    }
    Some(name.into())
}

/// The port that is left out. Schemes without one are read by other rules.
fn own_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        _ => None,
    }
}

/// With what is written by `%` and two digits.
fn decoded(host: &str) -> String {
    let mut bytes = Vec::with_capacity(host.len());
    let mut rest = host.as_bytes();
    while let [first, after @ ..] = rest {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            bytes.push((high * 16 + low) as u8);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ipv4(name: &str) -> Option<String> {
    let parts: Vec<u64> = name.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let room = 8 * (4 - u32::try_from(first.len()).ok().filter(|&len| len < 4)?);
    if first.iter().any(|&part| part > 255) || *last >= 1 << room {
        return None;
    }
    let mut bytes = [0; 4];
    let low = *last as u32;
    bytes.copy_from_slice(&low.to_be_bytes());
    for (byte, &part) in bytes.iter_mut().zip(first) {
        *byte = part as u8;
    }
    Some(bytes.map(|byte| byte.to_string()).join("."))
}

/// A part of an address: decimal, `0x…` or, after a zero, octal. A part that is too large stays too large.
fn number(part: &str) -> Option<u64> {
    let (digits, base) = match part.as_bytes() {
        [b'0', b'x', ..] => (&part[2..], 16),
        [b'0', _, ..] => (&part[1..], 8),
        [] => return None,
        _ => (part, 10),
    };
    digits.chars().try_fold(0_u64, |sum, digit| {
        Some(sum.saturating_mul(base.into()).saturating_add(digit.to_digit(base)?.into()))
    })
}

fn ipv6(address: &str) -> Option<String> {
    let parts = address.parse::<Ipv6Addr>().ok()?.segments();
    // The first of the longest runs of zeros, of two at least.
    let mut longest = 0..0;
    for start in 0..parts.len() {
        let zeros = parts[start..].iter().take_while(|&&part| part == 0).count();
        if zeros > longest.len().max(1) {
            longest = start..start + zeros;
        }
    }
    let mut text = String::from("[");
    for (place, part) in parts.into_iter().enumerate() {
        if longest.contains(&place) {
            text.push_str(if place == longest.start { "::" } else { "" });
        } else {
            if place > 0 && place != longest.end {
                text.push(':');
            }
            let _ = write!(text, "{part:x}");
        }
    }
    text.push(']');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_plainly_written_has_the_name_that_its_parts_have() {
        const LETTERS: &[u8] = b"ax01.-:/@?%A\t";
        let mut known = 0;
        for number in 0..(LETTERS.len() + 1).pow(5) {
            let places = (0..5).map(|place| number / (LETTERS.len() + 1).pow(place) % (LETTERS.len() + 1));
            let text: String =
                places.filter_map(|place| LETTERS.get(place).map(|&byte| byte as char)).collect();
            let url = format!("https://{text}");
            let Some(host) = plain_host(&url) else { continue };
            let authority = Authority::of(&url).expect("a server");
            assert_eq!(Some(host.into()), name(&authority.host).map(|name| authority.scope(&name)), "{url}");
            known += 1;
        }
        assert!(known > 10_000, "{known}");
    }
}
