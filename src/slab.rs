//! A table that hands out the index of each item and takes it back: tickets, classes, lanes, scopes.
//!
//! The trap is one long vector: when it grows it is copied, and in WebAssembly, whose memory never shrinks, the old copy
//! stays as a hole as large as everything before it. Slab stay where they are; only the first one grows.

/// Items on a page. A power of two, so that an index is split by shifting.
const PAGE: usize = 1024;

/// Where the list of free places ends.
const END: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Place<T> {
    Free { next: u32 },
    Used(T),
}

/// Items by index. The place that was given back last is used first.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    all: Vec<Vec<Place<T>>>,
    free: u32,
    used: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: END, used: 0 }
    }
}

impl<T> Slab<T> {
    /// How many items there are.
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Puts an item in and gives its index.
    pub fn insert(&mut self, item: T) -> u32 {
        self.used += 1;
        if self.free != END {
            let index = self.free;
            let place = self.place_mut(index).expect("free places are on a page");
            let Place::Free { next } = core::mem::replace(place, Place::Used(item)) else {
                unreachable!("only free places are in the list");
            };
            self.free = next;
            return index;
        }
        if self.all.last().is_none_or(|page| page.len() == PAGE) {
            self.all.push(if self.all.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
        }
        let before = (self.all.len() - 1) * PAGE;
        let page = self.all.last_mut().expect("there is one");
        page.push(Place::Used(item));
        (before + page.len() - 1) as u32
    }

    /// Takes an item out. It must be there.
    pub fn remove(&mut self, index: u32) -> T {
        let next = self.free;
        let place = self.place_mut(index).expect("an index that was handed out");
        let Place::Used(item) = core::mem::replace(place, Place::Free { next }) else {
            panic!("an index is given back once");
        };
        self.free = index;
        self.used -= 1;
        item
    }

    /// The item, if it is there.
    pub fn get(&self, index: u32) -> Option<&T> {
        match self.all.get(index as usize / PAGE)?.get(index as usize % PAGE)? {
            Place::Used(item) => Some(item),
            Place::Free { .. } => None,
        }
    }

    /// Every item, by index.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten().filter_map(|place| match place {
            Place::Used(item) => Some(item),
            Place::Free { .. } => None,
        })
    }

    fn place_mut(&mut self, index: u32) -> Option<&mut Place<T>> {
        self.all.get_mut(index as usize / PAGE)?.get_mut(index as usize % PAGE)
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        self.get(index).expect("an index that was handed out")
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        match self.place_mut(index) {
            Some(Place::Used(item)) => item,
            _ => panic!("an index that was handed out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_list_of_options() {
        let mut slab = Slab::default();
        let mut list: Vec<Option<u32>> = Vec::new();
        for step in 0..20_000_u32 {
            let index = step.wrapping_mul(2_654_435_761) % 6000;
            if step % 3 == 2 && slab.get(index).is_some() {
                assert_eq!(Some(slab.remove(index)), list[index as usize].take());
            } else {
                let index = slab.insert(step);
                if index as usize == list.len() {
                    list.push(None);
                }
                assert_eq!(list[index as usize].replace(step), None, "the place was free");
            }
        }
        assert!(list.len() > 2 * PAGE, "several pages were used");
        for (index, item) in list.iter().enumerate() {
            assert_eq!(slab.get(index as u32), item.as_ref());
        }
        assert_eq!(slab.iter().count(), slab.len() as usize);
        assert!(slab.iter().eq(list.iter().flatten()));
        assert_eq!(slab.get(1_000_000), None);
    }
}
