//! Reads a body in passing: plain JSON, or the events of a stream.
//!
//! A streamed usage comes last, or never. Until it comes, tokens are the characters that were written ÷ 4. An
//! error may come after a 200, and a stream may end before its last event.

use alloc::vec::Vec;

use crate::{
    MOST,
    json::{DEEPEST, Json},
    usage::Usage,
};

/// The part of a body that was read so far.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The tokens that it reports.
    pub usage: Usage,
    /// Tokens that were seen to be written: characters of a stream ÷ 4, or what the vendor counts so far.
    pub written: f64,
    /// The stream reported an error.
    pub is_broken: bool,
    /// A stream was read to the event that ends it.
    pub is_whole: bool,
    is_stream: bool,
    is_cached_free: bool,
    /// Of a stream the line that is not whole yet, else all of it.
    kept: Vec<u8>,
    is_skipping: bool,
    characters: f64,
}

impl Body {
    /// `is_cached_free`: the vendor charges no input that comes from its cache.
    pub fn new(is_stream: bool, is_cached_free: bool) -> Self {
        Self { is_stream, is_cached_free, ..Self::default() }
    }

    /// A part was read, wherever it was cut.
    pub fn hear(&mut self, part: &[u8]) {
        let mut rest = part;
        if self.is_stream {
            while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                self.keep(&rest[..end]);
                self.line();
                rest = &rest[end + 1..];
            }
        }
        self.keep(rest);
    }

    /// The body is over.
    pub fn end(&mut self) {
        if self.is_stream {
            self.line();
        } else if let Some(json) = Json::read(&self.kept) {
            self.usage.read(json, self.is_cached_free);
        }
        self.kept = Vec::new();
    }

    fn keep(&mut self, part: &[u8]) {
        self.is_skipping |= self.kept.len() + part.len() > MOST;
        if self.is_skipping {
            self.kept.clear();
        } else {
            self.kept.extend_from_slice(part);
        }
    }

    fn line(&mut self) {
        let line = core::mem::take(&mut self.kept);
        self.is_skipping = false;
        if let Some(data) = line.strip_prefix(b"data:") {
            self.event(data);
        }
        // Its room serves the next line.
        self.kept = line;
        self.kept.clear();
    }

    fn event(&mut self, data: &[u8]) {
        if data.trim_ascii() == b"[DONE]" {
            self.is_whole = true;
            return;
        }
        let Some(json) = Json::read(data).filter(|json| json.is_map()) else { return };
        let kind = json.get("type").and_then(Json::text).map(|kind| kind.decoded().into_owned());
        let kind = kind.as_deref().unwrap_or_default();
        self.is_broken |= kind == b"error" || json.get("error").is_some_and(Json::is_true);
        self.is_whole |= ENDS.iter().any(|end| end.as_bytes() == kind);
        // Anthropic's first event counts one token of output, its `message_delta` all of them.
        let before = self.usage.output;
        self.usage.read(json, self.is_cached_free);
        if kind == b"message_start" {
            self.usage.output = before;
        }
        if !kind.ends_with(b"_start") && !kind.ends_with(b"audio.delta") {
            self.characters += characters_of(json, kind.is_empty());
        }
        self.written = (self.characters / 4.0).max(self.usage.output.unwrap_or(0.0));
    }
}

const ENDS: [&str; 5] =
    ["message_stop", "message-end", "response.completed", "response.incomplete", "response.failed"];
/// Texts that no model writes, or that no vendor counts: Anthropic's quotes of what it was given.
const NO_TEXT: [&str; 15] = [
    "id", "type", "role", "name", "index", "finish_reason", "stop_reason", "signature", "object", "model",
    "data", "citation", "citations", "annotations", "usage",
];

/// The characters that an event adds to the answer. `is_plain`: it has no type.
fn characters_of(json: Json, is_plain: bool) -> f64 {
    let mut sum = 0.0;
    let mut add = |value: Option<Json>| sum += value.map_or(0.0, |value| written(value, DEEPEST));
    add(json.get("delta"));
    if is_plain {
        add(json.get("message"));
    }
    for list in ["choices", "candidates"] {
        for each in json.get(list).into_iter().flat_map(Json::items) {
            for key in ["delta", "content", "text", "message"] {
                add(each.get(key));
            }
        }
    }
    sum
}

fn written(value: Json, depth: usize) -> f64 {
    if let Some(text) = value.text() {
        return text.size().0 as f64;
    }
    if depth == 0 {
        return 0.0;
    }
    let items = value.items().map(|each| written(each, depth - 1)).sum::<f64>();
    let is_text = |name: crate::json::Text| !NO_TEXT.iter().any(|known| name.is(known));
    items
        + value
            .members()
            .filter(|&(name, _)| is_text(name))
            .map(|(_, each)| written(each, depth - 1))
            .sum::<f64>()
}
