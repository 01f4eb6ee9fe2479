//! Which servers are known to have several budgets.

use autothrottle::{Named, Notice, Value};

use crate::vec_map::VecMap;

/// Scopes of which it is remembered that they have several budgets, at most.
const MOST: usize = 1000;

/// Scopes whose servers have several budgets. The one that is known longest makes room for one too many.
#[derive(Debug, Default)]
pub struct Split {
    /// Each with its place in the order in which they became known.
    scopes: VecMap<String, f64>,
    count: f64,
}

impl Split {
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.contains_key(scope)
    }

    pub fn scopes(&self) -> impl Iterator<Item = &String> {
        self.scopes.keys()
    }

    /// One more. Whether it is new.
    pub fn add(&mut self, scope: String) -> bool {
        if self.has(&scope) {
            return false;
        }
        if self.scopes.len() >= MOST {
            let eldest = self.scopes.values().fold(f64::INFINITY, |eldest, &place| eldest.min(place));
            self.scopes.retain(|_, place| *place > eldest);
        }
        self.count += 1.0;
        self.scopes.add(scope, self.count)
    }
}

/// The scope of which a notice says that its server names several budgets.
pub fn split_of(notice: &Value) -> Option<String> {
    match Notice::read(notice) {
        Some(Notice::Budgets(Named { scope })) => Some(scope),
        _ => None,
    }
}

/// The same of many notices.
pub fn split_by(notices: &Value) -> impl Iterator<Item = String> {
    let notices = if let Value::List(notices) = notices { notices.as_slice() } else { &[] };
    notices.iter().filter_map(split_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thousandth_and_first_server_with_budgets_makes_one_forgotten() {
        let mut split = Split::default();
        for number in 0..=MOST {
            assert!(split.add(format!("{number}.example")));
            assert!(!split.add(format!("{number}.example")));
        }
        let known = (0..=MOST).filter(|number| split.has(&format!("{number}.example")));
        assert_eq!(known.collect::<Vec<_>>(), (1..=MOST).collect::<Vec<_>>());
    }
}
