//! Names of scopes, as the numbers by which a host knows them.
//!
//! A crawl sees names without end. Names that are not held are therefore forgotten when there are many, the
//! oldest first, and a number is never given twice.

use std::sync::Arc;

use crate::vec_map::VecMap;

/// Half of the names that are known beside those that are held, at most.
const MOST: usize = 10_000;

/// Which number means which name.
#[derive(Debug, Default)]
pub struct Names {
    by_name: VecMap<Arc<str>, u32>,
    /// Each with how often it is held.
    by_number: VecMap<u32, (Arc<str>, u32)>,
    made: u32,
    held: usize,
}

impl Names {
    /// The number of a name, which may be forgotten.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        if self.by_number.len() - self.held >= 2 * MOST {
            self.forget();
        }
        let (number, name) = (self.made, Arc::<str>::from(name));
        self.made += 1;
        self.by_name.insert(name.clone(), number);
        self.by_number.insert(number, (name, 0));
        number
    }

    /// A number that is good until it is released.
    pub fn hold(&mut self, name: &str) -> u32 {
        let number = self.intern(name);
        if let Some((_, holders)) = self.by_number.get_mut(&number) {
            self.held += usize::from(*holders == 0);
            *holders += 1;
        }
        number
    }

    /// Gives a number back: one that is not held any more is forgotten.
    pub fn release(&mut self, number: u32) {
        match self.by_number.get_mut(&number) {
            Some((_, holders)) if *holders > 1 => *holders -= 1,
            _ => {
                let Some((name, holders)) = self.by_number.remove(&number) else { return };
                self.held -= holders as usize;
                self.by_name.remove(&name);
            }
        }
    }

    /// The number of a name, if it has one.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The name behind a number.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.by_number.get(&number).map(|(name, _)| &**name)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_number.len()
    }

    fn forget(&mut self) {
        let oldest = self.made.saturating_sub(MOST as u32);
        self.by_number.retain(|&number, (_, holders)| number >= oldest || *holders > 0);
        let known = &self.by_number;
        self.by_name.retain(|_, number| known.contains_key(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_held_or_new_is_known() {
        let mut names = Names::default();
        let (first, held) = (names.intern("first"), names.hold("held"));
        assert_eq!((names.intern("first"), names.hold("held")), (first, held));
        let last = (0..100_000).map(|place| names.intern(&place.to_string())).last();
        assert!(names.count() <= 2 * MOST + 1);
        assert_eq!((names.name(first), names.name(held)), (None, Some("held")));
        assert_eq!((names.find("99999"), names.find("first"), names.find("held")), (last, None, Some(held)));
        names.release(held);
        assert_eq!(names.find("held"), Some(held));
        names.release(held);
        names.release(held);
        assert_eq!((names.find("held"), names.name(held)), (None, None));
    }
}
