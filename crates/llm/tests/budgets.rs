//! The cases that every host plays: `tests/vectors/llm-budgets.jsonl`. Here a schedule stands for the engine.

use autothrottle_llm::{
    Budgets, Kind, LARGEST, Pace, Plan, Reported, Settings, Size, Usage, Vendor, reported,
};
use serde_json::Value;

/// A scope with a rate, as the engine keeps it: when its bucket is full.
#[derive(Clone, Copy, Default)]
struct Scope {
    full_at: f64,
    last: Option<f64>,
    /// Milliseconds of one, once there is a rate.
    gap: Option<f64>,
    burst: f64,
}

impl Scope {
    fn pace(&mut self, pace: Pace) {
        let Pace { limit, window, burst: Some(burst), .. } = pace else { return };
        let gap = window / limit;
        if let Some(last) = self.last {
            let missing = self.gap.map_or(1.0, |gap| (self.full_at - last).max(0.0) / gap);
            self.full_at = last + missing.min(burst) * gap;
        }
        (self.gap, self.burst) = (Some(gap), burst);
    }

    fn take(&mut self, now: f64, more: f64) {
        let from = if more > 0.0 { self.full_at.max(now) } else { self.full_at };
        self.full_at = from + more * self.gap.unwrap_or(0.0);
    }

    fn wait(&self, now: f64, cost: f64) -> f64 {
        let Some(gap) = self.gap else { return 0.0 };
        (self.full_at + (cost - self.burst) * gap - now).max(0.0)
    }
}

struct Host {
    budgets: Budgets,
    scopes: [Scope; 7],
    /// The name of each call, and its costs by the number of its kind.
    calls: Vec<(String, u32, [f64; 7])>,
}

impl Host {
    fn new(case: &Value) -> Self {
        let limit = &case["limit"];
        let settings = Settings {
            vendor: Vendor::named(case["vendor"].as_str().unwrap()),
            limits: ["rpm", "rpd", "tpm", "itpm", "otpm"].map(|key| limit[key].as_f64().unwrap_or(0.0)),
            is_sliding: limit["sliding"].as_bool(),
            is_cached_free: limit["cached"].as_str().map(|word| word == "free"),
            headroom: case["headroom"].as_f64().unwrap_or(0.98),
            is_max: case["isMax"].as_bool(),
            is_counted: case["isCounted"].as_bool().unwrap_or(false),
            concurrency: 16.0,
        };
        let mut host = Self { budgets: Budgets::new(&settings), scopes: <_>::default(), calls: Vec::new() };
        host.after(0.0);
        host
    }

    fn call(&self, name: &Value) -> u32 {
        self.calls.iter().find(|(known, ..)| name == known.as_str()).unwrap().1
    }

    /// A host does this after each verb.
    fn after(&mut self, now: f64) {
        for change in self.budgets.changes() {
            if let Some(pace) = change.pace {
                self.scopes[change.kind as usize].pace(pace);
            }
        }
        let waits = Kind::ALL.map(|kind| {
            self.budgets.asks(kind).map_or(f64::NAN, |cost| self.scopes[kind as usize].wait(now, cost))
        });
        for charge in self.budgets.carry(now, &waits) {
            let (_, _, costs) = self.calls.iter_mut().find(|(_, id, _)| *id == charge.call).unwrap();
            let before = core::mem::replace(&mut costs[charge.kind as usize], charge.cost);
            self.scopes[charge.kind as usize].take(now, charge.cost - before);
        }
    }

    fn play(&mut self, step: &Value) -> (Option<Plan>, Option<bool>) {
        let now = step["at"].as_f64().unwrap();
        let number = |key: &str| step[key].as_f64();
        let (mut planned, mut estimated) = (None, None);
        if let Some(name) = step["begin"].as_str() {
            let amount = |key: &str| number(key).unwrap();
            let size = Size {
                characters: amount("characters"),
                bytes: amount("bytes"),
                tokens: amount("tokens"),
                bound: number("bound"),
            };
            let plan = self.budgets.plan(&size);
            for &kind in &self.budgets.kinds {
                let scope = &mut self.scopes[kind as usize];
                scope.take(now, plan.costs[kind as usize]);
                scope.last = Some(now);
            }
            let id = self.budgets.begin(now, size, &plan);
            self.calls.push((name.into(), id, plan.costs));
            planned = Some(plan);
        } else if !step["report"].is_null() {
            for told in step["limits"].as_array().unwrap() {
                let (kind, limit) =
                    (Kind::named(told[0].as_str().unwrap()).unwrap(), told[1].as_f64().unwrap());
                let told = Reported { kind, limit, left: told[2].as_f64(), per: told[3].as_f64().unwrap() };
                self.budgets.report(now, self.call(&step["report"]), &told, number("wait"));
            }
        } else if !step["answered"].is_null() {
            let is_stream = step["isStream"].as_bool().unwrap_or(false);
            self.budgets.answered(self.call(&step["answered"]), is_stream);
        } else if !step["wrote"].is_null() {
            let call = self.call(&step["wrote"]);
            let is_due = self.budgets.wrote(call, number("input"), number("written").unwrap());
            let asked = Kind::ALL.iter().any(|&kind| self.budgets.asks(kind).is_some());
            assert!(is_due || !asked, "what is due is said");
        } else if !step["refused"].is_null() {
            let kind = step["kind"].as_str().and_then(Kind::named);
            self.budgets.refused(now, self.call(&step["refused"]), kind, number("wait").unwrap_or(0.0));
        } else if !step["gone"].is_null() {
            self.budgets.gone(self.call(&step["gone"]), step["wasSent"] == true);
        } else {
            let free = number("free").unwrap_or(0.0);
            let usage = Usage { input: number("input"), free, output: number("output") };
            let written = number("written").unwrap_or(0.0);
            let call = self.call(&step["ended"]);
            estimated = Some(self.budgets.ended(now, call, &usage, written, step["isWhole"] != false));
        }
        self.after(now);
        (planned, estimated)
    }
}

#[test]
fn each_case_is_played_as_it_says() {
    let mut wrong = Vec::new();
    for line in include_str!("../../../tests/vectors/llm-budgets.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect(line);
        let mut host = Host::new(&case);
        for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let (planned, estimated) = host.play(step);
            let (is, now) = (&step["is"], step["at"].as_f64().unwrap());
            let mut check = |what: &str, seen: f64, want: &Value| {
                if !want.as_f64().is_some_and(|want| (seen - want).abs() < 0.1) {
                    wrong.push(format!("{} step {at}: {what}: {seen}, not {want}", case["name"]));
                }
            };
            for kind in Kind::ALL {
                if let (Some(plan), true) = (planned, host.budgets.kinds.contains(&kind)) {
                    check(kind.name(), plan.costs[kind as usize], &is["costs"][kind.name()]);
                }
                if let Some(cost) = case["asks"][kind.name()].as_f64() {
                    check(kind.name(), host.scopes[kind as usize].wait(now, cost), &is["waits"][kind.name()]);
                }
            }
            assert_eq!(estimated, is["estimated"].as_bool(), "{} step {at}", case["name"]);
            let known = [host.budgets.is_known, host.budgets.needs_usage()];
            assert_eq!(
                known.map(Some),
                [0, 1].map(|at| is["known"][at].as_bool()),
                "{} step {at}",
                case["name"]
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_limit_that_makes_no_sense_is_none() {
    let limit = |limit| reported(Some(Vendor::OpenAi), "tokens", limit, 1.0, 6e4).map(|told| told.limit);
    assert_eq!(limit(LARGEST), Some(LARGEST));
    for senseless in [1e14, f64::INFINITY, f64::NAN, 0.0, -1.0] {
        assert_eq!(limit(senseless), None, "{senseless}");
    }
}

/// Verbs come in any order, with sound and extreme numbers. Each charge is a cost, and the engine takes each
/// pace.
#[test]
fn no_verb_makes_a_charge_that_is_no_cost() {
    let mut state = 7_u64;
    let mut dice = |sides: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % sides
    };
    let amounts = [0.0, 1e-9, 0.5, 1.0, 20.0, 300.0, 7e3, 1e5, 3e7, LARGEST];
    for round in 0..2000 {
        let limits = [(); 5].map(|()| [0.0, 0.0, 1e-3, 60.0, 5e4, 1e9][dice(6)]);
        let mut budgets = Budgets::new(&Settings {
            vendor: [None].into_iter().chain(Vendor::ALL.map(Some)).nth(dice(8)).unwrap(),
            limits,
            is_sliding: [None, Some(true), Some(false)][dice(3)],
            is_cached_free: None,
            headroom: [0.98, 1.0, 1e-3][dice(3)],
            is_max: [None, Some(true)][dice(2)],
            is_counted: dice(2) == 0,
            concurrency: 16.0,
        });
        let (mut now, mut calls) = (0.0, vec![0]);
        for _ in 0..40 {
            now += [0.0, 1.0, 50.0, 6e4, 1e7][dice(5)];
            let mut amount = || amounts[dice(amounts.len())];
            let size =
                Size { characters: amount(), bytes: amount(), tokens: amount(), bound: Some(amount()) };
            let (first, second, third) = (amount(), amount(), amount());
            let call = calls[dice(calls.len())];
            let kind = Kind::ALL[dice(7)];
            match dice(8) {
                0 | 1 => {
                    let plan = budgets.plan(&size);
                    calls.push(budgets.begin(now, size, &plan));
                }
                2 => drop(budgets.wrote(call, Some(first), second)),
                3 => {
                    let per = [1000.0, 6e4, 8.64e7][dice(3)];
                    let told = Reported { kind, limit: first.max(1e-9), left: Some(second), per };
                    budgets.report(now, call, &told, [None, Some(third)][dice(2)]);
                }
                4 => budgets.answered(call, dice(2) == 0),
                5 => budgets.gone(call, dice(2) == 0),
                6 => budgets.refused(now, call, Some(kind), first),
                _ => {
                    let usage = Usage { input: Some(first), free: second, output: Some(third) };
                    budgets.ended(now, call, &usage, first, dice(2) == 0);
                }
            }
            for change in budgets.changes() {
                let Some(pace) = change.pace else { continue };
                assert!(pace.limit > 0.0 && pace.limit.is_finite() && pace.burst.is_none_or(|it| it >= 1.0));
            }
            let waits = Kind::ALL.map(|_| [0.0, 1e3, 1e9, f64::INFINITY, f64::NAN][dice(5)]);
            for charge in budgets.carry(now, &waits) {
                assert!(charge.cost >= 0.0 && charge.cost.is_finite(), "{round}: {charge:?}");
                assert!(budgets.asks(charge.kind).is_none(), "all of it is carried out");
            }
        }
    }
}
