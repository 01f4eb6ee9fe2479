//! The record of a server's budgets: which there are, and which routes spend from which.
//!
//! Rules:
//! 1. a server that says by itself that its budgets are several (a resource, a bucket) is believed; one that
//!    names policies has several once two answers name others;
//! 2. a route spends from what its last answer named;
//! 3. a route that has not been answered spends from what all of its family do, if three of them agree.
//!    With buckets, one route is no news of another.
//!
//! Slugs are routes without end. A route that its family covers is not kept, and of a server no more than
//! [`MOST`] routes are.

use std::borrow::Cow;

use crate::{decision::ScopeId, queue::NONE, snapshot::Known, time::Instant};

/// Routes and families of one server that are kept.
const MOST: usize = 512;
/// Budgets of one server that are kept.
pub(crate) const MOST_BUDGETS: usize = 1000;
/// A family whose routes differ.
const MIXED: u8 = u8::MAX;
/// This many routes make a family.
const AGREED: u8 = 3;

/// The ends of a list of scopes, the least recently used first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub least: u32,
    pub latest: u32,
}

impl Default for Ends {
    fn default() -> Self {
        Self { least: NONE, latest: NONE }
    }
}

/// The record of a server's budgets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Family {
    /// Whether there are several.
    pub is_split: bool,
    /// The budgets that the first answer named.
    first: Box<[String]>,
    /// By key, sorted.
    routes: Vec<Known>,
    /// The ends of the list of its budgets, least recently named first (`registry`); and how many there are.
    pub budgets: Ends,
    pub many: usize,
    /// Routes whose budgets are not known; some of them may be by now.
    pub open: Vec<ScopeId>,
    /// Requests in flight that spend from a budget that is not known yet.
    pub unknown: u32,
    /// Routes that wait and whose budget is not known; and since when, or when one of them was last learned.
    pub explorers: u32,
    pub exploring: Instant,
    /// Until when none of them leaves while a budget is used up: the last was refused.
    pub vain: Instant,
}

impl Family {
    /// An answer names budgets. Whether they are several now.
    pub fn splits(&mut self, names: &[Cow<str>], is_one_of_several: bool) -> bool {
        self.is_split = self.would_split(names, is_one_of_several);
        if !self.is_split && self.first.is_empty() {
            self.first = owned(names);
        }
        self.is_split
    }

    /// The same of one that changes no state.
    pub fn would_split(&self, names: &[Cow<str>], is_one_of_several: bool) -> bool {
        self.is_split || is_one_of_several || !self.first.is_empty() && *self.first != *names
    }

    /// Whether it has one budget, and these names say so once more.
    pub fn is_one_of(&self, names: &[Cow<str>]) -> bool {
        !self.is_split && !names.is_empty() && *self.first == *names
    }

    /// The budgets of a route, by its pattern or by its family.
    pub fn of(&self, pattern: &str, family: &str) -> Option<&[String]> {
        let family = || self.find(family).filter(|known| is_agreed(known));
        self.find(pattern).or_else(family).map(|known| &known.budgets[..])
    }

    /// A route's answer named budgets. Whether that tells those of another route.
    pub fn learn(&mut self, pattern: &str, family: &str, names: &[Cow<str>]) -> bool {
        let is_known = self.find(family).is_some_and(|known| is_agreed(known) && *known.budgets == *names);
        let mut is_news = false;
        if !is_known && let Some(route) = self.entry(pattern) {
            is_news = route.routes == 0 || *route.budgets != *names;
            (route.budgets, route.routes) = (owned(names).into(), 1);
        }
        let Some(family) = self.entry(family) else { return is_news };
        if family.routes > 0 && *family.budgets != *names {
            family.routes = MIXED;
        } else if family.routes < MIXED - 1 {
            (family.budgets, family.routes) = (owned(names).into(), family.routes + 1);
        }
        is_news || family.routes == AGREED
    }

    /// The routes that are worth a snapshot.
    pub fn routes(&self) -> &[Known] {
        &self.routes
    }

    /// Takes up what was learned.
    pub fn restore(&mut self, routes: &[Known]) {
        for known in routes {
            if let Some(entry) = self.entry(&known.key) {
                *entry = known.clone();
            }
        }
        self.is_split |= !routes.is_empty();
    }

    fn find(&self, key: &str) -> Option<&Known> {
        Some(&self.routes[self.place(key).ok()?])
    }

    /// Made if there is room.
    fn entry(&mut self, key: &str) -> Option<&mut Known> {
        let place = match self.place(key) {
            Ok(place) => place,
            Err(_) if self.routes.len() >= MOST => return None,
            Err(place) => {
                self.routes.insert(place, Known { key: key.into(), ..Known::default() });
                place
            }
        };
        Some(&mut self.routes[place])
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.routes.binary_search_by(|known| (*known.key).cmp(key))
    }
}

fn owned(names: &[Cow<str>]) -> Box<[String]> {
    names.iter().map(|name| name.clone().into_owned()).collect()
}

fn is_agreed(known: &Known) -> bool {
    let is_bucket = known.budgets.iter().any(|name| name.as_bytes().last() == Some(&b'/'));
    (AGREED..MIXED).contains(&known.routes) && !is_bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&'static str]) -> Vec<Cow<'static, str>> {
        names.iter().map(|&name| Cow::Borrowed(name)).collect()
    }

    #[test]
    fn one_policy_is_the_hosts_and_two_are_budgets() {
        let mut family = Family::default();
        assert!(!family.splits(&names(&["default"]), false));
        assert!(!family.splits(&names(&["default"]), false), "the same");
        assert!(family.splits(&names(&["search"]), false));
        assert!(Family::default().splits(&names(&["core"]), true), "it says so by itself");
    }

    #[test]
    fn a_family_that_agrees_speaks_for_the_next() {
        let mut family = Family::default();
        let (core, search) = (names(&["core"]), names(&["search"]));
        family.learn("GET /repos/a", "GET /repos/*", &core);
        family.learn("GET /repos/b", "GET /repos/*", &core);
        assert_eq!(family.of("GET /repos/c", "GET /repos/*"), None, "two are none");
        family.learn("GET /repos/c", "GET /repos/*", &core);
        assert_eq!(family.of("GET /repos/x", "GET /repos/*"), Some(&*owned(&core)));
        family.learn("GET /repos/x", "GET /repos/*", &core);
        assert_eq!(family.routes().len(), 4, "its family says so already");
        family.learn("GET /repos/d", "GET /repos/*", &search);
        assert_eq!(family.of("GET /repos/d", "GET /repos/*"), Some(&*owned(&search)));
        assert_eq!(family.of("GET /repos/e", "GET /repos/*"), None, "they differ");
        family.learn("GET /repos/d", "GET /repos/*", &core);
        assert_eq!(family.of("GET /repos/d", "GET /repos/*"), Some(&*owned(&core)), "the last answer counts");
    }

    #[test]
    fn buckets_say_no_word_of_each_other() {
        let mut family = Family::default();
        for route in ["a", "b", "c", "d"] {
            family.learn(&format!("GET /channels/:/{route}"), "GET /channels/*", &names(&["b0/"]));
        }
        assert_eq!(family.of("GET /channels/:/e", "GET /channels/*"), None);
        assert_eq!(family.of("GET /channels/:/d", "GET /channels/*"), Some(&*owned(&names(&["b0/"]))));
    }

    #[test]
    fn memory_has_a_bound() {
        let mut family = Family::default();
        for route in 0..2000 {
            let (pattern, budget) = (format!("GET /{route}"), format!("{}", route % 2));
            family.learn(&pattern, "GET /*", &[Cow::Owned(budget)]);
        }
        assert_eq!(family.routes().len(), MOST);
    }
}
