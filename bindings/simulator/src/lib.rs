//! The boundary to JavaScript of `autothrottle/simulate`: options in, figures and columns out.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle::{
    Instant, Value,
    simulate::{Simulation, Summary, Trace},
};
use autothrottle_convert::{js, problems, value};
use wasm_bindgen::prelude::*;

/// What came of a simulation. The trace leaves as columns, one number a request.
#[wasm_bindgen]
pub struct Simulated {
    trace: Trace,
    summary: Summary,
}

/// Runs a simulation. Throws a list of `{ path, want, got }`.
#[wasm_bindgen]
pub fn simulate(options: JsValue) -> Result<Simulated, JsValue> {
    let simulation = Simulation::parse(value(&options)).map_err(problems)?;
    let (trace, summary) = simulation.run().map_err(problems)?;
    Ok(Simulated { trace, summary })
}

#[wasm_bindgen]
impl Simulated {
    pub fn summary(&self) -> JsValue {
        js(&Value::from(&self.summary))
    }

    pub fn client(&self) -> Vec<u32> {
        self.trace.exchanges.iter().map(|exchange| exchange.client).collect()
    }

    pub fn sent(&self) -> Vec<f64> {
        self.trace.exchanges.iter().map(|exchange| exchange.sent.millis()).collect()
    }

    /// NaN where no answer came before the end.
    pub fn answered(&self) -> Vec<f64> {
        let millis = |at: Option<Instant>| at.map_or(f64::NAN, Instant::millis);
        self.trace.exchanges.iter().map(|exchange| millis(exchange.answered)).collect()
    }

    pub fn status(&self) -> Vec<u16> {
        self.trace.exchanges.iter().map(|exchange| exchange.status).collect()
    }
}
