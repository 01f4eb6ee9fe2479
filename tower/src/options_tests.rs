//! Typed options are what JSON is: each setting, and some together.

use autothrottle::config::{
    scrapy::snake,
    table::{self, Kind, Row, Section},
};
use serde_json::json;

use super::*;
use crate::{Throttle, throttle::value_of};

#[test]
fn structs_are_what_json_is() {
    let options = Options {
        max_in_flight: Some(64),
        rate: Some("100/min".into()),
        jitter: Some((-0.1, 0.3).into()),
        backoff: Some(BackoffOptions { errors: Some(vec![Failure::Timeout]), ..Default::default() }.into()),
        retry: Some(RetryOptions {
            limit: 2,
            max_retry_after: Some(Duration::from_millis(1500)),
            long_retry_after: Some(LongRetryAfter::Cap),
            methods: Some(vec!["GET".into()]),
            ..RetryOptions::default()
        }),
        scopes: Some(BTreeMap::from([
            (
                "llm".into(),
                ScopeOptions {
                    rate: Some(RateOptions { limit: 90_000.0, burst: Some(9), ..Default::default() }.into()),
                    ..ScopeOptions::default()
                },
            ),
            (
                "shop".into(),
                ScopeOptions {
                    quota: Some(1000.into()),
                    strict: Some(true),
                    rampup: Some(
                        RampupOptions { backoff_target: Some(2.into()), ..Default::default() }.into(),
                    ),
                    autothrottle: Some(false.into()),
                    ..ScopeOptions::default()
                },
            ),
        ])),
        ..Options::default()
    };
    let typed = json!({
        "maxInFlight": 64, "rate": "100/min", "jitter": [-0.1, 0.3], "backoff": { "errors": ["timeout"] },
        "retry": { "limit": 2, "methods": ["GET"], "maxRetryAfter": 1500, "longRetryAfter": "cap" },
        "scopes": {
            "llm": { "rate": { "limit": 90000, "burst": 9 } },
            "shop": { "quota": [{ "limit": 1000 }], "strict": true, "rampup": { "backoffTarget": 2 },
                      "autothrottle": false },
        },
    });
    let sorted = |value: Value| serde_json::to_value(&value).unwrap();
    assert_eq!(
        sorted(value_of(options.clone(), "options").unwrap()),
        sorted(value_of(typed, "options").unwrap())
    );
    assert!(Throttle::new(options).is_ok());
    assert_eq!(value_of(Options::default(), "options").unwrap(), Value::Map(vec![]));
}

#[test]
fn a_wrong_option_has_its_path() {
    let rate = Some(RateOptions::default().into());
    let wrong = Options { rate, concurrency: Some(0), ..Options::default() };
    let Err(error) = Throttle::new(wrong) else { panic!("neither makes sense") };
    let paths: Vec<&str> = error.problems.iter().map(|problem| &*problem.path).collect();
    assert_eq!(paths, ["concurrency", "rate.limit"]);
    let retry = Some(RetryOptions { status_codes: Some(vec![503, 202]), ..RetryOptions::default() });
    let Err(error) = Throttle::new(Options { retry, ..Options::default() }) else { panic!("202") };
    let said: Vec<String> = error.problems.iter().map(|problem| problem.to_string()).collect();
    assert!(
        said.contains(&"retry.statusCodes[1]: want a status from 400 to 599; got 202".into()),
        "{said:?}"
    );
    let scope = ScopeOptions { delay: Some(Duration::from_secs(1 << 40)), ..ScopeOptions::default() };
    let throttle = Throttle::new(Options::default()).unwrap();
    assert_eq!(throttle.configure("a", scope).err().unwrap().problems[0].path, "delay");
}

/// A value of an option's type; [`json_of`] is the same in JSON.
pub trait Sampled: Sized {
    fn sampled() -> Self;

    /// The value in options that name another setting.
    fn required() -> Self {
        Self::sampled()
    }
}

macro_rules! sampled {
    ($($of:ty: $value:expr;)*) => {
        $(impl Sampled for $of {
            fn sampled() -> Self {
                $value
            }
        })*
    };
}

sampled! {
    f64: 0.5;
    u16: 503;
    u32: 7;
    u64: 7;
    bool: true;
    String: "GET".into();
    Duration: Duration::from_millis(1500);
    Failure: Failure::Timeout;
    Rate: "100/min".into();
    Jitter: (-0.1, 0.3).into();
    BackoffTarget: (1.0, 3.0).into();
    Quotas: 1000.into();
    LongRetryAfter: LongRetryAfter::Cap;
}

impl<T: Sampled> Sampled for Option<T> {
    fn sampled() -> Self {
        Some(T::sampled())
    }

    fn required() -> Self {
        None
    }
}

impl<T: Sampled> Sampled for Vec<T> {
    fn sampled() -> Self {
        vec![T::sampled()]
    }
}

impl<T: Sampled> Sampled for BTreeMap<String, T> {
    fn sampled() -> Self {
        Self::from([("a".into(), T::sampled())])
    }
}

impl<T: Sampled> Sampled for Switch<T> {
    fn sampled() -> Self {
        Self::With(T::sampled())
    }
}

/// The sample of a setting's type in JSON.
fn json_of(kind: Kind) -> serde_json::Value {
    match kind {
        Kind::Number { .. } | Kind::Fraction => json!(0.5),
        Kind::Whole { .. } | Kind::Seed => json!(7),
        Kind::Millis { .. } | Kind::MillisOrFalse => json!(1500),
        Kind::Flag => json!(true),
        Kind::Target => json!([1, 3]),
        Kind::Codes { .. } => json!([503]),
        Kind::Failures => json!(["timeout"]),
        Kind::Jitter => json!([-0.1, 0.3]),
        Kind::Quota => json!([{ "limit": 1000 }]),
        Kind::Rate => json!("100/min"),
        Kind::Word(_) => json!("cap"),
        Kind::Texts(_) => json!(["GET"]),
        Kind::Object(section) | Kind::FlagOr(section) => required_of(section),
        Kind::Named(section) => json!({ "a": required_of(section) }),
        Kind::Amounts | Kind::Text(_) | Kind::Function | Kind::Driver(_) => {
            panic!("{kind:?} has no type here")
        }
    }
}

/// The settings of a section that must be typed.
fn required_of(section: Section) -> serde_json::Value {
    let is_required = |row: &&Row| row.section == section && row.default == table::DefaultValue::Required;
    let rows = table::ROWS.iter().filter(is_required);
    rows.map(|row| (row.key.to_string(), json_of(row.kind))).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn each_setting_is_what_it_is_in_json() {
    assert!(STRUCTS.len() > 7);
    for (name, each) in STRUCTS {
        let section = table::OBJECTS.iter().find(|object| object.tower == *name).unwrap().section;
        let is_here = |of: Section| of == section || section == Section::Root && of == Section::Scope;
        let each = each();
        assert!(each.len() > 1, "{name}");
        for (key, typed) in each {
            let of = |row: &&Row| row.key == key && is_here(row.section);
            let row = table::ROWS.iter().find(of).unwrap_or_else(|| panic!("the table has no {key}"));
            let mut json = required_of(row.section);
            json[key] = json_of(row.kind);
            let read = |value: Value| serde_json::to_value(value).unwrap();
            assert_eq!(read(typed), read(value_of(json, "options").unwrap()), "{name}: {}", snake(key));
        }
    }
}

#[test]
fn the_engine_reads_each_setting_alone() {
    let refused = |(key, options): (&'static str, Options)| {
        let error = Throttle::new(options).err()?;
        Some(format!("{key}: {error}"))
    };
    let refused: Vec<String> = Options::each().into_iter().filter_map(refused).collect();
    assert_eq!(refused, Vec::<String>::new());
}
