//! Processes that share a limit, in virtual time: their clocks, the ways between them and the store, the
//! store that elects, and a server that remembers what came. All that chance does comes from a seed.
//!
//! Each connection has its own faults, in each direction, so that a process may speak and not hear.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use autothrottle::{Instant, Rng};
use autothrottle_shared::MemberId;

use crate::process::Process;

/// Microseconds.
pub type Micros = u64;

pub const MS: Micros = 1000;
pub const SECOND: Micros = 1_000_000;
pub const LEASE: Micros = 1500 * MS;

/// Chance.
pub struct Dice(Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub fn unit(&mut self) -> f64 {
        self.0.draw().unit()
    }

    pub fn below(&mut self, count: u64) -> u64 {
        (self.unit() * count as f64) as u64
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// One direction of one connection.
#[derive(Clone, Debug, Default)]
pub struct Way {
    pub least: Micros,
    pub more: Micros,
    /// Of a frame, from 0 to 1.
    pub loss: f64,
    pub doubled: f64,
    /// It carries no frame until then.
    pub cut_until: Micros,
    /// It keeps what is sent until then, and delivers all at once.
    pub held_until: Micros,
    /// It carries no frame until its connection is made anew.
    pub is_hollow: bool,
    /// As a stream: no frame overtakes another.
    pub in_order: bool,
    pub last: Micros,
}

impl Way {
    /// When what is sent now arrives; never, or more than once.
    pub fn arrivals(&mut self, now: Micros, dice: &mut Dice) -> Vec<Micros> {
        if self.is_hollow || now < self.cut_until || (self.loss > 0.0 && dice.unit() < self.loss) {
            return Vec::new();
        }
        let times = if self.doubled > 0.0 && dice.unit() < self.doubled { 2 } else { 1 };
        let mut all = Vec::new();
        for _ in 0..times {
            let mut at = now.max(self.held_until) + self.least + (self.more as f64 * dice.unit()) as Micros;
            if self.in_order {
                at = at.max(self.last);
            }
            self.last = self.last.max(at);
            all.push(at);
        }
        all
    }
}

/// A message to a process, as it travels.
#[derive(Clone, Debug)]
pub enum Heard {
    Frame(Rc<[u8]>),
    Elected { op: u64, epoch: u64, stored: Option<(Rc<[u8]>, Micros)>, first: bool },
    Refused(u64),
    Renewed(u64),
    Released(u64),
    Failed(u64),
    Fenced(u64),
    Unheard(MemberId, u64),
    Vacant(bool),
    Gone(MemberId),
    Opened,
}

/// A message to the store, or through it.
#[derive(Clone, Debug)]
pub enum Said {
    Compete { op: u64, above: u64 },
    Renew { op: u64, epoch: u64, store: Option<Rc<[u8]>> },
    Release { op: u64, epoch: u64, store: Option<Rc<[u8]>> },
    ToLeader(Rc<[u8]>),
    ToMember { epoch: u64, to: MemberId, bytes: Rc<[u8]> },
    ToAll { epoch: u64, bytes: Rc<[u8]> },
}

impl Said {
    pub fn op(&self) -> Option<u64> {
        match *self {
            Self::Compete { op, .. } | Self::Renew { op, .. } | Self::Release { op, .. } => Some(op),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Event {
    /// A process's own timer, if it still is that one.
    Timer {
        of: usize,
        number: u64,
    },
    /// The end of a turn of its event loop.
    Turn {
        of: usize,
    },
    Hear {
        of: usize,
        heard: Heard,
    },
    /// The host gives an answer up.
    GiveUp {
        of: usize,
        op: u64,
    },
    AtStore {
        of: usize,
        said: Said,
    },
    /// A request left: the server sees it.
    Sent {
        send: usize,
    },
    /// The server's answer to a send, by its place.
    Answer {
        send: usize,
    },
    /// A process asks for one more request.
    Work {
        of: usize,
        kind: usize,
    },
    /// A request is on its way later than its permit said.
    Leaves {
        send: usize,
    },
    Cancel {
        of: usize,
        ticket: u64,
    },
    /// A process of a busy machine stands still again.
    Stall {
        of: usize,
        until: Micros,
    },
    Fault(usize),
    /// People look at what each process says of itself.
    Look,
}

impl Event {
    /// In whose time it happens: not while that process stands still, never when it is dead.
    fn owner(&self, world: &World) -> Option<usize> {
        match *self {
            Self::Timer { of, .. }
            | Self::Turn { of }
            | Self::Hear { of, .. }
            | Self::GiveUp { of, .. }
            | Self::Work { of, .. }
            | Self::Cancel { of, .. } => Some(of),
            Self::Sent { send } | Self::Answer { send } | Self::Leaves { send } => {
                Some(world.sends[send].process)
            }
            Self::AtStore { .. } | Self::Fault(_) | Self::Stall { .. } | Self::Look => None,
        }
    }
}

/// A request that the server saw.
#[derive(Clone, Debug)]
pub struct Send {
    pub process: usize,
    pub kind: usize,
    pub ticket: u64,
    pub at: Micros,
    /// When its process heard the answer.
    pub ended: Option<Micros>,
    /// A refusal with a wait.
    pub held: Micros,
}

/// A store, or what is left of one after a failover.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub epoch: u64,
    pub holder: Option<(u64, usize)>,
    /// It is free, but the process that had it may have it again.
    pub reserved: u64,
    pub until: Micros,
    pub snapshot: Option<(Rc<[u8]>, Micros)>,
    pub down_until: Micros,
    /// It keeps what comes until then, and does all of it at once.
    pub pauses_until: Micros,
    pub refuses_until: Micros,
}

pub struct World {
    pub now: Micros,
    pub dice: Dice,
    pub processes: Vec<Process>,
    pub stores: [Store; 2],
    /// Copies at the second store when the first one failed: now and then a copy.
    pub replicas: VecDeque<(Micros, Store)>,
    pub sends: Vec<Send>,
    /// When a request was given up, and of which kind.
    pub given_up: Vec<(Micros, usize)>,
    /// Processes that got no permit for long, and said that all is well.
    pub untold: Vec<String>,
    /// The leaders, and when each began.
    pub reigns: Vec<(Micros, usize)>,
    /// As a socket of one machine: who dies is known, and the store keeps data only with `keeps`.
    pub is_socket: bool,
    pub keeps: bool,
    /// How often what fired.
    pub seen: BTreeMap<&'static str, u64>,
    pub log: Vec<String>,
    pub is_traced: bool,
    queue: BTreeMap<(Micros, u64), Event>,
    order: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            now: SECOND,
            dice: Dice::new(seed),
            processes: Vec::new(),
            stores: [Store::default(), Store::default()],
            replicas: VecDeque::new(),
            sends: Vec::new(),
            given_up: Vec::new(),
            untold: Vec::new(),
            reigns: Vec::new(),
            is_socket: false,
            keeps: true,
            seen: BTreeMap::new(),
            log: Vec::new(),
            is_traced: false,
            queue: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if self.is_traced {
            let line = format!("{:>10.3} {}", self.now as f64 / 1000.0, what());
            self.log.push(line);
        }
    }

    pub fn at(&mut self, at: Micros, event: Event) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), event);
    }

    pub fn after(&mut self, span: Micros, event: Event) {
        self.at(self.now + span, event);
    }

    /// Goes on until then. `play` does what the world does not do by itself.
    pub fn run(&mut self, until: Micros, mut play: impl FnMut(&mut Self, Event)) {
        let mut is_still = 0;
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            is_still = if at > self.now { 0 } else { is_still + 1 };
            assert!(is_still < 20_000, "time stands still at {at}: {event:?}");
            self.now = self.now.max(at);
            if let Some(of) = event.owner(self) {
                let process = &self.processes[of];
                if process.is_dead {
                    continue;
                }
                if process.stands_until > at {
                    let wakes = process.stands_until;
                    self.at(wakes, event);
                    continue;
                }
            }
            self.happen(event, &mut play);
        }
        self.now = self.now.max(until);
        if self.replicas.len() > 64 {
            self.replicas.drain(..32);
        }
    }

    fn happen(&mut self, event: Event, play: &mut impl FnMut(&mut Self, Event)) {
        match event {
            Event::Timer { of, number } => Process::rings(self, of, number),
            Event::Turn { of } => Process::turn_ends(self, of),
            Event::Hear { of, heard } => Process::hears(self, of, &heard),
            Event::GiveUp { of, op } => Process::gives_up(self, of, op),
            Event::AtStore { of, said } => self.at_store(of, said),
            other => play(self, other),
        }
    }

    /// The instant of a process's own clock.
    pub fn clock(&self, of: usize) -> Instant {
        Instant::from_micros(self.processes[of].local(self.now))
    }

    pub fn place_of(&self, id: MemberId) -> Option<usize> {
        self.processes.iter().position(|process| process.id == id)
    }

    /// Something comes back to a process: an answer by the connection that asks.
    pub fn answer(&mut self, of: usize, heard: Heard) {
        let now = self.now;
        for at in self.processes[of].answers.arrivals(now, &mut self.dice) {
            self.at(at, Event::Hear { of, heard: heard.clone() });
        }
    }

    /// Something is published to a process, by the connection that hears.
    pub fn publish(&mut self, of: usize, bytes: &Rc<[u8]>) {
        let now = self.now;
        let mut bytes = bytes.clone();
        if self.processes[of].flips > 0.0 && self.dice.unit() < self.processes[of].flips {
            let mut changed = bytes.to_vec();
            let place = self.dice.below(changed.len() as u64) as usize;
            changed[place] ^= 1 << self.dice.below(8);
            bytes = changed.into();
            self.count("bits flipped");
        }
        for at in self.processes[of].hears.arrivals(now, &mut self.dice) {
            self.at(at, Event::Hear { of, heard: Heard::Frame(bytes.clone()) });
        }
    }

    pub fn listens(&self, of: usize, home: usize) -> bool {
        let process = &self.processes[of];
        !process.is_dead && process.is_open && process.home == home
    }

    /// The leader at an instant, as far as the store knew.
    pub fn led(&self, at: Micros) -> Option<usize> {
        self.reigns.iter().rev().find(|&&(from, _)| from <= at).map(|&(_, process)| process)
    }

    /// The place of who leads, as far as the store knows.
    pub fn leader(&self) -> Option<usize> {
        let (_, leader) = self.stores[self.processes.iter().find(|one| !one.is_dead)?.home].holder?;
        (!self.processes[leader].is_dead).then_some(leader)
    }

    pub fn living(&self) -> Vec<usize> {
        (0..self.processes.len()).filter(|&one| !self.processes[one].is_dead).collect()
    }
}
