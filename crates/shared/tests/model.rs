//! Lease, epoch, hello and adoption as a model that is checked exhaustively: three processes, a store that
//! elects, a strict quota of two, and whatever may be lost, late or dead, in every order.
//!
//! It is written from the rules, not from the code: the simulation plays the code. To show that each rule is
//! needed, it is left out once, and then the quota must be exceeded.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

/// May leave in all, under any leader.
const QUOTA: usize = 2;
const PROCESSES: usize = 3;
const MOST_EPOCHS: u8 = 3;
/// Snapshots of one leader, and processes that die.
const MOST_SNAPSHOTS: u8 = 2;
const MOST_DEAD: usize = 1;

/// The rules that may be left out. Without [`Rule::Fence`] a strict quota holds all the same: who is no
/// longer the leader has what was set aside for it, and that is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    None,
    /// The leader grants only what a stored snapshot sets aside.
    Reserved,
    /// A leader's words count only while the lease is its own.
    Fence,
    /// The snapshot knows this use, and it is not of the reserved units.
    Counted,
    /// A reserved unit of which no process tells counts as spent.
    Spend,
    /// A snapshot that is stored is of the leader that has the lease.
    StoreFence,
}

/// Of which leader, and which of its grants.
type Grant = (u8, u8);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    is_dead: bool,
    /// Of the leader that it knows.
    epoch: u8,
    role: Role,
    /// The grants that it uses, now or later.
    used: BTreeSet<Grant>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Role {
    #[default]
    Member,
    /// It listens before it decides, from what was stored.
    Collecting(Snapshot),
    Leading(Leader),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Snapshot {
    epoch: u8,
    /// Known grants, those that no process can name, and what may be granted without another snapshot.
    known: BTreeSet<Grant>,
    lost: usize,
    reserved: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Leader {
    known: BTreeSet<Grant>,
    lost: usize,
    /// May be granted before another snapshot is stored.
    left: usize,
    made: u8,
    snapshots: u8,
    /// A snapshot on its way to the store, and how many grants there were when it was taken.
    taken: Option<(Snapshot, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    epoch: u8,
    holder: Option<usize>,
    stored: Snapshot,
    processes: Vec<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Expire,
    Compete(usize),
    /// A member hears the leader's beat and tells its story.
    Hello(usize, usize),
    Decide(usize),
    Take(usize),
    Store(usize),
    /// To no process: it is lost on the way, or comes too late.
    Grant(usize, Option<usize>),
    Kill(usize),
}

struct Group(Rule);

impl Group {
    fn has(&self, rule: Rule) -> bool {
        self.0 != rule
    }
}

impl State {
    fn leads(&self, of: usize) -> bool {
        let process = &self.processes[of];
        self.holder == Some(of) && process.epoch == self.epoch
    }

    fn used(&self) -> usize {
        self.processes.iter().map(|process| process.used.len()).sum()
    }
}

impl Model for Group {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let processes = vec![Process::default(); PROCESSES];
        vec![State { epoch: 0, holder: None, stored: Snapshot::default(), processes }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let dead = state.processes.iter().filter(|process| process.is_dead).count();
        if state.holder.is_some() {
            actions.push(Action::Expire);
        }
        for (of, process) in state.processes.iter().enumerate().filter(|(_, process)| !process.is_dead) {
            if dead < MOST_DEAD {
                actions.push(Action::Kill(of));
            }
            if state.holder.is_none() && state.epoch < MOST_EPOCHS {
                actions.push(Action::Compete(of));
            }
            let is_leader = !matches!(process.role, Role::Member);
            let may_speak = is_leader && (state.leads(of) || !self.has(Rule::Fence));
            if may_speak {
                let behind = |(_, other): &(usize, &Process)| !other.is_dead && other.epoch < process.epoch;
                let all = state.processes.iter().enumerate().filter(behind);
                actions.extend(all.map(|(other, _)| Action::Hello(of, other)));
            }
            match &process.role {
                Role::Member => {}
                Role::Collecting(_) => actions.push(Action::Decide(of)),
                Role::Leading(leader) => {
                    if leader.taken.is_some() {
                        actions.push(Action::Store(of));
                    } else if leader.snapshots < MOST_SNAPSHOTS {
                        actions.push(Action::Take(of));
                    }
                    let spent = leader.known.len() + leader.lost;
                    let is_there = leader.left > 0 || !self.has(Rule::Reserved);
                    if may_speak && spent < QUOTA && is_there {
                        let hears =
                            |(_, other): &(usize, &Process)| !other.is_dead && other.epoch == process.epoch;
                        let all = state.processes.iter().enumerate().filter(hears);
                        actions.extend(all.map(|(to, _)| Action::Grant(of, Some(to))));
                        actions.push(Action::Grant(of, None));
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            // Its holder may not know yet.
            Action::Expire => state.holder = None,
            Action::Kill(of) => {
                state.processes[of] =
                    Process { is_dead: true, role: Role::Member, epoch: 0, ..last.processes[of].clone() };
            }
            Action::Compete(of) => {
                state.epoch += 1;
                state.holder = Some(of);
                state.processes[of].epoch = state.epoch;
                state.processes[of].role = Role::Collecting(state.stored.clone());
            }
            Action::Hello(of, other) => {
                let story = last.processes[other].used.clone();
                state.processes[other].epoch = last.processes[of].epoch;
                state.processes[other].role = Role::Member;
                match &mut state.processes[of].role {
                    Role::Collecting(base) => base.known.extend(story),
                    Role::Leading(leader) => leader.known.extend(story),
                    Role::Member => return None,
                }
            }
            Action::Decide(of) => {
                let process = &mut state.processes[of];
                let Role::Collecting(base) = &mut process.role else { return None };
                base.known.extend(&process.used);
                // Those that were granted since that snapshot, as far as the stories tell, are of what it set
                // aside. No process will ever name the rest.
                let is_since = |grant: &&Grant| {
                    let is_counted = self.has(Rule::Counted) && last.stored.known.contains(*grant);
                    grant.0 == base.epoch && !is_counted
                };
                let rest = base.reserved.saturating_sub(base.known.iter().filter(is_since).count());
                let lost = base.lost + if self.has(Rule::Spend) { rest } else { 0 };
                let known = core::mem::take(&mut base.known);
                process.role = Role::Leading(Leader { known, lost, ..Leader::default() });
            }
            Action::Take(of) => {
                let epoch = state.processes[of].epoch;
                let Role::Leading(leader) = &mut state.processes[of].role else { return None };
                leader.snapshots += 1;
                let (known, lost) = (leader.known.clone(), leader.lost);
                let reserved = leader.left.max(1);
                leader.taken = Some((Snapshot { epoch, known, lost, reserved }, leader.made));
            }
            Action::Store(of) => {
                let is_ours = last.leads(of) || !self.has(Rule::StoreFence);
                let Role::Leading(leader) = &mut state.processes[of].role else { return None };
                let (snapshot, made) = leader.taken.take()?;
                if !is_ours {
                    // It is refused, so it leads no longer.
                    state.processes[of].role = Role::Member;
                    return Some(state);
                }
                leader.left = snapshot.reserved.saturating_sub(usize::from(leader.made - made));
                state.stored = snapshot;
            }
            Action::Grant(of, to) => {
                let epoch = state.processes[of].epoch;
                let Role::Leading(leader) = &mut state.processes[of].role else { return None };
                leader.made += 1;
                leader.left = leader.left.saturating_sub(1);
                let grant = (epoch, leader.made);
                leader.known.insert(grant);
                if let Some(to) = to {
                    state.processes[to].used.insert(grant);
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the quota holds", |_, state: &State| state.used() <= QUOTA),
            Property::always("one leads", |_, state: &State| {
                (0..PROCESSES).filter(|&of| state.leads(of)).count() <= 1
            }),
            Property::sometimes("the whole quota is used", |_, state: &State| state.used() == QUOTA),
            Property::sometimes("the third leader grants", |_, state: &State| {
                state.processes.iter().any(|process| process.used.iter().any(|grant| grant.0 == MOST_EPOCHS))
            }),
            Property::sometimes("a story is adopted", |_, state: &State| {
                state.processes.iter().any(|process| match &process.role {
                    Role::Leading(leader) => leader.known.iter().any(|grant| grant.0 < process.epoch),
                    _ => false,
                })
            }),
        ]
    }
}

#[test]
fn the_quota_holds_whichever_process_dies_and_message_is_lost() {
    let checker = Group(Rule::None).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn words_of_a_leader_whose_lease_is_over_spend_what_was_set_aside_for_it() {
    Group(Rule::Fence).checker().threads(2).spawn_bfs().join().assert_properties();
}

#[test]
fn without_any_one_of_the_rules_it_does_not() {
    for rule in [Rule::Reserved, Rule::Counted, Rule::Spend, Rule::StoreFence] {
        let stops = HasDiscoveries::AnyFailures;
        let checker = Group(rule).checker().threads(2).finish_when(stops).spawn_bfs().join();
        assert!(checker.discovery("the quota holds").is_some(), "{rule:?} is needed for nothing");
    }
}
