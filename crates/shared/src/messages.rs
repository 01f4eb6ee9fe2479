//! The messages that a host shows to people, in one place for all languages. Each says what happened, why,
//! and what follows.

use autothrottle::{Instant, SharedStats, Span, Value};

use crate::api::{Offline, Refusal, Role, Status, Warning};

impl Warning {
    /// For programs: unlike that of any other kind.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadMessage { .. } => "group-bad-message",
            Self::Version { .. } => "group-version",
            Self::StateLost => "group-state-lost",
            Self::Options { .. } => "group-options",
            Self::Offline { .. } => "group-offline",
            Self::Online => "group-online",
            Self::SilentConnection { .. } => "group-silent",
            Self::TwoWriters { .. } => "group-two-writers",
            Self::GroupFull { .. } => "group-full",
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        match self {
            Self::BadMessage { count } => format!("a message is not well formed, and dropped ({count} so far)"),
            Self::Version { theirs } => {
                format!("a process runs protocol version {theirs}, which this one cannot read: deploy one release")
            }
            Self::StateLost => {
                "the state of the last writer cannot be read: the group starts anew, and a strict quota waits for a window".into()
            }
            Self::Options { differ, agree: (agree, all) } => {
                let each = |[path, counts, ours]: &[String; 3]| {
                    format!("{path}: {counts} counts, here it is {ours}")
                };
                let what: Vec<String> = differ.iter().map(each).collect();
                let what = if what.is_empty() { "options differ".into() } else { what.join("; ") };
                format!(
                    "a process shares the limit with other options ({what}); {agree} of {all} processes have those that count"
                )
            }
            Self::Offline { does, members, why } => {
                let does = match (does, members) {
                    (Offline::Divide, Some(members)) => {
                        format!("goes on alone with 1/{members} of every limit; requests of a strict quota wait")
                    }
                    (Offline::Fail, _) => "fails what waits".into(),
                    (_, None) => {
                        "waits, since it never reached the others; set `members` to how many there are".into()
                    }
                    _ => "waits".into(),
                };
                format!("the connection to the group is broken ({why}): this process {does}")
            }
            Self::Online => "the connection to the group is back".into(),
            Self::SilentConnection { speaks: true } => {
                "the connection that carries this process's commands to the group is open and answers nothing: \
                 another one is made in its place"
                    .into()
            }
            Self::SilentConnection { speaks: false } => {
                "the connection by which this process hears the group is open and carries no message: it is \
                 made anew"
                    .into()
            }
            Self::TwoWriters { ours } => format!(
                "another process has the writer's lease, too (epoch {ours}), so a limit may count twice: the store \
                 lost data, or this machine was suspended or too busy"
            ),
            Self::GroupFull { here } => {
                let which = if *here { "this" } else { "another" };
                format!("the group has as many processes as it may have: {which} one is not served")
            }
        }
    }
}

impl From<&Refusal> for Value {
    /// The kind, and the details.
    fn from(refusal: &Refusal) -> Self {
        let items: Vec<Self> = match refusal {
            Refusal::Full => vec!["full".into()],
            Refusal::Cost { scope, path } => vec!["cost".into(), scope.as_str().into(), path.as_str().into()],
            Refusal::Down { scope, span } => vec!["down".into(), scope.as_str().into(), span.millis().into()],
            Refusal::Wrong(why) => vec!["wrong".into(), why.as_str().into()],
            Refusal::Offline(why) => vec!["offline".into(), why.as_str().into()],
            Refusal::Denied(why) => vec!["denied".into(), why.as_str().into()],
        };
        Self::List(items)
    }
}

impl From<&Status> for SharedStats {
    /// As `stats().shared` says it. Instants are milliseconds of the process's own clock.
    fn from(status: &Status) -> Self {
        Self {
            writer: status.leader.map(|id| id.to_string()),
            is_writer: status.role == Role::Leader,
            epoch: status.epoch,
            members: status.members,
            lead_ms: status.lead.millis(),
            round_trip_ms: status.round_trip.map(Span::millis),
            last_heard_at: status.heard.map(Instant::millis),
            offline_since: status.offline_since.map(Instant::millis),
            debt_ms: status.debt.millis(),
        }
    }
}

impl From<&Status> for Value {
    fn from(status: &Status) -> Self {
        Self::from(&SharedStats::from(status))
    }
}

#[cfg(test)]
mod tests {
    use autothrottle::WARNINGS;

    /// The codes of [`super::Warning::code`], as they stand in this file, are those of the rows.
    #[test]
    fn each_code_has_a_row_and_each_row_of_a_group_its_code() {
        let source = include_str!("messages.rs");
        let (_, arms) = source.split_once("fn code(").expect("the codes stand here");
        let (arms, _) = arms.split_once("fn text(").expect("the sentences follow");
        let mut here: Vec<&str> = arms.split('"').skip(1).step_by(2).collect();
        let rows = WARNINGS.iter().map(|row| row.code);
        let mut there: Vec<&str> = rows.filter(|code| code.starts_with("group-")).collect();
        here.sort_unstable();
        there.sort_unstable();
        assert_eq!(here, there);
    }
}
