//! Plain values: options as they were typed, and what the engine shows to people. Every host has its own kind
//! of object; this is what they are turned into, and out of.
//!
//! A deserializer that stops at the first wrong value tells its user one problem at a time. This one takes
//! every value. A value of the host that settings never want (functions, symbols, cycles) becomes
//! [`Value::Other`] with its description, and the reader reports it with its path.

use core::fmt;

use serde::{
    de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::{Serialize, Serializer},
};

/// Options nest three levels deep; whatever is deeper is a mistake or a cycle.
pub const DEEPEST: u8 = 8;

/// One value as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `undefined` or `null`: as if the key were not there.
    Nothing,
    /// A flag.
    Bool(bool),
    /// Any number, also NaN and the infinities.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object, in its own order.
    Map(Vec<(String, Value)>),
    /// Something that no setting wants, described.
    Other(String),
}

impl Value {
    /// An object of these entries, without those that are undefined.
    pub fn object(entries: Vec<(&str, Self)>) -> Self {
        let there = entries.into_iter().filter(|(_, value)| *value != Self::Nothing);
        Self::Map(there.map(|(key, value)| (key.into(), value)).collect())
    }

    /// The value as an error message shows it, shortened.
    pub fn describe(&self) -> String {
        match self {
            Self::Nothing => "nothing".into(),
            Self::Bool(flag) => if *flag { "true" } else { "false" }.into(),
            Self::Number(number) => number_text(*number),
            Self::Text(text) => {
                let mut short: String = text.chars().take(40).collect();
                if short.len() < text.len() {
                    short.push('…');
                }
                quoted(&short)
            }
            Self::List(items) => text(&["a list of ", &whole_text(items.len() as u64)]),
            Self::Map(_) => "an object".into(),
            Self::Other(what) => what.clone(),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(f64::from(number))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            // In JavaScript's words: 5, not 5.0.
            Self::Number(number) if number.trunc() == *number && number.abs() < 1e15 => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) | Self::Other(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// `scopes."api.example".delay`: a name that would not stand as it is in JavaScript is quoted.
pub fn join(path: &str, key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    let key = if plain { key.to_string() } else { quoted(key) };
    if path.is_empty() { key } else { text(&[path, ".", &key]) }
}

/// `quota[1]`.
pub fn item_path(path: &str, index: usize) -> String {
    text(&[path, "[", &whole_text(index as u64), "]"])
}

/// Text in quotes as JSON has it. (Rust's own escaping brings tables of Unicode along.)
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c < ' ' => {
                quoted.push_str(if c < '\u{10}' { "\\u000" } else { "\\u001" });
                quoted.extend(char::from_digit(c as u32 % 16, 16));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A number in JavaScript's words.
pub fn number_text(number: f64) -> String {
    if number == f64::INFINITY {
        "Infinity".into()
    } else if number == f64::NEG_INFINITY {
        "-Infinity".into()
    } else if number.is_nan() {
        "NaN".into()
    } else {
        digits(number)
    }
}

/// Nine digits behind the point, or behind the first one of what is very large or very small. (The library's
/// exact way is seventeen kilobytes of WebAssembly.)
fn digits(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    let size = number.abs();
    if size < 1e15 && (size >= 1e-6 || size == 0.0) {
        let whole = size.trunc();
        let mut rest = ((size - whole) * 1e9 + 0.5) as u64;
        let whole = whole as u64 + rest / 1_000_000_000;
        rest %= 1_000_000_000;
        if rest == 0 {
            return text(&[sign, &whole_text(whole)]);
        }
        // With a one in front, so that zeros behind the point stay. (A slice of text brings a panic along
        // that formats a character: three kilobytes.)
        let rest = whole_text(1_000_000_000 + rest);
        let rest = rest.strip_prefix('1').unwrap_or_default();
        return text(&[sign, &whole_text(whole), ".", rest.trim_end_matches('0')]);
    }
    let (mut first, mut exponent) = (size, 0_i32);
    while first >= 10.0 {
        (first, exponent) = (first / 10.0, exponent + 1);
    }
    while first < 1.0 {
        (first, exponent) = (first * 10.0, exponent - 1);
    }
    let minus = if exponent < 0 { "-" } else { "" };
    text(&[sign, &digits(first), "e", minus, &whole_text(exponent.unsigned_abs().into())])
}

/// Parts as one text.
pub fn text(parts: &[&str]) -> String {
    parts.concat()
}

/// A whole number.
pub fn whole_text(number: u64) -> String {
    let mut text = if number < 10 { String::new() } else { whole_text(number / 10) };
    text.push(char::from(b'0' + (number % 10) as u8));
    text
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed(0).deserialize(deserializer)
    }
}

#[derive(Clone, Copy)]
struct Seed(u8);

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.0 > DEEPEST {
            IgnoredAny::deserialize(deserializer)?;
            return Ok(Value::Other("something nested too deep".into()));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a plain value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Seed(self.0 + 1))? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            entries.push((key, map.next_value_seed(Seed(self.0 + 1))?));
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_nested_too_deep_is_skipped_and_the_rest_is_read() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let Value::Map(entries) = serde_json::from_str(&format!("{{\"a\":{deep},\"b\":1}}")).unwrap() else {
            panic!("an object");
        };
        assert_eq!(entries[1], ("b".into(), Value::Number(1.0)));
        let mut inner = &entries[0].1;
        while let Value::List(items) = inner {
            inner = &items[0];
        }
        assert_eq!(*inner, Value::Other("something nested too deep".into()));
        assert!(serde_json::from_str::<Value>("{\"a\": tru}").is_err());
    }

    #[test]
    fn whole_numbers_are_written_without_a_point() {
        let list = Value::List([5.0, 0.5, -3.0].map(Value::Number).into());
        assert_eq!(serde_json::to_string(&list).unwrap(), "[5,0.5,-3]");
    }
}
