//! Values from a JSON Schema.
//!
//! A schema is walked once; what does not satisfy it in the end, because keywords depend on each other in ways that
//! the walk does not see, is generated again with other choices. Every value that leaves this module was validated.

mod list;
mod merge;
mod number;
mod object;
mod text;

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Map, Value};

use crate::MockRequest;
use crate::echo::Echo;
use crate::names;
use crate::random::Random;
use crate::valid;

/// Depth below which only what is required is generated.
const FULL_DEPTH: usize = 6;
/// Depth below which nothing is generated: a schema that requires itself has no finite value.
const MAX_DEPTH: usize = 32;
/// Number of places after which only what is required is generated.
const FULL_PLACES: usize = 400;
/// Maximum number of places in a value.
const MAX_PLACES: usize = 20_000;
/// Maximum number of references and combined schemas that are followed for one place.
const MAX_COMBINED: usize = 64;

/// Which of several possible values is taken at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The most plausible one.
    Usual,
    /// The smallest: an empty list, the lower bound, nothing optional.
    Lowest,
    /// The largest.
    Highest,
    /// Another one: a flipped flag, the next value of an enumeration.
    Other,
}

/// How one attempt differs from the ones before it.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    salt: u64,
    echoes: bool,
    optional: bool,
}

/// Number of attempts. Most schemas need one; combinations that exclude each other need luck.
const ATTEMPTS: u64 = 14;

impl Attempt {
    fn number(index: u64) -> Attempt {
        Attempt {
            salt: index.saturating_sub(1),
            echoes: index.is_multiple_of(2),
            optional: index < 3 || index % 4 < 2,
        }
    }
}

/// A value that satisfies `schema`; `None` if none is found.
pub(crate) fn generate(request: &MockRequest<'_>, schema: &Value) -> Option<Value> {
    let validator = valid::compile(schema);
    let base = Random::for_request(request);
    let echo = Echo::of(request.arguments);
    (0..ATTEMPTS).find_map(|index| {
        let generator = Generator {
            root: schema,
            base: &base,
            echo: &echo,
            variant: request.variant,
            attempt: Attempt::number(index),
            places: Cell::new(0),
        };
        let value = generator.value(schema, &Place::root())?;
        validator.as_ref().is_none_or(|validator| validator.is_valid(&value)).then_some(value)
    })
}

struct Generator<'a> {
    root: &'a Value,
    base: &'a Random,
    echo: &'a Echo<'a>,
    variant: u32,
    attempt: Attempt,
    places: Cell<usize>,
}

/// Where in the value something is generated.
#[derive(Debug, Clone)]
struct Place {
    path: String,
    parent: String,
    name: String,
    in_list: bool,
    depth: usize,
}

impl Place {
    fn root() -> Place {
        Place { path: String::new(), parent: String::new(), name: String::new(), in_list: false, depth: 0 }
    }

    fn member(&self, name: &str) -> Place {
        Place {
            path: format!("{}/{name}", self.path),
            parent: self.name.clone(),
            name: name.to_owned(),
            in_list: self.in_list,
            depth: self.depth + 1,
        }
    }

    fn element(&self, index: usize) -> Place {
        // An element is named after its list: `authors` has authors.
        Place { path: format!("{}/{index}", self.path), in_list: true, depth: self.depth + 1, ..self.clone() }
    }
}

impl Generator<'_> {
    /// A value for `schema` at `place`; `None` if there is none or it would be too deep or too large.
    fn value(&self, schema: &Value, place: &Place) -> Option<Value> {
        self.places.set(self.places.get() + 1);
        if place.depth > MAX_DEPTH || self.places.get() > MAX_PLACES {
            return None;
        }
        let schema = self.combined(schema, place, &mut { MAX_COMBINED })?;
        let mut random = self.base.at(&place.path, self.attempt.salt);
        if let Some(constant) = schema.get("const") {
            return Some(constant.clone());
        }
        if let Some(echoed) = self.echoed(&schema, place) {
            return Some(echoed);
        }
        let choice = self.choice(&mut random);
        if let Some(value) = listed(&schema, choice, &mut random) {
            return Some(value);
        }
        let kind = self.kind(&schema, place, choice, &mut random);
        Some(match kind {
            "null" => Value::Null,
            "boolean" => {
                let usual = names::boolean(&place.name, &mut random);
                Value::Bool(usual != matches!(choice, Choice::Other))
            }
            "integer" | "number" => {
                number::number(&schema, &place.name, kind == "integer", choice, &mut random)
            }
            "array" => self.list(&schema, place, choice, &mut random)?,
            "object" => self.object(&schema, place, choice, &mut random)?,
            _ => Value::String(text::text(&schema, &place.parent, &place.name, choice, &mut random)),
        })
    }

    /// The choice at one place. The first variants make the same choice everywhere, which turns over most branches at
    /// once; later ones choose at every place for itself.
    fn choice(&self, random: &mut Random) -> Choice {
        match self.variant {
            0 => Choice::Usual,
            1 => Choice::Other,
            2 => Choice::Lowest,
            3 => Choice::Highest,
            variant => {
                let mut random = random.at("choice", u64::from(variant));
                random.pick(&[Choice::Usual, Choice::Other, Choice::Lowest, Choice::Highest])
            }
        }
    }

    /// Whether only what a schema requires is generated here.
    fn is_minimal(&self, place: &Place) -> bool {
        !self.attempt.optional || place.depth > FULL_DEPTH || self.places.get() > FULL_PLACES
    }

    /// The value of an argument that belongs here, if its type and its format fit.
    fn echoed(&self, schema: &Map<String, Value>, place: &Place) -> Option<Value> {
        if !self.attempt.echoes || place.name.is_empty() {
            return None;
        }
        let value = self.echo.value(&place.parent, &place.name, place.in_list, place.depth)?;
        let types = schema.get("type").map(merge::types).unwrap_or_default();
        let allowed = schema.get("enum").and_then(Value::as_array);
        let fits = match (allowed, types.as_slice()) {
            (Some(allowed), _) => allowed.contains(value),
            (None, types) => {
                types.contains(&type_name(value))
                    || (value.is_i64() || value.is_u64()) && types.contains(&"number")
            }
        };
        let has_format = || {
            schema.get("format").and_then(Value::as_str).is_none_or(|format| valid::has_format(value, format))
        };
        (fits && !value.is_object() && has_format()).then(|| value.clone())
    }

    /// The type of value to generate.
    fn kind<'s>(
        &self,
        schema: &'s Map<String, Value>,
        place: &Place,
        choice: Choice,
        random: &mut Random,
    ) -> &'s str {
        let types = schema.get("type").map(merge::types).unwrap_or_default();
        let solid: Vec<&str> = types.iter().filter(|name| **name != "null").copied().collect();
        let wants_null = choice == Choice::Lowest || (self.is_minimal(place) && place.depth > FULL_DEPTH);
        match solid.as_slice() {
            [] if !types.is_empty() => "null",
            [] => implied(schema),
            _ if types.len() > solid.len() && wants_null => "null",
            [one] => one,
            [first, ..] if choice == Choice::Usual && self.attempt.salt == 0 => first,
            several => random.pick(several),
        }
    }

    /// `schema` with everything that it refers to and combines, as one set of keywords; `None` if nothing satisfies it.
    fn combined<'s>(
        &self,
        schema: &'s Value,
        place: &Place,
        left: &mut usize,
    ) -> Option<Cow<'s, Map<String, Value>>> {
        *left = left.checked_sub(1)?;
        let own = match schema {
            Value::Bool(false) => return None,
            Value::Object(own) => own,
            _ => return Some(Cow::Owned(Map::new())),
        };
        const COMBINING: [&str; 8] = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else"];
        if !COMBINING.iter().any(|keyword| own.contains_key(*keyword)) {
            return Some(Cow::Borrowed(own));
        }
        let mut all: Map<String, Value> = own.clone();
        COMBINING.iter().for_each(|keyword| drop(all.remove(*keyword)));
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = own.get(keyword).and_then(Value::as_str).and_then(|to| self.referred(to)) {
                all = merge::merge(all, self.combined(target, place, left)?.into_owned());
            }
        }
        for part in own.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            all = merge::merge(all, self.combined(part, place, left)?.into_owned());
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(options) = own.get(keyword).and_then(Value::as_array) {
                let option = self.option(keyword, options, place)?;
                all = merge::merge(all, self.combined(option, place, left)?.into_owned());
            }
        }
        if let Some(condition) = own.get("if") {
            let holds = self.attempt.salt.is_multiple_of(2);
            let parts = if holds { [Some(condition), own.get("then")] } else { [own.get("else"), None] };
            for part in parts.into_iter().flatten() {
                all = merge::merge(all, self.combined(part, place, left)?.into_owned());
            }
        }
        Some(Cow::Owned(all))
    }

    /// The schema that a reference within the document means. Other documents are never read.
    fn referred(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = pointer.replace("%25", "%").replace("%22", "\"").replace("%20", " ");
        if let Some(found) = self.root.pointer(&pointer) {
            return Some(found);
        }
        let definitions =
            ["$defs", "definitions"].into_iter().filter_map(|at| self.root.get(at)?.as_object());
        definitions
            .flat_map(Map::values)
            .find(|schema| ["$anchor", "$dynamicAnchor"].iter().any(|at| schema[*at] == pointer.as_str()))
    }

    /// One of the options of `anyOf` or `oneOf`.
    fn option<'s>(&self, keyword: &str, options: &'s [Value], place: &Place) -> Option<&'s Value> {
        let mut random = self.base.at(&format!("{}?{keyword}", place.path), self.attempt.salt);
        let is_null = |option: &&Value| option["type"] == "null" || option.get("const") == Some(&Value::Null);
        let solid: Vec<&Value> = options.iter().filter(|option| !is_null(option)).collect();
        let choice = self.choice(&mut random);
        let ends_here = choice == Choice::Lowest || place.depth > FULL_DEPTH;
        if solid.is_empty() || (ends_here && solid.len() < options.len()) {
            return options.iter().find(is_null).or(options.first());
        }
        let index = match choice {
            Choice::Usual if self.attempt.salt == 0 => {
                // Deep down, an option that refers to nothing is the way out of a recursive schema.
                let is_flat = |option: &&Value| !option.to_string().contains("\"$ref\"");
                let flat = (place.depth > FULL_DEPTH).then(|| solid.iter().position(is_flat)).flatten();
                flat.unwrap_or(0)
            }
            Choice::Other => (1 + self.attempt.salt as usize) % solid.len(),
            Choice::Highest => solid.len() - 1 - (self.attempt.salt as usize % solid.len()),
            Choice::Usual | Choice::Lowest => random.below(solid.len()),
        };
        solid.get(index).copied()
    }
}

/// A value that the schema lists: of an enumeration, an example, or the default.
fn listed(schema: &Map<String, Value>, choice: Choice, random: &mut Random) -> Option<Value> {
    let list =
        |keyword: &str| schema.get(keyword).and_then(Value::as_array).filter(|values| !values.is_empty());
    let default = schema.get("default").filter(|value| !value.is_null());
    if let Some(allowed) = list("enum") {
        let drawn = random.below(allowed.len());
        let first =
            default.and_then(|default| allowed.iter().position(|value| value == default)).unwrap_or(drawn);
        let solid = |value: &&Value| !value.is_null();
        return match choice {
            Choice::Usual => {
                allowed.get(first).filter(solid).or(allowed.iter().find(solid)).or(allowed.first())
            }
            Choice::Other => allowed.get((first + 1) % allowed.len()),
            Choice::Lowest => allowed.first(),
            Choice::Highest => allowed.last(),
        }
        .cloned();
    }
    match (choice, list("examples")) {
        (Choice::Usual, Some(examples)) => examples.get(random.below(examples.len())).cloned(),
        // Other examples are other plausible values; a flag has only one other.
        (Choice::Other, Some(examples)) if examples.len() > 1 && !examples[0].is_boolean() => {
            examples.get((random.below(examples.len()) + 1) % examples.len()).cloned()
        }
        (Choice::Usual, None) => default.cloned(),
        _ => None,
    }
}

/// The type that the keywords of a schema without `type` speak of.
fn implied(schema: &Map<String, Value>) -> &'static str {
    const KEYWORDS: &[(&str, &str)] = &[
        ("properties", "object"),
        ("required", "object"),
        ("additionalProperties", "object"),
        ("patternProperties", "object"),
        ("minProperties", "object"),
        ("items", "array"),
        ("prefixItems", "array"),
        ("contains", "array"),
        ("minItems", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
        ("exclusiveMinimum", "number"),
        ("exclusiveMaximum", "number"),
        ("multipleOf", "number"),
    ];
    KEYWORDS.iter().find(|(keyword, _)| schema.contains_key(*keyword)).map_or("string", |(_, kind)| kind)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
