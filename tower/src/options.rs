//! Options in Rust's own types. They are read as any other that serde reads, so that what is wrong with them is
//! said by one reader: the engine's.

use std::{collections::BTreeMap, time::Duration};

use autothrottle::{Failure, Value};
use serde::{
    Deserializer,
    de::{
        IntoDeserializer, Visitor,
        value::{Error, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

/// A rate: requests a second, a text, or one with its own span.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Requests a second.
    PerSecond(f64),
    /// `5/s`, `100/min`, `1000/h`, `1000/day`.
    Text(String),
    /// With its own span, or with bursts.
    Of(RateOptions),
}

/// How far a delay may stray from its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// ±50 %, or none.
    Flag(bool),
    /// ± this share.
    Share(f64),
    /// From this share to that.
    Between(f64, f64),
}

/// Bad answers per window that a search may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BackoffTarget {
    /// As many.
    Of(f64),
    /// The middle of these two.
    Between(f64, f64),
}

/// One quota, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Quotas(pub Vec<QuotaOptions>);

/// A policy: on, off, or on with settings of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Switch<T> {
    /// On as it is by default, or off.
    Flag(bool),
    /// On with these settings.
    With(T),
}

/// The rule for a wait that is longer than `max_retry_after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongRetryAfter {
    /// The answer is given as it is.
    Fail,
    /// As long as the server asks.
    Wait,
    /// No longer than `max_retry_after`.
    Cap,
}

/// Makes a type of others.
macro_rules! from {
    ($($typed:ty => $of:ty, $with:expr;)*) => {
        $(impl From<$typed> for $of {
            fn from(typed: $typed) -> Self {
                $with(typed)
            }
        })*
    };
}

from! {
    f64 => Rate, Rate::PerSecond;
    i32 => Rate, |rate| Self::PerSecond(f64::from(rate));
    &str => Rate, |rate: &str| Self::Text(rate.into());
    String => Rate, Rate::Text;
    RateOptions => Rate, Rate::Of;
    bool => Jitter, Jitter::Flag;
    f64 => Jitter, Jitter::Share;
    (f64, f64) => Jitter, |(from, to)| Self::Between(from, to);
    f64 => BackoffTarget, BackoffTarget::Of;
    i32 => BackoffTarget, |target| Self::Of(f64::from(target));
    (f64, f64) => BackoffTarget, |(from, to)| Self::Between(from, to);
    f64 => Quotas, |limit| QuotaOptions { limit, ..QuotaOptions::default() }.into();
    i32 => Quotas, |limit| f64::from(limit).into();
    QuotaOptions => Quotas, |quota| Self(vec![quota]);
    Vec<QuotaOptions> => Quotas, Quotas;
}

impl<T> From<bool> for Switch<T> {
    fn from(is_on: bool) -> Self {
        Self::Flag(is_on)
    }
}

/// A typed option, as the engine reads it.
pub(crate) trait Typed {
    fn typed(self) -> Value;
}

/// The value of each type.
macro_rules! typed {
    ($($of:ty: $it:ident => $value:expr;)*) => {
        $(impl Typed for $of {
            fn typed(self) -> Value {
                let $it = self;
                $value
            }
        })*
    };
}

typed! {
    f64: it => Value::Number(it);
    u16: it => Value::Number(f64::from(it));
    u32: it => Value::Number(f64::from(it));
    u64: it => Value::Number(it as f64);
    bool: it => Value::Bool(it);
    String: it => Value::Text(it);
    Duration: it => Value::Number(it.as_secs_f64() * 1000.0);
    Failure: it => Value::Text(it.name().into());
    Rate: it => match it {
        Rate::PerSecond(rate) => rate.typed(),
        Rate::Text(text) => text.typed(),
        Rate::Of(options) => options.typed(),
    };
    Jitter: it => match it {
        Jitter::Flag(flag) => flag.typed(),
        Jitter::Share(share) => share.typed(),
        Jitter::Between(from, to) => vec![from, to].typed(),
    };
    BackoffTarget: it => match it {
        BackoffTarget::Of(target) => target.typed(),
        BackoffTarget::Between(from, to) => vec![from, to].typed(),
    };
    Quotas: it => it.0.typed();
    LongRetryAfter: it => Value::Text(match it {
        LongRetryAfter::Fail => "fail",
        LongRetryAfter::Wait => "wait",
        LongRetryAfter::Cap => "cap",
    }.into());
}

impl<T: Typed> Typed for Option<T> {
    fn typed(self) -> Value {
        self.map_or(Value::Nothing, Typed::typed)
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn typed(self) -> Value {
        Value::List(self.into_iter().map(Typed::typed).collect())
    }
}

impl<T: Typed> Typed for BTreeMap<String, T> {
    fn typed(self) -> Value {
        Value::Map(self.into_iter().map(|(key, value)| (key, value.typed())).collect())
    }
}

impl<T: Typed> Typed for Switch<T> {
    fn typed(self) -> Value {
        match self {
            Self::Flag(flag) => flag.typed(),
            Self::With(options) => options.typed(),
        }
    }
}

/// Structs of options. Each is what serde reads, too, so it goes wherever options go.
macro_rules! options {
    ($(
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $field:ident $key:literal: $type:ty,)* }
    )*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $name {
                $($(#[$doc])* pub $field: $type,)*
            }

            impl Typed for $name {
                fn typed(self) -> Value {
                    Value::object(vec![
                        $(($key, Typed::typed(self.$field)),)*
                    ])
                }
            }

            impl<'de> serde::Deserializer<'de> for $name {
                type Error = serde::de::value::Error;

                fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
                    let value = Typed::typed(self);
                    serde::Deserializer::deserialize_any(SerdeValue(value), visitor)
                }

                serde::forward_to_deserialize_any! {
                    bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
                    unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
                }
            }

            #[cfg(test)]
            impl tests::Sampled for $name {
                fn sampled() -> Self {
                    Self { $($field: tests::Sampled::required(),)* }
                }
            }

            #[cfg(test)]
            impl $name {
                /// For each setting, options with that one, and with those that are required.
                fn each() -> Vec<(&'static str, Self)> {
                    let bare = || <Self as tests::Sampled>::sampled();
                    vec![$(($key, Self { $field: tests::Sampled::sampled(), ..bare() }),)*]
                }
            }
        )*

        $(impl From<$name> for Switch<$name> {
            fn from(options: $name) -> Self {
                Self::With(options)
            }
        })*

        /// Each struct by name: options with one setting, as the engine reads them.
        #[cfg(test)]
        const STRUCTS: &[(&str, fn() -> Vec<(&'static str, Value)>)] = &[$((stringify!($name), || {
            let read = |options| crate::throttle::value_of(options, "options").unwrap();
            $name::each().into_iter().map(|(key, options)| (key, read(options))).collect()
        })),*];
    };
}

include!("settings.rs");

/// A value that serde reads.
pub(crate) struct SerdeValue(pub Value);

impl IntoDeserializer<'_> for SerdeValue {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for SerdeValue {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Nothing => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            Value::Number(number) => visitor.visit_f64(number),
            Value::Text(text) | Value::Other(text) => visitor.visit_string(text),
            Value::List(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(SerdeValue))),
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (key, SerdeValue(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
