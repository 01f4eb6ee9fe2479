//! LZMA as 7-Zip's `lzma.txt` specifies it, for streams without a header and of a known length, with `lc` 2,
//! `lp` 0 and `pb` 0: what `cargo xtask pack` writes.
//!
//! The trap is a panic: each carries its message and the code that formats it, more than the rest together.
//! So what lies outside is read as 0, and damaged input gives damaged output.

/// Bits of the byte before that a literal's context has.
const LITERAL_BITS: u32 = 2;
const STATES: usize = 12;

// Where each group of probabilities starts.
const IS_MATCH: usize = 0;
const IS_REP: usize = IS_MATCH + STATES;
const IS_REP_0: usize = IS_REP + STATES;
const IS_REP_1: usize = IS_REP_0 + STATES;
const IS_REP_2: usize = IS_REP_1 + STATES;
const IS_REP_0_LONG: usize = IS_REP_2 + STATES;
const SLOTS: usize = IS_REP_0_LONG + STATES;
const DISTANCES: usize = SLOTS + (4 << 6);
const ALIGNS: usize = DISTANCES + 128;
const LENGTHS: usize = ALIGNS + 16;
const REP_LENGTHS: usize = LENGTHS + 2 + 8 + 8 + 256;
const LITERALS: usize = REP_LENGTHS + 2 + 8 + 8 + 256;
const ALL: usize = LITERALS + (0x300 << LITERAL_BITS);

/// Bits of a probability, and how fast it moves.
const SCALE_BITS: u32 = 11;
const MOVE_BITS: u32 = 5;

/// A range coder's way back.
struct Decoder<'a> {
    source: core::slice::Iter<'a, u8>,
    range: u32,
    code: u32,
    probabilities: [u16; ALL],
}

impl<'a> Decoder<'a> {
    fn new(source: &'a [u8]) -> Self {
        let probabilities = [1 << (SCALE_BITS - 1); ALL];
        let mut decoder = Self { source: source.iter(), range: u32::MAX, code: 0, probabilities };
        for _ in 0..5 {
            decoder.take_byte();
        }
        decoder
    }

    fn take_byte(&mut self) {
        self.code = self.code << 8 | u32::from(self.source.next().copied().unwrap_or(0));
    }

    fn normalize(&mut self) {
        if self.range >> 24 == 0 {
            self.range <<= 8;
            self.take_byte();
        }
    }

    fn bit(&mut self, index: usize) -> usize {
        let Some(probability) = self.probabilities.get_mut(index) else { return 0 };
        let bound = (self.range >> SCALE_BITS).wrapping_mul(u32::from(*probability));
        let bit = if self.code < bound {
            self.range = bound;
            *probability += ((1 << SCALE_BITS) - *probability) >> MOVE_BITS;
            0
        } else {
            self.range = self.range.wrapping_sub(bound);
            self.code = self.code.wrapping_sub(bound);
            *probability -= *probability >> MOVE_BITS;
            1
        };
        self.normalize();
        bit
    }

    /// Bits of equal chance.
    fn plain_bits(&mut self, bits: u32) -> usize {
        (0..bits).fold(0, |value, _| {
            self.range >>= 1;
            let is_set = self.code >= self.range;
            if is_set {
                self.code = self.code.wrapping_sub(self.range);
            }
            self.normalize();
            value << 1 | usize::from(is_set)
        })
    }

    /// The highest bit first.
    fn tree(&mut self, base: usize, bits: u32) -> usize {
        (0..bits).fold(1, |node, _| node << 1 | self.bit(base + node)) - (1 << bits)
    }

    /// The lowest bit first.
    fn reverse_tree(&mut self, base: usize, bits: u32) -> usize {
        let mut node = 1;
        (0..bits).fold(0, |value, place| {
            let bit = self.bit(base + node);
            node = node << 1 | bit;
            value | bit << place
        })
    }

    /// Of a match, less two.
    fn length(&mut self, base: usize) -> usize {
        if self.bit(base) == 0 {
            self.tree(base + 2, 3)
        } else if self.bit(base + 1) == 0 {
            8 + self.tree(base + 10, 3)
        } else {
            16 + self.tree(base + 18, 8)
        }
    }

    /// Of a match of this length less two, less one.
    fn distance(&mut self, length: usize) -> usize {
        let slot = self.tree(SLOTS + (length.min(3) << 6), 6);
        if slot < 4 {
            return slot;
        }
        let bits = (slot as u32 >> 1) - 1;
        let start = (2 | slot & 1) << bits;
        if slot < 14 {
            return start + self.reverse_tree(DISTANCES + start - slot, bits);
        }
        start + (self.plain_bits(bits - 4) << 4) + self.reverse_tree(ALIGNS, 4)
    }

    /// A byte that no match covers. After a match it differs from `matched`, the byte which that would have
    /// gone on with.
    fn literal(&mut self, before: u8, matched: Option<u8>) -> u8 {
        let base = LITERALS + 0x300 * usize::from(before >> (8 - LITERAL_BITS));
        let mut symbol = 1;
        if let Some(matched) = matched {
            let mut matched = usize::from(matched);
            while symbol < 0x100 {
                matched <<= 1;
                let expected = matched >> 8 & 1;
                let bit = self.bit(base + ((1 + expected) << 8) + symbol);
                symbol = symbol << 1 | bit;
                if bit != expected {
                    break;
                }
            }
        }
        while symbol < 0x100 {
            symbol = symbol << 1 | self.bit(base + symbol);
        }
        symbol as u8
    }
}

/// Unpacks a stream to as many bytes as `out` has. What is damaged gives other bytes.
pub fn unpack(packed: &[u8], out: &mut [u8]) {
    let mut decoder = Decoder::new(packed);
    let mut state = 0;
    let mut distances = [0_usize; 4];
    let mut at = 0;
    while at < out.len() {
        let copied = |out: &[u8], at: usize, distance: usize| {
            out.get(at.wrapping_sub(distance).wrapping_sub(1)).copied().unwrap_or(0)
        };
        if decoder.bit(IS_MATCH + state) == 0 {
            let matched = (state >= 7).then(|| copied(out, at, distances[0]));
            let literal = decoder.literal(copied(out, at, 0), matched);
            if let Some(place) = out.get_mut(at) {
                *place = literal;
            }
            at += 1;
            state = if state < 4 { 0 } else { state - if state < 10 { 3 } else { 6 } };
            continue;
        }
        let is_after_match = state >= 7;
        let length;
        if decoder.bit(IS_REP + state) == 0 {
            length = decoder.length(LENGTHS) + 2;
            state = if is_after_match { 10 } else { 7 };
            let [first, second, third, _] = distances;
            distances = [decoder.distance(length - 2), first, second, third];
        } else {
            let [first, second, third, fourth] = distances;
            let is_short = if decoder.bit(IS_REP_0 + state) == 0 {
                decoder.bit(IS_REP_0_LONG + state) == 0
            } else {
                distances = if decoder.bit(IS_REP_1 + state) == 0 {
                    [second, first, third, fourth]
                } else if decoder.bit(IS_REP_2 + state) == 0 {
                    [third, first, second, fourth]
                } else {
                    [fourth, first, second, third]
                };
                false
            };
            if is_short {
                length = 1;
                state = if is_after_match { 11 } else { 9 };
            } else {
                length = decoder.length(REP_LENGTHS) + 2;
                state = if is_after_match { 11 } else { 8 };
            }
        }
        for _ in 0..length {
            let byte = copied(out, at, distances[0]);
            if let Some(place) = out.get_mut(at) {
                *place = byte;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lzma_rust2::{LzmaOptions, LzmaWriter};
    use proptest::prelude::*;

    use super::*;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let options = LzmaOptions { lc: LITERAL_BITS, lp: 0, pb: 0, ..LzmaOptions::with_preset(9) };
        let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn back(packed: &[u8], length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        unpack(packed, &mut out);
        out
    }

    #[test]
    fn what_was_packed_comes_back() {
        let itself = include_bytes!("lzma.rs");
        let packed = pack(itself);
        assert!(packed.len() < itself.len() / 2);
        assert!(back(&packed, itself.len()) == itself);
        // Far matches, long ones, none.
        let far = [&itself[..], &vec![7; 300_000], itself].concat();
        assert!(back(&pack(&far), far.len()) == far);
        assert_eq!(back(&pack(b""), 0), b"");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_bytes_come_back(words in prop::collection::vec((0..40_u8, 1..30_usize), 0..300)) {
            let bytes: Vec<u8> =
                words.iter().flat_map(|&(word, many)| (0..many).map(move |at| word ^ at as u8)).collect();
            prop_assert_eq!(back(&pack(&bytes), bytes.len()), bytes);
        }

        #[test]
        fn damaged_input_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(back(&bytes, 5000).len(), 5000);
        }
    }
}
