//! The cases that every host plays: `tests/vectors/llm-budgets.jsonl`. Here a schedule stands for the engine.

use autothrottle_llm::{Budgets, Kind, Pace, Plan, Reported, Settings, Size, Usage, Vendor};
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
