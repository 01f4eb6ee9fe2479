//! JSON where it lies: a value is a part of the text, and its members are found when they are asked for.
//!
//! A tree of what a stranger sends takes many times its bytes, and a recursive reader the stack. This one
//! keeps none. [`DEEPEST`] bounds how often a byte is looked at: what is deeper is passed over.

use alloc::{borrow::Cow, string::String};

/// Levels that are looked into.
pub const DEEPEST: usize = 48;

/// A value: its text without blanks around it.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(&'a [u8]);

impl<'a> Json<'a> {
    /// A whole text as one value; `None` where it is none.
    pub fn read(text: &'a [u8]) -> Option<Self> {
        let start = blanks(text, 0);
        let end = end_of(text, start)?;
        (blanks(text, end) == text.len()).then(|| Self(&text[start..end]))
    }

    /// A number that makes sense as a count of tokens.
    pub fn count(self) -> Option<f64> {
        number(self.0).filter(|number| (0.0..=crate::LARGEST).contains(number))
    }

    pub fn text(self) -> Option<Text<'a>> {
        let inner = self.0.strip_prefix(b"\"")?;
        Some(Text(&inner[..inner.len() - 1]))
    }

    pub fn is_number(self) -> bool {
        self.0[0] == b'-' || self.0[0].is_ascii_digit()
    }

    pub fn is_map(self) -> bool {
        self.0[0] == b'{'
    }

    pub fn is_list(self) -> bool {
        self.0[0] == b'['
    }

    /// Whether it says yes, as JavaScript has it.
    pub fn is_true(self) -> bool {
        !matches!(self.0, b"null" | b"false" | b"\"\"" | b"0")
    }

    /// A member; the last of those that have one name.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|(name, _)| name.is(key)).last().map(|(_, value)| value)
    }

    /// A member that is an object.
    pub fn map(self, key: &str) -> Option<Self> {
        self.get(key).filter(|value| value.is_map())
    }

    /// Names and values of an object; none of what is no object.
    pub fn members(self) -> impl Iterator<Item = (Text<'a>, Self)> {
        let mut at = if self.is_map() { 1 } else { self.0.len() };
        core::iter::from_fn(move || {
            let start = blanks(self.0, at);
            let end = end_of(self.0, start)?;
            let name = Self(&self.0[start..end]).text()?;
            let colon = blanks(self.0, end);
            if self.0.get(colon) != Some(&b':') {
                return None;
            }
            let start = blanks(self.0, colon + 1);
            let end = end_of(self.0, start)?;
            at = after(self.0, end);
            Some((name, Self(&self.0[start..end])))
        })
    }

    /// The items of a list.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut at = if self.is_list() { 1 } else { self.0.len() };
        core::iter::from_fn(move || {
            let start = blanks(self.0, at);
            let end = end_of(self.0, start)?;
            at = after(self.0, end);
            Some(Self(&self.0[start..end]))
        })
    }
}

/// A text between its quotes, with its escapes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    pub fn is(self, known: &str) -> bool {
        self.0 == known.as_bytes() || self.0.contains(&b'\\') && self.decoded() == known.as_bytes()
    }

    /// Its bytes as they stand there, behind this beginning.
    pub fn after(self, start: &str) -> Option<&'a [u8]> {
        self.0.strip_prefix(start.as_bytes())
    }

    /// The bytes that it stands for.
    pub fn decoded(self) -> Cow<'a, [u8]> {
        if !self.0.contains(&b'\\') {
            return Cow::Borrowed(self.0);
        }
        let mut made = alloc::vec::Vec::with_capacity(self.0.len());
        self.each(|part| match part {
            Part::Plain(byte) => made.push(byte),
            Part::Escaped(letter) => made.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        });
        Cow::Owned(made)
    }

    /// The text that it stands for; `None` where its bytes are none.
    pub fn string(self) -> Option<String> {
        String::from_utf8(self.decoded().into_owned()).ok()
    }

    /// Characters, and bytes in UTF-8.
    pub fn size(self) -> (usize, usize) {
        let (mut characters, mut bytes) = (0, 0);
        self.each(|part| match part {
            Part::Plain(byte) => {
                // The bytes that go on with a character.
                characters += usize::from(byte & 0xc0 != 0x80);
                bytes += 1;
            }
            Part::Escaped(letter) => {
                characters += 1;
                bytes += letter.len_utf8();
            }
        });
        (characters, bytes)
    }

    fn each(self, mut on: impl FnMut(Part)) {
        let mut at = 0;
        while at < self.0.len() {
            if self.0[at] != b'\\' {
                on(Part::Plain(self.0[at]));
                at += 1;
                continue;
            }
            let letter = match self.0.get(at + 1) {
                Some(b'u') => {
                    let first = self.unit(at);
                    at += 4;
                    match first {
                        Some(high @ 0xd800..0xdc00) => match self.unit(at + 2) {
                            Some(low @ 0xdc00..0xe000) => {
                                at += 6;
                                char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                            }
                            _ => None,
                        },
                        Some(unit) => char::from_u32(unit),
                        None => None,
                    }
                }
                Some(b'n') => Some('\n'),
                Some(b't') => Some('\t'),
                Some(b'r') => Some('\r'),
                Some(b'b') => Some('\u{8}'),
                Some(b'f') => Some('\u{c}'),
                Some(&plain) => Some(plain as char),
                None => None,
            };
            on(Part::Escaped(letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
            at += 2;
        }
    }

    /// Half a character, of an escape at `at`.
    fn unit(self, at: usize) -> Option<u32> {
        let digits = self.0.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        digits[2..].iter().try_fold(0, |sum, &digit| Some(sum * 16 + (digit as char).to_digit(16)?))
    }
}

enum Part {
    Plain(u8),
    Escaped(char),
}

fn blanks(text: &[u8], at: usize) -> usize {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    text.len()
        .min(at + text.get(at..).map_or(0, |rest| rest.iter().take_while(|&byte| is_blank(byte)).count()))
}

/// Behind the comma after a value; at the end of what it is in where there is none.
fn after(text: &[u8], end: usize) -> usize {
    let comma = blanks(text, end);
    if text.get(comma) == Some(&b',') { comma + 1 } else { text.len() }
}

/// Where the value that begins at `at` ends; `None` where none does.
fn end_of(text: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = at;
    loop {
        match text.get(at)? {
            b'"' => at = end_of_text(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth > 0 => {
                at += 1;
                continue;
            }
            _ => {
                let rest = &text[at..];
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let length = rest.iter().take_while(|&byte| is_word(byte)).count();
                if !is_scalar(&rest[..length]) {
                    return None;
                }
                at += length;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

fn end_of_text(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn is_scalar(word: &[u8]) -> bool {
    matches!(word, b"true" | b"false" | b"null")
        || matches!(word, [b'-' | b'0'..=b'9', ..])
            && word
                .iter()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
}

/// A number of JSON, to fifteen digits or so: std's parser for exact ones would be half of this crate.
fn number(word: &[u8]) -> Option<f64> {
    let (sign, digits) = match word.strip_prefix(b"-") {
        Some(digits) => (-1.0, digits),
        None => (1.0, word),
    };
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let (mut value, mut scale, mut at, mut is_fraction) = (0_f64, 0_i32, 0, false);
    while let Some(&byte) = digits.get(at) {
        match byte {
            b'0'..=b'9' => {
                value = value * 10.0 + f64::from(byte - b'0');
                scale -= i32::from(is_fraction);
            }
            b'.' => is_fraction = true,
            _ => break,
        }
        at += 1;
    }
    if at < digits.len() {
        let exponent = digits[at..].strip_prefix(b"e").or_else(|| digits[at..].strip_prefix(b"E"));
        let (sign, digits) = match exponent? {
            [b'-', digits @ ..] => (-1, digits),
            [b'+', digits @ ..] | digits => (1, digits),
        };
        let mut read = 0_i32;
        for &digit in digits {
            read = (digit as char).to_digit(10)? as i32 + read.min(1000) * 10;
        }
        scale = scale.saturating_add(read * sign);
    }
    let by = if scale < 0 { 0.1 } else { 10.0 };
    let exact = value;
    for _ in 0..scale.unsigned_abs().min(400) {
        value *= by;
    }
    // A tenth has no exact double: whole numbers of a fraction stay whole.
    if scale < 0 && scale > -16 {
        value = exact / (0..-scale).fold(1.0, |by, _| by * 10.0);
    }
    Some(sign * value)
}
