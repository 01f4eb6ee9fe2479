//! A process that hears no other for long: it waits, fails what waits, or goes on alone with its part.

use autothrottle::Span;

use crate::{
    api::{Offline, Refusal, Warning},
    group::PATIENCE,
    leader::{Beginning, Leader},
    machine::{Shared, Unheard},
    stored,
};

impl Shared {
    /// Whether others are known to use the limit that this process does not hear: then no part of it is this
    /// process's alone. When one of another version dies, its lease ends before the others take over, and
    /// they are silent until then.
    pub(crate) fn others_live(&self) -> bool {
        let lease = self.settings.lease;
        self.way.others.is_some_and(|(at, how)| {
            let rest = if matches!(how, Unheard::Foreign(_)) { PATIENCE } else { lease };
            self.now.since(at) <= lease + rest
        })
    }

    /// Whether those that live speak another version.
    pub(crate) fn hears_foreign(&self) -> bool {
        matches!(self.way.others, Some((_, Unheard::Foreign(_)))) && self.others_live()
    }

    /// A process that is offline waits as long as it knows that others live.
    pub(crate) fn go_offline(&mut self) {
        let lives = self.others_live();
        if lives && self.alone.take().is_some() {
            self.member.alone = None;
            self.member.waits_again();
            self.member.open();
        } else if self.way.offline_since.is_some() && (lives || !self.way.waits_for_others) {
            return;
        }
        self.way.waits_for_others = lives;
        self.way.offline_since.get_or_insert(self.now);
        match self.way.others {
            Some((_, Unheard::Foreign(theirs))) if lives => {
                let why = "processes of protocol version ";
                self.way.cause = format!("{why}{theirs} share this limit, and this one cannot read them");
            }
            Some((_, Unheard::Leads)) if lives => {
                self.way.cause = "another process decides, and its messages do not arrive".into();
            }
            _ if self.way.cause.is_empty() => self.way.cause = "no writer answers".into(),
            _ => {}
        }
        let share = self.member.rank.map(|(rank, of)| (of.max(1), rank));
        let share = share.or(self.settings.members.map(|of| (of.max(1), u32::MAX)));
        let does = match (self.settings.offline, share) {
            (Some(Offline::Fail), _) => Offline::Fail,
            (Some(Offline::Wait), _) | (_, None) => Offline::Wait,
            _ if lives => Offline::Wait,
            (Some(Offline::Divide) | None, Some(_)) => Offline::Divide,
        };
        let why = self.way.cause.clone();
        // Whether it ever met them is no matter where they are known to live.
        let members = share.map(|(of, _)| of).or(lives.then_some(0));
        self.warn(Warning::Offline { does, members, why: why.clone() });
        if does == Offline::Fail {
            self.fail_all(&Refusal::Offline(why));
        }
        if let (Offline::Divide, Some(share)) = (does, share) {
            self.go_alone(share);
        }
        self.moved();
    }

    pub(crate) fn go_alone(&mut self, share: (u32, u32)) {
        let kept = self.member.memory.clone();
        let memory = kept.as_ref().and_then(|kept| stored::memory(&kept.bytes));
        let age = kept.map_or(Span::ZERO, |kept| self.now.since(kept.at));
        let who = (self.id, self.member.epoch, self.lease_span());
        let beginning = Beginning { memory, age, share: Some(share), ..Beginning::default() };
        if let Ok(mut alone) = Leader::new(self.now, who, &self.options.0, beginning) {
            alone.skips_quotas = self.settings.offline.is_none();
            self.alone = Some(Box::new(alone));
            self.member.alone = Some((self.now, share.0));
            self.member.open();
        }
    }
}
