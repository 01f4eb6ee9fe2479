//! Types that a setting may have in Rust: each knows its default from the table, and how it is taken.

use super::setting::DefaultValue;
use crate::{
    policy::{jitter, rate},
    time::Span,
};

/// The fields of an object, of which each is taken once. A value that is wrong is a problem, and none.
pub trait Source {
    /// A number.
    fn number(&mut self, key: &str) -> Option<f64>;
    /// A flag.
    fn flag(&mut self, key: &str) -> Option<bool>;
    /// A flag, a number or a pair.
    fn jitter(&mut self, key: &str) -> Option<jitter::Config>;
    /// A number, or the middle of a pair.
    fn target(&mut self, key: &str) -> Option<f64>;
    /// A rate.
    fn rate(&mut self, key: &str) -> Option<rate::Config>;
    /// A span, or false for none.
    fn millis_or_false(&mut self, key: &str, so_far: Option<Span>) -> Option<Span>;
    /// A flag, or an object that changes what held so far.
    fn flag_or_object<T: Settings>(&mut self, key: &str, so_far: Option<T>) -> Option<T>;
}

/// The struct of a section.
pub trait Settings: Copy + Default {
    /// With what was typed; the rest is what held so far.
    fn read(from: &mut impl Source, so_far: &Self) -> Self;
    /// Whether a setting of the pace is on that the quick path of a scope does not know.
    fn is_slow(&self) -> bool;
}

/// The type of a setting.
pub trait Setting: Copy {
    /// The default of its row.
    fn usual(default: DefaultValue) -> Self;
    /// The value that was typed, else what held so far.
    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self;
    /// Whether it has an effect. A type without a value for off always has.
    #[inline(always)]
    fn is_on(&self) -> bool {
        true
    }
}

/// The middle of a range, or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle(pub f64);

impl Setting for f64 {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        default.number()
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.number(key).unwrap_or(*so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        *self != 0.0
    }
}

impl Setting for u32 {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        default.number() as Self
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.number(key).map_or(*so_far, |number| number as Self)
    }
}

impl Setting for Span {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        Self::from_millis(default.number())
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.number(key).map_or(*so_far, Self::from_millis)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        *self != Self::ZERO
    }
}

impl Setting for bool {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        default.flag()
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.flag(key).unwrap_or(*so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        *self
    }
}

impl Setting for jitter::Config {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        match default {
            DefaultValue::Flag(true) => Self::WIDE,
            default => Self::around(default.number()),
        }
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.jitter(key).unwrap_or(*so_far)
    }
}

impl Setting for Middle {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        Self(default.number())
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.target(key).map_or(*so_far, Self)
    }
}

impl Setting for Option<u32> {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        debug_assert!(
            matches!(default, DefaultValue::Unset | DefaultValue::Flag(false)),
            "no value by default"
        );
        None
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.number(key).map(|number| number as u32).or(*so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        self.is_some()
    }
}

impl Setting for Option<Span> {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        debug_assert!(
            matches!(default, DefaultValue::Unset | DefaultValue::Flag(false)),
            "no value by default"
        );
        None
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.millis_or_false(key, *so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        self.is_some()
    }
}

impl Setting for Option<rate::Config> {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        debug_assert!(
            matches!(default, DefaultValue::Unset | DefaultValue::Flag(false)),
            "no value by default"
        );
        None
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.rate(key).or(*so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        self.is_some()
    }
}

impl<T: Settings> Setting for Option<T> {
    #[inline(always)]
    fn usual(default: DefaultValue) -> Self {
        default.flag().then(T::default)
    }

    fn take(from: &mut impl Source, key: &str, so_far: &Self) -> Self {
        from.flag_or_object(key, *so_far)
    }

    #[inline(always)]
    fn is_on(&self) -> bool {
        self.is_some()
    }
}
