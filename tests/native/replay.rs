//! Every trace against the answers that stand in it. `UPDATE_GOLDEN=1` writes them: review them as behaviour.

use std::{fmt::Write, fs};

use crate::player::play;

#[test]
fn every_trace_has_the_answers_that_stand_in_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces.txt");
    let text = fs::read_to_string(path).unwrap();
    let mut stories = text.split("\n== ");
    let mut written = stories.next().unwrap().trim_end().to_owned();
    let (mut wrong, mut count) = (String::new(), 0);
    for story in stories {
        let (name, story) = story.split_once('\n').unwrap();
        let transcript = play(story);
        if transcript.trim_end() != story.trim_end() {
            write!(wrong, "--- {name}\n{transcript}").unwrap();
        }
        write!(written, "\n\n== {name}\n{}", transcript.trim_end()).unwrap();
        count += 1;
    }
    assert!(count >= 47, "only {count} traces");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, written + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
}
