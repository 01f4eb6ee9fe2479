//! Indices of a table in an order that only the table knows: scopes by name, lanes by key, classes by need.
//!
//! A name may come from a crawled page: a hash table with a fixed seed can be flooded, and one with a random
//! seed has no fixed order. An order has neither fault, and is asked once per host.
//!
//! Each kind of the library's map is eight kilobytes of WebAssembly, and keeps a second copy of its keys.
//! Here is one kind for all: a B-tree of two levels, whose keys stay where they are.

use std::{cmp::Ordering, iter::Flatten, slice::Iter};

/// Most items of a leaf. Inserting moves half of them, which is one short copy; a million items are eight
/// thousand leaves, which move once in 64 insertions.
const LEAF: usize = 128;

/// How the item at an index stands to the one that is looked for.
type Order<'a> = &'a dyn Fn(u32) -> Ordering;

/// Indices, sorted. Each call names the order, which must always be the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SortedIndex {
    /// None of them is empty.
    leaves: Vec<Vec<u32>>,
}

impl SortedIndex {
    /// The one that is equal.
    pub fn get(&self, order: Order) -> Option<u32> {
        let (leaf, place) = self.find(order).ok()?;
        Some(self.leaves[leaf][place])
    }

    /// Puts an index in; gives the one that it takes the place of.
    pub fn insert(&mut self, index: u32, order: Order) -> Option<u32> {
        match self.find(order) {
            Ok((leaf, place)) => Some(core::mem::replace(&mut self.leaves[leaf][place], index)),
            Err((leaf, place)) => {
                if self.leaves.is_empty() {
                    self.leaves.push(Vec::new());
                }
                let items = &mut self.leaves[leaf];
                items.insert(place, index);
                if items.len() > LEAF {
                    let upper = items.split_off(LEAF / 2);
                    self.leaves.insert(leaf + 1, upper);
                }
                None
            }
        }
    }

    /// Takes the one out that is equal.
    pub fn remove(&mut self, order: Order) {
        if let Ok((leaf, place)) = self.find(order) {
            self.take(leaf, place);
        }
    }

    /// Takes the first one out.
    pub fn pop_first(&mut self) -> Option<u32> {
        (!self.leaves.is_empty()).then(|| self.take(0, 0))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// In their order.
    pub fn iter(&self) -> Flatten<Iter<'_, Vec<u32>>> {
        self.leaves.iter().flatten()
    }

    fn take(&mut self, leaf: usize, place: usize) -> u32 {
        let index = self.leaves[leaf].remove(place);
        if self.leaves[leaf].is_empty() {
            self.leaves.remove(leaf);
        }
        index
    }

    /// Leaf and place of the one that is equal, or of where it would stand.
    fn find(&self, order: Order) -> Result<(usize, usize), (usize, usize)> {
        let after = self.leaves.partition_point(|leaf| order(leaf[0]).is_le());
        let leaf = after.saturating_sub(1);
        let items = self.leaves.get(leaf).map_or(&[][..], |items| items);
        match items.binary_search_by(|&index| order(index)) {
            Ok(place) => Ok((leaf, place)),
            Err(place) => Err((leaf, place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_the_librarys_map(calls in prop::collection::vec((0..5_u8, 0..600_u32), 0..3000)) {
            let mut keys: Vec<u32> = Vec::new();
            let (mut ours, mut theirs) = (SortedIndex::default(), BTreeMap::new());
            for (call, key) in calls {
                let index = keys.len() as u32;
                keys.push(key);
                let order = |other: u32| keys[other as usize].cmp(&key);
                match call {
                    0 => prop_assert_eq!(ours.get(&order), theirs.get(&key).copied()),
                    1 => {
                        ours.remove(&order);
                        theirs.remove(&key);
                    }
                    2 if key < 60 => prop_assert_eq!(ours.pop_first(), theirs.pop_first().map(|(_, index)| index)),
                    _ => prop_assert_eq!(ours.insert(index, &order), theirs.insert(key, index)),
                }
            }
            prop_assert!(ours.iter().eq(theirs.values()));
            prop_assert!(ours.leaves.iter().all(|leaf| (1..=LEAF).contains(&leaf.len())));
        }
    }
}
