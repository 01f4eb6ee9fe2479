//! The tokens of a picture: its pixels ÷ 750, as Anthropic says and the tiles of `OpenAI` come to.

use alloc::vec::Vec;

/// The most that Anthropic counts for a picture; also of one whose size is hidden.
pub const PICTURE: f64 = 1600.0;
/// Letters of base64 that are looked at: a JPEG may have a small picture of itself before its size.
const HEAD: usize = 64_000;

/// The tokens of a picture in base64.
pub fn tokens(base64: &[u8]) -> f64 {
    let pixels =
        sides(&decoded(&base64[..base64.len().min(HEAD)])).map_or(0, |(width, height)| width * height);
    if pixels == 0 { PICTURE } else { (pixels as f64 / 750.0).ceil().min(PICTURE) }
}

/// The bytes up to what is no base64.
fn decoded(base64: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(base64.len() * 3 / 4);
    let (mut kept, mut bits) = (0_u32, 0);
    for &letter in base64 {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        kept = kept << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((kept >> bits) as u8);
        }
    }
    bytes
}

/// Width and height, of PNG, GIF, WebP and JPEG.
fn sides(data: &[u8]) -> Option<(u64, u64)> {
    let big = |at: usize| Some(u64::from(*data.get(at)?) << 8 | u64::from(*data.get(at + 1)?));
    let little = |at: usize| Some(u64::from(*data.get(at + 1)?) << 8 | u64::from(*data.get(at)?));
    let three = |at: usize| Some((u64::from(*data.get(at + 2)?) << 16 | little(at)?) + 1);
    if data.starts_with(b"\x89PNG") {
        return Some((big(16)? << 16 | big(18)?, big(20)? << 16 | big(22)?));
    }
    if data.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    match data.get(12..16) {
        Some(b"VP8X") => return Some((three(24)?, three(27)?)),
        // Two bits of each side are its scale.
        Some(b"VP8 ") => return Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
        _ => {}
    }
    let mut at = data.starts_with(b"\xff\xd8").then_some(2)?;
    while *data.get(at)? == 0xff {
        let marker = *data.get(at + 1)?;
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(at + 7)?, big(at + 5)?));
        }
        at += 2 + big(at + 2)?.max(2) as usize;
    }
    None
}
