//! Previews of the values that operations return.
//!
//! A preview runs no code of the program and changes nothing: it reads members as they are stored, calls neither
//! getters nor `toJSON`, and does not touch proxies. Its cost does not depend on the size of the value, except for
//! listing the member names of an object; a run has a budget of those.

use std::cell::Cell;

use rquickjs::function::This;
use rquickjs::{Function, Object, Value};

use super::json::ValueInspector;
use super::raw::{self, StoredMember};
use crate::message::{PREVIEW_BYTES, ValuePreview};

/// Maximum bytes of a part that is shown whole when the value itself does not fit.
const PART_BYTES: usize = 80;
/// Maximum length of a string within a part, in UTF-16 units.
const PART_TEXT_UNITS: u64 = 40;
/// Maximum nesting depth of objects and arrays in a preview.
const DEPTH: usize = 4;
/// Maximum number of member names that one run lists for previews.
const MOST_NAMES: u32 = 200_000;

/// Makes previews of values.
pub(super) struct Previewer<'js> {
    map_size: Function<'js>,
    set_size: Function<'js>,
    typed_length: Function<'js>,
    get_time: Function<'js>,
    to_iso: Function<'js>,
}

/// Number of member names that may still be listed.
pub(super) struct NameBudget(Cell<u32>);

impl Default for NameBudget {
    fn default() -> NameBudget {
        NameBudget(Cell::new(MOST_NAMES))
    }
}

impl NameBudget {
    /// A budget of zero.
    pub(super) fn exhausted() -> NameBudget {
        NameBudget(Cell::new(0))
    }
}

/// The value does not fit into the preview.
struct PreviewFull;

/// State of writing one preview.
struct PreviewWriter<'a, 'js> {
    previewer: &'a Previewer<'js>,
    look: &'a ValueInspector<'js>,
    names: &'a NameBudget,
    /// Whether the preview is the complete value, with nothing left out or added.
    exact: bool,
    /// Writes a part of a value that does not fit: long strings are replaced by their size, so that their neighbours
    /// stay visible.
    of_part: bool,
}

impl<'js> Previewer<'js> {
    /// Takes the getters it needs from the prelude's exports.
    pub(super) fn new(kept: &Object<'js>) -> rquickjs::Result<Previewer<'js>> {
        Ok(Previewer {
            map_size: kept.get("mapSize")?,
            set_size: kept.get("setSize")?,
            typed_length: kept.get("typedLength")?,
            get_time: kept.get("getTime")?,
            to_iso: kept.get("toISOString")?,
        })
    }

    pub(super) fn preview(
        &self,
        look: &ValueInspector<'js>,
        value: &Value<'js>,
        names: &NameBudget,
    ) -> ValuePreview {
        let mut writer = PreviewWriter { previewer: self, look, names, exact: true, of_part: false };
        let mut json = String::new();
        if writer.value(value, DEPTH, PREVIEW_BYTES, &mut json).is_ok() {
            return ValuePreview { json, whole: writer.exact };
        }
        ValuePreview { json: writer.beginning(value), whole: false }
    }
}

impl<'js> PreviewWriter<'_, 'js> {
    /// Appends `value` to `out`, up to `most` bytes. When it does not fit, `out` is left partly written.
    fn value(
        &mut self,
        value: &Value<'js>,
        depth: usize,
        most: usize,
        out: &mut String,
    ) -> Result<(), PreviewFull> {
        if value.is_null() {
            put("null", most, out)
        } else if let Some(truth) = value.as_bool() {
            put(if truth { "true" } else { "false" }, most, out)
        } else if value.as_number().is_some_and(f64::is_finite) {
            put(&raw::primitive_text(value).ok_or(PreviewFull)?, most, out)
        } else if value.is_string() && self.of_part && raw::utf16_length(value) > PART_TEXT_UNITS {
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

    fn items(
        &mut self,
        array: &Value<'js>,
        depth: usize,
        most: usize,
        out: &mut String,
    ) -> Result<(), PreviewFull> {
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
    ) -> Result<(), PreviewFull> {
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
        member: &StoredMember<'js>,
        depth: usize,
        most: usize,
        out: &mut String,
    ) -> Result<(), PreviewFull> {
        match member {
            StoredMember::Value(value) if !value.is_undefined() => self.value(value, depth, most, out),
            StoredMember::Value(_) | StoredMember::Missing => put("null", most, out),
            StoredMember::Accessor => {
                self.exact = false;
                put(r#"{"_type":"getter"}"#, most, out)
            }
        }
    }

    /// Members of an object; None when the name budget is used up.
    fn list(&self, object: &Value<'js>) -> Option<raw::OwnMembers<'js>> {
        let left = Some(self.names.0.get()).filter(|left| *left > 0)?;
        let members = raw::own_members(object)?;
        self.names.0.set(left.saturating_sub(members.count));
        Some(members)
    }

    /// The beginning of a value that does not fit.
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

    /// One part of a value; a large part becomes type and size.
    fn part(&mut self, member: &StoredMember<'js>) -> String {
        let mut part = String::new();
        match (self.member(member, DEPTH - 1, PART_BYTES, &mut part), member) {
            (Err(PreviewFull), StoredMember::Value(value)) => self.brief(value),
            _ => part,
        }
    }

    fn put_brief(&mut self, value: &Value<'js>, most: usize, out: &mut String) -> Result<(), PreviewFull> {
        self.exact = false;
        put(&self.brief(value), most, out)
    }

    /// Type of a value, and its size where that is known without traversing it.
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

    /// Calls a getter of the engine itself.
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

    /// Discards an error of the engine: the program did not cause it.
    fn quiet<T>(&self, value: &Value<'js>, asked: rquickjs::Result<T>) -> Option<T> {
        asked.map_err(|_| drop(value.ctx().catch())).ok()
    }

    /// Kind of a value: array or object where it can be traversed, else its type.
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
            match self.look.class_name(value) {
                "Array" => "array",
                "Object" | "Arguments" => "object",
                other => other,
            }
        }
    }
}

/// The item of an array at `index`; absent when the index exceeds 32 bits.
fn item<'js>(array: &Value<'js>, index: u64) -> StoredMember<'js> {
    u32::try_from(index).map_or(StoredMember::Missing, |index| raw::own_item(array, index))
}

fn is_undefined(member: &StoredMember<'_>) -> bool {
    matches!(member, StoredMember::Value(value) if value.is_undefined())
}

fn put(text: &str, most: usize, out: &mut String) -> Result<(), PreviewFull> {
    if out.len() + text.len() > most {
        return Err(PreviewFull);
    }
    out.push_str(text);
    Ok(())
}

/// Appends a whole string or nothing. A string that is too long is not copied to find that out.
fn put_text(text: &Value<'_>, most: usize, out: &mut String) -> Result<(), PreviewFull> {
    if !text.is_string() || raw::utf16_length(text) > most as u64 {
        return Err(PreviewFull);
    }
    let text =
        serde_json::to_string(&raw::primitive_text(text).ok_or(PreviewFull)?).map_err(|_| PreviewFull)?;
    put(&text, most, out)
}

/// Appends one part. Returns whether there was room.
fn add(parts: &mut String, part: &str, room: usize) -> bool {
    let comma = usize::from(!parts.is_empty());
    let fits = parts.len() + comma + part.len() <= room;
    if fits {
        parts.push_str(&","[..comma]);
        parts.push_str(part);
    }
    fits
}
