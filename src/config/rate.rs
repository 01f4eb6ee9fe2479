//! How a rate is typed: a number a second, `100/min`, or an object.

use super::{reader::Fields, table::Section};
use crate::{policy::rate, time::Span, value::Value};

impl Fields<'_> {
    /// Takes a rate: a number, a text, or an object.
    pub fn rate(&mut self, key: &str) -> Option<rate::Config> {
        let (value, row) = self.take(key)?;
        let second = Span::from_micros(1_000_000);
        let (limit, window, burst) = match &value {
            Value::Number(limit) => (Millionths::of(*limit), second, 1),
            Value::Text(text) => match Millionths::per(text) {
                Some((limit, window)) => (Some(limit), window, 1),
                None => (None, second, 1),
            },
            Value::Map(_) => {
                let path = self.path_of(key);
                let mut fields =
                    Fields::of_table(self.rows, value.clone(), path, Section::Rate, self.problems);
                let limit = fields.number_required("limit");
                let window = Span::from_millis(fields.number_or_default("window"));
                let burst = fields.number_or_default("burst") as u32;
                fields.finish();
                (Some(Millionths::of(limit?)?), window, burst)
            }
            _ => (None, second, 1),
        };
        let rate = limit.and_then(|limit| rate::Config::new(limit.0, window, burst));
        rate.or_else(|| self.refuse(key, row, &value))
    }
}

/// An amount in millionths, above 0.
struct Millionths(u64);

impl Millionths {
    const MOST: f64 = 1e9;

    fn of(number: f64) -> Option<Self> {
        (number > 0.0 && number <= Self::MOST).then_some(Self((number * 1e6 + 0.5) as u64))
    }

    /// `100/min`: an amount and the span it is for.
    fn per(text: &str) -> Option<(Self, Span)> {
        let (amount, unit) = text.split_once('/')?;
        let seconds = match unit.trim() {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            "day" => 86_400,
            _ => return None,
        };
        let (whole, rest) = amount.trim().split_once('.').unwrap_or((amount.trim(), ""));
        let is_plain = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || whole.len() > 9 || rest.len() > 6 || !is_plain(whole) || !is_plain(rest) {
            return None;
        }
        let digits = whole.bytes().chain(rest.bytes()).chain(core::iter::repeat_n(b'0', 6 - rest.len()));
        let amount = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        (amount > 0).then_some((Self(amount), Span::from_micros(seconds * 1_000_000)))
    }
}
