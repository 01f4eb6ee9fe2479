//! JSON in and out.
//!
//! The library's way is twenty kilobytes of tables of powers of ten, a sixth of the component. Numbers here
//! are settings and what a snapshot remembers: from 10⁻⁵ to 10¹⁵ in at most seventeen digits. Those are read
//! and written exactly, in integers of 128 bits and in as few digits as tell them from their neighbours, as
//! JavaScript does; what is beyond may be off by its last digit.
//!
//! A text may nest a hundred thousand deep, so it is skipped with a counter, not by recursion.

use autothrottle::{
    Value,
    value::{DEEPEST, quoted},
};

/// A document, or the line and the column from which it is none.
pub fn parse(text: &str) -> Result<Value, (usize, usize)> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    let value = reader.value(0);
    reader.space();
    match value {
        Some(value) if reader.at == text.len() => Ok(value),
        _ => {
            let read = &text.as_bytes()[..reader.at.min(text.len())];
            let line = read.iter().filter(|&&byte| byte == b'\n').count() + 1;
            let start = read.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            Err((line, read.len() - start + 1))
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == byte;
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        let is_there = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += if is_there { word.len() } else { 0 };
        is_there.then_some(value)
    }

    fn value(&mut self, depth: u8) -> Option<Value> {
        self.space();
        match self.peek() {
            b'[' | b'{' if depth > DEEPEST => self.skip(),
            b'[' => {
                let mut items = Vec::new();
                self.members(b']', |reader| {
                    items.push(reader.value(depth + 1)?);
                    Some(())
                })?;
                Some(Value::List(items))
            }
            b'{' => {
                let mut entries = Vec::new();
                self.members(b'}', |reader| {
                    reader.space();
                    let key = reader.text()?;
                    reader.space();
                    let is_pair = reader.take(b':');
                    entries.push((key, if is_pair { reader.value(depth + 1)? } else { return None }));
                    Some(())
                })?;
                Some(Value::Map(entries))
            }
            b'"' => self.text().map(Value::Text),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Nothing),
            _ => self.number().map(Value::Number),
        }
    }

    /// What stands between two brackets, with commas between.
    fn members(&mut self, end: u8, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.space();
        if self.take(end) {
            return Some(());
        }
        loop {
            each(self)?;
            self.space();
            if self.take(end) {
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    /// Passes over what is nested too deep to mean anything.
    fn skip(&mut self) -> Option<Value> {
        let mut open = 0_usize;
        loop {
            match self.peek() {
                b'[' | b'{' => open += 1,
                b']' | b'}' => open -= 1,
                b'"' => {
                    self.text()?;
                    continue;
                }
                _ if self.at >= self.bytes.len() => return None,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(Value::Other("something nested too deep".into()));
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        if !self.take(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), b'"' | b'\\' | 0..=31) {
                self.at += 1;
            }
            text.extend_from_slice(&self.bytes[start..self.at]);
            if self.take(b'"') {
                return String::from_utf8(text).ok();
            }
            if !self.take(b'\\') {
                return None;
            }
            let escaped = self.escaped()?;
            text.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let escaped = match self.peek() {
            plain @ (b'"' | b'\\' | b'/') => char::from(plain),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unit();
            }
            _ => return None,
        };
        self.at += 1;
        Some(escaped)
    }

    /// A character of one or two units of UTF-16; half of a pair is none and is replaced.
    fn unit(&mut self) -> Option<char> {
        let first = self.hex()?;
        if (0xD800..0xDC00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xDC00..0xE000).contains(&second) {
                return char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            }
            self.at = back;
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..4 {
            number = number << 4 | char::from(self.peek()).to_digit(16)?;
            self.at += 1;
        }
        Some(number)
    }

    fn number(&mut self) -> Option<f64> {
        let is_negative = self.take(b'-');
        let (mut digits, mut exponent, start) = (0_u64, 0_i32, self.at);
        let is_zero = self.peek() == b'0';
        exponent += self.digits(&mut digits).1;
        if self.at == start || is_zero && self.at > start + 1 {
            return None;
        }
        if self.take(b'.') {
            let (count, dropped) = self.digits(&mut digits);
            exponent -= count - dropped;
            if count == 0 {
                return None;
            }
        }
        if self.take(b'e') || self.take(b'E') {
            let is_below = self.take(b'-');
            let (mut power, start) = (0, self.at + usize::from(!is_below && self.take(b'+')));
            self.digits(&mut power);
            if self.at == start {
                return None;
            }
            let power = power.min(10_000) as i32;
            exponent += if is_below { -power } else { power };
        }
        let number = number_of(digits, exponent);
        // What is no finite number any more is none that JSON has.
        number.is_finite().then_some(if is_negative { -number } else { number })
    }

    /// Appends digits to a number as long as they fit: how many there were, and how many did not.
    fn digits(&mut self, number: &mut u64) -> (i32, i32) {
        let (mut count, mut dropped) = (0_i32, 0_i32);
        while let digit @ b'0'..=b'9' = self.peek() {
            let longer = number.checked_mul(10).and_then(|more| more.checked_add(u64::from(digit - b'0')));
            match longer {
                Some(longer) if dropped == 0 => *number = longer,
                _ => dropped = dropped.saturating_add(1),
            }
            count = count.saturating_add(1);
            self.at += 1;
        }
        (count, dropped)
    }
}

const TEN: u128 = 10;

/// 2 to this power.
fn two_to(power: i32) -> f64 {
    f64::from_bits(((1023 + power) as u64) << 52)
}

/// `digits` × 10^`exponent`, to the nearest double while that fits in 128 bits.
fn number_of(digits: u64, exponent: i32) -> f64 {
    match exponent {
        _ if digits == 0 => 0.0,
        0..=19 => (u128::from(digits) * TEN.pow(exponent as u32)) as f64,
        // The quotient keeps at least 57 bits: enough to be rounded once.
        -21..=-1 => {
            let (shift, divisor) = (64 + digits.leading_zeros(), TEN.pow(exponent.unsigned_abs()));
            let whole = u128::from(digits) << shift;
            let quotient = (whole / divisor) | u128::from(whole % divisor > 0);
            quotient as f64 * two_to(-(shift as i32))
        }
        _ => {
            let (mut number, steps) = (digits as f64, exponent.unsigned_abs().min(400));
            for _ in 0..steps {
                number = if exponent > 0 { number * 10.0 } else { number / 10.0 };
            }
            number
        }
    }
}

/// A document as text.
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    put(value, &mut text);
    text
}

fn put(value: &Value, to: &mut String) {
    match value {
        Value::Nothing => to.push_str("null"),
        Value::Bool(flag) => to.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => put_number(*number, to),
        Value::Text(text) | Value::Other(text) => to.push_str(&quoted(text)),
        Value::List(items) => {
            to.push('[');
            for (place, item) in items.iter().enumerate() {
                to.push_str(if place > 0 { "," } else { "" });
                put(item, to);
            }
            to.push(']');
        }
        Value::Map(entries) => {
            to.push('{');
            for (place, (key, item)) in entries.iter().enumerate() {
                to.push_str(if place > 0 { "," } else { "" });
                to.push_str(&quoted(key));
                to.push(':');
                put(item, to);
            }
            to.push('}');
        }
    }
}

/// A number in JavaScript's words: 5, not 5.0; and no more digits than it needs.
fn put_number(number: f64, to: &mut String) {
    let size = number.abs();
    if !number.is_finite() {
        return to.push_str("null");
    }
    if number < 0.0 {
        to.push('-');
    }
    if size.trunc() == size && size < 1e15 {
        return put_decimal(size as u64, 0, to);
    }
    for places in 1..=21 {
        if let Some(digits) = decimal(size, places)
            && number_of(digits, -(places as i32)) == size
        {
            put_decimal(digits, places, to);
            return;
        }
    }
    to.push_str(&autothrottle::value::number_text(size));
}

/// `digits` with that many of them behind the point. (The library's formatter is four kilobytes.)
fn put_decimal(mut digits: u64, places: usize, to: &mut String) {
    let mut backwards = Vec::new();
    // A digit before the point, too.
    while digits > 0 || backwards.len() <= places + usize::from(places > 0) {
        backwards.push(char::from(b'0' + (digits % 10) as u8));
        digits /= 10;
        if backwards.len() == places {
            backwards.push('.');
        }
    }
    to.extend(backwards.iter().rev());
}

/// `number` × 10^`places`, rounded, if that fits.
fn decimal(number: f64, places: usize) -> Option<u64> {
    let bits = number.to_bits();
    let power = (bits >> 52) as i32 - 1075;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let scaled = mantissa.checked_mul(TEN.pow(places as u32))?;
    let rounded = match power {
        -127..=-1 => scaled.checked_add(1 << (-power - 1))? >> -power,
        _ => return None,
    };
    u64::try_from(rounded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_library_both_ways() {
        let mut state = 1_u64;
        for round in 0..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let size = [1e-5, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e14][(round % 7) as usize];
            let number = (state >> 11) as f64 / (1_u64 << 53) as f64 * size;
            if number < 1e-5 {
                continue;
            }
            let text = write(&Value::Number(number));
            assert_eq!(text.parse::<f64>(), Ok(number), "{text}");
            assert_eq!(parse(&number.to_string()), Ok(Value::Number(number)));
            assert_eq!(text.trim_end_matches(".0"), number.to_string());
        }
        for text in ["0.1", "0.3", "1795203840000.123", "5e-1", "123456789012345678", "1E3", "-0.001"] {
            assert_eq!(parse(text), Ok(Value::Number(text.parse().unwrap())), "{text}");
        }
    }

    #[test]
    fn documents_are_read_as_written() {
        let text = r#"{"a":[1,-2.5,true,false,null],"ü\n\"\\":{"":"😀"}}"#;
        let value = parse(text).unwrap();
        assert_eq!(write(&value), text);
        assert_eq!(parse(r#" [ "\ud83d\ude00\ud83d\u0041\/" ] "#), parse("[\"😀\u{fffd}A/\"]"));
    }

    #[test]
    fn what_is_no_document_says_where() {
        let wrong = [
            "", "[", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "nul", "01", "1.", ".5", "-", "1e", "1e+", "+1",
            "\"\n\"", "\"\\x\"", "\"\\u12\"", "[1 2]", "1 1", "1e999", "\u{0}", "[1}", "\"",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("{\n  \"a\": tru\n}"), Err((2, 8)));
    }

    #[test]
    fn what_is_nested_too_deep_is_skipped() {
        let deep = format!("{{\"a\":{}\"]\"{},\"b\":1}}", "[".repeat(100_000), "]".repeat(100_000));
        let Value::Map(entries) = parse(&deep).unwrap() else { panic!("an object") };
        assert_eq!(entries[1].1, Value::Number(1.0));
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
