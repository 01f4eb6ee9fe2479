//! The promises about the sum of all processes, as the server saw it. The table of `docs/shared.md` says what
//! is not promised; no other breach is excused.

use autothrottle::Span;
use autothrottle_shared::{Offline, Role};

use crate::{
    play::{ANSWER, BEFORE, FIXED, Fault, GAP, RATED, SLOTS, STRICT, Settings},
    world::{LEASE, MS, Micros, SECOND, Send, World},
};

/// A grant of a gap is used so late at most, where grants have been in time.
const USED_LATE: Micros = 62_500;
/// A leader that does not know who lived listens so long before it decides.
const LISTENS: Micros = 700 * MS;

pub fn problems(settings: &Settings, world: &World, measured: Micros) -> Vec<String> {
    let mut all = Vec::new();
    // No transport alters a frame, so the promise is only that everything goes on.
    if settings.has(Fault::Flips) {
        return all;
    }
    gaps(settings, world, &mut all);
    rated(settings, world, &mut all);
    slots(settings, world, &mut all);
    strict(settings, world, &mut all);
    fixed(settings, world, &mut all);
    ends(settings, world, &mut all);
    pace(settings, world, measured, &mut all);
    cold(settings, world, &mut all);
    health(settings, world, &mut all);
    all
}

fn of<'a>(world: &'a World, kinds: &'a [usize]) -> Vec<&'a Send> {
    let mut sends: Vec<&Send> = world.sends.iter().filter(|send| kinds.contains(&send.kind)).collect();
    sends.sort_by_key(|send| send.at);
    sends
}

/// The longest way of a frame: to the store and from there.
fn way(settings: &Settings) -> Micros {
    2 * (settings.way.least + settings.way.more)
}

/// Whether its process stood still, or was cut off, shortly before.
fn is_late(world: &World, send: &Send, span: Micros) -> bool {
    world.processes[send.process].away.iter().any(|&(from, to)| send.at >= from && send.at <= to + span)
}

/// Whether a process that died had sent it itself since the newest snapshot.
fn is_lost(world: &World, send: &Send) -> bool {
    let died = world.processes[send.process].died_at;
    died != Micros::MAX && send.at + SECOND > died
}

/// How many limits hold at once at an instant, for what is counted for so long: one more for each failover
/// before, while two may lead.
fn limits(settings: &Settings, at: Micros, span: Micros) -> usize {
    let faults = settings.faults.iter().filter(|(_, fault, _)| *fault == Fault::Failover);
    let near = faults.filter(|(from, ..)| at >= *from && at <= from + 2 * LEASE + span);
    1 + near.count()
}

/// How many leaders there were within a window that did not know what was stored before: there was no
/// snapshot, or the store forgot it.
fn forgetful(settings: &Settings, world: &World, at: Micros, window: Micros) -> usize {
    let is_near = |from: Micros| from <= at && from + window + LEASE > at;
    let forgot =
        settings.faults.iter().any(|&(from, fault, _)| fault == Fault::StoreForgets && is_near(from));
    let reigns = world.reigns.iter().filter(|(from, _)| (forgot || !settings.keeps) && is_near(*from));
    reigns.count()
}

fn divides(settings: &Settings) -> bool {
    matches!(settings.offline, None | Some(Offline::Divide))
}

fn gaps(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    if divides(settings) {
        return parts(world, problems);
    }
    let sends: Vec<&Send> = of(world, &[0])
        .into_iter()
        .filter(|send| !is_late(world, send, 2 * LEASE) && !is_lost(world, send))
        .collect();
    let slack = MS + way(settings);
    // Of grants that a message carried for longer than W says, each process may use one.
    let (mut late, is_held) = (0, |at: Micros| {
        let slow =
            settings.faults.iter().filter(|(_, fault, _)| matches!(fault, Fault::Held | Fault::Moving));
        { slow }.any(|&(from, _, span)| at >= from && at <= from + span + LEASE)
    });
    // A store that paused makes messages slower than those before: what they grant is used so late, and twice
    // as late where grants came back in the second before. The next send shows it, a gap later. A leader that
    // listens meanwhile has measured no way but that, and grants for the first time when it has listened.
    let used_late = |at: Micros| {
        let pauses = settings.faults.iter().filter(|(_, fault, _)| *fault == Fault::StorePauses);
        let before = |more: Micros| {
            let counts = |from: Micros, to: Micros| {
                let is_new = world.reigns.iter().any(|&(at, _)| at + LISTENS >= from && at <= to);
                (from..=to + more + if is_new { LISTENS } else { 0 }).contains(&at)
            };
            pauses.clone().filter(|&&(from, _, span)| counts(from, from + span)).count()
        };
        if before(GAP) > 0 { USED_LATE << (before(SECOND + GAP) - 1) } else { 0 }
    };
    for (place, send) in sends.iter().enumerate() {
        let Some(before) = place.checked_sub(limits(settings, send.at, 0)) else { continue };
        let before = sends[before];
        let gap = send.at - before.at + used_late(send.at);
        if gap + slack < GAP && is_held(send.at) {
            late += 1;
        } else if gap + slack < GAP {
            let (gap, at) = (gap as f64 / 1e3, send.at as f64 / 1e3);
            problems.push(format!("gap: {gap:.1} ms at {at:.1} (p{}, p{})", before.process, send.process));
        }
    }
    if late > world.processes.len() * settings.faults.len() {
        problems.push(format!("gap: {late} of late grants"));
    }
}

/// The rule for a rate and grants ahead: as many in each half a second as it says, but for what ways and late
/// grants hide.
fn rated(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    if divides(settings) {
        return;
    }
    let sends: Vec<&Send> = of(world, &[6])
        .into_iter()
        .filter(|send| !is_late(world, send, 2 * LEASE) && !is_lost(world, send))
        .collect();
    let span = SECOND / 2;
    let hidden = (USED_LATE + way(settings)) as usize * RATED / SECOND as usize;
    for (place, send) in sends.iter().enumerate() {
        let most = (RATED / 2 + 1) * limits(settings, send.at, span) + hidden;
        let within = sends[..=place].iter().filter(|other| other.at + span > send.at).count();
        if within > most {
            problems.push(format!("rated: {within} of {most} before {:.1}", send.at as f64 / 1e3));
        }
    }
}

/// Those that go on alone have their parts beside the others: twice the limit, if all begin at once.
fn parts(world: &World, problems: &mut Vec<String>) {
    let sends = of(world, &[0]);
    let most = 2 * 20 + world.processes.len();
    for (place, send) in sends.iter().enumerate() {
        let within = sends[..=place].iter().filter(|other| other.at + 20 * GAP > send.at).count();
        if within > most {
            problems.push(format!("parts: {within} before {:.1}", send.at as f64 / 1e3));
        }
    }
}

/// Until when its slots have to be counted: dead, they are free; silent for two leases, they are given back.
fn counted_until(world: &World, send: &Send) -> Micros {
    let process = &world.processes[send.process];
    let mut until = send.ended.unwrap_or(Micros::MAX).min(process.died_at);
    for &(from, to) in &process.away {
        // The next leader does not know the sends of a leader that is away, since its last snapshot.
        if to - from > LEASE / 2 && send.at + SECOND > from && world.led(send.at) == Some(send.process) {
            until = until.min(from.max(send.at));
        }
        // Silences that follow each other are one.
        let to = process
            .away
            .iter()
            .filter(|&&(other, _)| other <= to + SECOND)
            .map(|&(_, to)| to)
            .max()
            .unwrap_or(to);
        if to - from > 2 * LEASE - SECOND && from < until && to > send.at {
            until = until.min((from + 2 * LEASE - SECOND).max(send.at));
        }
    }
    until
}

fn slots(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    let most = if divides(settings) { 2 * SLOTS } else { SLOTS };
    // A leader whose machine slept finds out by its next frame.
    let awake = 100 * MS + 2 * way(settings);
    let sends: Vec<&Send> =
        of(world, &[1, 5]).into_iter().filter(|send| !is_late(world, send, awake)).collect();
    let mut flying: Vec<(Micros, usize)> = Vec::new();
    for send in sends {
        let until = counted_until(world, send);
        flying.retain(|&(until, _)| until > send.at);
        flying.push((until, send.process));
        if flying.len() > most * limits(settings, send.at, SECOND) && until > send.at {
            let of: Vec<usize> = flying.iter().map(|&(_, process)| process).collect();
            problems.push(format!("slots: {} at {:.1} {of:?}", flying.len(), send.at as f64 / 1e3));
        }
    }
}

fn strict(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    let (limit, window) = STRICT;
    // A grant that was there before its clock stood is used after it; and who led believes its lease until it
    // hears, or until that is over by the clock that stood. That is one limit more.
    let wakes = |send: &Send| {
        let asleep = &world.processes[send.process].asleep;
        asleep.iter().any(|&(_, to)| send.at >= to && send.at <= to + LEASE)
    };
    // A send that is late is counted from when the leader hears of it: without W its old place in the window
    // may be given away before.
    let is_slow = |(_, fault, _): &(_, Fault, _)| matches!(fault, Fault::Stall | Fault::Held | Fault::Moving);
    let is_late = settings.way.loss > 0.0 || settings.faults.iter().any(is_slow);
    let unheard = if is_late { world.processes.len() } else { 0 };
    let all = of(world, &[2]);
    let sends: Vec<&Send> = all.iter().copied().filter(|send| !wakes(send)).collect();
    // The drift of two clocks within a window, and what a way that is unlike the way back hides.
    let span = window - window / 500 - 2 * settings.way.more;
    let of_all =
        |send: &Send| all.iter().filter(|other| other.at <= send.at && other.at + span > send.at).count();
    for (place, send) in sends.iter().enumerate() {
        let within = sends[..=place].iter().filter(|other| other.at + span > send.at).count();
        let unknown = forgetful(settings, world, send.at, window);
        let most = limit * (limits(settings, send.at, window) + unknown) + unheard;
        if within > most || of_all(send) > most + limit {
            problems.push(format!("strict: {within} before {:.1}", send.at as f64 / 1e3));
        }
    }
}

fn fixed(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    let sends = of(world, &[3]);
    let (limit, window) = FIXED;
    // Any span may see the end of one window and the beginning of the next; so it is twice the bound.
    let deaths = world.processes.iter().filter(|process| process.is_dead).count();
    let parts = if divides(settings) { 2 } else { 1 };
    let most = 2 * limit * parts + 10 * (deaths + world.reigns.len() - 1);
    for (place, send) in sends.iter().enumerate() {
        let within = sends[..=place].iter().filter(|other| other.at + window > send.at).count();
        if within > most {
            problems.push(format!("fixed: {within} before {:.1}", send.at as f64 / 1e3));
        }
    }
}

/// The rule against forgotten requests, and those that are in flight for ever.
fn ends(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    for of in world.living() {
        let process = &world.processes[of];
        if !process.requests.is_empty() || process.machine.waiting() > 0 {
            let (ours, theirs) = (process.requests.len(), process.machine.waiting());
            problems.push(format!("p{of}: {ours} of its requests were forgotten ({theirs} wait)"));
        }
        if process.machine.in_flight() > 0 {
            problems.push(format!("p{of}: {} in flight for ever", process.machine.in_flight()));
        }
        for (what, count) in &process.failed {
            if settings.offline != Some(Offline::Fail) || *what != "refused offline" {
                problems.push(format!("p{of}: {count} failed: {what}"));
            }
        }
    }
    let leaders = world.leaders();
    if leaders.len() != 1 {
        problems.push(format!("{leaders:?} lead at the end"));
    }
    for of in world.living() {
        let status = world.status(of);
        if status.role == Role::Alone {
            problems.push(format!("p{of} is alone at the end"));
        }
        if status.debt > Span::ZERO {
            problems.push(format!("p{of} owes {:?} at the end", status.debt));
        }
    }
}

/// As fast as before, within ten seconds after the last fault.
fn pace(settings: &Settings, world: &World, measured: Micros, problems: &mut Vec<String>) {
    // How much is asked for depends on who lives, where slots are free.
    if settings.is_cold || settings.is_wide {
        return;
    }
    let span = BEFORE.1 - BEFORE.0;
    for (word, kinds) in [("gap", &[0][..]), ("slots", &[1, 5]), ("rated", &[6])] {
        // Slots of one process that another one joined: from then on each answer has a way to go.
        if word == "slots" && settings.processes == 1 && world.processes.len() > 1 {
            continue;
        }
        let within = |from: Micros| {
            of(world, kinds).iter().filter(|send| send.at >= from && send.at < from + span).count()
        };
        let (before, after) = (within(BEFORE.0) as f64, within(measured) as f64);
        let before = if word == "slots" { before.min(with_others(settings, world, before)) } else { before };
        // A grant that is on its way to a request that was given up is used by none.
        let span = measured..measured + span;
        let unused =
            world.given_up.iter().filter(|(at, kind)| span.contains(at) && kinds.contains(kind)).count();
        // A lost request is asked for again with a beat: that differs from second to second.
        let least = if settings.way.loss > 0.0 { before / 8.0 } else { 0.95 * before - 2.0 - unused as f64 };
        if after < least {
            problems.push(format!("pace: {word} {after} after, {before:.1} before"));
        }
    }
}

/// How many would have left in slots, had there been as many processes as there are now. The answers of who
/// leads have no way to go, and it has fewer of the slots where there are more processes.
fn with_others(settings: &Settings, world: &World, before: f64) -> f64 {
    let far = |processes: usize| (processes as f64 - 1.0) / processes as f64;
    let slots = (SLOTS as Micros * (BEFORE.1 - BEFORE.0)) as f64;
    let way = (slots / before - ANSWER as f64) / far(settings.processes as usize);
    slots / (ANSWER as f64 + way * far(world.living().len()))
}

/// A process that never heard of another sends no request.
fn cold(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    if settings.is_cold && settings.members.is_none() && world.sends.iter().any(|send| send.at < 7 * SECOND) {
        problems.push("cold: sent without ever having heard of the others".into());
    }
}

/// The rule for the status that people see: a process that gets no permit says why, and where all is well
/// none says otherwise.
fn health(settings: &Settings, world: &World, problems: &mut Vec<String>) {
    problems.extend(world.untold.iter().cloned());
    for of in world.living() {
        let (process, status) = (&world.processes[of], world.status(of));
        let silent = status.heard.map_or(Micros::MAX, |at| world.clock(of).since(at).micros());
        if silent > LEASE || status.offline_since.is_some() {
            problems.push(format!("health: p{of} is well at the end, and says {status:?}"));
        }
        let is_calm = settings.faults.is_empty() && settings.way.loss == 0.0;
        if is_calm && !settings.is_cold && !settings.differs && !process.warned.is_empty() {
            problems.push(format!("health: p{of} warns of nothing: {:?}", process.warned));
        }
    }
}
