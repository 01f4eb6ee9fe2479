//! Converts values between JavaScript and Rust, both ways: what both modules share.
//!
//! serde-wasm-bindgen in its place makes the module 13.4 kB larger by brotli (98 lines would be 26), and the
//! way out alone .7 kB. Nor can it do what these lines do. They catch what a getter or a proxy throws: what
//! cannot be read is a value that no setting wants. And they define a scope called `__proto__`, which an
//! assignment would make the prototype.

use autothrottle::{ConfigError, Value, value::DEEPEST};
use wasm_bindgen::{JsCast, prelude::*};

// js-sys in place of these lines brings thirty functions that no code calls: half a kilobyte by brotli.
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = Object)]
    fn entries(of: &JsValue) -> Result<List, JsValue>;

    #[wasm_bindgen(catch, js_namespace = Array, js_name = isArray)]
    fn is_list(of: &JsValue) -> Result<bool, JsValue>;

    #[wasm_bindgen(catch, js_namespace = Array, js_name = from)]
    fn copied(of: &JsValue) -> Result<List, JsValue>;

    #[wasm_bindgen(js_namespace = Object, js_name = fromEntries)]
    fn from_entries(of: &List) -> JsValue;

    #[wasm_bindgen(js_name = Array)]
    type List;

    #[wasm_bindgen(constructor, js_class = "Array")]
    fn new() -> List;

    #[wasm_bindgen(method, getter)]
    fn length(this: &List) -> u32;

    #[wasm_bindgen(method, structural, indexing_getter)]
    fn get(this: &List, index: u32) -> JsValue;

    #[wasm_bindgen(method)]
    fn push(this: &List, item: &JsValue) -> u32;

    #[wasm_bindgen(js_name = Object)]
    type Plain;

    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> Plain;

    #[wasm_bindgen(method, structural, indexing_setter)]
    fn set(this: &Plain, key: &str, value: &JsValue);
}

/// A list for JavaScript.
pub fn list(items: impl IntoIterator<Item = JsValue>) -> JsValue {
    let list = List::new();
    for item in items {
        list.push(&item);
    }
    list.into()
}

/// Converts any value of JavaScript.
pub fn value(of: &JsValue) -> Value {
    nested(of, 0)
}

fn nested(of: &JsValue, depth: u8) -> Value {
    if depth > DEEPEST {
        return Value::Other("something nested too deep".into());
    }
    if of.is_undefined() || of.is_null() {
        return Value::Nothing;
    }
    if let Some(flag) = of.as_bool() {
        return Value::Bool(flag);
    }
    if let Some(number) = of.as_f64() {
        return Value::Number(number);
    }
    if let Some(text) = of.as_string() {
        return Value::Text(text);
    }
    if of.is_function() {
        return Value::Other("a function".into());
    }
    let each = |list: List| (0..list.length()).map(move |index| list.get(index));
    let item = |item: JsValue| nested(&item, depth + 1);
    let entry = |entry: JsValue| {
        let entry: List = entry.unchecked_into();
        (entry.get(0).as_string().unwrap_or_default(), nested(&entry.get(1), depth + 1))
    };
    let members = match is_list(of) {
        Ok(true) => copied(of).ok().map(|items| Value::List(each(items).map(item).collect())),
        Ok(false) if of.is_object() => {
            entries(of).ok().map(|entries| Value::Map(each(entries).map(entry).collect()))
        }
        _ => None,
    };
    members.unwrap_or_else(|| Value::Other("something that is no plain value".into()))
}

/// A list of `[path, want, got]`, of which TypeScript makes its error.
pub fn problems(error: ConfigError) -> JsValue {
    let texts = |triple: [String; 3]| Value::List(triple.map(Value::Text).into());
    js(&Value::List(error.triples().into_iter().map(texts).collect()))
}

/// The result of an export. V8 puts a call into the code around it where one value comes back. It ends the
/// program where that value is a reference and the code is thrown away meanwhile (Node 20 and 22). A result
/// crosses as numbers in the memory.
pub type Exported = Result<JsValue, JsValue>;

/// A value for JavaScript, as an export gives it.
pub fn exported(value: &Value) -> Exported {
    Ok(js(value))
}

/// A value as JavaScript has it; what is missing is `null`.
pub fn js(value: &Value) -> JsValue {
    match value {
        Value::Nothing => JsValue::NULL,
        Value::Bool(flag) => JsValue::from_bool(*flag),
        Value::Number(number) => JsValue::from_f64(*number),
        Value::Text(text) | Value::Other(text) => JsValue::from_str(text),
        Value::List(items) => list(items.iter().map(js)),
        Value::Map(entries) if entries.iter().any(|(key, _)| key == "__proto__") => {
            let pair = |(key, value): &(String, Value)| list([JsValue::from_str(key), js(value)]);
            from_entries(list(entries.iter().map(pair)).unchecked_ref())
        }
        Value::Map(entries) => {
            let object = Plain::new();
            for (key, value) in entries {
                object.set(key, &js(value));
            }
            object.into()
        }
    }
}
