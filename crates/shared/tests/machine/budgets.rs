//! A server with several budgets, as GitHub has them: one that is used up keeps no request of another back,
//! in whichever process it was refused and whichever process decides.

use autothrottle::{
    Value,
    boundary::{Outcome, Settled},
};
use autothrottle_shared::{Ask, Role, Ticket};
use serde_json::json;

use super::group::{Group, at, options, settings};

const USED_UP: &str = "x-ratelimit-limit: 30\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 60\n\
                       x-ratelimit-resource: search\nset-cookie: secret\n";
const PLENTY: &str = "x-ratelimit-limit: 5000\nx-ratelimit-remaining: 4990\nx-ratelimit-reset: 3000\n\
                      x-ratelimit-resource: core\n";
const SEARCH: &str = "https://s/search/code?q=1";
const REPOS: &str = "https://s/repos/a/b";

/// A request by this route, which a host names once the machine has told of budgets.
fn ask(group: &mut Group, of: usize, url: &str) -> Ticket {
    let ask = Ask { names: &["s"], costs: &[], priority: 0.0, delay_ms: 0.0 };
    let ticket = group.processes[of].submit(at(group.now), &ask).unwrap();
    for span in [0, 400_000] {
        group.run(span, 0);
        let is_budgets = |notice: &Value| format!("{notice:?}").contains("budgets");
        if group.noticed.iter().any(|(by, notice)| *by == of && is_budgets(notice)) {
            group.processes[of].route(at(group.now), ticket, "GET", url);
        }
    }
    group.run(400_000, 0);
    ticket
}

fn answer(group: &mut Group, of: usize, (ticket, url): (Ticket, &str), status: f64, lines: &str) {
    let now = at(group.now);
    let process = &mut group.processes[of];
    process.route(now, ticket, "GET", url);
    let outcome = Outcome { lines, wall_ms: 1.8e12, ..Outcome::new(status, 10.0, f64::NAN, 0) };
    assert_eq!(process.settle(now, ticket, &outcome).settled, Settled::Over);
}

fn has_left(group: &Group, of: usize, ticket: Ticket) -> bool {
    group.sent.iter().any(|&(_, by, sent)| (by, sent) == (of, ticket))
}

/// `search` is refused in the first process: who else asks, and whether it leaves.
fn refused() -> Group {
    let mut group = Group::of(3, &options(json!({ "backoff": false })), &settings());
    for (of, url, status, lines) in [(0, REPOS, 200.0, PLENTY), (1, SEARCH, 403.0, USED_UP)] {
        let ticket = ask(&mut group, of, url);
        answer(&mut group, of, (ticket, url), status, lines);
    }
    group
}

#[test]
fn a_budget_that_is_used_up_keeps_no_other_back_in_any_process() {
    let mut group = refused();
    for of in 0..3 {
        let repos = ask(&mut group, of, REPOS);
        assert!(has_left(&group, of, repos), "/repos of {of} waits for search");
        answer(&mut group, of, (repos, REPOS), 200.0, PLENTY);
        let search = ask(&mut group, of, SEARCH);
        assert!(!has_left(&group, of, search), "{of} sends a search that would be refused");
    }
    group.run(62_000_000, 0);
    assert!(group.sent.len() > 4, "search waits until its reset and no longer");
}

#[test]
fn the_next_leader_and_who_comes_later_know_the_budgets() {
    let mut group = refused();
    let repos = ask(&mut group, 1, REPOS);
    answer(&mut group, 1, (repos, REPOS), 200.0, PLENTY);
    let waits = ask(&mut group, 1, SEARCH);
    group.run(3_000_000, 0);
    let leader = (0..3).find(|&of| group.role(of) == Role::Leader).unwrap();
    assert_ne!(leader, 1);
    group.dead.push(leader);
    group.run(5_000_000, 0);
    let later = group.join(&options(json!({ "backoff": false })), &settings());
    let first = ask(&mut group, later, REPOS);
    assert!(has_left(&group, later, first) && !has_left(&group, 1, waits));
    answer(&mut group, later, (first, REPOS), 200.0, PLENTY);
    for of in [1, later] {
        let (search, repos) = (ask(&mut group, of, SEARCH), ask(&mut group, of, REPOS));
        assert!(has_left(&group, of, repos) && !has_left(&group, of, search), "{of}");
        answer(&mut group, of, (repos, REPOS), 200.0, PLENTY);
    }
}
