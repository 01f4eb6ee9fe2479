//! The boundary to JavaScript of the readers and budgets of language models: it only converts and forwards.
//!
//! Tokens and milliseconds are numbers; NaN is what is not known.

#![allow(missing_docs, reason = "TypeScript documents what it makes of them")]
#![allow(clippy::too_many_arguments, reason = "numbers cross in tens of nanoseconds, objects in a thousand")]
#![allow(clippy::needless_pass_by_value, reason = "what JavaScript hands over is owned")]

use autothrottle_llm::{
    Asked, Asking, Body, Budgets, Change, Kind, Pace, Plan, Refused, Reported, Settings, Size, Usage, Vendor,
};
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

    /// Input, its free part, output, tokens that were written, whether it is broken, whether it is whole.
    pub fn look(&self) -> Vec<f64> {
        let Body { usage, written, is_broken, is_whole, .. } = &self.0;
        let (input, output) = (usage.input.unwrap_or(f64::NAN), usage.output.unwrap_or(f64::NAN));
        vec![input, usage.free, output, *written, flag(*is_broken), flag(*is_whole)]
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
        vendor: f64,
        keeps_texts: bool,
    ) -> Self {
        Self(autothrottle_llm::asked(&Asking {
            host,
            path,
            method,
            body: body.as_bytes(),
            form_model: form_model.as_deref(),
            vendor: numbered(&Vendor::ALL, vendor),
            keeps_texts,
        }))
    }

    pub fn vendor(&self) -> u8 {
        self.0.vendor as u8
    }

    pub fn model(&self) -> Option<String> {
        self.0.model.clone()
    }

    /// Characters, bytes, tokens, bound, and whether its vendor alone can count it.
    pub fn size(&self) -> Vec<f64> {
        let Asked { characters, bytes, tokens, bound, is_uncounted, .. } = self.0;
        vec![characters, bytes, tokens, bound.unwrap_or(f64::NAN), flag(is_uncounted)]
    }

    /// The last text that the user is to count, which is taken.
    pub fn take_text(&mut self) -> Option<String> {
        self.0.texts.pop()
    }
}

/// See [`autothrottle_llm::refusal`]: the wait, whether it is final, and the number of its kind.
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
    let kind = read.kind.map_or(-1.0, |kind| f64::from(kind as u8));
    vec![read.wait_ms.unwrap_or(f64::NAN), flag(read.is_final), kind]
}

/// See [`autothrottle_llm::reported`]: the number of its kind, limit, what is left, and its length. It is
/// empty where it is no budget of the vendor's.
#[wasm_bindgen]
pub fn reported(vendor: f64, policy: &str, limit: f64, remaining: f64, reset_ms: f64) -> Vec<f64> {
    autothrottle_llm::reported(numbered(&Vendor::ALL, vendor), policy, limit, remaining, reset_ms)
        .map(|own| vec![f64::from(own.kind as u8), own.limit, own.left.unwrap_or(f64::NAN), own.per])
        .unwrap_or_default()
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn known(number: f64) -> Option<f64> {
    (!number.is_nan()).then_some(number)
}

/// Names travel as their numbers; −1 is none.
fn numbered<T: Copy>(all: &[T], number: f64) -> Option<T> {
    all.get(number as usize).copied().filter(|_| number >= 0.0)
}

/// See [`Budgets`]. A budget is the number of its kind.
#[wasm_bindgen]
pub struct WasmBudgets(Budgets);

#[wasm_bindgen]
impl WasmBudgets {
    /// The fields of [`Settings`] in another order: NaN for what the vendor decides.
    #[wasm_bindgen(constructor)]
    pub fn new(
        vendor: f64,
        headroom: f64,
        concurrency: f64,
        is_counted: bool,
        is_max: f64,
        is_sliding: f64,
        is_cached_free: f64,
        rpm: f64,
        rpd: f64,
        tpm: f64,
        itpm: f64,
        otpm: f64,
    ) -> Self {
        let is = |flag: f64| known(flag).map(|flag| flag > 0.0);
        Self(Budgets::new(&Settings {
            vendor: numbered(&Vendor::ALL, vendor),
            limits: [rpm, rpd, tpm, itpm, otpm],
            is_sliding: is(is_sliding),
            is_cached_free: is(is_cached_free),
            headroom,
            is_max: is(is_max),
            is_counted,
            concurrency,
        }))
    }

    /// A bit each: whether limits are known, whether usage is needed, whether input from the cache is free.
    /// From the eighth on one for each kind of budget.
    pub fn facts(&self) -> u32 {
        let Budgets { is_known, is_cached_free, .. } = self.0;
        let kinds = self.0.kinds.iter().fold(0, |all, &kind| all | 256 << kind as u32);
        kinds | u32::from(is_known) | u32::from(self.0.needs_usage()) << 1 | u32::from(is_cached_free) << 2
    }

    /// Rows of seven: kind and slots; limit, window and burst; limit and window beside it. NaN is what is not
    /// there, and a pace without a limit stays.
    pub fn changes(&mut self) -> Vec<f64> {
        let mut rows = Vec::new();
        for Change { kind, slots, pace } in self.0.changes() {
            let none = Pace { limit: f64::NAN, window: f64::NAN, burst: None, sixth: None };
            let Pace { limit, window, burst, sixth } = pace.unwrap_or(none);
            let (most, short) = sixth.unwrap_or((f64::NAN, f64::NAN));
            rows.extend([
                f64::from(kind as u8),
                slots,
                limit,
                window,
                burst.unwrap_or(f64::NAN),
                most,
                short,
            ]);
        }
        rows
    }

    /// The cost of a call in each kind of budget; then its input and output, and its size as it came.
    pub fn plan(&self, characters: f64, bytes: f64, tokens: f64, bound: f64) -> Vec<f64> {
        let plan = self.0.plan(&Size { characters, bytes, tokens, bound: known(bound) });
        let mut row = plan.costs.to_vec();
        row.extend([plan.input, plan.output, characters, bytes, tokens, bound]);
        row
    }

    /// The rest is what [`WasmBudgets::plan`] says.
    pub fn begin(
        &mut self,
        now: f64,
        other: f64,
        requests: f64,
        day: f64,
        tokens_of: f64,
        project: f64,
        input_of: f64,
        output_of: f64,
        input: f64,
        output: f64,
        characters: f64,
        bytes: f64,
        tokens: f64,
        bound: f64,
    ) -> u32 {
        let costs = [other, requests, day, tokens_of, project, input_of, output_of];
        let size = Size { characters, bytes, tokens, bound: known(bound) };
        self.0.begin(now, size, &Plan { input, output, costs })
    }

    /// The host tells what becomes of a call: one of `HEARD` in TypeScript, with its numbers.
    pub fn hear(
        &mut self,
        now: f64,
        call: u32,
        what: u8,
        first: f64,
        second: f64,
        third: f64,
        fourth: f64,
        fifth: f64,
    ) -> bool {
        let budgets = &mut self.0;
        match what {
            0 => return budgets.wrote(call, known(first), second),
            1 => {
                if let Some(kind) = numbered(&Kind::ALL, first) {
                    let reported = Reported { kind, limit: second, left: known(third), per: fourth };
                    budgets.report(now, call, &reported, known(fifth));
                }
            }
            2 => budgets.answered(call, first > 0.0),
            3 => budgets.gone(call, first > 0.0),
            4 => budgets.refused(now, call, numbered(&Kind::ALL, first), second),
            _ => {
                let usage = Usage { input: known(first), free: second, output: known(third) };
                return budgets.ended(now, call, &usage, fourth, fifth > 0.0);
            }
        }
        true
    }

    /// The amount of a kind whose wait `carry` wants to know; NaN where it does not matter.
    pub fn asks(&self, kind: u32) -> f64 {
        Kind::ALL.get(kind as usize).and_then(|&kind| self.0.asks(kind)).unwrap_or(f64::NAN)
    }

    /// Of each charge the call, the kind and the cost.
    pub fn carry(
        &mut self,
        now: f64,
        other: f64,
        requests: f64,
        day: f64,
        tokens: f64,
        project: f64,
        input: f64,
        output: f64,
    ) -> Vec<f64> {
        let mut row = Vec::new();
        for it in self.0.carry(now, &[other, requests, day, tokens, project, input, output]) {
            row.extend([f64::from(it.call), f64::from(it.kind as u8), it.cost]);
        }
        row
    }
}
