//! A call on its way: how large it is, and its share in each budget.

use crate::rules::Kind;

/// The kinds of budgets.
pub(crate) const KINDS: usize = Kind::ALL.len();

/// How large a call is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Characters of its input.
    pub characters: f64,
    /// The same in bytes of UTF-8.
    pub bytes: f64,
    /// Tokens of the input that are known as they are.
    pub tokens: f64,
    /// Tokens that may come out at most; `None` where the call does not say.
    pub bound: Option<f64>,
}

/// The expected size of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    /// Tokens of the input.
    pub input: f64,
    /// Tokens of the output.
    pub output: f64,
    /// The amount that it takes of each kind of budget.
    pub costs: [f64; KINDS],
}

/// The cost of a call in a budget from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Charge {
    /// The call, as [`begin`](crate::Budgets::begin) named it.
    pub call: u32,
    /// The budget.
    pub kind: Kind,
    /// All that it costs there.
    pub cost: f64,
}

/// The share of a call in one budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// By now, without corrections; and those.
    pub charged: f64,
    pub corrected: f64,
    /// Both, and what the host knows of it.
    pub cost: f64,
    pub reported: f64,
    /// The vendor's level at the time that the call left; NaN where that is not known.
    pub level: f64,
    /// The charges of calls of the same moment: the vendor may have had them before it, or after.
    pub mates: f64,
}

/// A call that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub id: u32,
    pub size: Size,
    pub sent_at: f64,
    /// Tokens that the vendor has charged, as far as we know.
    pub input: f64,
    pub output: f64,
    pub parts: [Part; KINDS],
    pub written: f64,
    pub is_stream: bool,
    /// Its answer is not over.
    pub is_open: bool,
}

impl Call {
    /// One that leaves now.
    pub fn new(id: u32, size: Size, sent_at: f64, plan: &Plan) -> Self {
        let part = |cost| Part { charged: cost, cost, reported: cost, level: f64::NAN, ..Part::default() };
        Self {
            id,
            size,
            sent_at,
            input: plan.input,
            output: plan.output,
            parts: plan.costs.map(part),
            written: 0.0,
            is_stream: false,
            is_open: true,
        }
    }

    /// The tokens of an answer that is not seen, at this number of them a second.
    pub fn written_so_far(&self, now: f64, speed: f64) -> f64 {
        let written = (now - self.sent_at) / 1000.0 * speed;
        self.size.bound.map_or(written, |bound| written.min(bound))
    }
}
