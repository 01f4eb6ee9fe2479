//! A map in one sorted list: for what is small, or grows at its end. Each kind of tree takes five thousand
//! bytes of the module, a list a few hundred.

use core::borrow::Borrow;

/// By key. Without values it is a set.
#[derive(Clone, Debug)]
pub struct VecMap<K, V = ()>(Vec<(K, V)>);

impl<K, V> Default for VecMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> VecMap<K, V> {
    /// How many keys are less.
    pub fn place<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.0.partition_point(|(known, _)| known.borrow() < key)
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key);
        self.0.get(place).is_some_and(|(known, _)| known.borrow() == key).then_some(place)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(self.find(key)?).map(|(_, value)| value)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key)?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    /// True if it is new; else the old value stays.
    pub fn add(&mut self, key: K, value: V) -> bool {
        let place = self.place(&key);
        let is_new = self.0.get(place).is_none_or(|(known, _)| *known != key);
        if is_new {
            self.0.insert(place, (key, value));
        }
        is_new
    }

    pub fn insert(&mut self, key: K, value: V) {
        match self.get_mut(&key) {
            Some(known) => *known = value,
            None => _ = self.add(key, value),
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key)?;
        Some(self.0.remove(place).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keeps(key, value));
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The value of a key, made where there is none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = self.place(&key);
        if self.0.get(place).is_none_or(|(known, _)| *known != key) {
            self.0.insert(place, (key, V::default()));
        }
        // It is there.
        &mut self.0[place].1
    }
}

impl<K, V> IntoIterator for VecMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let mut map = VecMap::default();
        for key in [5, 1, 3, 1] {
            map.insert(key, 10 * key);
        }
        assert_eq!(
            map.iter().map(|(&key, &value)| (key, value)).collect::<Vec<_>>(),
            [(1, 10), (3, 30), (5, 50)]
        );
        assert_eq!((map.get(&3), map.get(&4), map.place(&4), map.len()), (Some(&30), None, 2, 3));
        assert_eq!(
            (map.add(3, 0), map.add(4, 40), map.remove(&1), map.remove(&1)),
            (false, true, Some(10), None)
        );
        *map.or_default(9) += 1;
        *map.or_default(3) += 1;
        map.retain(|&key, _| key != 5);
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [(3, 31), (4, 40), (9, 1)]);
    }
}
