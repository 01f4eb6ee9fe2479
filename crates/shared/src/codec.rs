//! Numbers, plain values and lists in CBOR: whole numbers take few bytes, what is unknown is `null`.
//!
//! No memory is reserved for a length that a sender claims: only for what was read.

use std::sync::Arc;

use autothrottle::{LONGEST_MS, Span, Value, value::DEEPEST};
use minicbor::{Decoder, Encoder, data::Type};

use crate::api::{MemberId, Order, Refusal};

/// Options, snapshots and notices nest less deep.
const DEEPEST_VALUE: u8 = DEEPEST + 4;

/// Where frames are written: a `Vec` takes everything, so no result is looked at.
pub type Writer = Encoder<Vec<u8>>;

/// A part of a frame.
pub trait Wire: Sized {
    /// Written down.
    fn write(&self, to: &mut Writer);
    /// Read; `None` for what is none.
    fn read(from: &mut Decoder<'_>) -> Option<Self>;
}

/// A structure is the list of its fields in this order, an enumeration its number and the fields. (The derive
/// of minicbor writes the code that reads a field twice, for lists that say their length and lists that do
/// not.)
macro_rules! wire {
    ($(struct $name:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::codec::Wire for $name {
            fn write(&self, to: &mut $crate::codec::Writer) {
                let _ = to.array(<[&str]>::len(&[$(stringify!($field)),*]) as u64);
                $(self.$field.write(to);)*
            }

            fn read(from: &mut minicbor::Decoder<'_>) -> Option<Self> {
                let many = from.array().ok()??;
                if many != <[&str]>::len(&[$(stringify!($field)),*]) as u64 {
                    return None;
                }
                Some(Self { $($field: $crate::codec::Wire::read(from)?),* })
            }
        }
    )*};
    (enum $name:ident {
        $($number:literal $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?,)*
    }) => {
        impl $crate::codec::Wire for $name {
            fn write(&self, to: &mut $crate::codec::Writer) {
                match self {$(
                    Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        let _ = to.array(1 $($(+ { stringify!($item); 1 })*)? $($(+ { stringify!($field); 1 })*)?);
                        let _ = to.u32($number);
                        $($($item.write(to);)*)?
                        $($($field.write(to);)*)?
                    }
                )*}
            }

            fn read(from: &mut minicbor::Decoder<'_>) -> Option<Self> {
                match (from.array().ok()??, from.u32().ok()?) {$(
                    (many, $number)
                        if many == 1 $($(+ { stringify!($item); 1 })*)? $($(+ { stringify!($field); 1 })*)? =>
                    {
                        $($(let $item = $crate::codec::Wire::read(from)?;)*)?
                        $($(let $field = $crate::codec::Wire::read(from)?;)*)?
                        Some(Self::$variant $(($($item),*))? $({ $($field),* })?)
                    }
                )*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use wire;

macro_rules! simple {
    ($($type:ty: $method:ident)*) => {$(
        impl Wire for $type {
            fn write(&self, to: &mut Writer) {
                let _ = to.$method(*self);
            }

            fn read(from: &mut Decoder<'_>) -> Option<Self> {
                from.$method().ok()
            }
        }
    )*};
}
simple!(u32: u32 u64: u64 bool: bool);

impl Wire for String {
    fn write(&self, to: &mut Writer) {
        let _ = to.str(self);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        from.str().ok().map(Self::from)
    }
}

impl Wire for Vec<u8> {
    fn write(&self, to: &mut Writer) {
        let _ = to.bytes(self);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        from.bytes().ok().map(Self::from)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, to: &mut Writer) {
        let _ = to.array(self.len() as u64);
        for item in self {
            item.write(to);
        }
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let mut items = Self::new();
        for _ in 0..from.array().ok()?? {
            items.push(T::read(from)?);
        }
        Some(items)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Writer) {
        maybe(self.as_ref(), to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        if from.datatype().ok()? == Type::Null {
            return from.null().ok().map(|()| None);
        }
        T::read(from).map(Some)
    }
}

fn maybe<T: Wire>(what: Option<&T>, to: &mut Writer) {
    match what {
        Some(what) => what.write(to),
        None => _ = to.null(),
    }
}

impl<T: Wire> Wire for Box<T> {
    fn write(&self, to: &mut Writer) {
        self.as_ref().write(to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        T::read(from).map(Self::new)
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn write(&self, to: &mut Writer) {
        self.as_ref().write(to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        T::read(from).map(Self::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, to: &mut Writer) {
        let _ = to.array(2);
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        if from.array().ok()?? == 2 { Some((A::read(from)?, B::read(from)?)) } else { None }
    }
}

/// In microseconds; a year is the most.
impl Wire for Span {
    fn write(&self, to: &mut Writer) {
        self.micros().write(to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self::from_micros(u64::read(from)?).min(Self::from_millis(LONGEST_MS)))
    }
}

/// A number, or NaN for one that is not known.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

/// Two unknown numbers are the same.
impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.is_nan() && other.0.is_nan()
    }
}

impl Wire for Number {
    fn write(&self, to: &mut Writer) {
        put_number(self.0, to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        if from.datatype().ok()? == Type::Null {
            return from.null().ok().map(|()| Self(f64::NAN));
        }
        number(from).map(Self)
    }
}

/// A plain value.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain(pub Value);

impl Wire for Plain {
    fn write(&self, to: &mut Writer) {
        put(&self.0, to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        value(from, 0).map(Self)
    }
}

/// Behind what is there already.
pub fn write_to<T: Wire>(bytes: Vec<u8>, what: &T) -> Vec<u8> {
    let mut writer = Encoder::new(bytes);
    what.write(&mut writer);
    writer.into_writer()
}

/// The value that all of these bytes are.
pub fn read_all<T: Wire>(bytes: &[u8]) -> Option<T> {
    let mut decoder = Decoder::new(bytes);
    let what = T::read(&mut decoder)?;
    (decoder.position() == bytes.len()).then_some(what)
}

/// A value as bytes: the same bytes for the same value, whatever the order of its keys.
pub fn canonical(value: &Value) -> Vec<u8> {
    write_to(Vec::new(), &Plain(sorted(value)))
}

/// The value behind bytes; `None` for what is none.
pub fn plain(bytes: &[u8]) -> Option<Value> {
    read_all(bytes).map(|Plain(value)| value)
}

/// FNV-1a, which is enough to tell settings apart.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl Wire for MemberId {
    fn write(&self, to: &mut Writer) {
        let _ = to.bytes(&self.0);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        from.bytes().ok()?.try_into().ok().map(Self)
    }
}

/// As plain lists: the kind, the scope, the rest.
impl Wire for Order {
    fn write(&self, to: &mut Writer) {
        let costs;
        let (kind, name, span, value) = match self {
            Self::Configure(name, value) => (0, Some(name), None, Some(value)),
            Self::Crawl(name, span) => (1, Some(name), *span, None),
            Self::Hold(name, span) => (2, Some(name), Some(*span), None),
            Self::Pause(name) => (3, name.as_ref(), None, None),
            Self::Resume(name) => (4, name.as_ref(), None, None),
            Self::Reset(name) => (5, Some(name), None, None),
            Self::Adjust { name, ago, charged, cost } => {
                costs = Value::List(vec![(*charged).into(), (*cost).into()]);
                (6, Some(name), Some(*ago), Some(&costs))
            }
        };
        let _ = to.array(4);
        let _ = to.u32(kind);
        maybe(name, to);
        span.write(to);
        match value {
            Some(value) => put(value, to),
            None => _ = to.null(),
        }
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        if from.array().ok()?? != 4 {
            return None;
        }
        let kind = u32::read(from)?;
        let (name, span) = (Option::read(from)?, Option::read(from)?);
        let value: Option<Plain> = Option::read(from)?;
        Some(match (kind, name, span, value) {
            (0, Some(name), None, Some(value)) => Self::Configure(name, value.0),
            (1, Some(name), span, None) => Self::Crawl(name, span),
            (2, Some(name), Some(span), None) => Self::Hold(name, span),
            (3, name, None, None) => Self::Pause(name),
            (4, name, None, None) => Self::Resume(name),
            (5, Some(name), None, None) => Self::Reset(name),
            (6, Some(name), Some(ago), Some(Plain(Value::List(costs)))) => match costs[..] {
                [Value::Number(charged), Value::Number(cost)] => Self::Adjust { name, ago, charged, cost },
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// As plain lists: the kind, a text, another one, a span.
impl Wire for Refusal {
    fn write(&self, to: &mut Writer) {
        let (kind, one, other, span) = match self {
            Self::Full => (0, "", "", Span::ZERO),
            Self::Cost { scope, path } => (1, &**scope, &**path, Span::ZERO),
            Self::Down { scope, span } => (2, &**scope, "", *span),
            Self::Wrong(why) | Self::Offline(why) | Self::Denied(why) => (3, &**why, "", Span::ZERO),
        };
        let _ = to.array(4);
        let _ = to.u32(kind);
        let _ = to.str(one);
        let _ = to.str(other);
        span.write(to);
    }

    fn read(from: &mut Decoder<'_>) -> Option<Self> {
        if from.array().ok()?? != 4 {
            return None;
        }
        let kind = u32::read(from)?;
        let (one, other, span) = (String::read(from)?, String::read(from)?, Span::read(from)?);
        match kind {
            0 => Some(Self::Full),
            1 => Some(Self::Cost { scope: one, path: other }),
            2 => Some(Self::Down { scope: one, span }),
            3 => Some(Self::Wrong(one)),
            _ => None,
        }
    }
}

fn put(value: &Value, to: &mut Writer) {
    match value {
        Value::Nothing => _ = to.null(),
        Value::Bool(flag) => _ = to.bool(*flag),
        Value::Number(number) => put_number(*number, to),
        Value::Text(text) | Value::Other(text) => _ = to.str(text),
        Value::List(items) => {
            let _ = to.array(items.len() as u64);
            for item in items {
                put(item, to);
            }
        }
        Value::Map(entries) => {
            let _ = to.map(entries.len() as u64);
            for (key, value) in entries {
                let _ = to.str(key);
                put(value, to);
            }
        }
    }
}

fn put_number(number: f64, to: &mut Writer) {
    if number.is_nan() {
        let _ = to.null();
    } else if number.trunc() == number && number.abs() < 9e15 && !(number == 0.0 && number.is_sign_negative())
    {
        let _ = to.i64(number as i64);
    } else {
        let _ = to.f64(number);
    }
}

fn number(from: &mut Decoder<'_>) -> Option<f64> {
    match from.datatype().ok()? {
        Type::F16 | Type::F32 | Type::F64 => from.f64().ok().filter(|number| !number.is_nan()),
        _ => from.i64().ok().map(|number| number as f64),
    }
}

fn value(from: &mut Decoder<'_>, depth: u8) -> Option<Value> {
    if depth > DEEPEST_VALUE {
        return None;
    }
    Some(match from.datatype().ok()? {
        Type::Null | Type::Undefined => {
            from.skip().ok()?;
            Value::Nothing
        }
        Type::Bool => Value::Bool(from.bool().ok()?),
        Type::String => Value::Text(String::read(from)?),
        Type::Array => {
            let mut items = Vec::new();
            for _ in 0..from.array().ok()?? {
                items.push(value(from, depth + 1)?);
            }
            Value::List(items)
        }
        Type::Map => {
            let mut entries = Vec::new();
            for _ in 0..from.map().ok()?? {
                entries.push((String::read(from)?, value(from, depth + 1)?));
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
    fn a_value_that_is_nested_too_deep_or_cut_is_none() {
        assert_eq!(plain(&[0x81; 1000]), None);
        assert_eq!(plain(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(plain(&[0xf6, 0xf6]), None, "two values");
        assert_eq!(plain(&[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]), None, "no number");
    }
}
