//! A heap of small keys from which any member can be taken: who waits at a scope, who is asked next, which
//! scope opens when.
//!
//! A member that is no longer wanted costs memory until its time comes, or a scan when it is searched for.
//! Here each member keeps its position, written whenever it moves (`place`), so it can be taken out by
//! position in logarithmic time. Four children a node: fewer cache misses than two.

const ARITY: usize = 4;

/// Members are `u32` indices into a table of the owner's.
#[derive(Clone, Debug)]
pub struct IndexedHeap<K> {
    items: Vec<(K, u32)>,
}

impl<K> IndexedHeap<K> {
    /// An empty heap, which has no memory of its own.
    pub const fn new() -> Self {
        Self { items: Vec::new() }
    }
}

impl<K> Default for IndexedHeap<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Copy> IndexedHeap<K> {
    /// The member with the smallest key.
    pub fn first(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many members there are.
    pub fn len(&self) -> u32 {
        self.items.len() as u32
    }

    /// The members, in no order.
    pub fn items(&self) -> impl Iterator<Item = u32> {
        self.items.iter().map(|&(_, member)| member)
    }

    /// The key at `position`.
    pub fn key(&self, position: u32) -> K {
        self.items[position as usize].0
    }

    /// Puts `member` in.
    pub fn push(&mut self, key: K, member: u32, place: &mut impl FnMut(u32, u32)) {
        self.items.push((key, member));
        self.rise(self.items.len() - 1, place);
    }

    /// Takes out the member at `position`.
    pub fn remove(&mut self, position: u32, place: &mut impl FnMut(u32, u32)) -> (K, u32) {
        let position = position as usize;
        let taken = self.items.swap_remove(position);
        if position < self.items.len() {
            let settled = self.sink(position, place);
            self.rise(settled, place);
        }
        taken
    }

    /// Gives the first member a key that is not smaller than its own; without one takes it out.
    pub fn replace_first(&mut self, key: Option<K>, mut place: impl FnMut(u32, u32)) {
        if let Some(key) = key {
            self.items[0].0 = key;
            self.sink(0, &mut place);
        } else {
            self.remove(0, &mut place);
        }
    }

    fn rise(&mut self, mut position: usize, place: &mut impl FnMut(u32, u32)) {
        let item = self.items[position];
        while position > 0 {
            let parent = (position - 1) / ARITY;
            let above = self.items[parent];
            if above.0 <= item.0 {
                break;
            }
            self.set(position, above, place);
            position = parent;
        }
        self.set(position, item, place);
    }

    fn sink(&mut self, mut position: usize, place: &mut impl FnMut(u32, u32)) -> usize {
        let item = self.items[position];
        loop {
            let first = position * ARITY + 1;
            let last = (first + ARITY).min(self.items.len());
            let children = (first..).zip(self.items.get(first..last).unwrap_or_default());
            let Some((child, &below)) = children.min_by_key(|(_, below)| below.0) else { break };
            if below.0 >= item.0 {
                break;
            }
            self.set(position, below, place);
            position = child;
        }
        self.set(position, item, place);
        position
    }

    fn set(&mut self, position: usize, item: (K, u32), place: &mut impl FnMut(u32, u32)) {
        self.items[position] = item;
        place(item.1, position as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_a_sorted_list_and_always_knows_positions() {
        let mut rng = Rng::new(3);
        let mut heap = IndexedHeap::<u32>::default();
        let mut positions = vec![None; 500];
        let mut sorted: Vec<(u32, u32)> = Vec::new();
        for step in 0..20_000_u32 {
            let member = (rng.draw().unit() * 500.0) as u32;
            if let Some(position) = positions[member as usize].take() {
                let (key, taken) = heap.remove(position, &mut |m, p| positions[m as usize] = Some(p));
                assert_eq!(taken, member);
                sorted.retain(|&(k, m)| (k, m) != (key, member));
            } else {
                let key = step % 97;
                heap.push(key, member, &mut |m, p| positions[m as usize] = Some(p));
                sorted.push((key, member));
            }
            let least = sorted.iter().map(|&(key, _)| key).min();
            assert_eq!(heap.first().map(|(key, _)| key), least);
        }
    }
}
