//! Names ↔ handles, each name kept once.
//!
//! The trap is a name that comes from a page somebody crawls: a hash table with a fixed seed can be flooded,
//! and one with a random seed has no fixed order. A sorted map has neither fault and is asked once per host.

use std::{collections::BTreeMap, rc::Rc};

use slab::Slab;

use super::Scope;
use crate::{config::Config, decision::ScopeId, queue::Line};

/// Handles cross the border as doubles: 32 bits of index, 21 of generation.
pub(crate) const GENERATIONS: u32 = 1 << 21;

/// A scope with its name and the requests that wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: Rc<str>,
    pub generation: u32,
    pub scope: Scope,
    pub line: Line,
}

/// All scopes that the engine knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    entries: Slab<Entry>,
    by_name: BTreeMap<Rc<str>, u32>,
    made: u32,
}

impl Registry {
    /// The handle of `name`, which is made if it is new.
    pub fn intern(&mut self, name: &str, config: &Config) -> ScopeId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let name: Rc<str> = name.into();
        let generation = self.made % GENERATIONS;
        self.made = self.made.wrapping_add(1);
        let scope = Scope::new(config.scope(&name).clone());
        let entry = Entry { name: name.clone(), generation, scope, line: Line::default() };
        let index = self.entries.insert(entry) as u32;
        self.by_name.insert(name, index);
        ScopeId { index, generation }
    }

    /// The handle of `name` if the engine knows it.
    pub fn find(&self, name: &str) -> Option<ScopeId> {
        let index = *self.by_name.get(name)?;
        Some(ScopeId { index, generation: self[index].generation })
    }

    /// Whether the handle still means what it meant.
    pub fn knows(&self, id: ScopeId) -> bool {
        self.entries.get(id.index as usize).is_some_and(|entry| entry.generation == id.generation)
    }

    /// All scopes, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Rc<str>, ScopeId)> {
        self.by_name.iter().map(|(name, &index)| (name, self.id(index)))
    }

    /// The full handle of an index.
    pub fn id(&self, index: u32) -> ScopeId {
        ScopeId { index, generation: self[index].generation }
    }
}

impl core::ops::Index<u32> for Registry {
    type Output = Entry;
    fn index(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }
}

impl core::ops::IndexMut<u32> for Registry {
    fn index_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize]
    }
}
