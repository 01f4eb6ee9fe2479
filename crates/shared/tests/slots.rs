//! A slot that a member uses again without asking, as a model that is checked exhaustively: three processes,
//! one slot, and messages that are lost, late or out of order, through deaths and changes of leader.
//!
//! It is written from the rules, not from the code. To show that each rule is needed, it is left out once,
//! and then two requests must be in flight. Assumed is what the promise needs: a leader hears who lives
//! before it gives a slot away, and who led knows when its lease is over.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

const PROCESSES: usize = 3;
const SLOTS: usize = 1;
const MOST_EPOCHS: u8 = 2;
const MOST_SESSIONS: u8 = 2;
const MOST_REQUESTS: u8 = 3;
const MOST_DEAD: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    None,
    /// That a request is over and that the next one has its slot are one message.
    Swap,
    /// A permission that a report tells as over is not used again.
    Story,
    /// A member uses a slot again only if the leader answered not long ago.
    Fresh,
    /// A grant counts in the session for which it was made.
    Session,
}

type Request = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Slot {
    #[default]
    None,
    Flying(Request),
    /// Over, and not said.
    Spare(Request),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    is_dead: bool,
    /// Of the leader that it knows; and how often it told all to it.
    epoch: u8,
    session: u8,
    slot: Slot,
    is_fresh: bool,
    role: Role,
}

/// The leader's knowledge of a member: its session, 0 if it has to tell all, and its request.
type Known = (u8, Option<Request>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Role {
    #[default]
    Member,
    Collecting([Known; PROCESSES]),
    Leading([Known; PROCESSES]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Said {
    Story(Option<Request>),
    Over(Request, Option<Request>),
    Grant(Request),
}

/// Between a member and the leader of an epoch, in a session.
type Message = (u8, usize, u8, Said);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    epoch: u8,
    holder: Option<usize>,
    requests: Request,
    processes: [Process; PROCESSES],
    /// Messages that may come in, at any time or never.
    way: BTreeSet<Message>,
    was_again: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Expire,
    Compete(usize),
    Open(usize),
    Decide(usize),
    Grant(usize, usize),
    Hear(Message),
    End(usize),
    Say(usize),
    Again(usize),
    Ages(usize),
    Answers(usize, usize),
    Forgets(usize, usize),
    Kill(usize),
}

struct Group(Rule);

impl Group {
    fn has(&self, rule: Rule) -> bool {
        self.0 != rule
    }
}

impl State {
    fn flying(&self) -> usize {
        let flies = |one: &&Process| !one.is_dead && matches!(one.slot, Slot::Flying(_));
        self.processes.iter().filter(flies).count()
    }

    fn living(&self) -> impl Iterator<Item = usize> {
        (0..PROCESSES).filter(|&of| !self.processes[of].is_dead)
    }

    /// The process that has the lease and lives.
    fn leader(&self) -> Option<usize> {
        self.holder.filter(|&of| !self.processes[of].is_dead)
    }

    fn known(&mut self, of: usize) -> Option<&mut [Known; PROCESSES]> {
        match &mut self.processes[of].role {
            Role::Collecting(known) | Role::Leading(known) => Some(known),
            Role::Member => None,
        }
    }

    fn next(&mut self) -> Request {
        self.requests += 1;
        self.requests
    }
}

impl Model for Group {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (leader, has_more) = (state.leader(), state.requests < MOST_REQUESTS);
        actions.extend(state.holder.map(|_| Action::Expire));
        actions.extend(state.way.iter().copied().map(Action::Hear));
        for of in state.living() {
            let process = &state.processes[of];
            if state.living().count() > PROCESSES - MOST_DEAD {
                actions.push(Action::Kill(of));
            }
            // Which one is the first is no difference.
            if state.holder.is_none() && state.epoch < MOST_EPOCHS && (state.epoch > 0 || of == 0) {
                actions.push(Action::Compete(of));
            }
            if leader.is_some_and(|leader| leader != of) && process.session < MOST_SESSIONS {
                actions.push(Action::Open(of));
            }
            match process.slot {
                Slot::Flying(_) => actions.push(Action::End(of)),
                Slot::Spare(_) => {
                    actions.push(Action::Say(of));
                    if process.is_fresh && has_more {
                        actions.push(Action::Again(of));
                    }
                }
                Slot::None => {}
            }
            if process.is_fresh {
                actions.push(Action::Ages(of));
            }
        }
        let Some(leader) = leader else { return };
        match &state.processes[leader].role {
            // It hears who lives before.
            Role::Collecting(known) if state.living().all(|of| of == leader || known[of].0 > 0) => {
                actions.push(Action::Decide(leader));
            }
            Role::Leading(known) => {
                for (to, of) in state.processes.iter().enumerate() {
                    let (session, request) = known[to];
                    let is_free = known.iter().filter(|(_, request)| request.is_some()).count() < SLOTS;
                    if session > 0 && is_free && has_more {
                        actions.push(Action::Grant(leader, to));
                    }
                    if session > 0 && session == of.session && to != leader && !of.is_dead {
                        actions.push(Action::Answers(leader, to));
                    }
                    // Silent for two leases, so it had no answer for longer than it is fresh; and no request
                    // takes so long.
                    let is_silent = !of.is_fresh || !self.has(Rule::Fresh);
                    let flies = matches!(of.slot, Slot::Flying(_));
                    if to != leader && request.is_some() && (of.is_dead || is_silent && !flies) {
                        actions.push(Action::Forgets(leader, to));
                    }
                }
            }
            _ => {}
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Expire => {
                let of = state.holder.take()?;
                state.processes[of].role = Role::Member;
            }
            Action::Kill(of) => {
                state.processes[of] =
                    Process { is_dead: true, role: Role::Member, ..last.processes[of].clone() };
            }
            Action::Compete(of) => {
                state.epoch += 1;
                state.holder = Some(of);
                let process = &mut state.processes[of];
                (process.epoch, process.session, process.is_fresh) = (state.epoch, 1, false);
                // It tells itself at once.
                let mut known = [(0, None); PROCESSES];
                known[of] = (1, self.tells(process));
                process.role = Role::Collecting(known);
            }
            Action::Open(of) => {
                let epoch = last.processes[last.holder?].epoch;
                let process = &mut state.processes[of];
                if process.epoch < epoch {
                    (process.epoch, process.session) = (epoch, 0);
                }
                process.session += 1;
                let story = Said::Story(self.tells(process));
                state.way.insert((epoch, of, process.session, story));
            }
            Action::Decide(of) => {
                let Role::Collecting(known) = last.processes[of].role else { return None };
                state.processes[of].role = Role::Leading(known);
            }
            Action::Grant(of, to) => {
                let request = state.next();
                let epoch = last.processes[of].epoch;
                let known = state.known(of)?;
                known[to].1 = Some(request);
                let session = known[to].0;
                if to == of {
                    if last.processes[of].slot != Slot::None {
                        return None;
                    }
                    state.processes[of].slot = Slot::Flying(request);
                } else {
                    state.way.insert((epoch, to, session, Said::Grant(request)));
                }
            }
            Action::Hear(message) => {
                state.way.remove(&message);
                self.hear(&mut state, message);
            }
            Action::End(of) => {
                let Slot::Flying(request) = last.processes[of].slot else { return None };
                state.processes[of].slot = Slot::Spare(request);
            }
            Action::Say(of) => {
                let Slot::Spare(request) = last.processes[of].slot else { return None };
                state.processes[of].slot = Slot::None;
                self.over(&mut state, of, request, None);
            }
            Action::Again(of) => {
                let Slot::Spare(request) = last.processes[of].slot else { return None };
                let next = state.next();
                state.processes[of].slot = Slot::Flying(next);
                state.was_again = true;
                self.over(&mut state, of, request, Some(next));
            }
            Action::Ages(of) => state.processes[of].is_fresh = false,
            Action::Answers(_, to) => state.processes[to].is_fresh = true,
            Action::Forgets(of, to) => {
                state.known(of)?[to] = (0, None);
                // No message was on its way for so long.
                state.way.retain(|&(_, member, ..)| member != to);
            }
        }
        let before = core::mem::take(&mut state.way);
        state.way = before.into_iter().filter(|message| self.may_matter(&state, message)).collect();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a slot is one slot", |_, state: &State| state.flying() <= SLOTS),
            Property::sometimes("it is used again", |_, state: &State| state.was_again),
            Property::sometimes("the next leader gives it to another", |_, state: &State| {
                let is_next = |(epoch, _, _, said): &Message| *epoch == 2 && matches!(said, Said::Grant(_));
                state.was_again && state.way.iter().any(is_next)
            }),
            Property::sometimes("the next leader knows what flies", |_, state: &State| {
                let flies = |&(_, request): &Known| request.is_some();
                state.was_again
                    && state.processes.iter().any(|one| {
                        one.epoch == 2 && matches!(&one.role, Role::Leading(known) if known.iter().any(flies))
                    })
            }),
        ]
    }
}

impl Group {
    /// A story: what is over is over.
    fn tells(&self, process: &mut Process) -> Option<Request> {
        match process.slot {
            Slot::Flying(request) => Some(request),
            Slot::Spare(_) if !self.has(Rule::Story) => None,
            _ => {
                process.slot = Slot::None;
                None
            }
        }
    }

    fn over(&self, state: &mut State, of: usize, request: Request, next: Option<Request>) {
        let Process { epoch, session, .. } = state.processes[of];
        if state.leader() == Some(of) {
            if let Some(known) = state.known(of)
                && known[of].1 == Some(request)
            {
                known[of].1 = next;
            }
        } else {
            let next = next.filter(|_| self.has(Rule::Swap));
            state.way.insert((epoch, of, session, Said::Over(request, next)));
        }
    }

    /// Whether it changes anything, should it come in.
    fn may_matter(&self, state: &State, &(epoch, member, session, said): &Message) -> bool {
        let process = &state.processes[member];
        let known = |of: usize| match &state.processes[of].role {
            Role::Collecting(known) | Role::Leading(known) if state.processes[of].epoch == epoch => {
                known[member].0
            }
            _ => u8::MAX,
        };
        let known = state.leader().map_or(u8::MAX, known);
        match said {
            Said::Grant(_) => {
                let is_its = process.session == session || !self.has(Rule::Session);
                !process.is_dead && process.epoch == epoch && is_its
            }
            Said::Story(_) => known < session,
            Said::Over(..) => known <= session,
        }
    }

    fn hear(&self, state: &mut State, (epoch, member, session, said): Message) {
        let leader = state.leader().filter(|&of| state.processes[of].epoch == epoch);
        match (said, leader) {
            (Said::Grant(request), _) => {
                let process = &mut state.processes[member];
                let is_its = process.session == session || !self.has(Rule::Session);
                if !process.is_dead && process.epoch == epoch && is_its && process.slot == Slot::None {
                    (process.slot, process.is_fresh) = (Slot::Flying(request), true);
                }
            }
            (Said::Story(request), Some(of)) => {
                if let Some(known) = state.known(of)
                    && known[member].0 < session
                {
                    known[member] = (session, request);
                }
            }
            (Said::Over(request, next), Some(of)) => {
                if let Some(known) = state.known(of)
                    && known[member] == (session, Some(request))
                {
                    known[member].1 = next;
                }
            }
            _ => {}
        }
    }
}

#[test]
fn a_slot_that_is_used_again_is_one_slot_whichever_process_dies_and_message_is_late() {
    let checker = Group(Rule::None).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.is_done());
    println!("{} states", checker.unique_state_count());
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn without_any_one_of_the_rules_it_is_not() {
    for rule in [Rule::Swap, Rule::Story, Rule::Fresh, Rule::Session] {
        let stops = HasDiscoveries::AnyFailures;
        let checker = Group(rule).checker().threads(2).finish_when(stops).spawn_bfs().join();
        assert!(checker.discovery("a slot is one slot").is_some(), "{rule:?} is needed for nothing");
    }
}
