//! Reads the request of a call: whose it is, which model, how much goes in, and how much may come out.
//!
//! A picture of 5 MB in base64 is 1,600 tokens and not 1,250,000. `GET /models` spends no tokens. With Azure
//! the model stands in the path. One call may ask for `n` answers.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    LARGEST,
    json::{DEEPEST, Json, Text},
    picture::{PICTURE, tokens},
};

/// The vendor whose rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are names")]
pub enum Vendor {
    OpenAi,
    Anthropic,
    Azure,
    Mistral,
    Groq,
    OpenRouter,
    Gemini,
}

impl Vendor {
    /// Their names in options, in this order.
    pub const NAMES: [&str; 7] = ["openai", "anthropic", "azure", "mistral", "groq", "openrouter", "gemini"];
    /// Each of them, by its number.
    pub const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::Anthropic,
        Self::Azure,
        Self::Mistral,
        Self::Groq,
        Self::OpenRouter,
        Self::Gemini,
    ];
    const HOSTS: [(&str, Self); 6] = [
        ("azure.com", Self::Azure),
        ("anthropic.com", Self::Anthropic),
        ("mistral.ai", Self::Mistral),
        ("groq.com", Self::Groq),
        ("openrouter.ai", Self::OpenRouter),
        ("googleapis.com", Self::Gemini),
    ];

    /// By its name in options.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|&known| known == name).map(|at| Self::ALL[at])
    }

    /// Its name in options.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    fn of(host: &str, path: &str) -> Self {
        let name = host.as_bytes().split(|&byte| byte == b':').next().unwrap_or_default();
        let is_in = |domain: &str| {
            let before = name.strip_suffix(domain.as_bytes());
            before.is_some_and(|before| before.is_empty() || before.ends_with(b"."))
        };
        match Self::HOSTS.iter().find(|(domain, _)| is_in(domain)) {
            Some(&(_, vendor)) => vendor,
            None if path.ends_with("/messages") => Self::Anthropic,
            None => Self::OpenAi,
        }
    }
}

/// A request, as a host has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// The URL's host, with its port if it has one, and its path.
    pub host: &'a str,
    /// See `host`.
    pub path: &'a str,
    /// Its method.
    pub method: &'a str,
    /// The bytes of its body, where they can be read.
    pub body: &'a [u8],
    /// The field `model` of a form.
    pub form_model: Option<&'a str>,
    /// The vendor whose rules hold, if the user names one.
    pub vendor: Option<Vendor>,
    /// The user counts tokens: texts are kept for that, and not counted here.
    pub keeps_texts: bool,
}

/// A call, as far as its budgets are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The vendor whose rules hold.
    pub vendor: Vendor,
    /// `None`: it asks no model.
    pub model: Option<String>,
    /// Characters of text.
    pub characters: f64,
    /// The same in bytes of UTF-8.
    pub bytes: f64,
    /// Tokens that are known as they are.
    pub tokens: f64,
    /// Tokens that may come out at most; `None` where the call does not say, 0 where no token comes out.
    pub bound: Option<f64>,
    /// It holds files or sound, which only its vendor can count.
    pub is_uncounted: bool,
    /// Texts that the user counts.
    pub texts: Vec<String>,
}

/// Reads a request.
pub fn asked(asking: &Asking) -> Asked {
    let Asking { host, path, method, body, form_model, vendor, keeps_texts } = *asking;
    let mut asked = Asked {
        vendor: vendor.unwrap_or_else(|| Vendor::of(host, path)),
        model: None,
        characters: 0.0,
        bytes: 0.0,
        tokens: 0.0,
        bound: Some(0.0),
        is_uncounted: false,
        texts: Vec::new(),
    };
    if !method.eq_ignore_ascii_case("POST") || !is_call(path) {
        return asked;
    }
    let json = Json::read(body).filter(|json| json.is_map());
    let named = json.and_then(|json| json.get("model")?.text()?.string());
    let model = place(path).map(ToOwned::to_owned).or(named).or(form_model.map(ToOwned::to_owned));
    asked.model = Some(model.unwrap_or_else(|| "*".to_string()));
    // Pictures and sound that are made cost requests.
    if let Some(json) = json.filter(|_| find(path, "/images/").or_else(|| find(path, "/audio/")).is_none()) {
        Counting { asked: &mut asked, keeps_texts }.add(json, None, DEEPEST);
        asked.bound = bound_of(json, path);
    }
    asked
}

/// Paths that spend a model's requests and tokens.
fn is_call(path: &str) -> bool {
    let ends = ["completions", "responses", "embeddings", "moderations", "messages"];
    let is_word = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut parts = path.as_bytes().rsplit(|&byte| byte == b'/');
    let (last, Some(folder)) = (parts.next().unwrap_or_default(), parts.next()) else { return false };
    let is_last = |end: &str| last.eq_ignore_ascii_case(end.as_bytes());
    let is_made = || ["images", "audio"].iter().any(|made| folder.eq_ignore_ascii_case(made.as_bytes()));
    let verb = last.rsplit(|&byte| byte == b':').next().unwrap_or_default();
    let ending = &verb[verb.len() - verb.len().min(GENERATE.len())..];
    ends.iter().any(|end| is_last(end))
        || is_made() && is_word(last)
        || verb.len() < last.len() && is_word(verb) && ending.eq_ignore_ascii_case(GENERATE)
}

/// How the verbs of Google's paths end.
const GENERATE: &[u8] = b"generateContent";

/// Where a part stands first. std's way is a tenth of the module.
fn find(path: &str, part: &str) -> Option<usize> {
    path.as_bytes().windows(part.len()).position(|window| window == part.as_bytes())
}

/// The model's name in a path of Azure's or Google's.
fn place(path: &str) -> Option<&str> {
    let folder = ["/deployments/", "/models/"];
    let (at, length) = folder.iter().filter_map(|part| Some((find(path, part)?, part.len()))).min()?;
    let rest = path.get(at + length..)?;
    let end = rest.bytes().position(|byte| matches!(byte, b'/' | b':')).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

fn bound_of(json: Json, path: &str) -> Option<f64> {
    if path.ends_with("embeddings") || path.ends_with("moderations") {
        return Some(0.0);
    }
    let count = |key: &str| json.get(key).and_then(Json::count);
    let gemini = || json.get("generationConfig")?.get("maxOutputTokens")?.count();
    let keys = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
    let bound = keys.into_iter().find_map(count).or_else(gemini)?;
    Some((bound * count("n").unwrap_or(1.0).max(1.0)).min(LARGEST))
}

/// Files and recordings.
const BINARY: [&str; 4] = ["data", "file_data", "fileData", "b64_json"];

/// Adds up all text; pictures by their pixels; lists of numbers are tokens already.
struct Counting<'a> {
    asked: &'a mut Asked,
    keeps_texts: bool,
}

impl Counting<'_> {
    fn add(&mut self, value: Json, key: Option<Text>, depth: usize) {
        let is_key = |known: &str| key.is_some_and(|key| key.is(known));
        if let Some(text) = value.text() {
            self.text(text, BINARY.iter().any(|known| is_key(known)));
        } else if depth == 0 {
            // Passed over.
        } else if value.is_list() {
            if value.items().next().is_some_and(Json::is_number) {
                self.asked.tokens += value.items().count() as f64;
            } else {
                value.items().for_each(|each| self.add(each, None, depth - 1));
            }
        } else if value.is_map() {
            match picture_in(value, is_key("image_url"), is_key("source")) {
                Some(tokens) => self.asked.tokens += tokens,
                None => value.members().for_each(|(name, each)| self.add(each, Some(name), depth - 1)),
            }
        }
    }

    fn text(&mut self, text: Text, is_binary: bool) {
        if let Some(picture) = text.after("data:image/") {
            let comma = picture.iter().take(200).position(|&byte| byte == b',').map_or(0, |at| at + 1);
            self.asked.tokens += tokens(&picture[comma..]);
        } else if is_binary || text.after("data:").is_some() {
            self.asked.tokens += PICTURE;
            self.asked.is_uncounted = true;
        } else if self.keeps_texts {
            self.asked.texts.extend(text.string());
        } else {
            let (characters, bytes) = text.size();
            self.asked.characters += characters as f64;
            self.asked.bytes += bytes as f64;
        }
    }
}

/// The tokens of a picture that this object is; `None` where it is none, or its parts say more.
fn picture_in(value: Json, is_image_url: bool, is_source: bool) -> Option<f64> {
    let text = |key: &str| value.get(key).and_then(Json::text);
    let kind = text("type");
    let media = text("media_type").or_else(|| text("mimeType"));
    if let (Some(_), Some(data)) = (media.and_then(|media| media.after("image")), text("data")) {
        return Some(tokens(data.after("").unwrap_or_default()));
    }
    let has_image = |kind: Text| kind.decoded().windows(5).any(|part| part == b"image");
    let is_picture =
        is_image_url || kind.is_some_and(has_image) || is_source && kind.is_some_and(|kind| kind.is("url"));
    if !is_picture {
        return None;
    }
    if text("detail").is_some_and(|detail| detail.is("low")) {
        return Some(85.0);
    }
    let address = text("url").or_else(|| text("file_uri")).or_else(|| text("image_url"))?;
    address.after("data:").is_none().then_some(PICTURE)
}
