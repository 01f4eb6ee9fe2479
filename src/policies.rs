//! The policies that a scope may have or not: those of the list in `policy/mod.rs`.
//!
//! Each of these is made, configured, told of sends and answers, asked, remembered and forgotten by the same
//! code. Parts that every scope has (slots, the delay between sends, backoff, quotas) are composed in
//! `scope`.

use crate::{
    config::{ScopeConfig, Typed},
    decision::{Reason, Verdict},
    policy::{self, Ended, Numbers, Policy, Sent, delay, optional_policies, quota::Cost},
    time::{Instant, Span},
};

macro_rules! policies {
    ($($name:ident: $config:expr, $reason:expr;)*) => {
        /// The states of a scope's optional policies.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Policies {
            $($name: Option<Box<policy::$name::State>>,)*
        }

        /// Their memory: a few numbers each.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Memory {
            $(
                #[allow(missing_docs, reason = "called as the policy is")]
                pub $name: Numbers,
            )*
        }

        impl Memory {
            /// Visits each number, with its key in a snapshot and the largest that makes sense.
            pub(crate) fn each(&mut self, visit: &mut dyn FnMut(&'static str, f64, &mut Option<f64>)) {
                for (keys, numbers) in [$((<policy::$name::State>::KEYS, &mut self.$name),)*] {
                    for (&(key, most), number) in keys.iter().zip(numbers) {
                        visit(key, most, number);
                    }
                }
            }
        }

        impl Policies {
            /// Those that the settings ask for, before anything is known.
            pub fn fresh(config: &ScopeConfig) -> Self {
                Self {
                    $($name: $config(config).map(|own| Box::new(<policy::$name::State>::fresh(&own))),)*
                }
            }

            /// Whether there are none: the usual case.
            #[inline]
            pub fn is_empty(&self) -> bool {
                true $(&& self.$name.is_none())*
            }

            /// Whether one of them learns from answers.
            #[inline(always)]
            pub fn learn(&self) -> bool {
                false $(|| <policy::$name::State>::LEARNS && self.$name.is_some())*
            }

            /// Whether one of them finds the pace by itself.
            pub fn finds_pace(&self) -> bool {
                false $(|| <policy::$name::State>::FINDS_PACE && self.$name.is_some())*
            }

            /// Takes new settings; `last` is the scope's last send.
            pub fn on_configure(&mut self, old: &ScopeConfig, new: &ScopeConfig, last: Option<Instant>) {
                $(
                    match (&mut self.$name, $config(old), $config(new)) {
                        (state, _, None) => *state = None,
                        (Some(_), Some(before), Some(now)) if before == now => {}
                        (Some(state), Some(before), Some(now)) => {
                            **state = Policy::on_configure(**state, &before, &now, last);
                        }
                        (state, _, Some(now)) => {
                            *state = Some(Box::new(<policy::$name::State>::turned_on(&now, last)));
                        }
                    }
                )*
            }

            /// A request waits, and none did.
            #[inline]
            pub fn on_wait(&mut self, now: Instant) {
                $(if let Some(state) = &mut self.$name {
                    **state = Policy::on_wait(**state, now);
                })*
            }

            /// A request leaves.
            pub fn on_send(&mut self, config: &ScopeConfig, sent: &Sent) {
                $(if let Some(state) = &mut self.$name && let Some(config) = $config(config) {
                    Policy::sends(&mut **state, &config, sent);
                })*
            }

            /// The last one that left did so only now.
            pub fn on_sent_at(&mut self, at: Instant) {
                $(if let Some(state) = &mut self.$name {
                    **state = Policy::on_sent_at(**state, at);
                })*
            }

            /// The request that left at `sent` for `expected` turned out to cost `actual`.
            pub fn on_actual(
                &mut self,
                config: &ScopeConfig,
                now: Instant,
                sent: Instant,
                expected: Cost,
                actual: Cost,
            ) {
                $(if let Some(state) = &mut self.$name && let Some(config) = $config(config) {
                    **state = Policy::on_actual(**state, &config, now, sent, expected, actual);
                })*
            }

            /// A request ended.
            pub fn on_end(&mut self, config: &ScopeConfig, ended: &Ended) {
                $(if let Some(state) = &mut self.$name && let Some(config) = $config(config) {
                    **state = Policy::on_end(**state, &config, ended);
                })*
            }

            /// Forgets what was learned.
            pub fn reset(&mut self, config: &ScopeConfig) {
                $(if let Some(state) = &mut self.$name && let Some(config) = $config(config) {
                    **state = Policy::reset(**state, &config);
                })*
            }

            /// The delay in milliseconds in place of the one in the settings.
            pub fn delay_ms(&self) -> Option<f64> {
                let mut longest = None::<f64>;
                $(if let Some(ms) = self.$name.as_ref().and_then(|state| Policy::delay_ms(&**state)) {
                    longest = Some(longest.map_or(ms, |longest| longest.max(ms)));
                })*
                longest
            }

            /// The longest gap that one of them keeps.
            pub fn gap(&self, config: &ScopeConfig) -> Option<Span> {
                let mut longest = None;
                $(if let Some(state) = &self.$name && let Some(config) = $config(config) {
                    longest = longest.max(Policy::gap(&**state, &config));
                })*
                longest
            }

            /// The most requests in flight.
            pub fn slots(&self) -> u32 {
                let mut least = u32::MAX;
                $(if let Some(state) = &self.$name {
                    least = least.min(Policy::slots(&**state));
                })*
                least
            }

            /// The most that one request may cost: the strictest bound of them all.
            pub fn most(config: &ScopeConfig) -> Option<Cost> {
                let most = [$($config(config).and_then(|config| <policy::$name::State>::most(&config)),)*];
                most.into_iter().flatten().min()
            }

            /// The limit that keeps a request of this cost. A gap that a policy found is exact, unless the
            /// user wants a spread.
            pub fn verdict(&self, config: &ScopeConfig, now: Instant, sends: delay::State, cost: Cost) -> Verdict {
                let mut strictest = Verdict::Go;
                $(if let Some(state) = &self.$name && let Some(own) = $config(config) {
                    let at = if <policy::$name::State>::FINDS_PACE && config.typed.has(Typed::JITTER) {
                        let gap = Policy::gap(&**state, &own);
                        let spread = gap.and_then(|gap| sends.next(gap, config.jitter));
                        spread.max(Policy::pause(&**state, &own))
                    } else {
                        Policy::next(&**state, &own, cost)
                    };
                    strictest = strictest.max(Verdict::not_before(now, at, $reason));
                })*
                strictest
            }

            /// Whether none of them learned anything worth keeping.
            pub fn are_fresh(&self, config: &ScopeConfig) -> bool {
                true $(&& match (&self.$name, $config(config)) {
                    (Some(state), Some(config)) => Policy::is_fresh(&**state, &config),
                    _ => true,
                })*
            }

            /// Whether no policy is owed anything.
            pub fn are_free(&self, now: Instant) -> bool {
                true $(&& self.$name.as_ref().is_none_or(|state| Policy::is_free(&**state, now)))*
            }

            /// The state that is worth a snapshot.
            pub fn remember(&self, config: &ScopeConfig, now: Instant) -> Memory {
                Memory {
                    $($name: match (&self.$name, $config(config)) {
                        (Some(state), Some(config)) => Policy::remember(&**state, &config, now),
                        _ => Numbers::default(),
                    },)*
                }
            }

            /// Takes up what was remembered; `offline` has passed since.
            pub fn recall(&mut self, config: &ScopeConfig, now: Instant, offline: Span, memory: &Memory) {
                $(if let (Some(state), Some(config)) = (&mut self.$name, $config(config))
                    && memory.$name != Numbers::default()
                {
                    **state = Policy::recall(**state, &config, now, offline, memory.$name);
                })*
            }
        }
    };
}

optional_policies!(policies);
