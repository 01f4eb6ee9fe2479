//! Scopes whose requests end without a word about their server: a 429 has no effect there, and people should
//! know. A word is a status, a failure, a hint, or what a caller says of the answer.

/// After that many requests in a row a notice says it.
const IN_A_ROW: u8 = 20;

/// In place of a status: a server was asked, and its host has no word about the answer.
pub const UNTOLD: f64 = 2.0;

/// Whether an outcome is a word about the server; `None` where that does not matter.
pub type Word = Option<bool>;

/// How many requests of a scope in a row ended without a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence(u8);

impl Silence {
    /// One more ended. True where a notice is to say it: once, until one ends with a word.
    #[inline]
    pub fn hear(&mut self, has_word: bool) -> bool {
        self.0 = if has_word { 0 } else { (self.0 + 1).min(IN_A_ROW + 1) };
        self.0 == IN_A_ROW
    }

    /// Whether the last one ended with a word.
    pub const fn is_over(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::WARNINGS;

    #[test]
    fn the_page_has_the_number() {
        let row = WARNINGS.iter().find(|warning| warning.code == "no-status").unwrap();
        assert!(row.about.contains(&format!("the last {IN_A_ROW} requests")));
    }
}
