//! A short look at what an operation gave.
//!
//! Nothing of the program runs for it and nothing of it is changed: members are read as they are stored, getters and
//! `toJSON` are not called, proxies are not touched. What it costs does not depend on how large the value is, but for the
//! list of the names of an object, and of those a run lists so many and no more.

use std::cell::Cell;

use rquickjs::function::This;
use rquickjs::{Function, Object, Value};

use super::json::Look;
use super::raw::{self, Member};
use crate::message::{PREVIEW_BYTES, Preview};

/// The largest part of a value that is shown whole where the value itself does not fit.
const PART_BYTES: usize = 80;
/// The longest text that is shown in a part.
const PART_TEXT_UNITS: u64 = 40;
/// How many objects and arrays within each other are looked into.
const DEPTH: usize = 4;
/// How many names of members one run lists for previews.
const MOST_NAMES: u32 = 200_000;

/// Looks at values.
pub(super) struct Previewer<'js> {
    map_size: Function<'js>,
    set_size: Function<'js>,
    typed_length: Function<'js>,
    get_time: Function<'js>,
    to_iso: Function<'js>,
}

/// How many names may still be listed.
pub(super) struct Names(Cell<u32>);

impl Default for Names {
    fn default() -> Names {
        Names(Cell::new(MOST_NAMES))
    }
}

impl Names {
    /// Lists no more from now on.
    pub(super) fn none() -> Names {
        Names(Cell::new(0))
    }
}

/// A value does not fit.
struct Full;

/// What is needed to write one value.
struct Writer<'a, 'js> {
    previewer: &'a Previewer<'js>,
    look: &'a Look<'js>,
    names: &'a Names,
    /// Nothing was left out, and nothing written that is not in the value.
    exact: bool,
    /// It is a part of a value that does not fit: long texts are told by their size, so that what is beside them is seen.
    of_part: bool,
}

impl<'js> Previewer<'js> {
    /// From what the prelude has kept.
    pub(super) fn new(kept: &Object<'js>) -> rquickjs::Result<Previewer<'js>> {
        Ok(Previewer {
            map_size: kept.get("mapSize")?,
            set_size: kept.get("setSize")?,
            typed_length: kept.get("typedLength")?,
            get_time: kept.get("getTime")?,
            to_iso: kept.get("toISOString")?,
        })
    }

    pub(super) fn preview(&self, look: &Look<'js>, value: &Value<'js>, names: &Names) -> Preview {
        let mut writer = Writer { previewer: self, look, names, exact: true, of_part: false };
        let mut json = String::new();
        if writer.value(value, DEPTH, PREVIEW_BYTES, &mut json).is_ok() {
            return Preview { json, whole: writer.exact };
        }
        Preview { json: writer.beginning(value), whole: false }
    }
}

impl<'js> Writer<'_, 'js> {
    /// Adds `value` to `out`, which may have `most` bytes then; `out` is left half written where it does not fit.
    fn value(&mut self, value: &Value<'js>, depth: usize, most: usize, out: &mut String) -> Result<(), Full> {
        if value.is_null() {
            put("null", most, out)
        } else if let Some(truth) = value.as_bool() {
            put(if truth { "true" } else { "false" }, most, out)
        } else if value.as_number().is_some_and(f64::is_finite) {
            put(&raw::text(value).ok_or(Full)?, most, out)
        } else if value.is_string() && self.of_part && raw::units(value) > PART_TEXT_UNITS {
            self.put_brief(value, most, out)
        } else if value.is_string() {
            put_text(value, most, out)
        } else {
            match self.kind(value) {
                "array" if depth > 0 => self.items(value, depth, most, out),
                "object" if depth > 0 => self.members(value, depth, most, out),
                "Date" => match self.date(value) {
                    Some(text) => put(&text, most, out),
                    None => self.put_brief(value, most, out),
                },
                _ => self.put_brief(value, most, out),
            }
        }
    }

    fn items(&mut self, array: &Value<'js>, depth: usize, most: usize, out: &mut String) -> Result<(), Full> {
        put("[", most, out)?;
        for index in 0..raw::own_length(array) {
            if index > 0 {
                put(",", most, out)?;
            }
            self.member(&item(array, index), depth - 1, most, out)?;
        }
        put("]", most, out)
    }

    fn members(
        &mut self,
        object: &Value<'js>,
        depth: usize,
        most: usize,
        out: &mut String,
    ) -> Result<(), Full> {
        let Some(members) = self.list(object) else { return self.put_brief(object, most, out) };
        put("{", most, out)?;
        let mut first = true;
        for (key, member) in members {
            if is_undefined(&member) {
                continue;
            }
            if !std::mem::take(&mut first) {
                put(",", most, out)?;
            }
            put_text(&key, most, out)?;
            put(":", most, out)?;
            self.member(&member, depth - 1, most, out)?;
        }
        put("}", most, out)
    }

    fn member(
        &mut self,
        member: &Member<'js>,
        depth: usize,
        most: usize,
        out: &mut String,
    ) -> Result<(), Full> {
        match member {
            Member::Value(value) if !value.is_undefined() => self.value(value, depth, most, out),
            Member::Value(_) | Member::Missing => put("null", most, out),
            Member::Accessor => {
                self.exact = false;
                put(r#"{"_type":"getter"}"#, most, out)
            }
        }
    }

    /// The members of an object, while names are listed at all.
    fn list(&self, object: &Value<'js>) -> Option<raw::OwnMembers<'js>> {
        let left = Some(self.names.0.get()).filter(|left| *left > 0)?;
        let members = raw::own_members(object)?;
        self.names.0.set(left.saturating_sub(members.count));
        Some(members)
    }

    /// What a value that does not fit begins with.
    fn beginning(&mut self, value: &Value<'js>) -> String {
        const END: usize = 2;
        self.of_part = true;
        let (mut parts, most) = (String::new(), PREVIEW_BYTES - END);
        let (open, close) = match self.kind(value) {
            "array" => ('[', ']'),
            "object" => ('{', '}'),
            _ => return self.brief(value),
        };
        let head = self.brief(value);
        let head = format!("{{\"_truncated\":true,{},\"_preview\":{open}", &head[1..head.len() - 1]);
        let room = most - head.len();
        match open {
            '[' => {
                for index in 0..raw::own_length(value) {
                    let part = self.part(&item(value, index));
                    if !add(&mut parts, &part, room) {
                        break;
                    }
                }
            }
            _ => {
                for (key, member) in self.list(value).into_iter().flatten() {
                    let mut part = String::new();
                    if is_undefined(&member) {
                        continue;
                    }
                    if put_text(&key, PART_BYTES, &mut part).is_err() {
                        break;
                    }
                    part.push(':');
                    part.push_str(&self.part(&member));
                    if !add(&mut parts, &part, room) {
                        break;
                    }
                }
            }
        }
        format!("{head}{parts}{close}}}")
    }

    /// A part of a value, by type and size where it is large.
    fn part(&mut self, member: &Member<'js>) -> String {
        let mut part = String::new();
        match (self.member(member, DEPTH - 1, PART_BYTES, &mut part), member) {
            (Err(Full), Member::Value(value)) => self.brief(value),
            _ => part,
        }
    }

    fn put_brief(&mut self, value: &Value<'js>, most: usize, out: &mut String) -> Result<(), Full> {
        self.exact = false;
        put(&self.brief(value), most, out)
    }

    /// What a value is, and how large where that can be told without going through it.
    fn brief(&self, value: &Value<'js>) -> String {
        let kind = self.kind(value);
        let size = match kind {
            "array" | "string" => Some(raw::own_length(value)),
            "object" => self.list(value).map(|members| u64::from(members.count)),
            "Map" => self.ask(&self.previewer.map_size, value),
            "Set" => self.ask(&self.previewer.set_size, value),
            typed if typed.ends_with("Array") => self.ask(&self.previewer.typed_length, value),
            _ => None,
        };
        match size {
            Some(size) => format!(r#"{{"_type":"{kind}","_size":{size}}}"#),
            None => format!(r#"{{"_type":"{kind}"}}"#),
        }
    }

    /// Asks a getter of the engine's own.
    fn ask(&self, getter: &Function<'js>, value: &Value<'js>) -> Option<u64> {
        let size: f64 = self.quiet(value, getter.call((This(value.clone()),)))?;
        Some(size as u64)
    }

    fn date(&self, date: &Value<'js>) -> Option<String> {
        let time: f64 = self.quiet(date, self.previewer.get_time.call((This(date.clone()),)))?;
        let to_iso = || self.previewer.to_iso.call((This(date.clone()),));
        let text: String = if time.is_nan() { None } else { self.quiet(date, to_iso()) }?;
        Some(format!("\"{text}\""))
    }

    /// An error of the engine is nobody's: the program did not ask.
    fn quiet<T>(&self, value: &Value<'js>, asked: rquickjs::Result<T>) -> Option<T> {
        asked.map_err(|_| drop(value.ctx().catch())).ok()
    }

    /// Whether a value is an array or an object that can be looked into, or what else it is.
    fn kind(&self, value: &Value<'js>) -> &str {
        if value.is_undefined() {
            "undefined"
        } else if value.is_string() {
            "string"
        } else if let Some(number) = value.as_number() {
            if number.is_nan() { "NaN" } else { "Infinity" }
        } else if value.is_big_int() {
            "bigint"
        } else if value.is_symbol() {
            "symbol"
        } else if value.is_function() {
            "function"
        } else {
            match self.look.name(value) {
                "Array" => "array",
                "Object" | "Arguments" => "object",
                other => other,
            }
        }
    }
}

/// The item of an array; one so far on that it has no such number is left out.
fn item<'js>(array: &Value<'js>, index: u64) -> Member<'js> {
    u32::try_from(index).map_or(Member::Missing, |index| raw::own_item(array, index))
}

fn is_undefined(member: &Member<'_>) -> bool {
    matches!(member, Member::Value(value) if value.is_undefined())
}

fn put(text: &str, most: usize, out: &mut String) -> Result<(), Full> {
    if out.len() + text.len() > most {
        return Err(Full);
    }
    out.push_str(text);
    Ok(())
}

/// A text, whole or not at all; one that is too long is not copied to find that out.
fn put_text(text: &Value<'_>, most: usize, out: &mut String) -> Result<(), Full> {
    if !text.is_string() || raw::units(text) > most as u64 {
        return Err(Full);
    }
    let text = serde_json::to_string(&raw::text(text).ok_or(Full)?).map_err(|_| Full)?;
    put(&text, most, out)
}

/// Adds one part more, and says whether there was room.
fn add(parts: &mut String, part: &str, room: usize) -> bool {
    let comma = usize::from(!parts.is_empty());
    let fits = parts.len() + comma + part.len() <= room;
    if fits {
        parts.push_str(&","[..comma]);
        parts.push_str(part);
    }
    fits
}
