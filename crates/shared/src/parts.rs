//! Long frames in parts. A stream is cut where one frame announces too much, and what others say must not
//! wait behind it for long: what grows with scopes, requests or facts is said in frames of a bounded length.
//!
//! The parts of a frame leave in order, and no other frame of their sender to the same process comes between.
//! A part that is missing ends the frame: it is then one that was lost, as any frame may be.

use crate::{
    api::MemberId,
    frame::{MOST_BYTES, Part},
    vec_map::VecMap,
};

/// A frame is no longer than this, and a little for its head. In bytes.
pub const MOST_PART: usize = 128 << 10;

/// A frame of which parts are missing.
#[derive(Debug, Default)]
struct Begun {
    frame: u32,
    next: u32,
    bytes: Vec<u8>,
}

/// Frames of which parts are missing, one of each sender at most.
#[derive(Debug, Default)]
pub struct Parts(VecMap<MemberId, Begun>);

impl Parts {
    /// A part came in: the whole frame, if it was the last one. Together they hold no more than one frame may
    /// have; who would exceed it begins anew.
    pub fn take(&mut self, from: MemberId, part: Part) -> Option<Vec<u8>> {
        let Part { frame, index, count, bytes } = part;
        let held: usize = self.0.values().map(|started| started.bytes.len()).sum();
        if index == 0 {
            self.0.insert(from, Begun { frame, ..Begun::default() });
        }
        let started = self.0.get_mut(&from)?;
        let is_next = started.frame == frame && started.next == index && index < count;
        if !is_next || held + bytes.len() > MOST_BYTES {
            self.0.remove(&from);
            return None;
        }
        started.next += 1;
        started.bytes.extend(bytes);
        if started.next < count { None } else { self.0.remove(&from).map(|started| started.bytes) }
    }
}

/// A frame that is too long, cut.
pub fn cut(frame: u32, bytes: &[u8]) -> impl Iterator<Item = Part> {
    let count = bytes.len().div_ceil(MOST_PART) as u32;
    let parts = (0..).zip(bytes.chunks(MOST_PART));
    parts.map(move |(index, bytes)| Part { frame, index, count, bytes: bytes.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MemberId = MemberId([1; 16]);

    #[test]
    fn a_frame_is_whole_when_its_last_part_came_and_not_where_one_is_missing() {
        let bytes: Vec<u8> = (0..3 * MOST_PART + 5).map(|index| index as u8).collect();
        let mut parts = Parts::default();
        let cut: Vec<Part> = cut(7, &bytes).collect();
        assert_eq!(cut.len(), 4);
        let mut whole = cut.iter().map(|part| parts.take(ONE, part.clone()));
        assert_eq!(whole.next_back().flatten(), None, "the last one alone is nothing");
        let whole: Vec<_> = cut.iter().filter_map(|part| parts.take(ONE, part.clone())).collect();
        assert_eq!(whole, [bytes]);
        let mut missing = cut.iter().filter(|part| part.index != 2);
        assert_eq!(missing.find_map(|part| parts.take(ONE, part.clone())), None);
        assert!(parts.0.is_empty());
    }

    #[test]
    fn parts_of_frames_without_an_end_are_bounded_for_all_senders_together() {
        let mut parts = Parts::default();
        for sender in 0..=255 {
            for index in 0..16 {
                let bytes = vec![0; MOST_PART];
                parts.take(MemberId([sender; 16]), Part { frame: 1, index, count: u32::MAX, bytes });
            }
        }
        let held: usize = parts.0.values().map(|started| started.bytes.len()).sum();
        assert!(held <= MOST_BYTES, "{held}");
    }
}
