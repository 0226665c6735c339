//! Values of a program become JSON, once, at the boundary.
//!
//! What `JSON.stringify` writes depends on what the program did to prototypes; this does not. It looks at what a
//! value is (its class in the engine), reads each member once, and never leaves anything out in silence:
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

/// What is needed to look into values without asking the program.
pub(super) struct Look<'js> {
    kinds: Vec<Kind>,
    names: Vec<String>,
    is_array: Function<'js>,
    map_for_each: Function<'js>,
    set_for_each: Function<'js>,
    get_time: Function<'js>,
    to_iso: Function<'js>,
    typed_length: Function<'js>,
    unbox: [Function<'js>; 4],
}

/// How much a text may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: usize,
    pub(super) nesting: usize,
}

/// Why a value has no JSON.
#[derive(Debug)]
pub(super) enum Problem {
    /// `path` cannot be written because it is `what`.
    Refused { path: String, what: String },
    /// It has more bytes than it may.
    Long,
    /// It has more levels than it may.
    Deep,
    /// The program threw while it was read; the exception is in the context.
    Thrown,
}

impl From<Thrown> for Stop {
    fn from(_: Thrown) -> Stop {
        Stop::Thrown
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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

impl<'js> Look<'js> {
    /// From what the prelude has kept.
    pub(super) fn new(ctx: &Ctx<'js>, kept: &Object<'js>) -> rquickjs::Result<Look<'js>> {
        let names = raw::class_names(ctx);
        Ok(Look {
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

    /// The name of the kind of object `value` is.
    pub(super) fn name(&self, value: &Value<'js>) -> &str {
        if value.is_proxy() {
            return "Proxy";
        }
        self.names.get(raw::class(value) as usize).map_or("Object", String::as_str)
    }

    /// `value` as JSON; nothing when it is undefined.
    pub(super) fn json(&self, value: Value<'js>, size: Size) -> Result<Option<String>, Problem> {
        let mut text = Text { look: self, out: String::new(), size, above: Vec::new() };
        match text.value(value) {
            Ok(Wrote::Something) => Ok(Some(text.out)),
            Ok(Wrote::Nothing) => Ok(None),
            Err(Stop::Long) => Err(Problem::Long),
            Err(Stop::Deep) => Err(Problem::Deep),
            Err(Stop::Thrown) => Err(Problem::Thrown),
            Err(Stop::Refused { path, what }) => Err(Problem::Refused { path: written(&path), what }),
        }
    }

    fn kind(&self, value: &Value<'js>) -> rquickjs::Result<Kind> {
        if value.is_proxy() {
            // One for a function has been refused; one that was revoked throws.
            let is_array = self.is_array.call((value.clone(),))?;
            return Ok(if is_array { Kind::Array } else { Kind::Plain });
        }
        Ok(self.kinds.get(raw::class(value) as usize).copied().unwrap_or(Kind::Other))
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "Object" | "Arguments" => Kind::Plain,
        "Array" => Kind::Array,
        "Error" => Kind::Error,
        "Number" => Kind::Boxed(0),
        "String" => Kind::Boxed(1),
        "Boolean" => Kind::Boxed(2),
        "BigInt" => Kind::Boxed(3),
        "Date" => Kind::Date,
        "Map" => Kind::Map,
        "Set" => Kind::Set,
        "Promise" => Kind::Promise,
        name if name.ends_with("Array") => Kind::Typed,
        _ => Kind::Other,
    }
}

enum Stop {
    /// The path is put together from the inside out.
    Refused {
        path: Vec<Step>,
        what: String,
    },
    Long,
    Deep,
    Thrown,
}

enum Step {
    Key(String),
    Index(usize),
}

enum Wrote {
    Something,
    /// The value is undefined.
    Nothing,
}

struct Text<'a, 'js> {
    look: &'a Look<'js>,
    out: String,
    size: Size,
    /// The objects the current one is in.
    above: Vec<Value<'js>>,
}

impl<'js> Text<'_, 'js> {
    fn value(&mut self, value: Value<'js>) -> Result<Wrote, Stop> {
        if value.is_undefined() {
            return Ok(Wrote::Nothing);
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
        Ok(Wrote::Something)
    }

    fn put(&mut self, text: &str) -> Result<(), Stop> {
        if self.out.len() + text.len() > self.size.bytes {
            return Err(Stop::Long);
        }
        self.out.push_str(text);
        Ok(())
    }

    fn number(&mut self, value: &Value<'js>, number: f64) -> Result<(), Stop> {
        if !number.is_finite() {
            return refused(&number.to_string().replace("inf", "Infinity"));
        }
        let text = raw::text(value).ok_or(Stop::Thrown)?;
        self.put(&text)
    }

    fn string(&mut self, value: &Value<'js>) -> Result<(), Stop> {
        // A text too long by far is not copied to find that out.
        if raw::units(value) > self.size.bytes as u64 {
            return Err(Stop::Long);
        }
        let text = raw::text(value).ok_or(Stop::Thrown)?;
        self.quoted(&text)
    }

    fn quoted(&mut self, text: &str) -> Result<(), Stop> {
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

    fn object(&mut self, value: Value<'js>) -> Result<(), Stop> {
        if self.above.contains(&value) {
            return refused("a circle: it contains itself");
        }
        if self.above.len() >= self.size.nesting {
            return Err(Stop::Deep);
        }
        let kind = self.look.kind(&value)?;
        self.above.push(value.clone());
        let object = value.into_object().ok_or(Stop::Thrown)?;
        match kind {
            Kind::Plain => self.members(&object)?,
            Kind::Array => self.items(&object)?,
            Kind::Typed => self.typed(&object)?,
            Kind::Error => self.error(&object)?,
            Kind::Boxed(which) => {
                let inside: Value<'js> = self.look.unbox[which].call((This(object),))?;
                self.value(inside)?;
            }
            Kind::Date => self.date(object)?,
            Kind::Map => self.map(object)?,
            Kind::Set => self.set(object)?,
            Kind::Promise => return refused("a promise; did you forget `await`?"),
            Kind::Other => {
                return refused(&format!("an object of kind {}", self.look.name(object.as_value())));
            }
        }
        self.above.pop();
        Ok(())
    }

    fn members(&mut self, object: &Object<'js>) -> Result<(), Stop> {
        self.put("{")?;
        let mut first = true;
        for key in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let value: Value<'js> = object.get(key.clone())?;
            let name = raw::text(&key.to_value()?).ok_or(Stop::Thrown)?;
            self.member(name, value, &mut first)?;
        }
        self.put("}")
    }

    fn member(&mut self, name: String, value: Value<'js>, first: &mut bool) -> Result<(), Stop> {
        let before = self.out.len();
        if !*first {
            self.put(",")?;
        }
        self.quoted(&name)?;
        self.put(":")?;
        match self.value(value) {
            Ok(Wrote::Something) => *first = false,
            Ok(Wrote::Nothing) => self.out.truncate(before),
            Err(stop) => return Err(stop.inside(Step::Key(name))),
        }
        Ok(())
    }

    fn item(&mut self, value: Value<'js>, index: usize) -> Result<(), Stop> {
        if index > 0 {
            self.put(",")?;
        }
        match self.value(value) {
            Ok(Wrote::Something) => Ok(()),
            Ok(Wrote::Nothing) => self.put("null"),
            Err(stop) => Err(stop.inside(Step::Index(index))),
        }
    }

    fn items(&mut self, array: &Object<'js>) -> Result<(), Stop> {
        let length: f64 = array.get("length")?;
        self.numbered(array, length)
    }

    fn typed(&mut self, array: &Object<'js>) -> Result<(), Stop> {
        let length: f64 = self.look.typed_length.call((This(array.clone()),))?;
        self.numbered(array, length)
    }

    fn numbered(&mut self, array: &Object<'js>, length: f64) -> Result<(), Stop> {
        // Each item takes two bytes at least, so the end is not far whatever is claimed.
        let length = if length > 0.0 { length as usize } else { 0 };
        self.put("[")?;
        for index in 0..length {
            let key = u32::try_from(index).map_err(|_| Stop::Long)?;
            self.item(array.get(key)?, index)?;
        }
        self.put("]")
    }

    fn error(&mut self, error: &Object<'js>) -> Result<(), Stop> {
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

    fn date(&mut self, date: Object<'js>) -> Result<(), Stop> {
        let time: f64 = self.look.get_time.call((This(date.clone()),))?;
        if time.is_nan() {
            return refused("an invalid date");
        }
        let text: String = self.look.to_iso.call((This(date),))?;
        self.quoted(&text)
    }

    fn map(&mut self, map: Object<'js>) -> Result<(), Stop> {
        self.put("{")?;
        let mut first = true;
        for (value, key) in entries(&self.look.map_for_each, map)? {
            if !key.is_string() {
                return refused("a Map with a key that is not a string");
            }
            let name = raw::text(&key).ok_or(Stop::Thrown)?;
            self.member(name, value, &mut first)?;
        }
        self.put("}")
    }

    fn set(&mut self, set: Object<'js>) -> Result<(), Stop> {
        self.put("[")?;
        for (index, (value, _)) in entries(&self.look.set_for_each, set)?.into_iter().enumerate() {
            self.item(value, index)?;
        }
        self.put("]")
    }
}

/// What `for_each` goes through: value and key.
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

fn refused<T>(what: &str) -> Result<T, Stop> {
    Err(Stop::Refused { path: Vec::new(), what: what.to_owned() })
}

impl Stop {
    fn inside(mut self, step: Step) -> Stop {
        if let Stop::Refused { path, .. } = &mut self {
            path.push(step);
        }
        self
    }
}

/// Such as `$.a.b[2]["c d"]`.
fn written(path: &[Step]) -> String {
    const MOST: usize = 200;
    let mut text = "$".to_owned();
    for step in path.iter().rev() {
        if text.len() > MOST {
            text.push('…');
            break;
        }
        let wrote = match step {
            Step::Index(index) => write!(text, "[{index}]"),
            Step::Key(key) if is_name(key) => write!(text, ".{key}"),
            Step::Key(key) => write!(text, "[{:?}]", key.chars().take(MOST).collect::<String>()),
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
