//! Values of JavaScript's as ours, and ours as its: what both modules share.
//!
//! Options are read by hand and not through serde: a deserializer that can say what is wrong in a sentence brings the printing of floats
//! along, which nobody needs here (the reader of options says it better). The trap is a getter or a proxy that throws in the middle: every call
//! catches, and what cannot be read is a value that no setting wants.

use autothrottle::{ConfigError, Value, config::value::DEEPEST};
use serde::Serialize;
use wasm_bindgen::{JsCast, prelude::*};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_namespace = Object)]
    fn entries(of: &JsValue) -> Result<js_sys::Array, JsValue>;

    #[wasm_bindgen(catch, js_namespace = Array, js_name = from)]
    fn list(of: &JsValue) -> Result<js_sys::Array, JsValue>;
}

/// What somebody typed, whatever it is.
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
    let read = |array: js_sys::Array| array.iter().collect::<Vec<JsValue>>();
    let members = if !of.is_object() {
        None
    } else if js_sys::Array::is_array(of) {
        list(of)
            .ok()
            .map(|array| Value::List(read(array).iter().map(|item| nested(item, depth + 1)).collect()))
    } else {
        entries(of).ok().map(|pairs| {
            let pair = |pair: &JsValue| {
                let pair: &js_sys::Array = pair.unchecked_ref();
                (pair.get(0).as_string().unwrap_or_default(), nested(&pair.get(1), depth + 1))
            };
            Value::Map(read(pairs).iter().map(pair).collect())
        })
    };
    members.unwrap_or_else(|| Value::Other("something that is no plain value".into()))
}

/// A list of `[path, want, got]`, of which TypeScript makes its error.
pub fn problems(error: ConfigError) -> JsValue {
    object(&error.triples())
}

/// A plain object; what is missing is left out.
pub fn object(of: &impl Serialize) -> JsValue {
    of.serialize(&serializer()).unwrap_or(JsValue::UNDEFINED)
}

/// The same with `null` for what is missing.
pub fn object_with_null(of: &impl Serialize) -> JsValue {
    of.serialize(&serializer().serialize_missing_as_null(true)).unwrap_or(JsValue::UNDEFINED)
}

fn serializer() -> serde_wasm_bindgen::Serializer {
    serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true)
}
