//! A member's record of its leader's frames: who may leave, what it has stored, and whether something was
//! lost.

use autothrottle::{Instant, Span};

use crate::{
    api::{Refusal, Ticket},
    clock::age,
    frame::{Grant, GrantId, Head, Reply, reply},
    member::{AHEAD, LONG, Member, SOON, Stage},
};

impl Member {
    /// The leader answers. `gone` are requests that it refuses.
    pub fn on_reply(
        &mut self,
        now: Instant,
        lease: Span,
        head: &Head,
        mut reply: Reply,
        is_local: bool,
        gone: &mut Vec<(Ticket, Refusal)>,
    ) {
        if head.epoch != self.epoch || self.wants_open {
            return;
        }
        if head.session != self.session {
            return self.open_again(now, lease);
        }
        self.is_busy = reply.has(reply::BUSY);
        if reply.has(reply::ENDS) {
            self.round += 1;
            self.say_all(now);
        }
        if reply.batches >= self.used.1 {
            self.used = (0, 0);
        }
        let age = if is_local { Span::ZERO } else { age(now, head).unwrap_or(lease) };
        self.fresh = now + Span::from_micros(lease.micros() / 2) - age;
        if self.alone.is_none() {
            self.rank = Some(reply.rank);
            self.debt = Span::ZERO;
        }
        while let Some((_, fact)) = self.log.front()
            && fact.seq() <= reply.durable
        {
            self.log.pop_front();
        }
        if reply.number > self.replies && self.beyond.add(reply.number, ()) {
            while self.beyond.remove(&(self.replies + 1)).is_some() {
                self.replies += 1;
            }
            let by = GrantId { epoch: head.epoch, session: head.session, number: reply.number };
            self.granted(now, lease, head, &reply, by, is_local);
            for (id, why) in core::mem::take(&mut reply.refused) {
                if self.requests.get(&id).is_some_and(|pending| pending.stage == Stage::Waiting) {
                    self.forget(id);
                    gone.push((id, why));
                }
            }
        }
        self.looks(now, lease, &reply);
    }

    /// Whether something was lost. Frames overtake each other, so the first replies after a look say less
    /// than it knew: the next look is when all of that has come.
    fn looks(&mut self, now: Instant, lease: Span, reply: &Reply) {
        let (least, most) = (lease.micros() / 20, lease.micros() / 4);
        let way = self.clock.there_and_back().map_or(most, |span| span.micros().saturating_mul(4));
        if now.since(self.looked_at).micros() < way.clamp(least, most) {
            return;
        }
        let is_missing = reply.batches < self.before.0 || self.replies < self.before.1;
        (self.before, self.looked_at) = ((self.batches, reply.replies), now);
        if is_missing {
            self.open_again(now, lease);
        }
    }

    fn granted(
        &mut self,
        now: Instant,
        lease: Span,
        head: &Head,
        reply: &Reply,
        by: GrantId,
        is_local: bool,
    ) {
        let is_exact = reply.has(reply::EXACT);
        let at =
            if is_local { Some(Instant::from_micros(reply.at)) } else { self.clock.ours(reply.at, is_exact) };
        let ahead = Span::from_micros(reply.at.saturating_sub(head.stamp));
        let age = if is_local { Some(Span::ZERO) } else { age(now, head) };
        let doubt = self.clock.doubt().filter(|_| is_exact && !is_local).unwrap_or_default();
        let tells = if is_exact { 2 } else { usize::from(reply.has(reply::AWAITED)) };
        let free = reply.has(reply::FREE).then_some(self.round);
        for &Grant { id, attempt, later } in &reply.grants {
            let Some(pending) = self.requests.get_mut(&id) else { continue };
            if pending.stage != Stage::Waiting || pending.attempt != attempt {
                continue;
            }
            let is_old = age.is_none_or(|age| age > reply.valid + ahead + later);
            let (at, until) = match at {
                Some(at) if !is_old => ((at + later).min(now + lease), at + later + reply.valid),
                // Its age is unknown, so it is given back when it is polled.
                _ => (now - Span::from_micros(2), now - Span::from_micros(1)),
            };
            let tells = if later > Span::ZERO && !is_exact { AHEAD } else { tells };
            pending.stage = Stage::Granted { at, until, due: at - doubt, by, tells, free };
            self.ready.insert((at, id));
            if reply.soon > Span::ZERO {
                self.long = Some((pending.what.clone(), reply.soon.min(SOON), now + LONG));
            }
        }
    }
}
