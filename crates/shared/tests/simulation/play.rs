//! One seed: some processes with work for a few scopes, faults of every kind for some seconds, then none.

use autothrottle::{
    Value,
    boundary::{Outcome, Settled},
};
use autothrottle_shared::Offline;
use serde::Deserialize;
use serde_json::json;

use crate::{
    checks,
    process::{Plan, Process, dice_of},
    world::{Dice, Event, Heard, LEASE, MS, Micros, SECOND, Way, World},
};

/// Kinds of work: their scopes, and how many a process asks for at a time.
pub const KINDS: [(&[&str], usize); 7] = [
    (&["gap"], 3),
    (&["slots"], 4),
    (&["strict"], 2),
    (&["fixed"], 2),
    (&["held"], 1),
    (&["free", "slots"], 1),
    (&["rated"], 8),
];
/// Requests a second of what a rate keeps, where there is one.
pub const RATED: usize = 60;
pub const GAP: Micros = 150 * MS;
pub const SLOTS: usize = 3;
/// How long an answer in a slot takes.
pub const ANSWER: Micros = 100 * MS;
pub const STRICT: (usize, Micros) = (12, 3 * SECOND);
pub const FIXED: (usize, Micros) = (30, 5 * SECOND);

/// Settings of scopes, of which a whole state has a hundred thousand bytes.
const LONG: usize = 1500;

/// When what happens.
pub const BEFORE: (Micros, Micros) = (4 * SECOND, 10 * SECOND);
/// A pause of the store that is no longer than a message may take.
pub const SHORT: Micros = 250 * MS;
const FAULTS: (Micros, Micros) = (10 * SECOND, 18 * SECOND);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    KillLeader,
    Respawn,
    Close,
    Join,
    Stop,
    Sleep,
    Stall,
    Deaf,
    Dumb,
    /// Its requests and reports are lost until it connects anew for that.
    Mute,
    CutOff,
    Held,
    Moving,
    StoreDown,
    StoreForgets,
    StoreRefuses,
    StorePauses,
    Failover,
    Garbage,
    Foreign,
    Flips,
}

pub const ALL: [Fault; 20] = [
    Fault::Kill,
    Fault::KillLeader,
    Fault::Respawn,
    Fault::Close,
    Fault::Join,
    Fault::Stop,
    Fault::Sleep,
    Fault::Stall,
    Fault::Deaf,
    Fault::Dumb,
    Fault::CutOff,
    Fault::Held,
    Fault::Moving,
    Fault::StoreDown,
    Fault::StoreForgets,
    Fault::StoreRefuses,
    Fault::Failover,
    Fault::Garbage,
    Fault::Foreign,
    Fault::Flips,
];

/// The play of a seed.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    pub processes: u64,
    pub is_socket: bool,
    pub keeps: bool,
    pub offline: Option<Offline>,
    pub members: Option<u32>,
    pub way: Way,
    pub drifts: bool,
    pub is_cold: bool,
    /// When the store comes, if it is not there at the beginning.
    pub cold_until: Micros,
    pub differs: bool,
    pub faults: Vec<(Micros, Fault, Micros)>,
    /// Each process asks for one slot at a time, so there are enough for three.
    pub is_wide: bool,
    /// The whole state is so long that a leader says it only now and then.
    pub is_long: bool,
    /// There is work that a rate keeps, so quick that it is granted ahead.
    pub is_rated: bool,
    pub is_traced: bool,
}

impl Settings {
    /// Without any fault.
    pub fn calm(seed: u64, processes: u64) -> Self {
        Self {
            seed,
            processes,
            is_socket: false,
            keeps: true,
            offline: Some(Offline::Wait),
            members: None,
            way: Way { least: MS, more: 0, ..Way::default() },
            drifts: false,
            is_cold: false,
            cold_until: 7 * SECOND,
            differs: false,
            faults: Vec::new(),
            is_wide: false,
            is_long: false,
            is_rated: false,
            is_traced: false,
        }
    }

    /// Whatever chance says, where slots are free more often than not: they are used again.
    pub fn wide(seed: u64) -> Self {
        Self { is_wide: true, processes: 2 + seed % 3, ..Self::drawn(seed) }
    }

    /// Whatever chance says, where the whole state is so long that most beats have only what changed.
    pub fn long(seed: u64) -> Self {
        Self { is_long: true, ..Self::drawn(seed) }
    }

    /// Whatever chance says, where a rate keeps most of the work.
    pub fn rated(seed: u64) -> Self {
        Self { is_rated: true, ..Self::drawn(seed) }
    }

    /// Whatever chance says, by a store that stands still now and then, for a moment or for seconds.
    pub fn paused(seed: u64) -> Self {
        let mut settings = Self { is_socket: false, ..Self::drawn(seed) };
        let mut dice = Dice::new(!seed);
        for _ in 0..=dice.below(4) {
            let at = FAULTS.0 + dice.below(FAULTS.1 - FAULTS.0 - SECOND);
            let span = if dice.one_in(3) { SECOND + dice.below(4 * SECOND) } else { SHORT };
            settings.faults.push((at, Fault::StorePauses, span));
        }
        settings.faults.sort_by_key(|&(at, ..)| at);
        settings
    }

    /// Whatever chance says.
    pub fn drawn(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let most = if dice.one_in(5) { 12 } else { 6 };
        let mut settings = Self::calm(seed, 1 + dice.below(most));
        settings.is_socket = dice.one_in(3);
        settings.keeps = !dice.one_in(4);
        settings.offline =
            [None, Some(Offline::Divide), Some(Offline::Wait), Some(Offline::Wait), Some(Offline::Fail)]
                [dice.below(5) as usize];
        settings.way.least = 200 + dice.below(5 * MS);
        settings.way.more = dice.below(20 * MS);
        settings.way.in_order = settings.is_socket || dice.one_in(2);
        if !settings.is_socket && dice.one_in(3) {
            settings.way.loss = dice.unit() * 0.1;
            settings.way.doubled = dice.unit() * 0.2;
        }
        settings.drifts = dice.one_in(3);
        settings.is_cold = !settings.is_socket && dice.one_in(10);
        settings.differs = dice.one_in(10);
        for _ in 0..dice.below(5) {
            let at = FAULTS.0 + dice.below(FAULTS.1 - FAULTS.0 - SECOND);
            let fault = ALL[dice.below(ALL.len() as u64) as usize];
            let span = 100 * MS + dice.below(5 * SECOND);
            settings.faults.push((at, fault, span));
        }
        settings.faults.sort_by_key(|&(at, ..)| at);
        settings
    }

    /// When the last of them is over.
    pub fn well_at(&self) -> Micros {
        self.faults.iter().map(|&(at, _, span)| at + span).max().unwrap_or(BEFORE.1)
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|&(_, each, _)| each == fault)
    }
}

pub struct Played {
    pub problems: Vec<String>,
    pub world: World,
}

/// The options of the group; `other`: of a process that was given others.
pub fn options(other: bool, is_long: bool, is_rated: bool) -> Value {
    let ms = |span: Micros| span as f64 / 1000.0;
    let defaults = json!({
        "delay": 0,
        "slotDelay": 0,
        "jitter": false,
        "concurrency": if other { 99 } else { 100 },
        "backoff": { "statusCodes": [], "maxDelay": 10_000 },
    });
    let mut scopes = json!({
        "gap": { "delay": ms(GAP) },
        "slots": { "concurrency": SLOTS },
        "strict": { "quota": STRICT.0, "window": ms(STRICT.1), "strict": true },
        "fixed": { "quota": FIXED.0, "window": ms(FIXED.1) },
    });
    if is_rated {
        scopes["rated"] = json!({ "rate": RATED, "delay": null });
    }
    for index in 0..if is_long { LONG } else { 0 } {
        scopes[format!("a-scope-that-no-request-has-{index}")] = json!({ "delay": 1000, "concurrency": 1 });
    }
    let options = json!({ "maxInFlight": 256, "seed": 1, "defaults": defaults, "scopes": scopes });
    Value::deserialize(options).expect("options")
}

/// Plays it, and says what did not hold.
pub fn play(settings: &Settings) -> Played {
    let mut world = World::new(settings.seed);
    world.is_traced = settings.is_traced;
    world.is_socket = settings.is_socket;
    world.keeps = settings.keeps;
    let mut player = Player {
        settings,
        dice: Dice::new(settings.seed ^ 0xd1ce),
        options: [false, true].map(|other| options(other, settings.is_long, settings.is_rated)),
        is_over: false,
    };
    if settings.is_cold {
        world.stores[0].down_until = settings.cold_until;
        world.count("cold start");
    }
    for place in 0..settings.processes {
        let is_other = settings.differs && place == 0;
        player.start(&mut world, is_other);
    }
    for (index, &(at, ..)) in settings.faults.iter().enumerate() {
        world.at(at, Event::Fault(index));
    }
    world.at(BEFORE.0, Event::Look);
    let well = settings.well_at();
    let measured = well + 10 * SECOND;
    world.run(measured + (BEFORE.1 - BEFORE.0), |world, event| player.happens(world, event));
    player.is_over = true;
    for process in &mut world.processes {
        process.asks.loss = 0.0;
        process.answers.loss = 0.0;
        process.hears.loss = 0.0;
    }
    let end = world.now + 25 * SECOND;
    world.run(end, |world, event| player.happens(world, event));
    for of in 0..world.processes.len() {
        if world.status(of).returned > 0 {
            world.count("returned");
        }
    }
    let problems = checks::problems(settings, &world, measured);
    Played { problems, world }
}

struct Player<'a> {
    settings: &'a Settings,
    dice: Dice,
    options: [Value; 2],
    is_over: bool,
}

impl Player<'_> {
    fn start(&mut self, world: &mut World, is_other: bool) -> usize {
        let plan = Plan {
            options: &self.options[usize::from(is_other)],
            offline: self.settings.offline,
            members: self.settings.members,
            drift: if self.settings.drifts { self.dice.below(2000) as i64 - 1000 } else { 0 },
            way: self.settings.way.clone(),
        };
        let of = Process::start(world, &plan);
        let mut dice = dice_of(self.settings.seed, of);
        for (kind, &(_, times)) in KINDS.iter().enumerate() {
            let times = if self.settings.is_wide { usize::from(kind < 5) } else { times };
            let times = if kind == 6 && !self.settings.is_rated { 0 } else { times };
            for _ in 0..times {
                world.after(dice.below(200 * MS), Event::Work { of, kind });
            }
        }
        of
    }

    fn happens(&mut self, world: &mut World, event: Event) {
        match event {
            Event::Work { of, kind } => self.asks(world, of, kind),
            Event::Sent { send } => self.sent(world, send),
            Event::Leaves { send } => Process::leaves(world, send),
            Event::Answer { send } => self.answers(world, send),
            Event::Cancel { of, ticket } => {
                if let Some(kind) = Process::cancel(world, of, ticket) {
                    self.asks(world, of, kind);
                }
            }
            Event::Stall { of, until } => {
                if world.now < until && !world.processes[of].is_dead {
                    let most = if self.dice.one_in(4) { 1500 * MS } else { 200 * MS };
                    let standing = 20 * MS + self.dice.below(most);
                    Process::stop(world, of, standing.min(until - world.now), false);
                    world.after(standing + self.dice.below(100 * MS), Event::Stall { of, until });
                }
            }
            Event::Look => {
                world.look();
                world.after(SECOND / 4, Event::Look);
            }
            Event::Fault(index) => {
                let (_, fault, span) = self.settings.faults[index];
                self.strikes(world, fault, span);
            }
            _ => {}
        }
    }

    fn asks(&mut self, world: &mut World, of: usize, kind: usize) {
        if self.is_over {
            return;
        }
        let priority = if self.dice.one_in(8) { self.dice.below(3) as f64 } else { 0.0 };
        let before = world.processes[of].failed.values().sum::<u64>();
        Process::submit(world, of, kind, KINDS[kind].0, 1.0, priority);
        if world.processes[of].failed.values().sum::<u64>() > before {
            world.after(500 * MS, Event::Work { of, kind });
        } else if self.dice.one_in(40)
            && let Some(&ticket) = world.processes[of].requests.keys().next_back()
        {
            world.after(self.dice.below(400 * MS), Event::Cancel { of, ticket });
        }
    }

    fn sent(&mut self, world: &mut World, send: usize) {
        let kind = world.sends[send].kind;
        let latency = match kind {
            1 | 5 => ANSWER,
            // Its pace is measured: some request always waits.
            0 => 20 * MS + self.dice.below(200 * MS),
            6 => 10 * MS + self.dice.below(40 * MS),
            _ if self.dice.one_in(60) => self.dice.below(3 * SECOND),
            _ => 20 * MS + self.dice.below(200 * MS),
        };
        if kind != 0 && kind != 6 && self.dice.one_in(50) {
            // It is on its way only a moment later.
            world.after(2 * MS, Event::Leaves { send });
        }
        world.after(latency, Event::Answer { send });
    }

    fn answers(&mut self, world: &mut World, send: usize) {
        let (of, kind) = (world.sends[send].process, world.sends[send].kind);
        world.sends[send].ended = Some(world.now);
        let mut outcome = Outcome::new(200.0, 50.0, f64::NAN, 0);
        let mut hint = outcome.hint;
        if kind == 4 && self.dice.one_in(20) {
            let held = SECOND + self.dice.below(2 * SECOND);
            world.sends[send].held = held;
            outcome = Outcome::new(429.0, 50.0, f64::NAN, autothrottle::boundary::flags::HINTED);
            hint[0] = held as f64 / 1000.0;
            outcome.hint = hint;
        }
        if !self.is_over && self.dice.one_in(20) {
            outcome.retry_delay_ms = self.dice.below(300) as f64;
        }
        if Process::settle(world, send, &outcome) != Settled::Again {
            self.asks(world, of, kind);
        }
    }

    /// A process, the leader half of the time.
    fn any_process(&mut self, world: &World) -> Option<usize> {
        let living = world.living();
        let leader = world.leader();
        if self.dice.one_in(2) && leader.is_some() {
            return leader;
        }
        living.get(self.dice.below(living.len() as u64) as usize).copied()
    }

    fn strikes(&mut self, world: &mut World, fault: Fault, span: Micros) {
        let Some(of) = self.any_process(world) else { return };
        let is_leader = world.leader() == Some(of);
        let now = world.now;
        let until = now + span;
        world.note(|| format!("{fault:?} p{of} (leads: {is_leader}) for {} ms", span / 1000));
        let word: &'static str = match (fault, is_leader) {
            (Fault::Stop, true) => "stop leader",
            (Fault::Deaf, true) => "deaf leader",
            (Fault::Dumb, true) => "dumb leader",
            (Fault::CutOff, true) => "cut leader",
            (Fault::Sleep, true) => "sleep leader",
            (Fault::Stop, _) => "stop",
            (Fault::Deaf, _) => "deaf member",
            (Fault::Dumb, _) => "dumb",
            (Fault::Mute, _) => "mute",
            (Fault::CutOff, _) => "cut",
            (Fault::Sleep, _) => "sleep",
            (Fault::Kill, _) => "kill",
            (Fault::KillLeader, _) => "kill leader",
            (Fault::Respawn, _) => "respawn",
            (Fault::Close, _) => "close",
            (Fault::Join, _) => "join",
            (Fault::Stall, _) => "stall",
            (Fault::Held, _) => "held",
            (Fault::Moving, _) => "moving delay",
            (Fault::StoreDown, _) => "store down",
            (Fault::StoreForgets, _) => "store forgets",
            (Fault::StoreRefuses, _) => "store refuses",
            (Fault::StorePauses, _) => "store pauses",
            (Fault::Failover, _) => "failover",
            (Fault::Garbage, _) => "garbage stored",
            (Fault::Foreign, _) => "another version",
            (Fault::Flips, _) => "flips",
        };
        world.count(word);
        let has_others = world.living().len() > 1;
        match fault {
            Fault::Kill if has_others => world.kill(of),
            Fault::KillLeader if has_others => {
                let of = world.leader().unwrap_or(of);
                world.kill(of);
            }
            Fault::Respawn => {
                world.kill(of);
                self.start(world, false);
            }
            Fault::Close if has_others => Process::close(world, of),
            Fault::Join => {
                self.start(world, false);
            }
            Fault::Stop => Process::stop(world, of, span, false),
            Fault::Sleep => Process::stop(world, of, span, true),
            Fault::Stall => {
                for of in world.living() {
                    world.after(0, Event::Stall { of, until });
                }
            }
            Fault::Deaf => {
                world.processes[of].hears.is_hollow = true;
                let process = &mut world.processes[of];
                process.away.push((now, until + LEASE));
            }
            Fault::Mute if !world.is_socket => {
                let process = &mut world.processes[of];
                process.asks.is_hollow = true;
                process.away.push((now, until + 3 * LEASE));
            }
            Fault::Dumb if !world.is_socket => {
                let process = &mut world.processes[of];
                process.asks.cut_until = until;
                process.away.push((now, until));
            }
            Fault::CutOff => {
                let process = &mut world.processes[of];
                for way in [&mut process.asks, &mut process.answers, &mut process.hears] {
                    way.cut_until = until;
                }
                process.away.push((now, until));
            }
            Fault::Held => {
                let process = &mut world.processes[of];
                for way in [&mut process.asks, &mut process.answers, &mut process.hears] {
                    way.held_until = until;
                }
                process.away.push((now, until));
            }
            Fault::Moving => {
                let more = self.dice.below(SECOND);
                for of in world.living() {
                    let process = &mut world.processes[of];
                    for way in [&mut process.asks, &mut process.answers, &mut process.hears] {
                        way.held_until = way.held_until.max(now + more);
                    }
                    process.away.push((now, now + more));
                }
            }
            Fault::StoreDown => {
                world.stores[0].down_until = until;
                world.stores[1].down_until = until;
                for of in world.living() {
                    world.processes[of].away.push((now, until));
                }
            }
            Fault::StoreForgets if !world.is_socket => {
                let home = world.processes[of].home;
                world.stores[home] = crate::world::Store::default();
            }
            Fault::StoreRefuses => {
                let home = world.processes[of].home;
                world.stores[home].refuses_until = until;
                for of in world.living() {
                    world.processes[of].away.push((now, until));
                }
            }
            Fault::StorePauses if !world.is_socket => {
                let home = world.processes[of].home;
                let store = &mut world.stores[home];
                store.pauses_until = store.pauses_until.max(until);
                for of in world.living() {
                    if span > SHORT {
                        world.processes[of].away.push((now, until));
                    }
                }
            }
            Fault::Failover if !world.is_socket => {
                let from = world.processes[of].home;
                let then = now - self.dice.below(SECOND);
                let copy =
                    world.replicas.iter().rev().find(|(at, _)| *at <= then).map(|(_, store)| store.clone());
                world.stores[1 - from] = copy.unwrap_or_default();
                for of in world.living() {
                    let process = &mut world.processes[of];
                    process.home = 1 - from;
                    process.away.push((now, now + SECOND));
                    process.hears.is_hollow = false;
                    world.at(now, Event::Hear { of, heard: Heard::Opened });
                }
            }
            Fault::Garbage => {
                let home = world.processes[of].home;
                let stored = &mut world.stores[if world.is_socket { 0 } else { home }].snapshot;
                *stored = stored.take().map(|(_, at)| ([9, 9, 9].into(), at));
            }
            Fault::Foreign => {
                // As a process of another version says it: the version stands behind the first byte.
                let mut bytes = vec![0xa7, 99];
                bytes.extend([5; 40]);
                for of in world.living() {
                    world.publish(of, &bytes.clone().into());
                }
            }
            Fault::Flips => world.processes[of].flips = 0.05,
            _ => {}
        }
    }
}
