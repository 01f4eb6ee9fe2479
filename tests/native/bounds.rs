//! A server that names budgets as it likes: memory is bounded, what is used up is never forgotten, and of the
//! others those named last stay. Everything is drawn at random.
//!
//! A look for room ends after some budgets. If those are used up, the budget of this answer is not kept.
//! The next look goes on from there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::budgets::Rig;

/// Budgets of one server that the engine keeps.
const KEPT: usize = 1000;
/// For how long what is used up stays so, in seconds: longer than a case.
const RESET: u32 = 7200;

/// One request: of which route, what its answer names, and whether that is used up.
#[derive(Clone, Debug)]
struct Step {
    route: u32,
    budget: u32,
    is_used_up: bool,
    pause: u32,
}

/// Most servers keep a route's budget; this one does so by chance.
fn step() -> impl Strategy<Value = Step> {
    (0..2000_u32, 0..2000_u32, prop::bool::weighted(0.7), prop::bool::weighted(0.15), 1..2000_u32).prop_map(
        |(route, other, is_own, is_used_up, pause)| {
            let budget = if is_own { route } else { other };
            Step { route, budget, is_used_up, pause }
        },
    )
}

/// Letters, for numbers in a path are one route.
fn word(number: u32) -> String {
    (0..4).map(|place| char::from(b'a' + (number / 26_u32.pow(place) % 26) as u8)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn budgets_that_a_server_names_are_bounded_and_what_is_used_up_stays(
        steps in prop::collection::vec(step(), 1500..2500)
    ) {
        let mut rig = Rig::new();
        let mut now = 0.0;
        let mut used_up = BTreeMap::new();
        let mut named: Vec<String> = Vec::new();
        let mut without_room = 0;
        for (count, Step { route, budget, is_used_up, pause }) in steps.iter().enumerate() {
            now += f64::from(*pause);
            let (path, name) = (format!("/{}", word(*route)), format!("b{budget}"));
            if rig.ask(now, &[&path]).is_empty() {
                let (ticket, _) = rig.flying.pop().expect("it waits");
                rig.boundary.cancel(now, ticket);
                continue;
            }
            let left = if *is_used_up { 0 } else { 900 };
            let lines = format!(
                "x-ratelimit-resource: {name}\nx-ratelimit-remaining: {left}\nx-ratelimit-reset: {RESET}\n"
            );
            rig.answer(now, &path, 200.0, &lines);
            named.retain(|other| *other != name);
            let known = rig.boundary.find(&format!("api.example\u{a0}#{name}")) >= 0.0;
            if known {
                named.push(name.clone());
            } else {
                without_room += 1;
            }
            if *is_used_up && known {
                used_up.insert(name, now);
            } else {
                used_up.remove(&name);
            }
            if count % 100 == 0 || count == steps.len() - 1 {
                let budgets: BTreeMap<_, _> = rig.budgets(now).into_iter().collect();
                prop_assert!(budgets.len() <= KEPT, "{}", budgets.len());
                prop_assert!(rig.boundary.scopes() < 2.5 * KEPT as f64, "{} scopes", rig.boundary.scopes());
                for (name, at) in &used_up {
                    let is_over = now - at >= f64::from(RESET) * 1000.0;
                    prop_assert!(is_over || budgets.get(name) == Some(&Some(0.0)), "{name} is used up");
                }
                prop_assert!(without_room <= count / 50, "{without_room} of {count} found no room");
                let many = (KEPT - used_up.len().min(KEPT)) / 2;
                for name in named.iter().rev().take(many) {
                    prop_assert!(budgets.contains_key(name), "{name} was named lately");
                }
            }
        }
    }
}
