//! Denied: answers that refuse the client and not its pace (401, 403, 407, 451).
//!
//! Rules:
//! 1. one of them is no news: it is no evidence that a pace is borne, and none that it is not;
//! 2. `RUN` of them without a good answer between them are one bad answer, and so is each further `RUN`.
//!
//! Rule 1 alone fails a client whose token has expired: it asks at full speed, is refused each time, and is
//! banned for that (Discord does so after 10,000 in ten minutes). Without rule 2 a client that counts
//! those as good answers floods a firewall that refuses by 403.

/// This many of them in a row are a bad answer.
const RUN: u8 = 20;

/// How many came since the last good answer, or since the last of them that was bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    run: u8,
}

impl State {
    /// None.
    pub const NEW: Self = Self { run: 0 };

    /// Whether the status refuses the client and not its pace.
    pub fn is_denial(status: u16) -> bool {
        matches!(status, 401 | 403 | 407 | 451)
    }

    /// One more came. With it, whether it is a bad answer.
    #[must_use]
    pub fn on_denied(self) -> (Self, bool) {
        let run = self.run + 1;
        if run < RUN { (Self { run }, false) } else { (Self::NEW, true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twentieth_in_a_row_is_bad() {
        let mut state = State::NEW;
        let bad: Vec<u32> = (1..=60)
            .filter(|_| {
                let (next, is_bad) = state.on_denied();
                state = next;
                is_bad
            })
            .collect();
        assert_eq!(bad, [20, 40, 60]);
    }
}
