//! The status of a group: as of now where this process decides, else as of the newest snapshot.

use autothrottle::{
    Instant, Span, Value,
    boundary::NO_SCOPE,
    value::{join, number_text},
};

use crate::{
    api::{Role, Status},
    codec::{Number, Plain, read_all},
    leader::WALL_MS,
    machine::{Shared, State},
    offline::map,
    stored,
    vec_map::VecMap,
};

impl Shared {
    /// The group as this process knows it.
    pub fn status(&self, now: Instant) -> Status {
        let now = self.now.max(now);
        let (mut lead, mut round_trip) = (Span::ZERO, self.member.clock.there_and_back());
        let mut members = self.member.rank.map(|(_, of)| of).or(self.settings.members);
        let (role, leader, heard, epoch) = match &self.state {
            State::New => (Role::New, None, None, 0),
            State::Closed => (Role::Closed, None, None, self.member.epoch),
            State::Member => {
                let role = if self.alone.is_some() { Role::Alone } else { Role::Member };
                // Beats alone are no sign that this process is served: it is once it is answered.
                let heard = self.way.leader.map(|_| self.way.heard_at.min(self.way.replied_at));
                (role, self.way.leader, heard, self.member.epoch)
            }
            State::Collecting(lease, _) => (Role::Leader, Some(self.id), Some(now), lease.epoch),
            State::Leading(lease, leader) => {
                lead = leader.clock.lead;
                members = Some(leader.peers.len().max(1) as u32);
                round_trip = leader.peers.values().filter_map(|peer| peer.clock.there_and_back()).max();
                (Role::Leader, Some(self.id), Some(now), lease.epoch)
            }
        };
        let snapshot = self.member.memory.as_ref();
        Status {
            role,
            leader,
            epoch,
            members,
            heard,
            round_trip,
            lead,
            offline_since: self.way.offline_since,
            debt: self.member.debt.min(self.config.longest_window()),
            snapshot: snapshot.map(|kept| (now.since(kept.at), kept.bytes.len() as u32)),
            bad: self.way.bad,
            returned: self.member.returned,
            options: (self.way.counted_options, self.options.1),
        }
    }

    /// When a request could be sent as far as is known here: milliseconds of this process's clock, infinity
    /// if that depends on an event. And why not now: the place in `Reason::ALL`, or -1, and the scope.
    pub fn peek(&mut self, now: Instant, names: &[&str], costs: &[f64]) -> (f64, f64, Option<String>) {
        self.at(now);
        let now = self.now;
        let (engine, then) = match (&mut self.state, &mut self.alone) {
            (State::Leading(_, leader), _) => (&mut leader.engine, leader.clock.peek(now).millis()),
            (_, Some(alone)) => (&mut alone.engine, alone.clock.peek(now).millis()),
            _ => {
                self.judge_by_memory();
                (&mut self.judge, now.millis())
            }
        };
        let scopes: Vec<f64> = names.iter().map(|name| engine.find(name)).collect();
        let at = engine.peek(then, &scopes, costs);
        let scope = engine.reason_scope();
        let scope = if scope == NO_SCOPE { None } else { engine.name(scope).map(Into::into) };
        (if at >= 0.0 { at - then + now.millis() } else { at }, engine.reason(), scope)
    }

    /// The state of everything as far as is known here, as of `Boundary::stats`; `ageMs` says how old it is.
    pub fn stats(&mut self, now: Instant) -> Value {
        self.at(now);
        let now = self.now;
        let decider = match (&mut self.state, &mut self.alone) {
            (State::Leading(_, leader), _) => Some(leader),
            (_, alone) => alone.as_mut(),
        };
        if let Some(leader) = decider {
            let then = leader.clock.peek(now).millis();
            return shifted(leader.engine.stats(then), now.millis() - then, 0.0);
        }
        if let Some((pieces, at)) = &self.member.seen
            && let Some(stats) = together(pieces, *at, now)
        {
            return stats;
        }
        self.judge_by_memory();
        let age = self.member.memory.as_ref().map_or(f64::INFINITY, |kept| now.since(kept.at).millis());
        shifted(self.judge.stats(now.millis()), 0.0, age)
    }

    /// The state of one scope, as of `Boundary::scope_stats`: that of a new one, where it is not known.
    pub fn scope_stats(&mut self, now: Instant, name: &str) -> Value {
        let stats = self.stats(now);
        let Value::Map(entries) = stats else { return Value::Nothing };
        let scopes = entries.into_iter().find(|(key, _)| key == "scopes");
        if let Some((_, Value::Map(scopes))) = scopes
            && let Some((_, known)) = scopes.into_iter().find(|(known, _)| known == name)
        {
            return known;
        }
        let scope = self.judge.intern(name);
        self.judge.scope_stats(self.now.millis(), scope)
    }

    /// The learned state, as of `Boundary::snapshot`.
    pub fn snapshot(&mut self, now: Instant, wall_ms: f64) -> Value {
        self.at(now);
        let now = self.now;
        match (&mut self.state, &mut self.alone) {
            (State::Leading(_, leader), _) => {
                leader.engine.snapshot(leader.clock.peek(now).millis(), wall_ms)
            }
            (_, Some(alone)) => alone.engine.snapshot(alone.clock.peek(now).millis(), wall_ms),
            _ => {
                self.judge_by_memory();
                self.judge.snapshot(now.millis(), wall_ms)
            }
        }
    }

    /// `warnThreshold` of this process's options.
    pub fn warn_threshold(&self) -> u32 {
        self.config.warn_threshold
    }

    /// `retries` of this process's options.
    pub fn retries(&self, method: &str) -> u32 {
        self.config.retry.retries(method)
    }

    /// Lets the judge know what the leader knew when it was last heard.
    fn judge_by_memory(&mut self) {
        let Some(kept) = &self.member.memory else { return };
        if self.judged == Some(kept.number) {
            return;
        }
        self.judged = Some(kept.number);
        let Some(memory) = stored::memory(&kept.bytes) else { return };
        let (now, age) = (self.now.millis(), self.now.since(kept.at).millis());
        let snapshot = map(memory.snapshot.0, |key, value| match key {
            "wallMs" => WALL_MS.into(),
            _ => value,
        });
        if self.judge.restore(snapshot, now, WALL_MS + age).is_ok() {
            for (name, partial) in memory.settings {
                let scope = self.judge.scope(&name);
                // It was right where it was set.
                let _ = self.judge.configure(now, scope, partial.0);
            }
            self.judge.take_notices();
        }
    }
}

/// All statistics, and then those of what changed: the last of each scope, by this process's clock.
fn together(pieces: &[Vec<u8>], at: Instant, now: Instant) -> Option<Value> {
    let read = |bytes: &Vec<u8>| read_all::<(Number, Plain)>(bytes.get(1..)?);
    let (Number(newest), _) = read(pieces.last()?)?;
    let (mut totals, mut scopes) = (Vec::new(), VecMap::<String, Value>::default());
    for piece in pieces {
        let (_, Plain(Value::Map(entries))) = read(piece)? else { return None };
        totals = Vec::new();
        for (key, value) in entries {
            match value {
                Value::Map(all) if key == "scopes" => {
                    for (name, scope) in all {
                        scopes.insert(name, scope);
                    }
                }
                value => totals.push((key, value)),
            }
        }
    }
    totals.push(("scopes".into(), Value::Map(scopes.into_iter().collect())));
    Some(shifted(Value::Map(totals), at.millis() - newest, now.since(at).millis()))
}

/// Statistics by a clock that is ahead by this many milliseconds.
fn shifted(stats: Value, ms: f64, age_ms: f64) -> Value {
    let stats = map(stats, |key, value| match key {
        "scopes" => map(value, |_, scope| {
            map(scope, |key, value| match (key, value) {
                ("holdUntil" | "recoversAt", Value::Number(at)) => Value::Number(at + ms),
                (_, value) => value,
            })
        }),
        _ => value,
    });
    let Value::Map(mut entries) = stats else { return stats };
    entries.retain(|(key, _)| key != "ageMs");
    entries.push(("ageMs".into(), age_ms.into()));
    Value::Map(entries)
}

/// Where two options differ: the path, and both values as people would type them.
pub fn differences(path: &str, one: &Value, other: &Value, differ: &mut Vec<[String; 3]>) {
    let nothing = Value::Map(Vec::new());
    let is_map = |value: &Value| matches!(value, Value::Map(_));
    let is_empty = |value: &Value| *value == Value::Nothing;
    if is_map(one) && (is_map(other) || is_empty(other)) || is_empty(one) && is_map(other) {
        let (one, other) =
            (if is_map(one) { one } else { &nothing }, if is_map(other) { other } else { &nothing });
        let (Value::Map(ones), Value::Map(others)) = (one, other) else { return };
        let find = |entries: &[(String, Value)], key: &str| {
            let found = entries.iter().find(|(known, _)| known == key);
            found.map_or(Value::Nothing, |(_, value)| value.clone())
        };
        let new = others.iter().filter(|(key, _)| !ones.iter().any(|(known, _)| known == key));
        for (key, _) in ones.iter().chain(new) {
            differences(&join(path, key), &find(ones, key), &find(others, key), differ);
        }
    } else if one != other {
        differ.push([path.into(), typed(one), typed(other)]);
    }
}

fn typed(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(typed).collect::<Vec<_>>().join(", ")),
        Value::Number(number) => number_text(*number),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key}: {}", typed(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.describe(),
    }
}
