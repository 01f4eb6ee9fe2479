//! Numbers, plain values and lists in CBOR: whole numbers take few bytes, what is unknown is `null`.
//!
//! No memory is reserved for a length that a sender claims: only for what was read.

use autothrottle::{Span, Value, value::DEEPEST};
use minicbor::{
    Decode, Decoder, Encode, Encoder,
    data::Type,
    decode::Error,
    encode::{self, Write},
};

use crate::api::{MemberId, Order, Refusal};

/// Options, snapshots and notices nest less deep.
const DEEPEST_VALUE: u8 = DEEPEST + 4;

/// A number, or NaN for one that is not known.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

/// Two unknown numbers are the same.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.is_nan() && other.0.is_nan()
    }
}

impl<C> Encode<C> for Number {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        put_number(self.0, to)
    }
}

impl<'b, C> Decode<'b, C> for Number {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        if from.datatype()? == Type::Null {
            from.null()?;
            return Ok(Self(f64::NAN));
        }
        number(from).map(Self)
    }
}

/// A plain value.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain(pub Value);

impl<C> Encode<C> for Plain {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        put(&self.0, to)
    }
}

impl<'b, C> Decode<'b, C> for Plain {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        value(from, 0).map(Self)
    }
}

/// A value as bytes: the same bytes for the same value, whatever the order of its keys.
pub fn canonical(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A `Vec` takes everything.
    let _ = put(&sorted(value), &mut Encoder::new(&mut bytes));
    bytes
}

/// The value behind bytes; `None` for what is none.
pub fn plain(bytes: &[u8]) -> Option<Value> {
    let mut decoder = Decoder::new(bytes);
    let value = value(&mut decoder, 0).ok()?;
    (decoder.position() == bytes.len()).then_some(value)
}

/// FNV-1a, which is enough to tell settings apart.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// What several have.
pub mod arc {
    use std::sync::Arc;

    use super::{Decode, Decoder, Encode, Encoder, Error, Write, encode};

    pub fn encode<C, T: Encode<C>, W: Write>(
        what: &Arc<T>,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        what.as_ref().encode(to, context)
    }

    pub fn decode<'b, C, T: Decode<'b, C>>(from: &mut Decoder<'b>, context: &mut C) -> Result<Arc<T>, Error> {
        T::decode(from, context).map(Arc::new)
    }
}

/// Spans in microseconds.
pub mod span {
    use super::{Decoder, Encoder, Error, Span, Write, encode};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as the derive calls it")]
    pub fn encode<C, W: Write>(
        span: &Span,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        to.u64(span.micros())?.ok()
    }

    /// A year is the most.
    pub fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Span, Error> {
        let most = Span::from_millis(autothrottle::LONGEST_MS);
        Ok(Span::from_micros(from.u64()?).min(most))
    }
}

impl<C> Encode<C> for MemberId {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        to.bytes(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for MemberId {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        let bytes = from.bytes()?.try_into();
        bytes.map(Self).map_err(|_| Error::message("no id"))
    }
}

/// As plain lists: the kind, the scope, the rest.
impl<C> Encode<C> for Order {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, context: &mut C) -> Result<(), encode::Error<W::Error>> {
        let (kind, name, span, value) = match self {
            Self::Configure(name, value) => (0, Some(name), None, Some(value)),
            Self::Crawl(name, span) => (1, Some(name), *span, None),
            Self::Hold(name, span) => (2, Some(name), Some(*span), None),
            Self::Pause(name) => (3, name.as_ref(), None, None),
            Self::Resume(name) => (4, name.as_ref(), None, None),
            Self::Reset(name) => (5, Some(name), None, None),
            Self::Adjust { name, ago, charged, cost } => {
                let costs = Value::List(vec![(*charged).into(), (*cost).into()]);
                return Self::written(to, context, 6, Some(name), Some(*ago), Some(&costs));
            }
        };
        Self::written(to, context, kind, name, span, value)
    }
}

impl Order {
    fn written<W: Write, C>(
        to: &mut Encoder<W>,
        context: &mut C,
        kind: u8,
        name: Option<&String>,
        span: Option<Span>,
        value: Option<&Value>,
    ) -> Result<(), encode::Error<W::Error>> {
        to.array(4)?.u8(kind)?;
        name.encode(to, context)?;
        span.map(Span::micros).encode(to, context)?;
        value.map(|value| Plain(value.clone())).encode(to, context)
    }
}

impl<'b, C> Decode<'b, C> for Order {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Result<Self, Error> {
        let wrong = || Error::message("no order");
        if from.array()? != Some(4) {
            return Err(wrong());
        }
        let kind = from.u8()?;
        let name: Option<String> = Option::decode(from, context)?;
        let span: Option<u64> = Option::decode(from, context)?;
        let value: Option<Plain> = Option::decode(from, context)?;
        let span = span.map(Span::from_micros);
        Ok(match (kind, name, span, value) {
            (0, Some(name), None, Some(value)) => Self::Configure(name, value.0),
            (1, Some(name), span, None) => Self::Crawl(name, span),
            (2, Some(name), Some(span), None) => Self::Hold(name, span),
            (3, name, None, None) => Self::Pause(name),
            (4, name, None, None) => Self::Resume(name),
            (5, Some(name), None, None) => Self::Reset(name),
            (6, Some(name), Some(ago), Some(Plain(Value::List(costs)))) => match costs[..] {
                [Value::Number(charged), Value::Number(cost)] => Self::Adjust { name, ago, charged, cost },
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        })
    }
}

/// As plain lists: the kind, a text, another one, a span.
impl<C> Encode<C> for Refusal {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Result<(), encode::Error<W::Error>> {
        let (kind, one, other, span) = match self {
            Self::Full => (0, "", "", Span::ZERO),
            Self::Cost { scope, path } => (1, &**scope, &**path, Span::ZERO),
            Self::Down { scope, span } => (2, &**scope, "", *span),
            Self::Wrong(why) | Self::Offline(why) | Self::Denied(why) => (3, &**why, "", Span::ZERO),
        };
        to.array(4)?.u8(kind)?.str(one)?.str(other)?.u64(span.micros())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Refusal {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        let wrong = || Error::message("no refusal");
        if from.array()? != Some(4) {
            return Err(wrong());
        }
        let kind = from.u8()?;
        let (one, other) = (from.str()?.to_string(), from.str()?.to_string());
        let span = Span::from_micros(from.u64()?);
        Ok(match kind {
            0 => Self::Full,
            1 => Self::Cost { scope: one, path: other },
            2 => Self::Down { scope: one, span },
            3 => Self::Wrong(one),
            _ => return Err(wrong()),
        })
    }
}

fn put<W: Write>(value: &Value, to: &mut Encoder<W>) -> Result<(), encode::Error<W::Error>> {
    match value {
        Value::Nothing => to.null()?.ok(),
        Value::Bool(flag) => to.bool(*flag)?.ok(),
        Value::Number(number) => put_number(*number, to),
        Value::Text(text) | Value::Other(text) => to.str(text)?.ok(),
        Value::List(items) => {
            to.array(items.len() as u64)?;
            items.iter().try_for_each(|item| put(item, to))
        }
        Value::Map(entries) => {
            to.map(entries.len() as u64)?;
            entries.iter().try_for_each(|(key, value)| {
                to.str(key)?;
                put(value, to)
            })
        }
    }
}

fn put_number<W: Write>(number: f64, to: &mut Encoder<W>) -> Result<(), encode::Error<W::Error>> {
    if number.is_nan() {
        to.null()?.ok()
    } else if number.trunc() == number && number.abs() < 9e15 && !(number == 0.0 && number.is_sign_negative())
    {
        to.i64(number as i64)?.ok()
    } else {
        to.f64(number)?.ok()
    }
}

fn number(from: &mut Decoder<'_>) -> Result<f64, Error> {
    match from.datatype()? {
        Type::F16 | Type::F32 | Type::F64 => {
            let number = from.f64()?;
            if number.is_nan() { Err(Error::message("a number that is none")) } else { Ok(number) }
        }
        _ => Ok(from.i64()? as f64),
    }
}

fn value(from: &mut Decoder<'_>, depth: u8) -> Result<Value, Error> {
    if depth > DEEPEST_VALUE {
        return Err(Error::message("nested too deep"));
    }
    Ok(match from.datatype()? {
        Type::Null | Type::Undefined => {
            from.skip()?;
            Value::Nothing
        }
        Type::Bool => Value::Bool(from.bool()?),
        Type::String => Value::Text(from.str()?.into()),
        Type::Array => {
            let many = from.array()?.ok_or_else(|| Error::message("a list without a length"))?;
            let mut items = Vec::new();
            for _ in 0..many {
                items.push(value(from, depth + 1)?);
            }
            Value::List(items)
        }
        Type::Map => {
            let many = from.map()?.ok_or_else(|| Error::message("a map without a length"))?;
            let mut entries = Vec::new();
            for _ in 0..many {
                let key = from.str()?.into();
                entries.push((key, value(from, depth + 1)?));
            }
            Value::Map(entries)
        }
        _ => Value::Number(number(from)?),
    })
}

/// Without what is undefined and what no other process understands, by key.
fn sorted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Map(entries) => {
            let is_there = |(_, value): &&(String, Value)| !matches!(value, Value::Nothing | Value::Other(_));
            let there: Vec<_> = entries.iter().filter(is_there).collect();
            let mut order: Vec<u32> = Vec::with_capacity(there.len());
            let key = |place: u32| there.get(place as usize).map(|entry| &entry.0);
            for place in 0..there.len() as u32 {
                order.insert(order.partition_point(|&other| key(other) <= key(place)), place);
            }
            let entries = order.into_iter().filter_map(|place| there.get(place as usize));
            Value::Map(entries.map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: Vec<(&str, Value)>) -> Value {
        Value::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    #[test]
    fn values_survive_and_the_order_of_keys_means_nothing() {
        let one = map(vec![
            ("b", Value::List(vec![Value::Number(0.5), Value::Number(-3.0), Value::Bool(true)])),
            ("a", Value::Text("x".into())),
            ("none", Value::Nothing),
            ("function", Value::Other("a function".into())),
        ]);
        let other = map(vec![
            ("a", Value::Text("x".into())),
            ("b", Value::List(vec![Value::Number(0.5), Value::Number(-3.0), Value::Bool(true)])),
        ]);
        assert_eq!(canonical(&one), canonical(&other));
        assert_eq!(plain(&canonical(&one)), Some(other));
        assert_ne!(hash(&canonical(&one)), hash(&canonical(&Value::Nothing)));
    }

    #[test]
    fn what_is_nested_too_deep_or_cut_is_none() {
        assert_eq!(plain(&[0x81; 1000]), None);
        assert_eq!(plain(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(plain(&[0xf6, 0xf6]), None, "two values");
        assert_eq!(plain(&[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]), None, "no number");
    }
}
