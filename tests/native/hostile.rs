//! Any bytes at all as header fields and as robots.txt: an answer, a finite one, and the same for every host.
//!
//! A mutation of mere bytes gets no further than the first wrong letter. Each text therefore begins as one
//! that real servers sent, and is then cut, doubled, spliced and spoilt.

use autothrottle::{Hint, Hints, Span, Value, crawl_delay_ms, headers::Context};

/// A year: no span that is read is longer.
const MOST_MS: f64 = 31_536_000_000.0;

/// Reads bytes as header fields and as a robots.txt. Panics if a promise is broken. The first byte is the
/// status and the units.
pub fn read(bytes: &[u8]) {
    let (&how, text) = bytes.split_first().unwrap_or((&0, &[]));
    let lines = String::from_utf8_lossy(text);
    let status = [200, 301, 304, 403, 413, 429, 500, 503][usize::from(how & 7)];
    let wall_ms = (how & 8 > 0).then_some(1_795_203_840_000);
    let context =
        Context { status, wall_ms, reset_is_millis: how & 16 > 0, retry_after_is_millis: how & 32 > 0 };
    let hints = Hints::from_lines(&lines, context);
    assert!(hints.quotas.len() <= 70, "{} quotas", hints.quotas.len());
    let hint = Hint::of(&hints);
    assert!(hint.hold.is_none_or(|hold| hold <= Span::from_millis(MOST_MS)), "{:?}", hint.hold);
    assert!(matches!(Value::from(&hints), Value::Map(_)));
    let pairs = lines.split('\n').filter_map(|line| line.split_once(':'));
    assert_eq!(Hints::read(pairs, context), hints, "line by line, and as pairs");

    let agent = ["foobot", "FooBot/2.1 (+https://a.example)", "*", ""][usize::from(how >> 6)];
    let asked = crawl_delay_ms(text, agent);
    assert!(asked.is_none_or(|ms| ms.is_finite() && ms >= 0.0), "{asked:?}");
    // A file's last line may lack its end.
    assert_eq!(crawl_delay_ms(&[text, b"\n"].concat(), agent), asked);
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{helpers::corpus, robots};

    /// Texts that servers sent or might send, from the vectors.
    fn seeds() -> Vec<Vec<u8>> {
        let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
        let mut seeds = Vec::new();
        for name in ["headers.jsonl", "captures.jsonl"] {
            for line in fs::read_to_string(vectors.join(name)).unwrap().lines() {
                let case: serde_json::Value = serde_json::from_str(line).unwrap();
                let mut text = String::from("\u{d}");
                let mut add = |name: &str, value: &serde_json::Value| {
                    let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                    for value in values {
                        text += &[name, ": ", value.as_str().unwrap_or_default(), "\n"].concat();
                    }
                };
                match &case["headers"] {
                    serde_json::Value::Object(fields) => {
                        for (name, value) in fields {
                            add(name, value);
                        }
                    }
                    fields => {
                        for pair in fields.as_array().unwrap() {
                            add(pair[0].as_str().unwrap(), &pair[1]);
                        }
                    }
                }
                seeds.push(text.into_bytes());
            }
        }
        seeds.extend(robots::vectors().into_iter().map(|(_, file)| [b"\0".to_vec(), file].concat()));
        seeds
    }

    #[test]
    fn the_corpus_is_read() {
        for input in corpus("hostile") {
            read(&input);
        }
    }

    /// `HOSTILE_TEXTS=10000000` reads as many.
    #[test]
    fn headers_of_servers_cut_doubled_spliced_and_spoilt() {
        let texts = std::env::var("HOSTILE_TEXTS").map_or(20_000, |count| count.parse().expect("a number"));
        let seeds = seeds();
        assert!(seeds.len() > 500, "{} seeds", seeds.len());
        for seed in &seeds {
            read(seed);
        }
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as usize % most.max(1)
        };
        for _ in 0..texts {
            let mut text = seeds[below(seeds.len())].clone();
            for _ in 0..=below(6) {
                let (at, end) = (below(text.len()), below(text.len()));
                let (at, end) = (at.min(end), at.max(end));
                match below(8) {
                    0 => text[at] = below(256) as u8,
                    1 => text[at] = b",;=\"():-?.0189 \t\r\n*/\\"[below(21)],
                    2 => drop(text.drain(at..end)),
                    3 => text.truncate(at + 1),
                    4 => text.extend_from_within(at..end.min(at + 2000)),
                    5 => drop(text.splice(at..at, *b"99999999999999999999")),
                    6 => text[0] = below(256) as u8,
                    _ => {
                        let other = &seeds[below(seeds.len())];
                        let from = below(other.len());
                        text.extend_from_slice(&other[from..]);
                    }
                }
                if text.is_empty() {
                    text.push(0);
                }
            }
            read(&text);
        }
    }
}
