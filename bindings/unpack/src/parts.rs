//! A module taken apart and put together again: opcodes with opcodes, locals with locals, so that what
//! repeats stands together. LZMA alone makes it an eighth larger.
//!
//! One walk goes both ways: it moves each byte between the module and the part where its like are. Three
//! things are more than moved. The alignment of an access is left out where it is the natural one. A local is
//! said as its rank among those last used. The trap is an instruction that is not known: nobody could tell
//! where the next begins, so packing fails and names it.
//!
//! Source: WebAssembly's core specification 2.0, chapter 5 (binary format).

/// Parts of a module.
const PARTS: usize = 14;
/// Sections but for code.
const OUTLINE: usize = 0;
const OPCODES: usize = 1;
const GETS: usize = 2;
const SETS: usize = 3;
const LOADS: usize = 4;
const STORES: usize = 5;
const INTEGERS: usize = 6;
const BRANCHES: usize = 7;
const CALLS: usize = 8;
const LONGS: usize = 9;
const FLOATS: usize = 10;
const BLOCKS: usize = 11;
/// Sizes and locals of functions.
const FUNCTIONS: usize = 12;
const REST: usize = 13;

/// Bytes of a part's length, before all parts.
const LENGTH: usize = 3;
const HEAD: usize = PARTS * LENGTH;

const CODE: u8 = 10;
/// No instruction has this opcode: the alignment follows, then the opcode of the access.
const ALIGNED: u8 = 0x27;
/// The natural alignment of accesses from 0x28, as a power of two.
const NATURAL: [u8; 23] = [2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 3, 2, 3, 0, 1, 0, 1, 2];
/// No function of a module has more locals.
const LOCALS: usize = 1024;

/// Locals of a function, the last used first.
struct Recent([u16; LOCALS]);

impl Recent {
    fn new() -> Self {
        Self(core::array::from_fn(|local| local as u16))
    }

    /// Makes this rank the first; gives its local.
    fn take(&mut self, rank: usize) -> usize {
        let Some(&local) = self.0.get(rank) else { return 0 };
        let mut moved = local;
        for place in self.0.iter_mut().take(rank + 1) {
            core::mem::swap(place, &mut moved);
        }
        usize::from(local)
    }
}

/// One of the two ways between a module and its parts.
trait Way {
    /// Moves a byte.
    fn byte(&mut self, part: usize) -> u8;
    /// Moves an opcode, with the alignment of an access.
    fn opcode(&mut self) -> u8;
    /// Moves a local of a function.
    fn local(&mut self, part: usize, recent: &mut Recent);
    /// Where in the module it is.
    fn at(&self) -> usize;
    /// How long the module is.
    fn length(&self) -> usize;
}

/// Moves a number; gives its lowest 32 bits.
fn number(way: &mut impl Way, part: usize) -> usize {
    leb(|| way.byte(part))
}

fn leb(mut next: impl FnMut() -> u8) -> usize {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = next();
        if shift < 32 {
            value |= u32::from(byte & 127) << shift;
        }
        shift += 7;
        if byte < 128 {
            return value as usize;
        }
    }
}

fn numbers(way: &mut impl Way, part: usize, count: usize) {
    for _ in 0..count.min(way.length()) {
        number(way, part);
    }
}

fn bytes(way: &mut impl Way, part: usize, end: usize) {
    while way.at() < end.min(way.length()) {
        way.byte(part);
    }
}

/// Moves all of a module. Gives the first opcode that is not known.
fn walk(way: &mut impl Way) -> Result<(), u8> {
    bytes(way, OUTLINE, 8);
    while way.at() < way.length() {
        let id = way.byte(OUTLINE);
        let end = number(way, OUTLINE).saturating_add(way.at());
        if id == CODE {
            number(way, OUTLINE);
            while way.at() < end.min(way.length()) {
                function(way)?;
            }
        }
        bytes(way, OUTLINE, end);
    }
    Ok(())
}

fn function(way: &mut impl Way) -> Result<(), u8> {
    let end = number(way, FUNCTIONS).saturating_add(way.at());
    let groups = number(way, FUNCTIONS);
    numbers(way, FUNCTIONS, groups.saturating_mul(2));
    let mut recent = Recent::new();
    while way.at() < end.min(way.length()) {
        let opcode = way.opcode();
        let (part, count) = match opcode {
            0x20..=0x22 => {
                way.local(if opcode == 0x20 { GETS } else { SETS }, &mut recent);
                continue;
            }
            0x28..=0x35 => (LOADS, 1),
            0x36..=0x3e => (STORES, 1),
            0x41 => (INTEGERS, 1),
            0x42 => (LONGS, 1),
            0x43 | 0x44 => {
                let end = way.at() + if opcode == 0x43 { 4 } else { 8 };
                bytes(way, FLOATS, end);
                continue;
            }
            0x02..=0x04 => (BLOCKS, 1),
            0x0c | 0x0d => (BRANCHES, 1),
            0x0e => (BRANCHES, number(way, BRANCHES).saturating_add(1)),
            0x10 | 0x12 => (CALLS, 1),
            0x11 | 0x13 => (CALLS, 2),
            0x23..=0x26 | 0x3f | 0x40 | 0xd0 | 0xd2 => (REST, 1),
            0x1c => (REST, number(way, REST)),
            0xfc => match number(way, REST) {
                0..=7 => continue,
                9 | 11 | 13 | 15..=17 => (REST, 1),
                8 | 10 | 12 | 14 => (REST, 2),
                _ => return Err(opcode),
            },
            0x00 | 0x01 | 0x05 | 0x0b | 0x0f | 0x1a | 0x1b | 0x45..=0xc4 | 0xd1 => continue,
            _ => return Err(opcode),
        };
        numbers(way, part, count);
    }
    Ok(())
}

/// From parts to the module.
struct Join<'a> {
    parts: [core::slice::Iter<'a, u8>; PARTS],
    module: &'a mut [u8],
    at: usize,
}

impl Join<'_> {
    fn take(&mut self, part: usize) -> u8 {
        self.parts.get_mut(part).and_then(Iterator::next).copied().unwrap_or(0)
    }

    fn put(&mut self, byte: u8) {
        if let Some(place) = self.module.get_mut(self.at) {
            *place = byte;
        }
        self.at += 1;
    }
}

impl Way for Join<'_> {
    fn byte(&mut self, part: usize) -> u8 {
        let byte = self.take(part);
        self.put(byte);
        byte
    }

    fn opcode(&mut self) -> u8 {
        let mut opcode = self.take(OPCODES);
        let mut align = None;
        if opcode == ALIGNED {
            align = Some(self.take(OPCODES));
            opcode = self.take(OPCODES);
        }
        self.put(opcode);
        if let Some(&natural) = NATURAL.get(usize::from(opcode.wrapping_sub(0x28))) {
            self.put(align.unwrap_or(natural));
        }
        opcode
    }

    fn local(&mut self, part: usize, recent: &mut Recent) {
        let mut local = recent.take(leb(|| self.take(part)));
        while local > 127 {
            self.put(local as u8 | 128);
            local >>= 7;
        }
        self.put(local as u8);
    }

    fn at(&self) -> usize {
        self.at
    }

    fn length(&self) -> usize {
        self.module.len()
    }
}

/// Puts a module of this length together. What is damaged gives other bytes.
pub fn join(parts: &[u8], module: &mut [u8]) {
    let (head, mut rest) = parts.split_at_checked(HEAD).unwrap_or_default();
    let mut lengths = head.chunks_exact(LENGTH);
    let parts = core::array::from_fn(|_| {
        let length = lengths.next().map_or(0, little_endian);
        let (part, others) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = others;
        part.iter()
    });
    let _ = walk(&mut Join { parts, module, at: 0 });
}

/// A number of a few bytes, the lowest first.
pub fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

/// From the module to its parts.
#[cfg(not(target_family = "wasm"))]
struct Split<'a> {
    module: &'a [u8],
    at: usize,
    parts: [Vec<u8>; PARTS],
}

#[cfg(not(target_family = "wasm"))]
impl Split<'_> {
    fn take(&mut self) -> u8 {
        let byte = self.module.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }
}

#[cfg(not(target_family = "wasm"))]
impl Way for Split<'_> {
    fn byte(&mut self, part: usize) -> u8 {
        let byte = self.take();
        self.parts[part].push(byte);
        byte
    }

    fn opcode(&mut self) -> u8 {
        let opcode = self.take();
        if let Some(&natural) = NATURAL.get(usize::from(opcode.wrapping_sub(0x28))) {
            let align = self.take();
            if align != natural {
                self.parts[OPCODES].extend([ALIGNED, align]);
            }
        }
        self.parts[OPCODES].push(opcode);
        opcode
    }

    fn local(&mut self, part: usize, recent: &mut Recent) {
        let local = leb(|| self.take());
        let mut rank = recent.0.iter().position(|&known| usize::from(known) == local).unwrap_or(LOCALS);
        recent.take(rank);
        while rank > 127 {
            self.parts[part].push(rank as u8 | 128);
            rank >>= 7;
        }
        self.parts[part].push(rank as u8);
    }

    fn at(&self) -> usize {
        self.at
    }

    fn length(&self) -> usize {
        self.module.len()
    }
}

/// Takes a module apart: the parts, never twice as long as the module and 100 bytes.
///
/// # Errors
///
/// Says why `join` would not give the same module: an instruction that is not known, or a number that could
/// be written shorter.
#[cfg(not(target_family = "wasm"))]
pub fn split(module: &[u8]) -> Result<Vec<u8>, String> {
    let mut way = Split { module, at: 0, parts: Default::default() };
    walk(&mut way).map_err(|opcode| format!("opcode {opcode:#x} before byte {} is not known", way.at))?;
    let lengths = way.parts.iter().flat_map(|part| part.len().to_le_bytes().into_iter().take(LENGTH));
    let parts: Vec<u8> = lengths.chain(way.parts.iter().flatten().copied()).collect();
    let mut again = vec![0; module.len()];
    join(&parts, &mut again);
    match again.iter().zip(module).position(|(one, other)| one != other) {
        Some(at) => Err(format!("byte {at} does not come back")),
        None => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A module with these functions, and other sections around.
    fn module(functions: &[Vec<u8>]) -> Vec<u8> {
        let mut code = vec![functions.len() as u8];
        for function in functions {
            let size = function.len() + 3;
            code.extend([size as u8 | 128, (size >> 7) as u8, 1, 2, 0x7f]);
            code.extend(function);
        }
        let size = [code.len() as u8 | 128, (code.len() >> 7) as u8 | 128, (code.len() >> 14) as u8];
        [&b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0"[..], &[CODE], &size, &code, b"\x0b\x03abc"].concat()
    }

    fn back(module: &[u8]) -> Vec<u8> {
        let mut again = vec![0; module.len()];
        join(&split(module).unwrap(), &mut again);
        again
    }

    fn instruction() -> impl Strategy<Value = Vec<u8>> {
        let many = |opcodes: &'static [u8], rest: &'static [u8]| {
            prop::sample::select(opcodes).prop_map(move |opcode| [&[opcode], rest].concat())
        };
        prop_oneof![
            (0x20..0x23_u8, 0..1024_usize).prop_map(|(opcode, local)| match local {
                0..128 => vec![opcode, local as u8],
                _ => vec![opcode, local as u8 | 128, (local >> 7) as u8],
            }),
            (0x28..0x3f_u8, 0..4_u8, 0..128_u8).prop_map(|(opcode, align, at)| vec![opcode, align, at]),
            many(&[0x41, 0x42, 0x0c, 0x0d, 0x10, 0x23, 0xd0], &[0x85, 0x01]),
            many(&[0x02, 0x03, 0x04], &[0x40]),
            many(&[0x0e, 0x1c], &[3, 1, 2, 3, 0x1a]),
            many(&[0x11, 0x13], &[1, 0]),
            many(&[0x43], &[1, 2, 3, 4]),
            many(&[0x44], &[1, 2, 3, 4, 5, 6, 7, 8]),
            many(&[0xfc], &[0]),
            many(&[0xfc], &[11, 0]),
            many(&[0xfc], &[10, 0, 0]),
            many(&[0x00, 0x05, 0x0b, 0x1a, 0x6a, 0xc4, 0xd1], &[]),
        ]
    }

    #[test]
    fn likes_stand_together() {
        let parts = split(&module(&[vec![0x20, 1, 0x20, 1, 0x6a, 0x28, 2, 8, 0x28, 0, 4, 0x0b]])).unwrap();
        let holds = |wanted: &[u8]| parts.windows(wanted.len()).any(|window| window == wanted);
        assert!(holds(&[0x20, 0x20, 0x6a, 0x28, ALIGNED, 0, 0x28, 0x0b, 1, 0, 8, 4]), "{parts:x?}");
    }

    #[test]
    fn what_nobody_could_read_back_is_refused() {
        let refused = |function: &[u8]| split(&module(&[function.to_vec()])).unwrap_err();
        assert_eq!(refused(&[0xfd, 0x0c]), "opcode 0xfd before byte 25 is not known");
        assert_eq!(refused(&[0xfc, 99]), "opcode 0xfc before byte 26 is not known");
        assert_eq!(refused(&[0x20, 0x81, 0x00]), "byte 25 does not come back");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn any_module_comes_back(
            functions in prop::collection::vec(prop::collection::vec(instruction(), 0..60), 0..9),
        ) {
            let functions: Vec<Vec<u8>> = functions.into_iter().map(|each| each.concat()).collect();
            let module = module(&functions);
            prop_assert_eq!(back(&module), module);
        }

        #[test]
        fn damaged_parts_are_no_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            length in 0..3000_usize,
        ) {
            let mut again = vec![0; length];
            join(&bytes, &mut again);
            crate::unpack(&bytes, &mut vec![0; 2 * length], &mut again);
        }
    }
}
