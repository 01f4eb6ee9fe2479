//! A leader's state, in storage and in frames: the whole now and then, and behind it what changed.
//!
//! The whole grows with the scopes, so the leader says it slowly. The changes since the piece before are as
//! long as the scopes that were used meanwhile, so every beat has them. Pieces that follow each other are a
//! *chain*: the whole, then what changed, one behind the other. Where one is missing, what follows it is not
//! taken in.
//!
//! The first byte says which piece it is, so that a store can tell: a whole takes the place of all before it,
//! a change is put behind them. The length of each can be divided by three: stores of text keep it in base
//! 64, and put texts together.

use autothrottle::Value;

use crate::{
    api::{Epoch, MemberId},
    codec::{Plain, Wire, read_all, wire, write_to},
    frame::{Memory, VERSION},
    vec_map::VecMap,
};

/// In the first byte of a change, beside the version.
const CHANGE: u8 = 0x80;

/// The changes since the piece before.
#[derive(Debug)]
pub struct Change {
    /// The number of that one.
    pub after: u32,
    /// The whole is so much older, in microseconds.
    pub since: u64,
    /// Scopes, settings and members that changed since; the options are those of the whole.
    pub memory: Memory,
}

/// A leader's notes of changes since the last piece.
#[derive(Debug, Default)]
pub struct Changes {
    pub scopes: VecMap<u64>,
    /// The scopes whose statistics have not been sent, and up to which number they were.
    pub unseen: VecMap<u64>,
    pub seen_to: u64,
    pub settings: VecMap<String>,
    pub gone: VecMap<MemberId>,
    /// The engine's instant of the last whole, in milliseconds.
    pub whole_at: f64,
    /// A member is new, which has no whole to put changes behind.
    pub is_joined: bool,
}

wire! {
    struct Change { after, since, memory }
}

/// Whether a piece that is to be stored belongs behind what is stored already. Else it takes its place.
pub fn is_change(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|kind| kind & CHANGE != 0)
}

/// Everything.
pub fn whole<T: Wire>(what: &T) -> Vec<u8> {
    piece(VERSION, what)
}

/// A change as bytes.
pub fn change<T: Wire>(what: &T) -> Vec<u8> {
    piece(VERSION | CHANGE, what)
}

fn piece<T: Wire>(kind: u8, what: &T) -> Vec<u8> {
    padded(write_to(vec![kind], what))
}

/// A list may say its length in more bytes than it needs.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    let missing = bytes.len().next_multiple_of(3) - bytes.len();
    if let (1..=2, Some(list)) = (missing, bytes.get_mut(1)) {
        let count = *list & 0x1f;
        *list = 0x97 + missing as u8;
        bytes.insert(2, count);
        if missing == 2 {
            bytes.insert(2, 0);
        }
    }
    bytes
}

/// The pieces of a chain. A half one at its end is left out: its writer died.
fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while let Some((kind, behind)) = rest.split_first()
        && kind & !CHANGE == VERSION
        && is_change(rest) != pieces.is_empty()
    {
        let mut decoder = minicbor::Decoder::new(behind);
        if decoder.skip().is_err() {
            break;
        }
        let (piece, next) = rest.split_at(1 + decoder.position());
        pieces.push(piece);
        rest = next;
    }
    pieces
}

/// The state in storage, or in a frame.
pub fn memory(bytes: &[u8]) -> Option<Memory> {
    let pieces = pieces(bytes);
    let (first, rest) = pieces.split_first()?;
    let mut memory: Memory = read_all(first.get(1..)?).filter(Memory::is_sound)?;
    let mut changes = Vec::new();
    for piece in rest {
        let Some(change) = piece.get(1..).and_then(read_all).filter(|it: &Change| it.memory.is_sound())
        else {
            break;
        };
        // Of an older whole, where the store did not remove it.
        let number = (change.memory.epoch, change.memory.number);
        if number <= (memory.epoch, memory.number) {
            continue;
        }
        if number.0 != memory.epoch || change.after != memory.number {
            break;
        }
        memory.number = number.1;
        changes.push(change);
    }
    follow(&mut memory, changes);
    Some(memory)
}

/// Puts what changed behind a whole: of a scope that is there twice, the last counts.
fn follow(memory: &mut Memory, changes: Vec<Change>) {
    let Some(newest) = changes.last().map(|change| change.since) else { return };
    let mut scopes = aged(core::mem::replace(&mut memory.snapshot.0, Value::Nothing), newest);
    for Change { since, memory: later, .. } in changes {
        scopes.extend(aged(later.snapshot.0, newest.saturating_sub(since)));
        for (name, settings) in later.settings {
            memory.settings.retain(|(known, _)| *known != name);
            memory.settings.push((name, settings));
        }
        for known in later.members {
            memory.members.retain(|other| other.id != known.id);
            memory.members.push(known);
        }
        (memory.paused, memory.reserved, memory.unknown) = (later.paused, later.reserved, later.unknown);
        memory.ahead = later.ahead;
    }
    let snapshot = vec![("version", 1.0.into()), ("scopes", Value::Map(scopes))];
    memory.snapshot = Plain(Value::object(snapshot));
}

/// Scopes of a snapshot that was taken that many microseconds before the newest.
fn aged(snapshot: Value, micros: u64) -> Vec<(String, Value)> {
    let Value::Map(entries) = snapshot else { return Vec::new() };
    let scopes = entries.into_iter().find(|(key, _)| key == "scopes");
    let Some((_, Value::Map(scopes))) = scopes else { return Vec::new() };
    if micros == 0 {
        return scopes;
    }
    let age = |scope: Value| match scope {
        Value::Map(mut entries) => {
            entries.push(("age".into(), (micros as f64 / 1000.0).into()));
            Value::Map(entries)
        }
        other => other,
    };
    scopes.into_iter().map(|(name, scope)| (name, age(scope))).collect()
}

/// Which snapshot it is, and behind which it belongs if it is a change, without reading the rest.
pub fn number(piece: &[u8]) -> Option<(Option<u32>, (Epoch, u32))> {
    let (kind, rest) = piece.split_first()?;
    let mut decoder = minicbor::Decoder::new(rest);
    decoder.array().ok()?;
    let mut after = None;
    if kind & CHANGE != 0 {
        after = Some(decoder.u32().ok()?);
        decoder.u64().ok()?;
        decoder.array().ok()?;
    }
    let number = (decoder.u64().ok()?, decoder.u32().ok()?);
    (kind & !CHANGE == VERSION).then_some((after, number))
}

/// Which snapshot a chain is.
pub fn last_number(bytes: &[u8]) -> Option<(Epoch, u32)> {
    let mut pieces = pieces(bytes).into_iter().map_while(number);
    let (_, mut last) = pieces.next()?;
    for (after, next) in pieces {
        if next.0 == last.0 && after == Some(last.1) {
            last = next;
        } else if next > last {
            break;
        }
    }
    Some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u32, scope: &str) -> Memory {
        let scopes = Value::Map(vec![(scope.into(), Value::Map(vec![]))]);
        Memory {
            epoch: 7,
            number,
            snapshot: Plain(Value::object(vec![("version", 1.0.into()), ("scopes", scopes)])),
            settings: Vec::new(),
            paused: number == 3,
            options: vec![1; number as usize],
            members: Vec::new(),
            reserved: Vec::new(),
            unknown: None,
            ahead: 0,
        }
    }

    fn changed(number: u32, after: u32) -> Vec<u8> {
        change(&Change { after, since: u64::from(number) * 1000, memory: of(number, "other") })
    }

    #[test]
    fn a_change_is_put_behind_a_whole_and_one_after_a_gap_is_not_taken_in() {
        let first = whole(&of(1, "one"));
        for piece in [&first, &changed(2, 1), &changed(3, 2)] {
            assert_eq!(piece.len() % 3, 0, "base 64 without a rest");
        }
        let chain = [&first[..], &changed(2, 1), &changed(3, 2)].concat();
        let both = memory(&chain).expect("a chain");
        assert_eq!((both.number, both.paused, both.options.len()), (3, true, 1));
        assert_eq!(aged(both.snapshot.0, 0).len(), 3, "the base, older by 3 ms, and two words on the other");
        assert_eq!(last_number(&chain), Some((7, 3)));
        assert_eq!(last_number(&chain[..chain.len() - 1]), Some((7, 2)), "half a piece is none");
        let with_gap = [&first[..], &changed(3, 2)].concat();
        assert_eq!((memory(&with_gap).map(|it| it.number), last_number(&with_gap)), (Some(1), Some((7, 1))));
        assert_eq!(memory(&changed(2, 1)).map(|it| it.number), None, "no whole");
        assert_eq!((is_change(&first), is_change(&changed(2, 1))), (false, true));
        assert_eq!(number(&changed(2, 1)), Some((Some(1), (7, 2))));
    }
}
