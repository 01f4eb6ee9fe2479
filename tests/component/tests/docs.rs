//! The code in `docs/component.md` is the example, which is compiled.

#[test]
fn the_page_shows_the_example() {
    let page = include_str!("../../../docs/component.md");
    let example = include_str!("../examples/loop.rs");
    assert!(page.contains(&format!("```rust\n{example}```\n")));
}
