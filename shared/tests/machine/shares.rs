//! Where a limit keeps requests waiting, each process gets as much as any other: the one that decides, too.

use std::collections::VecDeque;

use autothrottle::boundary::{Outcome, Settled};
use autothrottle_shared::Role;
use serde_json::json;

use super::group::{Group, WAY, at, options, settings};

/// What each of four gets in ten seconds: eight callers, each of which asks anew when its answer is there.
#[test]
fn where_requests_wait_the_leader_gets_as_much_as_each_member() {
    let limits = [json!({ "concurrency": 4 }), json!({ "delay": 5 }), json!({ "rate": 200, "delay": null })];
    for limit in limits {
        let mut group = Group::of(4, &options(limit.clone()), &settings());
        for of in 0..4 {
            group.ask(of, 8);
        }
        let mut flying = VecDeque::new();
        let (mut seen, mut before) = (0, [0; 4]);
        for ms in 0..12_000 {
            if ms == 2000 {
                before = [0, 1, 2, 3].map(|of| group.count(of));
            }
            group.run(WAY, 0);
            let sent = group.sent[seen..].iter().map(|&(_, of, ticket)| (ms + 20, of, ticket));
            flying.extend(sent);
            seen = group.sent.len();
            while let Some(&(_, of, ticket)) = flying.front().filter(|flight: &&(i32, _, _)| flight.0 <= ms) {
                flying.pop_front();
                let ok = Outcome::new(200.0, 20.0, f64::NAN, 0);
                let now = at(group.now);
                assert_eq!(group.processes[of].settle(now, ticket, &ok).settled, Settled::Over);
                group.ask(of, 1);
            }
        }
        let leader = (0..4).find(|&of| group.role(of) == Role::Leader).unwrap();
        let got = [0, 1, 2, 3].map(|of| (group.count(of) - before[of]) as f64);
        let others = (got.iter().sum::<f64>() - got[leader]) / 3.0;
        let share = got[leader] / others;
        assert!((0.8..=1.25).contains(&share), "{limit}: {share:.2} of {got:?}");
    }
}
