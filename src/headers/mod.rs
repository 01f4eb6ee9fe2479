//! What a server says about its limits, read by [`autothrottle_reading`]; and how it is shown to people.

mod describe;

pub use autothrottle_reading::headers::{
    AppliesTo, Context, Hints, Parts, Quota, SAYS_SOMETHING, says_something,
};
