//! Groups in virtual time: processes, their ways, the store, and a server that remembers what came.
//!
//! `SEED=n` plays one seed and prints what happened; `SEEDS=n` plays n of them (default 60), from `FROM`.

#![allow(
    clippy::too_many_lines,
    clippy::needless_pass_by_value,
    clippy::collapsible_match,
    clippy::single_match_else,
    reason = "one place for each event"
)]

mod checks;
mod play;
mod process;
mod store;
mod world;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use autothrottle_shared::Offline;
use play::{Fault, Settings, play};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_group_that_nothing_disturbs_serves_the_limit_and_no_more() {
    for (seed, processes) in [(1, 1), (2, 2), (3, 8)] {
        for is_socket in [false, true] {
            let played = play(&Settings { is_socket, ..Settings::calm(seed, processes) });
            assert_eq!(played.problems, Vec::<String>::new(), "{processes} processes, socket: {is_socket}");
            let gaps = played.world.sends.iter().filter(|send| send.kind == 0).count();
            assert!(gaps > 150, "{gaps}");
        }
    }
}

#[test]
fn kills_lose_nothing() {
    for seed in 0..20 {
        let mut settings = Settings::calm(seed, 3 + seed % 5);
        settings.is_socket = seed % 2 == 0;
        settings.faults =
            vec![(10_100_000 + seed * 33_000, Fault::KillLeader, 0), (13_000_000, Fault::Kill, 0)];
        let played = play(&settings);
        assert_eq!(played.problems, Vec::<String>::new(), "{settings:?}");
    }
}

/// A firewall forgot the connection of commands, and only that one: beats come, and no frame of this process
/// arrives.
#[test]
fn a_process_whose_commands_are_lost_connects_anew_for_them_and_is_served() {
    for seed in 0..20 {
        let mut settings = Settings::calm(seed, 2 + seed % 4);
        settings.faults = vec![(10_100_000 + seed * 33_000, Fault::Mute, 0)];
        let played = play(&settings);
        assert_eq!(played.problems, Vec::<String>::new(), "{settings:?}");
        assert!(played.world.seen["reconnect"] > 0);
        for process in &played.world.processes {
            assert!(!process.asks.is_hollow, "{settings:?}");
        }
    }
}

/// The faults that a thousand seeds must have seen: each fault, on a leader and on a member where that
/// differs; each warning; and each way in which a frame does not arrive.
const SEEN: &[&str] = &[
    "all dead", "alone", "another version", "bad", "bits flipped", "close", "cold start", "cut",
    "cut leader", "deaf", "deaf leader", "deaf member", "dumb", "dumb leader", "elected", "failover",
    "fenced", "flips", "garbage stored", "held", "join", "kill", "kill leader", "moving delay", "offline",
    "online", "options", "reconnect", "refused offline", "respawn", "returned", "sleep", "sleep leader",
    "stall", "stop", "stop leader", "store down", "store forgets", "store refuses", "unheard", "unreadable",
    "version",
];

/// How many of a kind left between two instants.
fn sent(played: &play::Played, kind: usize, from: u64, to: u64) -> usize {
    played.world.sends.iter().filter(|send| send.kind == kind && (from..to).contains(&send.at)).count()
}

#[test]
fn all_alone_go_on_at_the_limit_together_or_wait() {
    for offline in [Offline::Divide, Offline::Wait, Offline::Fail] {
        let mut settings = Settings::calm(1, 3);
        settings.offline = Some(offline);
        settings.faults = vec![(11_000_000, Fault::StoreDown, 30_000_000)];
        settings.is_traced = number("TRACE").is_some();
        let played = play(&settings);
        for line in &played.world.log {
            println!("{line}");
        }
        let count = |kind| sent(&played, kind, 20_000_000, 40_000_000);
        let [gap, slots, strict] = [count(0), count(1) + count(5), count(2)];
        if offline == Offline::Divide {
            assert!((120..=135).contains(&gap), "{gap} of 133");
            assert!((400..=610).contains(&slots), "{slots} of 600");
        } else {
            assert_eq!([gap, slots], [0, 0], "{offline:?}");
        }
        assert_eq!(strict, 0, "a strict quota waits");
        assert_eq!(played.problems, Vec::<String>::new(), "{offline:?}");
    }
}

#[test]
fn a_process_that_knows_how_many_there_are_goes_on_with_its_part() {
    let settings =
        Settings { offline: Some(Offline::Divide), members: Some(3), is_cold: true, ..Settings::calm(1, 3) };
    let played = play(&Settings { cold_until: 40_000_000, ..settings });
    let count = |kind| sent(&played, kind, 10_000_000, 25_000_000);
    let [gap, slots, strict] = [count(0), count(1) + count(5), count(2)];
    assert!((90..=102).contains(&gap), "{gap} of 100");
    assert!((300..=460).contains(&slots), "{slots} of 450");
    assert_eq!(strict, 0, "a strict quota waits");
}

/// Seeds that once broke a promise: a strict quota was one beyond its limit, because what waited for a stored
/// snapshot counted from an earlier instant than its reply named; and because what had left a window ago took
/// another send out of it. Four of three slots were in use: a leader that had slept used a grant of its own
/// after it had heard of the next leader. Requests left together, because grants that had waited in a store
/// were used late. And two that the simulation had judged wrongly: by a socket, the process that takes the
/// place of a leader closes its connection to it; and a late grant shows a gap after it was used. Four slots
/// again: a leader without memory decided before those that lived had told it what they had. And a gap judged
/// wrongly: a leader that listens while a store pauses knows no way but that. A strict quota again, twice:
/// what had waited for a snapshot left beside all that it set aside. And a gap: a request told as sent had
/// its instant to come. The pace fell: a reply that a frame had overtaken passed for one that tells of a
/// loss.
#[test]
fn seeds_that_once_broke_a_promise_keep_it() {
    let drawn = [300_624, 300_775, 2096].map(Settings::drawn);
    let wide = [403_979, 9601, 3857, 9515].map(Settings::wide);
    let paused = [10, 2425, 8508, 4881].map(Settings::paused);
    let others = [2168].map(Settings::long).into_iter().chain([93, 399].map(Settings::rated));
    for settings in drawn.into_iter().chain(wide).chain(paused).chain(others) {
        let played = play(&settings);
        assert_eq!(played.problems, Vec::<String>::new(), "{settings:?}");
    }
}

#[test]
fn whatever_happens_a_slot_that_is_used_again_is_one_slot() {
    let seen = plays(Settings::wide);
    assert!(seen.is_none_or(|seen| seen["used again"] > 0));
}

#[test]
fn whatever_happens_what_changed_is_as_good_as_the_whole() {
    let seen = plays(Settings::long);
    assert!(seen.is_none_or(|seen| seen["change stored"] > 0));
}

#[test]
fn whatever_happens_what_is_granted_ahead_keeps_to_the_rate() {
    plays(Settings::rated);
}

#[test]
fn whatever_happens_a_store_that_pauses_delays_and_no_more() {
    let seen = plays(Settings::paused);
    assert!(seen.is_none_or(|seen| seen["store pauses"] > 0));
}

#[test]
fn whatever_happens_the_sum_of_all_processes_keeps_the_limits() {
    if let Some(seen) = plays(Settings::drawn)
        && number("SEEDS").is_some_and(|seeds| seeds >= 1000)
    {
        let missing: Vec<_> = SEEN.iter().filter(|what| !seen.contains_key(*what)).collect();
        assert!(missing.is_empty(), "{missing:?}: a fault that never strikes, a rule that never counts");
    }
}

/// How often what was seen.
type Seen = BTreeMap<&'static str, u64>;

/// Plays all on every core; or one, and prints what happened.
fn plays(settings: impl Fn(u64) -> Settings + Sync) -> Option<Seen> {
    if let Some(seed) = number("SEED") {
        show(&Settings { is_traced: true, ..settings(seed) });
        return None;
    }
    let next = AtomicU64::new(number("FROM").unwrap_or(0));
    let end = next.load(Relaxed) + number("SEEDS").unwrap_or(60);
    let all = Mutex::new((Vec::new(), Seen::new()));
    let work = || {
        while let seed = next.fetch_add(1, Relaxed)
            && seed < end
        {
            let played = play(&settings(seed));
            let (failed, seen) = &mut *all.lock().expect("no play panics here");
            for (what, count) in played.world.seen {
                *seen.entry(what).or_default() += count;
            }
            if let Some(problem) = played.problems.first() {
                println!("seed {seed}: {} problems, {problem}", played.problems.len());
                failed.push(seed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
        work();
    });
    let (failed, seen) = all.into_inner().expect("all have ended");
    println!("{seen:?}");
    assert_eq!(failed, Vec::<u64>::new(), "play them with SEED=n");
    Some(seen)
}

/// Plays one and prints what happened.
fn show(settings: &Settings) {
    let played = play(settings);
    for line in &played.world.log {
        println!("{line}");
    }
    println!("{settings:#?}");
    assert_eq!(played.problems, Vec::<String>::new());
}
