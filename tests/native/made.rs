//! What most of these tests begin with.

use autothrottle::{Config, Engine, Instant, Value};

/// JSON as a value of the engine's.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// An engine with these options.
pub fn engine(options: &str) -> Engine {
    Engine::new(Config::parse(json(options)).expect("options"))
}

/// An instant, in milliseconds from the first one.
pub fn millis(ms: f64) -> Instant {
    Instant::from_millis(ms).expect("an instant")
}
