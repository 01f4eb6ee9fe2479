//! The boundary to JavaScript of `autothrottle/simulate`: options in, figures, events and columns out.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle::{
    Instant, Value,
    simulate::{Exchange, Live, PlayedServer, Simulation, Summary, Trace},
};
use autothrottle_convert::{Exported, exported, problems, value};
use wasm_bindgen::prelude::*;

/// The result of a simulation. The trace leaves as columns, one number a request.
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
    pub fn summary(&self) -> Exported {
        exported(&Value::from(&self.summary))
    }

    pub fn client(&self) -> Vec<u32> {
        client(&self.trace.exchanges)
    }

    pub fn server(&self) -> Vec<u32> {
        server(&self.trace.exchanges)
    }

    pub fn sent(&self) -> Vec<f64> {
        sent(&self.trace.exchanges)
    }

    pub fn answered(&self) -> Vec<f64> {
        answered(&self.trace.exchanges)
    }

    pub fn status(&self) -> Vec<u16> {
        status(&self.trace.exchanges)
    }
}

/// A simulation under way. Its methods throw a list of `{ path, want, got }`.
#[wasm_bindgen]
pub struct LiveSimulation(Live);

#[wasm_bindgen]
impl LiveSimulation {
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> Result<Self, JsValue> {
        Live::new(value(&options)).map(Self).map_err(problems)
    }

    pub fn advance(&mut self, ms: f64) -> Result<(), JsValue> {
        self.0.advance(ms).map_err(problems)
    }

    pub fn now(&self) -> f64 {
        self.0.now()
    }

    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    pub fn configure(&mut self, scope: &str, partial: JsValue) -> Result<(), JsValue> {
        self.0.configure(scope, &value(&partial)).map_err(problems)
    }

    pub fn configure_server(&mut self, scope: &str, partial: JsValue) -> Result<(), JsValue> {
        self.0.configure_server(scope, value(&partial)).map_err(problems)
    }

    pub fn configure_network(&mut self, partial: JsValue) -> Result<(), JsValue> {
        self.0.configure_network(value(&partial)).map_err(problems)
    }

    pub fn take_events(&mut self) -> Exported {
        exported(&self.0.take_events())
    }

    pub fn state(&self, client: u32) -> Exported {
        exported(&self.0.state(client as usize))
    }

    pub fn summary(&self) -> Exported {
        exported(&Value::from(&self.0.summary()))
    }

    pub fn client(&self) -> Vec<u32> {
        client(self.exchanges())
    }

    pub fn server(&self) -> Vec<u32> {
        server(self.exchanges())
    }

    pub fn sent(&self) -> Vec<f64> {
        sent(self.exchanges())
    }

    pub fn answered(&self) -> Vec<f64> {
        answered(self.exchanges())
    }

    pub fn status(&self) -> Vec<u16> {
        status(self.exchanges())
    }

    fn exchanges(&self) -> &[Exchange] {
        self.0.world().exchanges()
    }
}

/// A server alone.
#[wasm_bindgen]
pub struct Played(PlayedServer);

#[wasm_bindgen]
impl Played {
    #[wasm_bindgen(constructor)]
    pub fn new(description: JsValue, seed: f64) -> Result<Self, JsValue> {
        PlayedServer::new(value(&description), seed as u64).map(Self).map_err(problems)
    }

    pub fn answer(&mut self, now: f64) -> Exported {
        exported(&self.0.answer(now))
    }

    pub fn limit(&self, now: f64) -> f64 {
        self.0.limit(now)
    }
}

fn client(of: &[Exchange]) -> Vec<u32> {
    of.iter().map(|exchange| exchange.client).collect()
}

fn server(of: &[Exchange]) -> Vec<u32> {
    of.iter().map(|exchange| exchange.server).collect()
}

fn sent(of: &[Exchange]) -> Vec<f64> {
    of.iter().map(|exchange| exchange.sent.millis()).collect()
}

/// NaN where no answer came before the end.
fn answered(of: &[Exchange]) -> Vec<f64> {
    let millis = |at: Option<Instant>| at.map_or(f64::NAN, Instant::millis);
    of.iter().map(|exchange| millis(exchange.answered)).collect()
}

fn status(of: &[Exchange]) -> Vec<u16> {
    of.iter().map(|exchange| exchange.status).collect()
}
