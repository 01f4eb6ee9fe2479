//! Whatever bytes come, each reader ends, and what it tells makes sense: the cases of the vectors, with bytes
//! that were changed, cut out, doubled and swapped.

use autothrottle_llm::{Asking, Body, LARGEST, Refused, asked, refusal};
use serde_json::Value;

/// The same numbers each time (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }

    fn change(&mut self, text: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(text.len());
        match self.below(5) {
            0 if !text.is_empty() => text[at] = b"\"\\{}[]:,0e-.u\xff\n\0 td"[self.below(19)],
            1 => text.truncate(at),
            2 => drop(text.drain(at..(at + self.below(9)).min(text.len()))),
            3 => text.extend_from_slice(&other[self.below(other.len())..]),
            _ => {
                let more = &other[self.below(other.len())..];
                text.splice(at..at, more.iter().copied().take(20)).for_each(drop);
            }
        }
    }
}

fn makes_sense(number: f64) -> bool {
    (0.0..=LARGEST).contains(&number)
}

#[test]
fn no_bytes_break_a_reader() {
    let text = include_str!("../../../tests/vectors/llm.jsonl");
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let texts: Vec<&[u8]> = cases
        .iter()
        .filter_map(|case| ["body", "refusal", "request"].iter().find_map(|key| case[key].as_str()))
        .map(str::as_bytes)
        .collect();
    let mut dice = Dice(7);
    for _ in 0..40_000 {
        let mut told = texts[dice.below(texts.len())].to_vec();
        for _ in 0..=dice.below(4) {
            let other = texts[dice.below(texts.len())];
            dice.change(&mut told, other);
        }
        for is_stream in [false, true] {
            let mut body = Body::new(is_stream, dice.below(2) == 0);
            let cut = dice.below(told.len());
            body.hear(&told[..cut]);
            body.hear(&told[cut..]);
            body.end();
            let usage = body.usage;
            let said = [usage.input, usage.output, Some(usage.free), Some(body.written)];
            assert!(said.into_iter().flatten().all(makes_sense), "{body:?}");
        }
        let refused = Refused { status: 429, is_anthropic: true, ..Refused::default() };
        let wait = refusal(&refused, &told).wait_ms;
        assert!(wait.is_none_or(|wait| wait > 0.0 && wait <= 2_147_483_648.0), "{wait:?}");
        let path = "/v1/messages";
        let keeps_texts = dice.below(2) == 0;
        let asked = asked(&Asking { path, method: "POST", body: &told, keeps_texts, ..Asking::default() });
        let said = [Some(asked.characters), Some(asked.bytes), Some(asked.tokens), asked.bound];
        assert!(said.into_iter().flatten().all(makes_sense), "{asked:?}");
    }
}
