//! Others may share the limit: then what was served since the last refusal measures what they left.
//!
//! The sign is a plain refusal below the estimate, again and again: a limit that is one's own refuses above
//! it. The estimate is then the rate that was refused, and the margin is least. Steps up are as large and as
//! frequent for all, and a client that has much is refused more often: shares become even. The trap is a
//! period in requests: those who have little would ask less often, and never get more.
//!
//! A used-up window refuses all of them together. It is no sign, and shares of it stay as they are.

/// How much of the mean is the last curve: about the last ten count.
const WEIGHT: f64 = 0.2;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Others {
    /// How many of the last curves ended below the estimate, as a share.
    below: f64,
}

impl Others {
    /// Whether they take a share.
    pub fn are_there(self) -> bool {
        self.below > 0.5
    }

    /// A curve ended. `is_below`: by a plain refusal below the estimate, and not above it or by none.
    pub fn on_curve(&mut self, is_below: bool) {
        self.below += WEIGHT * (f64::from(u8::from(is_below)) - self.below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_there_when_most_curves_end_below_the_estimate() {
        let mut others = Others::default();
        let seen = [true, true, true, true, false, true, false, false].map(|is_below| {
            others.on_curve(is_below);
            others.are_there()
        });
        assert_eq!(seen, [false, false, false, true, false, true, false, false]);
    }
}
