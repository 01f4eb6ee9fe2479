//! Structured fields, as far as rate limits use them: lists of items and dictionaries, with parameters (RFC
//! 9651).
//!
//! A field that does not parse is no field (RFC 9651 §4.2). A quota called `api "v1"` that its server forgot
//! to escape must not become one called `api `. No text is copied: items borrow.

use crate::scan::{Scan, is_digit, whole};

/// A bare item. An item that no rate limit needs is [`Bare::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare<'a> {
    /// A string (with its escapes), or leniently a token.
    Name(&'a [u8]),
    Whole(i64),
    /// Base64 as it stands: padding bits are not checked.
    Bytes(&'a [u8]),
    Other,
}

/// The parameters that rate limits have.
#[derive(Clone, Copy)]
pub(super) enum Param {
    /// The quota.
    Q,
    /// Its window in seconds.
    W,
    /// The amount that is left.
    R,
    /// Seconds until more is there.
    T,
    /// The unit that is counted.
    Qu,
    /// The partition.
    Pk,
}

const PARAMS: [&[u8]; 6] = [b"q", b"w", b"r", b"t", b"qu", b"pk"];

/// A member of a list, or of a dictionary with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub key: &'a [u8],
    pub value: Bare<'a>,
    params: [Option<Bare<'a>>; PARAMS.len()],
}

impl<'a> Item<'a> {
    /// The last parameter of this name counts.
    pub fn param(&self, param: Param) -> Option<Bare<'a>> {
        self.params[param as usize]
    }

    /// A parameter that is a whole number from 0.
    pub fn count(&self, param: Param) -> Option<u64> {
        self.param(param)?.whole().and_then(|number| u64::try_from(number).ok())
    }

    /// A parameter in seconds, as milliseconds.
    pub fn seconds(&self, param: Param) -> Option<u64> {
        self.count(param).map(|seconds| seconds * 1000)
    }
}

impl<'a> Bare<'a> {
    pub fn whole(self) -> Option<i64> {
        if let Bare::Whole(number) = self { Some(number) } else { None }
    }

    pub fn name(self) -> Option<&'a [u8]> {
        if let Bare::Name(name) = self { Some(name) } else { None }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Bare::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// More members, or parameters of one, than that are hostile.
const MOST: usize = 256;

/// A list of items.
pub(super) fn list(text: &[u8]) -> Option<Vec<Item<'_>>> {
    members(text, false)
}

/// A dictionary.
pub(super) fn dictionary(text: &[u8]) -> Option<Vec<Item<'_>>> {
    members(text, true)
}

fn members(text: &[u8], has_keys: bool) -> Option<Vec<Item<'_>>> {
    let mut scan = Scan(text.trim_ascii());
    let mut members = Vec::new();
    while !scan.is_done() {
        if members.len() == MOST {
            return None;
        }
        members.push(member(&mut scan, has_keys)?);
        scan.skip_blanks();
        let is_more = scan.eat(b',');
        scan.skip_blanks();
        if is_more == scan.is_done() {
            return None;
        }
    }
    Some(members)
}

fn member<'a>(scan: &mut Scan<'a>, has_keys: bool) -> Option<Item<'a>> {
    let key = if has_keys { key(scan)? } else { b"" };
    let has_value = !has_keys || scan.eat(b'=');
    let value = if has_keys && has_value && scan.eat(b'(') {
        inner_list(scan)?;
        Bare::Other
    } else if has_value {
        bare(scan)?
    } else {
        Bare::Other
    };
    Some(Item { key, value, params: params(scan)? })
}

/// The rest of an inner list (RFC 9651 §3.1.1), as a member of a dictionary that no rate limit knows.
fn inner_list(scan: &mut Scan) -> Option<()> {
    for _ in 0..=MOST {
        scan.take(|byte| byte == b' ');
        if scan.eat(b')') {
            return Some(());
        }
        bare(scan)?;
        params(scan)?;
        (scan.peek() == b' ' || scan.peek() == b')').then_some(())?;
    }
    None
}

fn params<'a>(scan: &mut Scan<'a>) -> Option<[Option<Bare<'a>>; PARAMS.len()]> {
    let mut params = [None; PARAMS.len()];
    let mut count = 0;
    while scan.eat(b';') {
        scan.take(|byte| byte == b' ');
        let name = self::key(scan)?;
        let value = if scan.eat(b'=') { bare(scan)? } else { Bare::Other };
        if let Some(index) = PARAMS.iter().position(|&param| param == name) {
            params[index] = Some(value);
        }
        count += 1;
        if count > MOST {
            return None;
        }
    }
    Some(params)
}

fn key<'a>(scan: &mut Scan<'a>) -> Option<&'a [u8]> {
    let is_start = scan.peek().is_ascii_lowercase() || scan.peek() == b'*';
    is_start.then(|| {
        scan.take(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte))
    })
}

fn bare<'a>(scan: &mut Scan<'a>) -> Option<Bare<'a>> {
    match scan.peek() {
        b'"' => string(scan),
        b':' => {
            scan.eat(b':');
            let bytes = scan.take(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
            scan.eat(b':').then_some(Bare::Bytes(bytes))
        }
        b'?' => {
            scan.eat(b'?');
            (scan.eat(b'0') || scan.eat(b'1')).then_some(Bare::Other)
        }
        b'%' => display(scan),
        b'@' => {
            scan.eat(b'@');
            number(scan).map(|_| Bare::Other)
        }
        byte if byte.is_ascii_digit() || byte == b'-' => number(scan),
        byte if byte.is_ascii_alphabetic() || byte == b'*' => Some(Bare::Name(scan.take(is_of_token))),
        _ => None,
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

fn string<'a>(scan: &mut Scan<'a>) -> Option<Bare<'a>> {
    scan.eat(b'"');
    let start = scan.0;
    loop {
        scan.take(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\');
        let end = start.len() - scan.0.len();
        if scan.eat(b'"') {
            return start.get(..end).map(Bare::Name);
        }
        let is_escape = scan.eat(b'\\') && (scan.eat(b'"') || scan.eat(b'\\'));
        is_escape.then_some(())?;
    }
}

/// A display string, `%"f%c3%bc"`: text for people, which no rate limit needs to read.
fn display<'a>(scan: &mut Scan<'a>) -> Option<Bare<'a>> {
    (scan.eat(b'%') && scan.eat(b'"')).then_some(())?;
    loop {
        scan.take(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'%');
        if scan.eat(b'"') {
            return Some(Bare::Other);
        }
        // A byte of UTF-8, in two digits.
        scan.eat(b'%').then_some(())?;
        for _ in 0..2 {
            let digit = scan.peek();
            (digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit)).then_some(())?;
            scan.eat(digit);
        }
    }
}

/// An integer of up to fifteen digits, or a decimal, whose value is not asked for.
fn number<'a>(scan: &mut Scan<'a>) -> Option<Bare<'a>> {
    let sign = if scan.eat(b'-') { -1 } else { 1 };
    let digits = scan.take(is_digit);
    let number = whole(digits).filter(|_| digits.len() <= 15)?;
    if scan.eat(b'.') {
        let places = scan.take(is_digit).len();
        return (digits.len() <= 12 && (1..=3).contains(&places)).then_some(Bare::Other);
    }
    Some(Bare::Whole(sign * number as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_dictionaries() {
        let text = br#""burst"; r=0;t=4 , "a \"b\"";pk=:YQ==:;x;y=?1;z=1.5, tok/en:1;q=-3;w=1;w=2"#;
        let items = list(text).unwrap();
        assert_eq!(items.len(), 3);
        let counts = [Param::R, Param::T, Param::Q].map(|param| items[0].count(param));
        assert_eq!(counts, [Some(0), Some(4), None]);
        assert_eq!(items[1].value, Bare::Name(br#"a \"b\""#));
        assert_eq!(items[1].param(Param::Pk), Some(Bare::Bytes(b"YQ==")));
        assert_eq!((items[2].count(Param::Q), items[2].param(Param::Q)), (None, Some(Bare::Whole(-3))));
        assert_eq!(items[2].seconds(Param::W), Some(2000), "the last one counts");
        let items = list(br#""a";r=1;qu=%"f%c3%bc%";r=2"#);
        assert_eq!(items, None, "a percent is followed by two digits");
        let items = list(br#""a";r=1;qu=%"f%c3%bc r";t=2"#).unwrap();
        assert_eq!((items[0].count(Param::R), items[0].seconds(Param::T)), (Some(1), Some(2000)));
        let members = dictionary(b"limit=100, remaining=50;x, reset").unwrap();
        assert_eq!(
            members.iter().map(|item| item.key).collect::<Vec<_>>(),
            [&b"limit"[..], b"remaining", b"reset"]
        );
        assert_eq!(members[0].value, Bare::Whole(100));
        let members = dictionary(br#"x=( "a";q  b );q=1, y=(), limit=7"#).unwrap();
        assert_eq!((members.len(), members[2].value), (3, Bare::Whole(7)), "inner lists are passed over");
    }

    #[test]
    fn a_broken_field_is_nothing() {
        let broken = [
            r#""api "v1""; r=0"#, r#""open"#, "\"a\",", ",", r#""a";R=1"#, "1234567890123456", "\"\u{7f}\"",
            "1.", "é", r#""\n""#, r#""\"#, "?2", ":a", "\"a\" \"b\"", "(1 2)", r#"%"open"#, "%a",
            r#"%"%C3""#,
        ];
        for text in broken {
            assert_eq!(list(text.as_bytes()), None, "{text}");
        }
        assert_eq!(dictionary(b"Limit=10, Remaining=0"), None);
        for open in [&b"x=("[..], b"x=(1", b"x=(1,2)", b"x=(\"a\"\"b\")", b"x=((1))", b"x=(1;)"] {
            assert_eq!(dictionary(open), None, "{open:?}");
        }
        assert_eq!(list(b""), Some(vec![]));
        let params = |many: usize| format!("a{}", ";x".repeat(many));
        assert!(list(params(MOST).as_bytes()).is_some() && list(params(MOST + 1).as_bytes()).is_none());
        let many = "a,".repeat(MOST) + "a";
        assert_eq!((list(many.as_bytes()), list(&many.as_bytes()[2..]).unwrap().len()), (None, MOST));
    }
}
