//! Structured fields, as far as rate limits use them: lists of items and dictionaries, with parameters (RFC 9651).
//!
//! The trap is to repair what is broken: a field that does not parse is no field (RFC 9651 §4.2), and a quota called
//! `api "v1"` that its server forgot to escape must not become one called `api `.

/// A bare item. What no rate limit needs to read is [`Bare::Other`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Text(String),
    Token(String),
    Whole(i64),
    /// Base64 as it stands: padding bits are nobody's business.
    Bytes(String),
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub value: Bare,
    params: Vec<(String, Bare)>,
}

impl Item {
    /// An item without parameters.
    pub fn plain(value: Bare) -> Self {
        Self { value, params: Vec::new() }
    }

    /// The last parameter of this name counts.
    pub fn param(&self, name: &str) -> Option<&Bare> {
        self.params.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// A parameter that is a whole number from 0.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.param(name) {
            Some(Bare::Whole(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
    }
}

/// Members beyond so many are hostile.
const MOST: usize = 256;

/// A list of items.
pub(super) fn list(text: &str) -> Option<Vec<Item>> {
    let mut reader = Reader(text.trim_matches([' ', '\t']));
    let mut items = Vec::new();
    while !reader.0.is_empty() {
        items.push(reader.item()?);
        reader.next_member(items.len())?;
    }
    Some(items)
}

/// A dictionary.
pub(super) fn dictionary(text: &str) -> Option<Vec<(String, Item)>> {
    let mut reader = Reader(text.trim_matches([' ', '\t']));
    let mut members = Vec::new();
    while !reader.0.is_empty() {
        let key = reader.key()?;
        let item = if reader.eat('=') {
            reader.item()?
        } else {
            Item { value: Bare::Other, params: reader.params()? }
        };
        members.push((key, item));
        reader.next_member(members.len())?;
    }
    Some(members)
}

/// What is left to read.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn eat(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// The comma between two members, and that something follows it.
    fn next_member(&mut self, members: usize) -> Option<()> {
        self.take(|c| c == ' ' || c == '\t');
        if self.0.is_empty() {
            return Some(());
        }
        let is_more = self.eat(',');
        self.take(|c| c == ' ' || c == '\t');
        (is_more && !self.0.is_empty() && members < MOST).then_some(())
    }

    fn key(&mut self) -> Option<String> {
        let is_start = |c: char| c.is_ascii_lowercase() || c == '*';
        if !self.0.starts_with(is_start) {
            return None;
        }
        let key = self.take(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c));
        Some(key.to_string())
    }

    fn item(&mut self) -> Option<Item> {
        let value = self.bare()?;
        Some(Item { value, params: self.params()? })
    }

    fn params(&mut self) -> Option<Vec<(String, Bare)>> {
        let mut params = Vec::new();
        while self.eat(';') {
            self.take(|c| c == ' ');
            let key = self.key()?;
            let value = if self.eat('=') { self.bare()? } else { Bare::Other };
            params.push((key, value));
            if params.len() > MOST {
                return None;
            }
        }
        Some(params)
    }

    fn bare(&mut self) -> Option<Bare> {
        match self.0.chars().next()? {
            '"' => self.text(),
            ':' => {
                self.eat(':');
                let bytes = self.take(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
                self.eat(':').then(|| Bare::Bytes(bytes.to_string()))
            }
            '?' => {
                self.eat('?');
                (self.eat('0') || self.eat('1')).then_some(Bare::Other)
            }
            '@' => {
                self.eat('@');
                self.number().map(|_| Bare::Other)
            }
            c if c.is_ascii_digit() || c == '-' => self.number(),
            c if c.is_ascii_alphabetic() || c == '*' => {
                let token = self.take(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(c));
                Some(Bare::Token(token.to_string()))
            }
            _ => None,
        }
    }

    fn text(&mut self) -> Option<Bare> {
        self.eat('"');
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        while let Some((index, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[index + 1..];
                    return Some(Bare::Text(text));
                }
                '\\' => text.push(chars.next().map(|(_, c)| c).filter(|c| ['"', '\\'].contains(c))?),
                ' '..='~' => text.push(c),
                _ => return None,
            }
        }
        None
    }

    /// An integer of up to fifteen digits, or a decimal, of which nobody asks the value.
    fn number(&mut self) -> Option<Bare> {
        let is_negative = self.eat('-');
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.eat('.') {
            let fraction = self.take(|c| c.is_ascii_digit());
            return (digits.len() <= 12 && (1..=3).contains(&fraction.len())).then_some(Bare::Other);
        }
        let number: i64 = digits.parse().ok()?;
        Some(Bare::Whole(if is_negative { -number } else { number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_dictionaries() {
        let items = list(r#""burst"; r=0;t=4 , "a \"b\"";pk=:YQ==:;x;y=?1;z=1.5, tok/en:1;q=-3"#).unwrap();
        assert_eq!(items.len(), 3);
        assert_eq!((items[0].count("r"), items[0].count("t"), items[0].count("q")), (Some(0), Some(4), None));
        assert_eq!(items[1].value, Bare::Text(r#"a "b""#.into()));
        assert_eq!(items[1].param("pk"), Some(&Bare::Bytes("YQ==".into())));
        assert_eq!((items[2].count("q"), items[2].param("q")), (None, Some(&Bare::Whole(-3))));
        let members = dictionary("limit=100, remaining=50;x, reset").unwrap();
        assert_eq!(
            members.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(),
            ["limit", "remaining", "reset"]
        );
        assert_eq!(members[0].1.value, Bare::Whole(100));
    }

    #[test]
    fn what_is_broken_is_nothing() {
        let broken = [
            r#""api "v1""; r=0"#,
            r#""open"#,
            "\"a\",",
            ",",
            r#""a";R=1"#,
            "1234567890123456",
            "\"\u{7f}\"",
            "1.",
            "é",
            r#""\n""#,
            "?2",
            ":a",
            "\"a\" \"b\"",
        ];
        for text in broken {
            assert_eq!(list(text), None, "{text}");
        }
        assert_eq!(dictionary("Limit=10, Remaining=0"), None);
        assert_eq!(list(""), Some(vec![]));
    }
}
