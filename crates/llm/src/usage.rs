//! Usage, wherever vendors put it.
//!
//! | vendor | where | names |
//! |---|---|---|
//! | `OpenAI`, Mistral, Groq | `usage`; Groq's streams `x_groq.usage` | `prompt_tokens`, `completion_tokens` |
//! | responses of `OpenAI` | `usage`, in streams `response.usage` | `input_tokens`, `output_tokens` |
//! | Anthropic | `usage`, in streams `message.usage` | the same, and two of its cache |
//! | Gemini | `usageMetadata` | `promptTokenCount`, `candidatesTokenCount`, `thoughtsTokenCount` |
//! | Cohere | `usage.tokens`, `meta.tokens`, in streams `delta.usage.tokens` | `input_tokens`, `output_tokens` |
//!
//! Anthropic counts input from its cache beside the rest; the others count it as a part.

use crate::{LARGEST, json::Json};

/// The tokens of a call, in the vendor's own count; `None` where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The charged tokens of the input.
    pub input: Option<f64>,
    /// How much of it was free: it came from the vendor's cache.
    pub free: f64,
    /// Tokens that came out.
    pub output: Option<f64>,
}

impl Usage {
    /// Reads what an object says over what was known before.
    pub(crate) fn read(&mut self, json: Json, is_cached_free: bool) {
        let inside = |key: &str| json.map(key).and_then(|inner| inner.map("usage"));
        let Some(usage) = json
            .map("usage")
            .or_else(|| ["response", "message", "delta", "x_groq"].into_iter().find_map(inside))
            .or_else(|| json.map("usageMetadata"))
            .or_else(|| json.map("meta"))
        else {
            return;
        };
        let usage = usage.map("tokens").unwrap_or(usage);
        let count = |key: &str| usage.get(key).and_then(Json::count);
        let first = |keys: &[&str]| keys.iter().find_map(|key| count(key));
        let cached =
            |key: &str| usage.map(key).and_then(|details| details.get("cached_tokens")).and_then(Json::count);
        if let Some(input) = first(&["prompt_tokens", "input_tokens", "promptTokenCount"]) {
            let within = cached("prompt_tokens_details")
                .or_else(|| cached("input_tokens_details"))
                .or_else(|| count("cachedContentTokenCount"))
                .unwrap_or(0.0);
            let beside = count("cache_read_input_tokens").unwrap_or(0.0);
            let made = count("cache_creation_input_tokens").unwrap_or(0.0);
            let free = if within > 0.0 { within } else { beside };
            self.free = if is_cached_free { free } else { 0.0 };
            self.input = Some((input + made + beside - self.free).clamp(0.0, LARGEST));
        }
        if let Some(output) = first(&["completion_tokens", "output_tokens", "candidatesTokenCount"]) {
            let thoughts = count("thoughtsTokenCount").unwrap_or(0.0);
            self.output = Some((output + thoughts).min(LARGEST));
        }
    }
}
