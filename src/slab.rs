//! A table that hands out the index of each item and takes it back: tickets, classes, lanes, scopes.
//!
//! One long vector is copied when it grows, and WebAssembly's memory never shrinks, so the old copy is lost.
//! Pages stay where they are; only the first one grows.
//!
//! A handle may outlive its item: the place has another item by then. Each item therefore has a generation,
//! and an [`Id`] means the item only while both agree.
//!
//! Looking an item up is inlined, for it is half of what a decision costs in code that is compiled for size:
//! without it a request that waits takes a tenth longer.

use crate::time::{double, whole};

/// Items on a page. A power of two, so that an index is split by shifting.
const PAGE: usize = 1024;

/// Where the list of free places ends.
const END: u32 = u32::MAX;

/// Ids leave as doubles, which hold 53 bits: 32 of index, 21 of generation.
const GENERATIONS: u32 = 1 << 21;

/// An index, and which of its users is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub generation: u32,
    pub index: u32,
}

impl Id {
    /// The id as a whole number below 2⁵³.
    #[inline(always)]
    pub fn to_number(self) -> f64 {
        double(u64::from(self.generation) << 32 | u64::from(self.index))
    }

    /// The id behind a number; `None` for what never was one.
    #[inline(always)]
    pub fn from_number(number: f64) -> Option<Self> {
        let bits = whole(number);
        let is_whole = double(bits) == number && (0.0..9_007_199_254_740_992.0).contains(&number);
        is_whole.then_some(Self { generation: (bits >> 32) as u32, index: bits as u32 })
    }
}

/// Makes a public type of an [`Id`], so that a ticket is never taken for a scope.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub(crate) $crate::slab::Id);

        impl $name {
            /// The handle as a whole number below 2⁵³, for boundaries that carry doubles.
            pub fn to_number(self) -> f64 {
                self.0.to_number()
            }

            /// The handle behind a number; `None` for what never was one.
            pub fn from_number(number: f64) -> Option<Self> {
                $crate::slab::Id::from_number(number).map(Self)
            }
        }
    };
}
pub(crate) use handle;

/// Once for all, since looking an item up is inlined everywhere.
#[cold]
#[inline(never)]
fn unknown() -> ! {
    panic!("an index that was handed out")
}

#[derive(Clone, Debug)]
enum Place<T> {
    Free { next: u32 },
    Used { generation: u32, item: T },
}

/// Items by index. The place that was given back last is used first.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    pages: Vec<Vec<Place<T>>>,
    free: u32,
    used: u32,
    made: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), free: END, used: 0, made: 0 }
    }
}

impl<T> Slab<T> {
    /// How many items there are.
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Puts an item in.
    #[inline]
    pub fn insert(&mut self, item: T) -> Id {
        let generation = self.made % GENERATIONS;
        self.made = self.made.wrapping_add(1);
        self.used += 1;
        let used = Place::Used { generation, item };
        let index = self.free;
        if let Some(place) = self.place_mut(index)
            && let Place::Free { next } = *place
        {
            *place = used;
            self.free = next;
            return Id { generation, index };
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            self.pages.push(if self.pages.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
        }
        let before = (self.pages.len() - 1) * PAGE;
        let page = self.pages.last_mut().expect("there is one");
        page.push(used);
        Id { generation, index: (before + page.len() - 1) as u32 }
    }

    /// Takes an item out. It must be there.
    #[inline]
    pub fn remove(&mut self, index: u32) -> T {
        let next = self.free;
        let place = self.place_mut(index).expect("an index that was handed out");
        let Place::Used { item, .. } = core::mem::replace(place, Place::Free { next }) else {
            panic!("an index is given back once");
        };
        self.free = index;
        self.used -= 1;
        item
    }

    /// The item, if it is still the one that was meant.
    #[inline(always)]
    pub fn get(&self, id: Id) -> Option<&T> {
        match self.place(id.index)? {
            Place::Used { generation, item } if *generation == id.generation => Some(item),
            _ => None,
        }
    }

    /// The same, to change it.
    #[inline(always)]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        match self.place_mut(id.index)? {
            Place::Used { generation, item } if *generation == id.generation => Some(item),
            _ => None,
        }
    }

    /// The id of the item at an index that was handed out.
    pub fn id(&self, index: u32) -> Id {
        match self.place(index) {
            Some(&Place::Used { generation, .. }) => Id { generation, index },
            _ => unknown(),
        }
    }

    /// The item at an index that was handed out, with its id.
    #[inline(always)]
    pub fn item_mut(&mut self, index: u32) -> (Id, &mut T) {
        match self.place_mut(index) {
            Some(Place::Used { generation, item }) => (Id { generation: *generation, index }, item),
            _ => unknown(),
        }
    }

    /// Every item, by index.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten().filter_map(|place| match place {
            Place::Used { item, .. } => Some(item),
            Place::Free { .. } => None,
        })
    }

    #[inline(always)]
    fn place(&self, index: u32) -> Option<&Place<T>> {
        self.pages.get(index as usize / PAGE)?.get(index as usize % PAGE)
    }

    #[inline(always)]
    fn place_mut(&mut self, index: u32) -> Option<&mut Place<T>> {
        self.pages.get_mut(index as usize / PAGE)?.get_mut(index as usize % PAGE)
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        match self.place(index) {
            Some(Place::Used { item, .. }) => item,
            _ => unknown(),
        }
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        match self.place_mut(index) {
            Some(Place::Used { item, .. }) => item,
            _ => unknown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_list_of_options_and_knows_no_one_who_left() {
        let mut slab = Slab::default();
        let mut list: Vec<Option<(Id, u32)>> = Vec::new();
        let mut gone = Vec::new();
        for step in 0..20_000_u32 {
            let index = step.wrapping_mul(2_654_435_761) % 6000;
            let known = list.get(index as usize).copied().flatten();
            if step % 3 == 2
                && let Some((id, item)) = known
            {
                assert_eq!((slab.id(index), slab.get(id)), (id, Some(&item)));
                assert_eq!(slab.remove(index), item);
                list[index as usize] = None;
                gone.push(id);
            } else {
                let id = slab.insert(step);
                if id.index as usize == list.len() {
                    list.push(None);
                }
                assert_eq!(list[id.index as usize].replace((id, step)), None, "the place was free");
            }
        }
        assert!(list.len() > 2 * PAGE, "several pages were used");
        assert!(gone.len() > 100 && gone.iter().all(|&id| slab.get(id).is_none()), "an old id means nothing");
        assert_eq!(slab.iter().count(), slab.len() as usize);
        assert!(slab.iter().eq(list.iter().flatten().map(|(_, item)| item)));
        assert_eq!(slab.get(Id { generation: 0, index: 1_000_000 }), None);
    }

    #[test]
    fn numbers_are_ids_and_back() {
        for id in [Id { generation: 0, index: 0 }, Id { generation: GENERATIONS - 1, index: u32::MAX }] {
            assert_eq!(Id::from_number(id.to_number()), Some(id));
        }
        for none in [-1.0, 0.5, f64::NAN, f64::INFINITY, 9_007_199_254_740_992.0] {
            assert_eq!(Id::from_number(none), None, "{none}");
        }
    }
}
