//! Estimates, and what usage teaches of them: tokens of the input ÷ a quarter of its bytes, for calls of
//! similar size.

use alloc::vec::Vec;

/// Answers after which a ratio counts.
const ENOUGH: f64 = 3.0;
/// How fast an average follows, at the slowest.
pub(crate) const SHARE: f64 = 0.2;

/// An average that has heard `count` values, with one more.
pub(crate) fn follow(old: f64, now: f64, count: f64) -> f64 {
    old + (now - old) * SHARE.max(1.0 / (count + 1.0))
}

/// Usage ÷ estimate of calls of one size, and how far both are off.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    size: u32,
    value: f64,
    count: f64,
    plain_error: f64,
    error: f64,
}

/// The ratios of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ratios(Vec<Ratio>);

/// Calls of similar size: within a factor of four.
fn size_of(bytes: f64) -> u32 {
    ((bytes + 1.0) as u64 | 1).ilog2() / 2
}

impl Ratios {
    /// The ratio for calls of this size, where it is better than none; and its error.
    pub fn of(&self, bytes: f64) -> (f64, f64) {
        let size = size_of(bytes);
        match self.0.iter().find(|ratio| ratio.size == size && ratio.count >= ENOUGH) {
            None => (1.0, 0.1),
            Some(ratio) if ratio.error < ratio.plain_error => (ratio.value, ratio.error),
            Some(ratio) => (1.0, ratio.plain_error),
        }
    }

    /// A call of this size was estimated, and counted by its vendor.
    pub fn learn(&mut self, bytes: f64, estimate: f64, counted: f64) {
        if !(estimate > 0.0 && counted >= 0.0) {
            return;
        }
        let size = size_of(bytes);
        let known = self.0.iter().position(|ratio| ratio.size == size);
        let at = known.unwrap_or_else(|| {
            self.0.push(Ratio { size, value: 1.0, count: 0.0, plain_error: 0.0, error: 0.0 });
            self.0.len() - 1
        });
        let ratio = &mut self.0[at];
        let off = |by: f64| (estimate * by - counted).abs() / counted.max(1.0);
        ratio.plain_error = follow(ratio.plain_error, off(1.0), ratio.count);
        ratio.error = follow(ratio.error, off(ratio.value), ratio.count);
        ratio.value = follow(ratio.value, (counted / estimate).clamp(0.5, 3.0), ratio.count);
        ratio.count += 1.0;
    }
}
