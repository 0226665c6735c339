//! Serialises values of a program to JSON, once, at the boundary.
//!
//! Unlike `JSON.stringify`, the result does not depend on changes that the program made to prototypes. It inspects the
//! engine class of a value, reads each member once, and never omits anything silently:
//!
//! | value | becomes |
//! |---|---|
//! | `null`, booleans, strings | themselves; halves of surrogate pairs become U+FFFD |
//! | numbers | as `JSON.stringify` writes them; `-0` becomes `0`; `NaN` and infinities are refused |
//! | BigInt | refused: a number could not hold every one of them |
//! | `undefined` | left out in an object, `null` in an array |
//! | objects, instances of classes, `arguments`, proxies | their own enumerable members with string keys |
//! | arrays, typed arrays, `Set` | arrays; holes are `null` |
//! | `Map` | an object; a key that is not a string is refused |
//! | `Date` | its ISO text; an invalid one is refused |
//! | `Error` | `{name, message}` |
//! | `new String(…)` and its like | the primitive in them |
//! | functions, symbols, promises, everything else | refused |
//! | circles, too many levels, too many bytes | refused |

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::function::This;
use rquickjs::object::Filter;
use rquickjs::{Atom, Ctx, Error as Thrown, Function, Object, Value};

use super::raw;

/// Inspects values without running code of the program.
pub(super) struct ValueInspector<'js> {
    kinds: Vec<ObjectClass>,
    names: Vec<String>,
    is_array: Function<'js>,
    map_for_each: Function<'js>,
    set_for_each: Function<'js>,
    get_time: Function<'js>,
    to_iso: Function<'js>,
    typed_length: Function<'js>,
    unbox: [Function<'js>; 4],
}

/// Maximum size of a JSON text.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonSizeLimit {
    pub(super) bytes: usize,
    pub(super) nesting: usize,
}

/// Reason why a value cannot be serialised.
#[derive(Debug)]
pub(super) enum JsonProblem {
    /// The value at `path` is a `what`, which has no JSON.
    Refused { path: String, what: String },
    /// The text exceeds the size limit.
    TooLong,
    /// The value exceeds the nesting limit.
    TooDeep,
    /// A getter or a proxy of the program threw; the exception is in the context.
    Thrown,
}

impl From<Thrown> for JsonStop {
    fn from(_: Thrown) -> JsonStop {
        JsonStop::Thrown
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectClass {
    Plain,
    Array,
    Typed,
    Error,
    Boxed(usize),
    Date,
    Map,
    Set,
    Promise,
    Other,
}

impl<'js> ValueInspector<'js> {
    /// Takes the functions it needs from the prelude's exports.
    pub(super) fn new(ctx: &Ctx<'js>, kept: &Object<'js>) -> rquickjs::Result<ValueInspector<'js>> {
        let names = raw::class_names(ctx);
        Ok(ValueInspector {
            kinds: names.iter().map(|name| kind(name)).collect(),
            names,
            is_array: kept.get("isArray")?,
            map_for_each: kept.get("mapForEach")?,
            set_for_each: kept.get("setForEach")?,
            get_time: kept.get("getTime")?,
            to_iso: kept.get("toISOString")?,
            typed_length: kept.get("typedLength")?,
            unbox: [
                kept.get("unboxNumber")?,
                kept.get("unboxString")?,
                kept.get("unboxBoolean")?,
                kept.get("unboxBigInt")?,
            ],
        })
    }

    /// Name of the engine class of `value`.
    pub(super) fn class_name(&self, value: &Value<'js>) -> &str {
        if value.is_proxy() {
            return "Proxy";
        }
        self.names.get(raw::class_id(value) as usize).map_or("Object", String::as_str)
    }

    /// `value` as JSON; None when it is undefined.
    pub(super) fn to_json(
        &self,
        value: Value<'js>,
        size: JsonSizeLimit,
    ) -> Result<Option<String>, JsonProblem> {
        let mut text = JsonWriter { look: self, out: String::new(), size, above: Vec::new() };
        match text.value(value) {
            Ok(WriteOutcome::Something) => Ok(Some(text.out)),
            Ok(WriteOutcome::Nothing) => Ok(None),
            Err(JsonStop::Long) => Err(JsonProblem::TooLong),
            Err(JsonStop::Deep) => Err(JsonProblem::TooDeep),
            Err(JsonStop::Thrown) => Err(JsonProblem::Thrown),
            Err(JsonStop::Refused { path, what }) => Err(JsonProblem::Refused { path: written(&path), what }),
        }
    }

    fn kind(&self, value: &Value<'js>) -> rquickjs::Result<ObjectClass> {
        if value.is_proxy() {
            // A proxy of a function has been refused already; a revoked proxy throws here.
            let is_array = self.is_array.call((value.clone(),))?;
            return Ok(if is_array { ObjectClass::Array } else { ObjectClass::Plain });
        }
        Ok(self.kinds.get(raw::class_id(value) as usize).copied().unwrap_or(ObjectClass::Other))
    }
}

fn kind(name: &str) -> ObjectClass {
    match name {
        "Object" | "Arguments" => ObjectClass::Plain,
        "Array" => ObjectClass::Array,
        "Error" => ObjectClass::Error,
        "Number" => ObjectClass::Boxed(0),
        "String" => ObjectClass::Boxed(1),
        "Boolean" => ObjectClass::Boxed(2),
        "BigInt" => ObjectClass::Boxed(3),
        "Date" => ObjectClass::Date,
        "Map" => ObjectClass::Map,
        "Set" => ObjectClass::Set,
        "Promise" => ObjectClass::Promise,
        name if name.ends_with("Array") => ObjectClass::Typed,
        _ => ObjectClass::Other,
    }
}

enum JsonStop {
    /// The path is collected from the innermost step outwards.
    Refused {
        path: Vec<JsonPathStep>,
        what: String,
    },
    Long,
    Deep,
    Thrown,
}

enum JsonPathStep {
    Key(String),
    Index(usize),
}

enum WriteOutcome {
    Something,
    /// The value is undefined.
    Nothing,
}

struct JsonWriter<'a, 'js> {
    look: &'a ValueInspector<'js>,
    out: String,
    size: JsonSizeLimit,
    /// The objects that contain the current one, for detecting cycles.
    above: Vec<Value<'js>>,
}

impl<'js> JsonWriter<'_, 'js> {
    fn value(&mut self, value: Value<'js>) -> Result<WriteOutcome, JsonStop> {
        if value.is_undefined() {
            return Ok(WriteOutcome::Nothing);
        }
        if value.is_null() {
            self.put("null")?;
        } else if let Some(truth) = value.as_bool() {
            self.put(if truth { "true" } else { "false" })?;
        } else if let Some(number) = value.as_number() {
            self.number(&value, number)?;
        } else if value.is_string() {
            self.string(&value)?;
        } else if value.is_big_int() {
            return refused(
                "a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`",
            );
        } else if value.is_symbol() {
            return refused("a symbol");
        } else if value.is_function() {
            return refused("a function");
        } else {
            self.object(value)?;
        }
        Ok(WriteOutcome::Something)
    }

    fn put(&mut self, text: &str) -> Result<(), JsonStop> {
        if self.out.len() + text.len() > self.size.bytes {
            return Err(JsonStop::Long);
        }
        self.out.push_str(text);
        Ok(())
    }

    fn number(&mut self, value: &Value<'js>, number: f64) -> Result<(), JsonStop> {
        if !number.is_finite() {
            return refused(&number.to_string().replace("inf", "Infinity"));
        }
        let text = raw::primitive_text(value).ok_or(JsonStop::Thrown)?;
        self.put(&text)
    }

    fn string(&mut self, value: &Value<'js>) -> Result<(), JsonStop> {
        // A string that is far too long is not copied to find that out.
        if raw::utf16_length(value) > self.size.bytes as u64 {
            return Err(JsonStop::Long);
        }
        let text = raw::primitive_text(value).ok_or(JsonStop::Thrown)?;
        self.quoted(&text)
    }

    fn quoted(&mut self, text: &str) -> Result<(), JsonStop> {
        self.put("\"")?;
        let mut plain = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= b' ' && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.put(&text[plain..at])?;
            plain = at + 1;
            match byte {
                b'"' => self.put("\\\"")?,
                b'\\' => self.put("\\\\")?,
                b'\n' => self.put("\\n")?,
                b'\r' => self.put("\\r")?,
                b'\t' => self.put("\\t")?,
                8 => self.put("\\b")?,
                12 => self.put("\\f")?,
                _ => self.put(&format!("\\u{byte:04x}"))?,
            }
        }
        self.put(&text[plain..])?;
        self.put("\"")
    }

    fn object(&mut self, value: Value<'js>) -> Result<(), JsonStop> {
        if self.above.contains(&value) {
            return refused("a circle: it contains itself");
        }
        if self.above.len() >= self.size.nesting {
            return Err(JsonStop::Deep);
        }
        let kind = self.look.kind(&value)?;
        self.above.push(value.clone());
        let object = value.into_object().ok_or(JsonStop::Thrown)?;
        match kind {
            ObjectClass::Plain => self.members(&object)?,
            ObjectClass::Array => self.items(&object)?,
            ObjectClass::Typed => self.typed(&object)?,
            ObjectClass::Error => self.error(&object)?,
            ObjectClass::Boxed(which) => {
                let inside: Value<'js> = self.look.unbox[which].call((This(object),))?;
                self.value(inside)?;
            }
            ObjectClass::Date => self.date(object)?,
            ObjectClass::Map => self.map(object)?,
            ObjectClass::Set => self.set(object)?,
            ObjectClass::Promise => return refused("a promise; did you forget `await`?"),
            ObjectClass::Other => {
                return refused(&format!("an object of kind {}", self.look.class_name(object.as_value())));
            }
        }
        self.above.pop();
        Ok(())
    }

    fn members(&mut self, object: &Object<'js>) -> Result<(), JsonStop> {
        self.put("{")?;
        let mut first = true;
        for key in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let value: Value<'js> = object.get(key.clone())?;
            let name = raw::primitive_text(&key.to_value()?).ok_or(JsonStop::Thrown)?;
            self.member(name, value, &mut first)?;
        }
        self.put("}")
    }

    fn member(&mut self, name: String, value: Value<'js>, first: &mut bool) -> Result<(), JsonStop> {
        let before = self.out.len();
        if !*first {
            self.put(",")?;
        }
        self.quoted(&name)?;
        self.put(":")?;
        match self.value(value) {
            Ok(WriteOutcome::Something) => *first = false,
            Ok(WriteOutcome::Nothing) => self.out.truncate(before),
            Err(stop) => return Err(stop.inside(JsonPathStep::Key(name))),
        }
        Ok(())
    }

    fn item(&mut self, value: Value<'js>, index: usize) -> Result<(), JsonStop> {
        if index > 0 {
            self.put(",")?;
        }
        match self.value(value) {
            Ok(WriteOutcome::Something) => Ok(()),
            Ok(WriteOutcome::Nothing) => self.put("null"),
            Err(stop) => Err(stop.inside(JsonPathStep::Index(index))),
        }
    }

    fn items(&mut self, array: &Object<'js>) -> Result<(), JsonStop> {
        let length: f64 = array.get("length")?;
        self.numbered(array, length)
    }

    fn typed(&mut self, array: &Object<'js>) -> Result<(), JsonStop> {
        let length: f64 = self.look.typed_length.call((This(array.clone()),))?;
        self.numbered(array, length)
    }

    fn numbered(&mut self, array: &Object<'js>, length: f64) -> Result<(), JsonStop> {
        // Each item takes at least two bytes, so the size limit ends the loop whatever `length` claims.
        let length = if length > 0.0 { length as usize } else { 0 };
        self.put("[")?;
        for index in 0..length {
            let key = u32::try_from(index).map_err(|_| JsonStop::Long)?;
            self.item(array.get(key)?, index)?;
        }
        self.put("]")
    }

    fn error(&mut self, error: &Object<'js>) -> Result<(), JsonStop> {
        self.put("{")?;
        let mut first = true;
        for name in ["name", "message"] {
            let value: Value<'js> = error.get(name)?;
            if value.is_string() {
                self.member(name.to_owned(), value, &mut first)?;
            }
        }
        self.put("}")
    }

    fn date(&mut self, date: Object<'js>) -> Result<(), JsonStop> {
        let time: f64 = self.look.get_time.call((This(date.clone()),))?;
        if time.is_nan() {
            return refused("an invalid date");
        }
        let text: String = self.look.to_iso.call((This(date),))?;
        self.quoted(&text)
    }

    fn map(&mut self, map: Object<'js>) -> Result<(), JsonStop> {
        self.put("{")?;
        let mut first = true;
        for (value, key) in entries(&self.look.map_for_each, map)? {
            if !key.is_string() {
                return refused("a Map with a key that is not a string");
            }
            let name = raw::primitive_text(&key).ok_or(JsonStop::Thrown)?;
            self.member(name, value, &mut first)?;
        }
        self.put("}")
    }

    fn set(&mut self, set: Object<'js>) -> Result<(), JsonStop> {
        self.put("[")?;
        for (index, (value, _)) in entries(&self.look.set_for_each, set)?.into_iter().enumerate() {
            self.item(value, index)?;
        }
        self.put("]")
    }
}

/// Value and key of each entry that `for_each` visits.
fn entries<'js>(
    for_each: &Function<'js>,
    object: Object<'js>,
) -> rquickjs::Result<Vec<(Value<'js>, Value<'js>)>> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&all);
    let keep = move |value: Value<'js>, key: Value<'js>| kept.borrow_mut().push((value, key));
    let keep = Function::new(object.ctx().clone(), keep)?;
    for_each.call::<_, ()>((This(object), keep))?;
    Ok(all.take())
}

fn refused<T>(what: &str) -> Result<T, JsonStop> {
    Err(JsonStop::Refused { path: Vec::new(), what: what.to_owned() })
}

impl JsonStop {
    fn inside(mut self, step: JsonPathStep) -> JsonStop {
        if let JsonStop::Refused { path, .. } = &mut self {
            path.push(step);
        }
        self
    }
}

/// The path as text, such as `$.a.b[2]["c d"]`.
fn written(path: &[JsonPathStep]) -> String {
    const MOST: usize = 200;
    let mut text = "$".to_owned();
    for step in path.iter().rev() {
        if text.len() > MOST {
            text.push('…');
            break;
        }
        let wrote = match step {
            JsonPathStep::Index(index) => write!(text, "[{index}]"),
            JsonPathStep::Key(key) if is_name(key) => write!(text, ".{key}"),
            JsonPathStep::Key(key) => write!(text, "[{:?}]", key.chars().take(MOST).collect::<String>()),
        };
        wrote.expect("a string takes all text");
    }
    text
}

fn is_name(key: &str) -> bool {
    key.len() <= 100
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$')
        && key.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}
