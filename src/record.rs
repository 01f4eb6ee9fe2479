//! The engine's output, each shape and each word once: a macro makes the Rust type, its value for hosts
//! without types, the way back, and its row in the table.
//!
//! `cargo xtask write` writes the types of TypeScript and Python from these rows. The engine never names
//! them, so the WebAssembly module has no documentation in it.
//!
//! Names say the unit: `delay_ms` is a span in milliseconds, `hold_until`, `recovers_at` and `offline_since`
//! are instants in milliseconds of engine time.

use crate::value::Value;

/// A shape for people who type another language.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Its name in Rust.
    pub name: &'static str,
    /// The record's documentation, with Rust's names.
    pub about: &'static str,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

/// A field of a [`Record`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its type in Rust, as it is written.
    pub kind: &'static str,
    /// The field's documentation, with Rust's names.
    pub about: &'static str,
}

/// A list of words, one of which something is.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its name in Rust.
    pub name: &'static str,
    /// The documentation.
    pub about: &'static str,
    /// Each word, and what it says.
    pub words: &'static [(&'static str, &'static str)],
}

/// A field that few records have: hosts leave its key out of the others.
pub type Rare<T> = Option<T>;

/// The entries of an object, as they are put together.
pub type Entries = Vec<(&'static str, Value)>;

/// The type of a record's field. A record in a record is flat: its fields stand among the others.
pub trait Member: Default {
    /// Adds it to the entries of its record.
    fn put(&self, key: &'static str, to: &mut Entries);

    /// Finds it among the entries of its record. An entry that is missing, or of another kind, is the
    /// default.
    fn get(key: &str, of: &Value) -> Self;
}

/// A field that is one value.
pub trait Plain: Sized {
    /// As a value.
    fn plain(&self) -> Value;

    /// Back; `None` for a value of another kind.
    fn of(value: &Value) -> Option<Self>;
}

impl<T: Plain + Default> Member for T {
    fn put(&self, key: &'static str, to: &mut Entries) {
        to.push((key, self.plain()));
    }

    fn get(key: &str, of: &Value) -> Self {
        Option::get(key, of).unwrap_or_default()
    }
}

impl<T: Plain> Member for Option<T> {
    fn put(&self, key: &'static str, to: &mut Entries) {
        to.extend(self.as_ref().map(|there| (key, there.plain())));
    }

    fn get(key: &str, of: &Value) -> Self {
        let Value::Map(entries) = of else { return None };
        entries.iter().find(|(known, _)| known == key).and_then(|(_, value)| T::of(value))
    }
}

macro_rules! plain {
    ($($type:ty: $pattern:pat => $read:expr, |$it:ident| $show:expr;)*) => {$(
        impl Plain for $type {
            fn plain(&self) -> Value {
                let $it = self;
                Value::from($show)
            }

            fn of(value: &Value) -> Option<Self> {
                if let $pattern = value { Some($read) } else { None }
            }
        }
    )*};
}

plain! {
    f64: Value::Number(number) => *number, |it| *it;
    u32: Value::Number(number) => *number as u32, |it| *it;
    u64: Value::Number(number) => *number as u64, |it| *it as f64;
    bool: Value::Bool(flag) => *flag, |it| *it;
    String: Value::Text(text) => text.clone(), |it| it.as_str();
}

/// Records by name.
impl<T> Plain for Vec<(String, T)>
where
    T: for<'a> From<&'a Value>,
    for<'a> &'a T: Into<Value>,
{
    fn plain(&self) -> Value {
        Value::Map(self.iter().map(|(name, record)| (name.clone(), record.into())).collect())
    }

    fn of(value: &Value) -> Option<Self> {
        let Value::Map(entries) = value else { return None };
        Some(entries.iter().map(|(name, record)| (name.clone(), T::from(record))).collect())
    }
}

/// `delay_ms` as hosts have it: `delayMs`.
pub const fn camel<const N: usize>(name: &str) -> [u8; N] {
    let (bytes, mut out, mut at, mut to) = (name.as_bytes(), [0; N], 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'_' {
            at += 1;
            out[to] = bytes[at].to_ascii_uppercase();
        } else {
            out[to] = bytes[at];
        }
        (at, to) = (at + 1, to + 1);
    }
    out
}

/// The same at run time: it allocates.
pub fn camel_case(name: &str) -> String {
    let mut out = String::new();
    for (index, part) in name.split('_').enumerate() {
        let (first, rest) = part.split_at(usize::from(index > 0).min(part.len()));
        out.extend([&first.to_ascii_uppercase(), rest]);
    }
    out
}

/// How long that is.
pub const fn camel_len(name: &str) -> usize {
    let (bytes, mut at, mut length) = (name.as_bytes(), 0, 0);
    while at < bytes.len() {
        length += (bytes[at] != b'_') as usize;
        at += 1;
    }
    length
}

/// The key of a field.
macro_rules! key {
    ($field:ident) => {
        const {
            const KEY: [u8; $crate::record::camel_len(stringify!($field))] =
                $crate::record::camel(stringify!($field));
            match core::str::from_utf8(&KEY) {
                Ok(key) => key,
                Err(_) => unreachable!(),
            }
        }
    };
}

/// Makes a struct, and all that is said of it elsewhere.
macro_rules! record {
    ($(
        $(#[doc = $about:literal])*
        pub struct $Name:ident {
            $($(#[doc = $doc:literal])* $field:ident: $kind:ty,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $Name {
            $($(#[doc = $doc])* pub $field: $kind,)*
        }

        impl $Name {
            /// Its row.
            pub const RECORD: $crate::record::Record = $crate::record::Record {
                name: stringify!($Name),
                about: concat!($($about),*),
                fields: &[$($crate::record::Field {
                    name: stringify!($field),
                    kind: stringify!($kind),
                    about: concat!($($doc),*),
                }),*],
            };
        }

        impl $crate::record::Member for $Name {
            fn put(&self, _: &'static str, to: &mut $crate::record::Entries) {
                $($crate::record::Member::put(&self.$field, $crate::record::key!($field), to);)*
            }

            fn get(_: &str, of: &$crate::value::Value) -> Self {
                Self { $($field: $crate::record::Member::get($crate::record::key!($field), of)),* }
            }
        }

        impl From<&$Name> for $crate::value::Value {
            fn from(record: &$Name) -> Self {
                let mut entries = Vec::new();
                $crate::record::Member::put(record, "", &mut entries);
                Self::object(entries)
            }
        }

        impl From<&$crate::value::Value> for $Name {
            fn from(value: &$crate::value::Value) -> Self {
                $crate::record::Member::get("", value)
            }
        }
    )*};
}

/// Makes an enum of words.
macro_rules! words {
    ($(
        $(#[doc = $about:literal])*
        pub enum $Name:ident {
            $($(#[doc = $doc:literal])* $Word:ident = $text:literal,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Name {
            $($(#[doc = $doc])* $Word,)*
        }

        impl $Name {
            /// Each of them, in the order of their numbers at the boundary.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$Word),*];

            /// Its row.
            pub const WORDS: $crate::record::Words = $crate::record::Words {
                name: stringify!($Name),
                about: concat!($($about),*),
                words: &[$(($text, concat!($($doc),*))),*],
            };

            /// The word that people see.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Word => $text,)*
                }
            }

            /// The value that a word stands for.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|each| each.name() == name)
            }
        }

        impl $crate::record::Plain for $Name {
            fn plain(&self) -> $crate::value::Value {
                self.name().into()
            }

            fn of(value: &$crate::value::Value) -> Option<Self> {
                if let $crate::value::Value::Text(name) = value { Self::of_name(name) } else { None }
            }
        }
    )*};
}

/// Makes an enum of records, each with its kind.
macro_rules! kinds {
    (
        $(#[doc = $about:literal])*
        pub enum $Name:ident {
            $($(#[doc = $doc:literal])* $Variant:ident($Record:ident) = $kind:literal,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Name {
            $($(#[doc = $doc])* $Variant($Record),)*
        }

        impl $Name {
            /// The documentation.
            pub const ABOUT: &str = concat!($($about),*);

            /// Each kind with what it says and the name of its record, and these.
            pub const KINDS: &[(&str, &str, $crate::record::Record)] =
                &[$(($kind, concat!($($doc),*), $Record::RECORD)),*];

            /// The word of its kind.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$Variant(_) => $kind,)*
                }
            }

            /// Back from a value; `None` for a kind that is not known.
            pub fn read(value: &$crate::value::Value) -> Option<Self> {
                let kind: String = $crate::record::Member::get("kind", value);
                match &*kind {
                    $($kind => Some($Name::$Variant($crate::record::Member::get("", value))),)*
                    _ => None,
                }
            }
        }

        impl From<&$Name> for $crate::value::Value {
            fn from(of: &$Name) -> Self {
                let mut entries = vec![];
                match of {
                    $($Name::$Variant(record) => {
                        entries.push(("kind", $kind.into()));
                        $crate::record::Member::put(record, "", &mut entries);
                    })*
                }
                Self::object(entries)
            }
        }
    };
}

pub(crate) use {key, kinds, record, words};
