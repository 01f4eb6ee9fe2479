//! Converts values between JavaScript and Rust, both ways: what both modules share.
//!
//! serde-wasm-bindgen in its place makes the module 13.4 kB larger by brotli (98 lines would be 26), and the
//! way out alone .7 kB. Nor can it do what these lines do. They catch what a getter or a proxy throws: what
//! cannot be read is a value that no setting wants. And they define a scope called `__proto__`, which an
//! assignment would make the prototype.

use autothrottle::{ConfigError, Value, value::DEEPEST};
use wasm_bindgen::{JsCast, prelude::*};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = Object)]
    fn entries(of: &JsValue) -> Result<js_sys::Array, JsValue>;

    #[wasm_bindgen(catch, js_namespace = Array, js_name = isArray)]
    fn is_list(of: &JsValue) -> Result<bool, JsValue>;

    #[wasm_bindgen(catch, js_namespace = Array, js_name = from)]
    fn list(of: &JsValue) -> Result<js_sys::Array, JsValue>;

    #[wasm_bindgen(js_namespace = Object, js_name = fromEntries)]
    fn from_entries(of: &js_sys::Array) -> js_sys::Object;

    type Plain;

    #[wasm_bindgen(method, structural, indexing_setter)]
    fn set(this: &Plain, key: &str, value: &JsValue);
}

/// What was typed, whatever it is.
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
    let read = |array: js_sys::Array| array.iter().collect::<Vec<JsValue>>();
    let items = |array| Value::List(read(array).iter().map(|item| nested(item, depth + 1)).collect());
    let pair = |pair: &JsValue| {
        let pair: &js_sys::Array = pair.unchecked_ref();
        (pair.get(0).as_string().unwrap_or_default(), nested(&pair.get(1), depth + 1))
    };
    let members = match is_list(of) {
        Ok(true) => list(of).ok().map(items),
        Ok(false) if of.is_object() => {
            entries(of).ok().map(|pairs| Value::Map(read(pairs).iter().map(pair).collect()))
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

/// What an export gives. V8 puts a call into the code around it where one value comes back. It ends the
/// program where that value is a reference and the code is thrown away meanwhile (Node 20 and 22). A result
/// crosses as numbers in the memory.
pub type Given = Result<JsValue, JsValue>;

/// A value for JavaScript, as an export gives it.
pub fn given(value: &Value) -> Given {
    Ok(js(value))
}

/// A value as JavaScript has it; what is missing is `null`.
pub fn js(value: &Value) -> JsValue {
    match value {
        Value::Nothing => JsValue::NULL,
        Value::Bool(flag) => JsValue::from_bool(*flag),
        Value::Number(number) => JsValue::from_f64(*number),
        Value::Text(text) | Value::Other(text) => JsValue::from_str(text),
        Value::List(items) => items.iter().map(js).collect::<js_sys::Array>().into(),
        Value::Map(entries) if entries.iter().any(|(key, _)| key == "__proto__") => {
            let pair =
                |(key, value): &(String, Value)| js_sys::Array::of2(&JsValue::from_str(key), &js(value));
            from_entries(&entries.iter().map(pair).collect()).into()
        }
        Value::Map(entries) => {
            let object = js_sys::Object::new().unchecked_into::<Plain>();
            for (key, value) in entries {
                object.set(key, &js(value));
            }
            object.into()
        }
    }
}
