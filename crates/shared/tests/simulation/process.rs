//! A process: the machine, and what a host does around it.
//!
//! It is as unkind as a real host: it hears late, its timer is late, and an answer may come when it has been
//! given up.

use std::collections::{BTreeMap, BTreeSet};

use autothrottle::{
    Instant, Span, Value,
    boundary::{Outcome, Settled},
};
use autothrottle_shared::{
    Ask, Cause, Effect, Input, MemberId, Offline, Refusal, Role, Settings, Shared, Status, Warning,
};

use crate::world::{Dice, Event, Heard, LEASE, MS, Micros, SECOND, Said, Send, Way, World};

/// A process that gets no permit for so long is looked at: each has its turn sooner.
const STARVES: Micros = 5 * SECOND;

/// A name with the same bytes in every run, unlike that of any other process.
pub fn id_of(place: usize) -> MemberId {
    let mut id = [7; 16];
    id[..8].copy_from_slice(&(place as u64 + 1).to_be_bytes());
    MemberId(id)
}

pub struct Process {
    pub id: MemberId,
    pub machine: Shared,
    pub is_dead: bool,
    pub died_at: Micros,
    pub born: Micros,
    /// It stands still until then.
    pub stands_until: Micros,
    /// When it stood still or was cut off, and until when.
    pub away: Vec<(Micros, Micros)>,
    /// When its clock stood, too.
    pub asleep: Vec<(Micros, Micros)>,
    /// Its own clock: where it began, and how much faster it goes, in millionths.
    origin: Micros,
    drift: i64,
    slept: Micros,
    /// Whether its connection that hears is open.
    pub is_open: bool,
    pub hears_leader: bool,
    /// Which store it uses.
    pub home: usize,
    /// By a socket: whether it is connected to who leads, since when, and when it was last heard.
    pub is_joined: bool,
    pub joined_at: Micros,
    pub heard_at: Micros,
    pub asks: Way,
    pub answers: Way,
    pub hears: Way,
    /// How often a bit of what it hears is flipped.
    pub flips: f64,
    /// The requests it made, by ticket: the kind of work.
    pub requests: BTreeMap<u64, usize>,
    pub failed: BTreeMap<&'static str, u64>,
    pub warned: BTreeMap<&'static str, u64>,
    /// When it told last that something is amiss; and since when it has got no permit, though a request waits
    /// that only its turn keeps.
    pub told_at: Micros,
    pub starves_since: Micros,
    pending: BTreeSet<u64>,
    timer: u64,
    timer_at: Option<Instant>,
    is_armed: bool,
}

/// The plan of a process.
pub struct Plan<'a> {
    pub options: &'a Value,
    pub offline: Option<Offline>,
    pub members: Option<u32>,
    pub drift: i64,
    pub way: Way,
}

impl Process {
    /// A new one; gives its place.
    pub fn start(world: &mut World, plan: &Plan<'_>) -> usize {
        let place = world.processes.len();
        let others = &world.processes;
        let known = others.iter().find(|process| !process.is_dead).or(others.last());
        let home = known.map_or(0, |process| process.home);
        let settings = Settings {
            lease: Span::from_micros(LEASE),
            offline: plan.offline,
            members: plan.members,
            prompt: false,
            keep_every: Span::ZERO,
            snapshot: None,
        };
        let id = id_of(place);
        let seed = (world.dice.unit() * 1e15) as u64;
        let machine = Shared::new(id, plan.options.clone(), settings, seed).expect("options that are right");
        let hours =
            if world.dice.one_in(4) { world.dice.below(10_000_000_000) } else { world.dice.below(1_000_000) };
        world.processes.push(Self {
            id,
            machine,
            is_dead: false,
            died_at: Micros::MAX,
            born: world.now,
            stands_until: 0,
            away: Vec::new(),
            asleep: Vec::new(),
            origin: 1_000_000 + hours,
            drift: plan.drift,
            slept: 0,
            is_open: false,
            hears_leader: false,
            home,
            is_joined: false,
            joined_at: world.now,
            heard_at: 0,
            asks: plan.way.clone(),
            answers: plan.way.clone(),
            hears: plan.way.clone(),
            flips: 0.0,
            requests: BTreeMap::new(),
            failed: BTreeMap::new(),
            warned: BTreeMap::new(),
            told_at: 0,
            starves_since: world.now,
            pending: BTreeSet::new(),
            timer: 0,
            timer_at: None,
            is_armed: false,
        });
        world.note(|| format!("p{place} starts"));
        place
    }

    /// Of its own clock.
    pub fn local(&self, now: Micros) -> Micros {
        let passed = now.saturating_sub(self.born + self.slept);
        (self.origin + passed).saturating_add_signed(passed as i64 * self.drift / 1_000_000)
    }

    /// When its clock shows this, or a little later.
    fn world_at(&self, local: Micros) -> Micros {
        let passed = local.saturating_sub(self.origin) as i64;
        let own = passed * 1_000_000 / (1_000_000 + self.drift);
        (self.born + self.slept).saturating_add_signed(own) + 2
    }

    /// As SIGSTOP and SIGCONT; `asleep`: its clock stands as well.
    pub fn stop(world: &mut World, of: usize, span: Micros, asleep: bool) {
        let now = world.now;
        let process = &mut world.processes[of];
        let stands = process.stands_until.max(now);
        process.stands_until = stands.max(now + span);
        process.away.push((now, now + span));
        if asleep {
            // It stands once where it sleeps twice: no clock goes back.
            let before = process.asleep.last().map_or(now, |&(_, to)| to.max(now));
            process.slept += (now + span).saturating_sub(before);
            process.asleep.push((now, now + span));
        }
    }

    /// Asks for one request.
    pub fn submit(world: &mut World, of: usize, kind: usize, names: &[&str], cost: f64, priority: f64) {
        let now = world.clock(of);
        let ask = Ask { names, costs: &[cost], priority, delay_ms: 0.0 };
        let process = &mut world.processes[of];
        let submitted = process.machine.submit(now, &ask);
        match &submitted {
            Ok(ticket) => _ = process.requests.insert(*ticket, kind),
            Err(why) => *process.failed.entry(name_of(why)).or_default() += 1,
        }
        Self::goes_on(world, of);
        // It left at once, without a word.
        if submitted.is_ok_and(|ticket| !world.processes[of].requests.contains_key(&ticket)) {
            world.count("used again");
        }
    }

    pub fn cancel(world: &mut World, of: usize, ticket: u64) -> Option<usize> {
        let now = world.clock(of);
        let kind = world.processes[of].requests.remove(&ticket)?;
        world.processes[of].machine.cancel(now, ticket);
        world.given_up.push((world.now, kind));
        world.note(|| format!("p{of} gives up {ticket} of kind {kind}"));
        Self::goes_on(world, of);
        Some(kind)
    }

    /// A send is on its way later than its permit said.
    pub fn leaves(world: &mut World, send: usize) {
        let Send { process: of, ticket, .. } = world.sends[send];
        let now = world.clock(of);
        world.sends[send].at = world.now;
        world.processes[of].machine.sent_at(now, ticket);
        Self::goes_on(world, of);
    }

    pub fn settle(world: &mut World, send: usize, outcome: &Outcome<'_>) -> Settled {
        let Send { process: of, ticket, kind, .. } = world.sends[send];
        let now = world.clock(of);
        let settled = world.processes[of].machine.settle(now, ticket, outcome).settled;
        if settled == Settled::Again {
            world.processes[of].requests.insert(ticket, kind);
        }
        Self::goes_on(world, of);
        settled
    }

    pub fn close(world: &mut World, of: usize) {
        let now = world.clock(of);
        world.processes[of].machine.close(now);
        Self::turn_ends(world, of);
        world.processes[of].is_dead = true;
        world.processes[of].died_at = world.now;
    }

    pub fn hears(world: &mut World, of: usize, heard: &Heard) {
        let now = world.clock(of);
        let at = world.now;
        let process = &mut world.processes[of];
        let mut answers = |op: u64| process.pending.remove(&op);
        let input = match heard {
            Heard::Frame(bytes) => {
                process.heard_at = at;
                Input::Received(bytes)
            }
            Heard::Elected { op, epoch, stored, first } => {
                if !answers(*op) {
                    return;
                }
                let stored = stored.as_ref().map(|(bytes, age)| (&**bytes, Span::from_micros(*age)));
                Input::Elected { op: *op, epoch: *epoch, stored, first: *first }
            }
            Heard::Refused(op) if answers(*op) => Input::Refused { op: *op },
            Heard::Renewed(op) if answers(*op) => Input::Renewed { op: *op },
            Heard::Released(op) if answers(*op) => Input::Released { op: *op },
            Heard::Failed(op) if answers(*op) => {
                Input::Failed { op: *op, cause: Cause::Broken("the store says no") }
            }
            Heard::Refused(_) | Heard::Renewed(_) | Heard::Released(_) | Heard::Failed(_) => return,
            Heard::Fenced(epoch) => Input::Fenced { epoch: *epoch },
            Heard::Unheard(to, epoch) => Input::Unheard { to: *to, epoch: *epoch },
            Heard::Vacant(ended) => Input::Vacant { ended: *ended },
            Heard::Gone(id) => Input::Gone(*id),
            Heard::Opened => {
                process.is_open = true;
                Input::Opened
            }
        };
        process.machine.handle(now, input);
        Self::goes_on(world, of);
    }

    pub fn gives_up(world: &mut World, of: usize, op: u64) {
        let now = world.clock(of);
        let process = &mut world.processes[of];
        if process.pending.remove(&op) {
            process.machine.handle(now, Input::Failed { op, cause: Cause::Timeout });
            Self::goes_on(world, of);
        }
    }

    pub fn rings(world: &mut World, of: usize, number: u64) {
        let now = world.clock(of);
        let process = &mut world.processes[of];
        if process.timer != number {
            return;
        }
        process.timer_at = None;
        process.machine.handle(now, Input::Timeout);
        Self::goes_on(world, of);
    }

    /// Something happened: what may leave leaves, and the turn ends soon.
    fn goes_on(world: &mut World, of: usize) {
        Self::polls(world, of);
        if !world.processes[of].is_armed {
            world.processes[of].is_armed = true;
            world.after(0, Event::Turn { of });
        }
    }

    fn polls(world: &mut World, of: usize) {
        let now = world.clock(of);
        while let Some(ticket) = world.processes[of].machine.poll(now) {
            let Some(kind) = world.processes[of].requests.remove(&ticket) else {
                panic!("p{of}: ticket {ticket} twice, or of no process, at {}", world.now);
            };
            let at = world.now;
            let send = world.sends.len();
            world.sends.push(Send { process: of, kind, ticket, at, ended: None, held: 0 });
            world.note(|| format!("p{of} sends {ticket} of kind {kind}"));
            world.processes[of].starves_since = at;
            world.at(at, Event::Sent { send });
        }
    }

    /// Performs the machine's effects, and arms its timer.
    pub fn turn_ends(world: &mut World, of: usize) {
        world.processes[of].is_armed = false;
        let now = world.clock(of);
        while let Some(effect) = world.processes[of].machine.poll_effect(now) {
            Self::does(world, of, effect);
        }
        Self::polls(world, of);
        let process = &mut world.processes[of];
        let wakes = process.machine.wake_at();
        if wakes == process.timer_at {
            return;
        }
        process.timer += 1;
        process.timer_at = wakes;
        let number = process.timer;
        if let Some(at) = wakes {
            let at = process.world_at(at.micros());
            world.at(at, Event::Timer { of, number });
        }
    }

    fn does(world: &mut World, of: usize, effect: Effect) {
        if !world.processes[of].is_open {
            world.processes[of].is_open = true;
        }
        match effect {
            Effect::Compete { op, above } => Self::asks(world, of, Said::Compete { op, above }),
            Effect::Renew { op, epoch, store } => {
                Self::asks(world, of, Said::Renew { op, epoch, store: store.map(Into::into) });
            }
            Effect::Release { op, epoch, store } => {
                Self::asks(world, of, Said::Release { op, epoch, store: store.map(Into::into) });
            }
            Effect::ToLeader(bytes) => Self::says(world, of, &Said::ToLeader(bytes.into())),
            Effect::ToMember { epoch, to, bytes } => {
                Self::says(world, of, &Said::ToMember { epoch, to, bytes: bytes.into() });
            }
            Effect::ToAll { epoch, bytes } => {
                Self::says(world, of, &Said::ToAll { epoch, bytes: bytes.into() });
            }
            Effect::Reconnect { speaks } => {
                world.count("reconnect");
                world.note(|| format!("p{of} connects anew"));
                let now = world.now;
                let process = &mut world.processes[of];
                let way = if speaks { &mut process.asks } else { &mut process.hears };
                way.is_hollow = false;
                let back = now.max(process.hears.cut_until) + 2 * process.asks.least + 1;
                world.at(back, Event::Hear { of, heard: Heard::Opened });
            }
            Effect::Fail { ticket, why } => {
                let process = &mut world.processes[of];
                let kind = process.requests.remove(&ticket);
                *process.failed.entry(name_of(&why)).or_default() += 1;
                world.count(name_of(&why));
                if let Some(kind) = kind {
                    world.after(500 * MS, Event::Work { of, kind });
                }
                world.note(|| format!("p{of}: {ticket} fails: {why:?}"));
            }
            Effect::Warn(warning) => {
                world.note(|| format!("p{of} warns: {warning:?}"));
                *world.processes[of].warned.entry(word_of(&warning)).or_default() += 1;
                if warning != Warning::Online {
                    world.processes[of].told_at = world.now;
                }
                world.count(word_of(&warning));
            }
            Effect::Notice(_) => {}
            Effect::Moved => {
                let status = world.status(of);
                if status.role == Role::Alone {
                    world.count("alone");
                }
                world.note(|| {
                    format!(
                        "p{of}: {:?} of {:?}, epoch {}, {:?}",
                        status.role,
                        status.leader.map(|id| id.0[7]),
                        status.epoch,
                        status.members
                    )
                });
            }
        }
    }

    fn asks(world: &mut World, of: usize, said: Said) {
        let op = said.op().expect("a question");
        world.note(|| format!("p{of} asks {said:?}").split('[').next().unwrap_or_default().into());
        world.processes[of].pending.insert(op);
        let give_up = LEASE;
        world.after(give_up, Event::GiveUp { of, op });
        Self::says(world, of, &said);
    }

    fn says(world: &mut World, of: usize, said: &Said) {
        let now = world.now;
        let process = &mut world.processes[of];
        // A frame may come twice; a question is a command of a stream.
        let times = if said.op().is_some() { 1 } else { 2 };
        for at in process.asks.arrivals(now, &mut world.dice).into_iter().take(times) {
            world.at(at, Event::AtStore { of, said: said.clone() });
        }
    }
}

impl World {
    /// Whether a process that gets no permit says so: it has not been answered for long, it is offline, or it
    /// has warned, in the last seconds.
    pub fn look(&mut self) {
        for of in self.living() {
            let (now, status) = (self.now, self.status(of));
            let silent = status.heard.map(|at| self.clock(of).since(at).micros());
            let is_well = silent.is_some_and(|silent| silent < LEASE) && status.offline_since.is_none();
            let process = &mut self.processes[of];
            let waits = process.requests.values().any(|&kind| kind == 0);
            if !waits || process.stands_until + LEASE > now {
                process.starves_since = now;
            }
            if !is_well {
                process.told_at = now;
            }
            let since = process.starves_since.max(process.told_at);
            // Where a frame in ten is lost, its turn may be lost several times in a row.
            let most = if process.asks.loss > 0.0 { 2 * STARVES } else { STARVES };
            if now > since + most {
                let (now, since) = (now as f64 / 1e3, (now - process.starves_since) as f64 / 1e3);
                let line = format!("health: p{of} starves for {since:.0} ms at {now:.1}: {:?}", status.role);
                self.untold.push(line);
            }
        }
    }

    pub fn status(&self, of: usize) -> Status {
        self.processes[of].machine.status(self.clock(of))
    }

    /// How many of the living lead, as they see it.
    pub fn leaders(&self) -> Vec<usize> {
        self.living().into_iter().filter(|&of| self.status(of).role == Role::Leader).collect()
    }
}

pub fn name_of(why: &Refusal) -> &'static str {
    match why {
        Refusal::Full => "full",
        Refusal::Cost { .. } => "cost",
        Refusal::Down { .. } => "down",
        Refusal::Wrong(_) => "wrong",
        Refusal::Offline(_) => "refused offline",
        Refusal::Denied(_) => "denied",
    }
}

fn word_of(warning: &Warning) -> &'static str {
    match warning {
        Warning::BadMessage { .. } => "bad",
        Warning::Version { .. } => "version",
        Warning::StateLost => "unreadable",
        Warning::Options { .. } => "options",
        Warning::Offline { .. } => "offline",
        Warning::Online => "online",
        Warning::SilentConnection { .. } => "deaf",
        Warning::TwoWriters { .. } => "epoch",
        Warning::GroupFull { .. } => "crowded",
    }
}

/// A number for a process that no other has drawn: for its work.
pub fn dice_of(seed: u64, place: usize) -> Dice {
    Dice::new(seed ^ ((place as u64 + 1) << 32))
}
