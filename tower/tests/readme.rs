//! The code in the README is the example, which is compiled.

#[test]
fn the_readme_shows_the_example() {
    let page = include_str!("../README.md");
    let example = include_str!("../examples/reqwest.rs");
    let (_, code) = example.split_once("\n\n").expect("a line about it, then the code");
    assert!(page.contains(&format!("```rust\n{code}```\n")));
}
