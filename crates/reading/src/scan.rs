//! A cursor over bytes, and the numbers in them: what every reader of fields here is made of.
//!
//! A general number parser takes `1e3`, `0x10` and `Infinity`, and a float loses fractions; here a number is
//! up to fifteen digits with an optional fraction in whole millionths. The library's searches in `str` bring
//! kilobytes of Unicode along; header fields are bytes (RFC 9110 §5.5).

/// More digits than that are hostile: no count, span or instant has them.
const MOST_DIGITS: u32 = 15;
/// A number from here on has no room for another digit.
const MOST_BEFORE_LAST: u64 = 10_u64.pow(MOST_DIGITS - 1);

/// The bytes that are left to read.
#[derive(Clone, Copy)]
pub struct Scan<'a>(pub &'a [u8]);

/// A decimal.
#[derive(Clone, Copy)]
pub struct Decimal {
    /// The part before the point.
    pub whole: u64,
    /// The part behind it in millionths, cut off.
    pub millionths: u64,
    /// Whether something was cut off.
    pub is_cut: bool,
    /// Whether there was no fraction.
    pub is_whole: bool,
}

impl<'a> Scan<'a> {
    /// Whether it is at the end.
    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte; 0 at the end.
    pub fn peek(&self) -> u8 {
        self.0.first().copied().unwrap_or(0)
    }

    /// Whether the next byte was this one, which is behind us then.
    pub fn eat(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// All bytes from here that are of a kind.
    pub fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| !is_part(byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at_checked(end).unwrap_or_default();
        self.0 = rest;
        taken
    }

    /// The bytes before the next `byte`, which is behind us then; or all the rest.
    pub fn until(&mut self, byte: u8) -> &'a [u8] {
        let (before, rest) = cut(self.0, byte);
        self.0 = rest.unwrap_or_default();
        before
    }

    /// Leaves out spaces and tabs.
    pub fn skip_blanks(&mut self) {
        self.take(is_blank);
    }

    /// A whole number without a sign.
    pub fn whole(&mut self) -> Option<u64> {
        whole(self.take(is_digit))
    }

    /// A number with an optional fraction and no sign.
    pub fn decimal(&mut self) -> Option<Decimal> {
        let whole = self.whole()?;
        let mut decimal = Decimal { whole, millionths: 0, is_cut: false, is_whole: true };
        let mut place = 100_000;
        for digit in if self.eat(b'.') { self.take(is_digit) } else { &[] } {
            let digit = u64::from(digit - b'0');
            decimal.millionths += digit * place;
            decimal.is_cut |= place == 0 && digit > 0;
            decimal.is_whole = false;
            place /= 10;
        }
        Some(decimal)
    }
}

impl Decimal {
    /// The fraction in thousandths, rounded up: never too early.
    pub fn thousandths(self) -> u64 {
        (self.millionths + u64::from(self.is_cut)).div_ceil(1000)
    }
}

/// Digits as a number.
pub fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| {
        let has_room = number < MOST_BEFORE_LAST && is_digit(digit);
        has_room.then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// The bytes before the first `byte`, and those behind it.
pub fn cut(text: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    let at = text.iter().position(|&other| other == byte).unwrap_or(text.len());
    let (before, rest) = text.split_at_checked(at).unwrap_or_default();
    (before, rest.get(1..))
}

/// The rest behind a prefix, in any case.
pub fn strip<'a>(text: &'a [u8], prefix: &str) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix.as_bytes()).then_some(rest)
}

/// The rest before a suffix, in any case.
pub fn strip_end<'a>(text: &'a [u8], suffix: &str) -> Option<&'a [u8]> {
    let (start, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    end.eq_ignore_ascii_case(suffix.as_bytes()).then_some(start)
}

/// Whether two texts are the same but for their case.
pub fn is(text: &[u8], word: &str) -> bool {
    text.eq_ignore_ascii_case(word.as_bytes())
}

/// Whether a word of small letters is part of a text, in any case.
pub fn holds(text: &[u8], word: &str) -> bool {
    let first = word.as_bytes().first();
    text.windows(word.len())
        .any(|part| part.first().map(u8::to_ascii_lowercase).as_ref() == first && is(part, word))
}

/// A digit.
pub fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// A letter.
pub fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

/// A space or a tab.
pub fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}
