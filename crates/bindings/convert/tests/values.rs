//! The conversions between JavaScript and Rust. `tests/package/binding.test.mjs` runs this in Node, Chromium
//! and Firefox.
#![cfg(target_family = "wasm")]

use autothrottle::Value::{self, Bool, List, Map, Nothing, Number, Other, Text};
use autothrottle_convert::{js, value};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen]
extern "C" {
    /// The value of an expression in JavaScript.
    fn eval(code: &str) -> JsValue;

    #[wasm_bindgen(js_namespace = Object, js_name = getPrototypeOf)]
    fn prototype_of(object: &JsValue) -> JsValue;

    #[wasm_bindgen(js_namespace = JSON, js_name = stringify)]
    fn json_of(value: &JsValue) -> Option<String>;
}

fn read(code: &str) -> Value {
    value(&eval(&format!("({code})")))
}

fn other(what: &str) -> Value {
    Other(what.into())
}

#[wasm_bindgen_test]
fn each_kind_of_value_is_read_as_what_it_is() {
    let one = || Map(vec![("a".into(), Number(1.0))]);
    for (code, want) in [
        ("undefined", Nothing),
        ("null", Nothing),
        ("true", Bool(true)),
        ("-0.5", Number(-0.5)),
        ("1 / 0", Number(f64::INFINITY)),
        ("'ü😀'", Text("ü😀".into())),
        ("[1, [], 'x']", List(vec![Number(1.0), List(vec![]), Text("x".into())])),
        ("{ a: 1 }", one()),
        ("Object.assign(Object.create(null), { a: 1 })", one()),
        ("{ a: 1, [Symbol('b')]: 2 }", one()),
        ("new (class { a = 1; #b = 2; get c() { return 3 } })()", one()),
        ("() => 1", other("a function")),
        ("class {}", other("a function")),
        ("Symbol('s')", other("something that is no plain value")),
        ("10n", other("something that is no plain value")),
    ] {
        assert_eq!(read(code), want, "{code}");
    }
    assert!(matches!(read("0 / 0"), Number(number) if number.is_nan()));
}

#[wasm_bindgen_test]
fn a_value_that_throws_as_it_is_read_is_no_plain_value() {
    for code in [
        "{ get a() { throw new Error('read') } }",
        "new Proxy({}, { ownKeys() { throw new Error('read') } })",
        "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return { proxy } })().proxy",
        "Object.defineProperty([], Symbol.iterator, { get() { throw new Error('read') } })",
    ] {
        let want = Map(vec![
            ("delay".into(), Number(1.0)),
            ("inner".into(), other("something that is no plain value")),
        ]);
        assert_eq!(read(&format!("{{ delay: 1, inner: {code} }}")), want, "{code}");
    }
}

#[wasm_bindgen_test]
fn a_cycle_ends_where_it_is_too_deep() {
    let mut inner = &read("(() => { const cycle = {}; cycle.cycle = cycle; return cycle })()");
    let mut depth = 0;
    while let Map(entries) = inner {
        inner = &entries[0].1;
        depth += 1;
    }
    assert_eq!((depth, inner), (9, &other("something nested too deep")));
}

#[wasm_bindgen_test]
fn a_written_value_is_read_again() {
    let value = Map(vec![
        ("none".into(), Nothing),
        ("flag".into(), Bool(false)),
        ("list".into(), List(vec![Number(1.5), Text("ü".into())])),
        ("scopes".into(), Map(vec![("__proto__".into(), Map(vec![("delay".into(), Number(2.0))]))])),
    ]);
    let text = r#"{"none":null,"flag":false,"list":[1.5,"ü"],"scopes":{"__proto__":{"delay":2}}}"#;
    assert_eq!(json_of(&js(&value)).as_deref(), Some(text));
    assert_eq!(autothrottle_convert::value(&js(&value)), value);
}

#[wasm_bindgen_test]
fn a_scope_called_proto_is_no_prototype() {
    let scopes = js(&Map(vec![("__proto__".into(), Map(vec![]))]));
    assert_eq!(prototype_of(&scopes), prototype_of(&eval("({})")));
}
