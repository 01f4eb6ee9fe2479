//! The boundary to JavaScript of the readers for language models: it only converts and forwards.
//!
//! Tokens and milliseconds are numbers; NaN is what is not known.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle_llm::{Asked, Asking, Body, Kind, Refused, Vendor};
use wasm_bindgen::prelude::*;

/// As the engine's module has it.
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// See [`Body`].
#[wasm_bindgen]
pub struct WasmBody(Body);

#[wasm_bindgen]
impl WasmBody {
    #[wasm_bindgen(constructor)]
    pub fn new(is_stream: bool, is_cached_free: bool) -> Self {
        Self(Body::new(is_stream, is_cached_free))
    }

    pub fn hear(&mut self, part: &[u8]) {
        self.0.hear(part);
    }

    pub fn end(&mut self) {
        self.0.end();
    }

    pub fn input(&self) -> f64 {
        self.0.usage.input.unwrap_or(f64::NAN)
    }

    pub fn cached(&self) -> f64 {
        self.0.usage.free
    }

    pub fn output(&self) -> f64 {
        self.0.usage.output.unwrap_or(f64::NAN)
    }

    pub fn written(&self) -> f64 {
        self.0.written
    }

    pub fn is_broken(&self) -> bool {
        self.0.is_broken
    }

    pub fn is_whole(&self) -> bool {
        self.0.is_whole
    }
}

/// See [`Asked`].
#[wasm_bindgen]
pub struct WasmAsked(Asked);

#[wasm_bindgen]
impl WasmAsked {
    #[wasm_bindgen(constructor)]
    pub fn new(
        host: &str,
        path: &str,
        method: &str,
        body: &str,
        form_model: Option<String>,
        vendor: &str,
        keeps_texts: bool,
    ) -> Self {
        Self(autothrottle_llm::asked(&Asking {
            host,
            path,
            method,
            body: body.as_bytes(),
            form_model: form_model.as_deref(),
            vendor: Vendor::named(vendor),
            keeps_texts,
        }))
    }

    pub fn vendor(&self) -> String {
        self.0.vendor.name().into()
    }

    pub fn model(&self) -> Option<String> {
        self.0.model.clone()
    }

    pub fn characters(&self) -> f64 {
        self.0.characters
    }

    pub fn bytes(&self) -> f64 {
        self.0.bytes
    }

    pub fn tokens(&self) -> f64 {
        self.0.tokens
    }

    pub fn bound(&self) -> f64 {
        self.0.bound.unwrap_or(f64::NAN)
    }

    pub fn is_uncounted(&self) -> bool {
        self.0.is_uncounted
    }

    /// The last text that the user is to count, which is taken.
    pub fn take_text(&mut self) -> Option<String> {
        self.0.texts.pop()
    }
}

/// See [`autothrottle_llm::refusal`]: the wait, whether it is final, and the place of its kind.
#[wasm_bindgen]
pub fn refusal(
    status: u16,
    wait_ms: f64,
    has_retry_after: bool,
    is_told_final: bool,
    is_anthropic: bool,
    text: &str,
) -> Vec<f64> {
    let refused = Refused { status, wait_ms, has_retry_after, is_told_final, is_anthropic };
    let read = autothrottle_llm::refusal(&refused, text.as_bytes());
    let kind = match read.kind {
        None => -1.0,
        Some(Kind::Requests) => 0.0,
        Some(Kind::Tokens) => 1.0,
        Some(Kind::Input) => 2.0,
        Some(Kind::Output) => 3.0,
    };
    vec![read.wait_ms.unwrap_or(f64::NAN), f64::from(u8::from(read.is_final)), kind]
}
