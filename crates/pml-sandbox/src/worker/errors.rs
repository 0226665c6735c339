//! Thrown values, and rejections that nothing handled.

use std::cell::RefCell;
use std::rc::Rc;

use pml_model::ErrorCode;
use rquickjs::runtime::RejectionTracker;
use rquickjs::{Ctx, Function, Object, Persistent, Value};

use super::raw;
use crate::message::{THROWN_BYTES, ThrownError};

/// File name of the program in stacks.
pub(super) const FILE: &std::ffi::CStr = c"program.ts";
/// File name of the prelude in stacks; its frames are removed.
pub(super) const PRELUDE: &std::ffi::CStr = c"pml";

/// Maximum length of the text of a thrown value that is not an error, in UTF-16 units.
const SHOWN_UNITS: usize = 2_000;

/// Rejections and exceptions that are not handled yet, in order.
pub(super) type Rejections = RefCell<Vec<Rejection>>;

/// A rejection or an exception that was not handled.
pub(super) struct Rejection {
    /// The frame it happened in.
    frame: u32,
    /// None for an exception thrown outside any promise.
    promise: Option<Persistent<Value<'static>>>,
    reason: Persistent<Value<'static>>,
}

/// Records the engine's reports about rejected promises in `rejections`.
pub(super) fn rejection_tracker(rejections: Rc<Rejections>) -> RejectionTracker {
    Box::new(move |ctx: Ctx<'_>, promise: Value<'_>, reason: Value<'_>, is_handled| {
        let promise = Persistent::save(&ctx, promise);
        let mut rejections = rejections.borrow_mut();
        if !is_handled {
            let (frame, reason) = (raw::frame_of(&ctx), Persistent::save(&ctx, reason));
            rejections.push(Rejection { frame, promise: Some(promise), reason });
            return;
        }
        // A late handler mostly concerns the most recent rejection, so the search runs backwards.
        if let Some(at) =
            rejections.iter().rposition(|rejection| rejection.promise.as_ref() == Some(&promise))
        {
            rejections.remove(at);
        }
    })
}

/// Records an exception from a callback.
pub(super) fn note_uncaught<'js>(rejections: &Rejections, ctx: &Ctx<'js>, reason: Value<'js>) {
    let (frame, reason) = (raw::frame_of(ctx), Persistent::save(ctx, reason));
    rejections.borrow_mut().push(Rejection { frame, promise: None, reason });
}

/// Drops the rejections of `frame`.
pub(super) fn forget_frame(rejections: &Rejections, frame: u32) {
    rejections.borrow_mut().retain(|rejection| rejection.frame != frame);
}

/// The first rejection of this realm that does not concern the promise `but`.
pub(super) fn first_unhandled<'js>(
    rejections: &Rejections,
    ctx: &Ctx<'js>,
    but: &Value<'js>,
) -> rquickjs::Result<Option<Value<'js>>> {
    let but = Persistent::save(ctx, but.clone());
    let rejections = rejections.borrow();
    let frame = raw::frame_of(ctx);
    let found = rejections
        .iter()
        .find(|rejection| rejection.frame == frame && rejection.promise.as_ref() != Some(&but));
    found.map(|rejection| rejection.reason.clone().restore(ctx)).transpose()
}

/// Converts thrown values to [`ThrownError`].
pub(super) struct ThrownReader<'js> {
    /// Returns code, call and frame of an error that the host or the boundary made.
    origin: Function<'js>,
    inspect: Function<'js>,
}

impl<'js> ThrownReader<'js> {
    pub(super) fn new(kept: &Object<'js>) -> rquickjs::Result<ThrownReader<'js>> {
        Ok(ThrownReader { origin: kept.get("origin")?, inspect: kept.get("inspect")? })
    }

    /// Describes `value`. Getters of an error may be code of the program; exceptions they throw are ignored.
    pub(super) fn read_thrown(&self, value: &Value<'js>) -> ThrownError {
        let thrown = match value.as_object() {
            Some(object) if value.is_error() => self.error(object),
            Some(_) | None => self.other(value),
        };
        ThrownError {
            name: shorten_error_text(thrown.name),
            message: shorten_error_text(thrown.message),
            stack: shorten_error_text(thrown.stack),
            ..thrown
        }
    }

    fn error(&self, error: &Object<'js>) -> ThrownError {
        let name = member(error, "name").unwrap_or_else(|| "Error".to_owned());
        let message = member(error, "message").unwrap_or_default();
        let stack = of_program(&member(error, "stack").unwrap_or_default());
        let made_by = error.get::<_, Object<'_>>("constructor").ok().and_then(|class| member(&class, "name"));
        let (line, column) = position(&stack, made_by.as_deref().unwrap_or_default()).unwrap_or_default();
        let (code, call, frame) = self.origin(error);
        ThrownError { name, message, code, call, frame, line, column, stack }
    }

    fn origin(&self, error: &Object<'js>) -> (Option<ErrorCode>, Option<u32>, Option<u32>) {
        let origin = self.origin.call::<_, Option<Vec<Value<'js>>>>((error.clone(),));
        let Ok(Some(origin)) = origin else { return (None, None, None) };
        let code = origin.first().and_then(raw_text).and_then(|code| ErrorCode::parse(&code));
        let number = |place: usize| {
            origin
                .get(place)
                .and_then(Value::as_number)
                .map(|number| number as u32)
                .filter(|number| *number > 0)
        };
        (code, number(1), number(2))
    }

    fn other(&self, value: &Value<'js>) -> ThrownError {
        let name = match value {
            value if value.is_null() => "null",
            value if value.is_undefined() => "undefined",
            value if value.is_bool() => "boolean",
            value if value.is_number() => "number",
            value if value.is_string() => "string",
            value if value.is_big_int() => "bigint",
            value if value.is_symbol() => "symbol",
            value if value.is_function() => "function",
            _ => "object",
        };
        let message = match value.is_string() {
            true => raw_text(value),
            false => self
                .inspect
                .call::<_, Value<'js>>((value.clone(), SHOWN_UNITS))
                .ok()
                .as_ref()
                .and_then(raw_text),
        };
        ThrownError { name: name.to_owned(), message: message.unwrap_or_default(), ..ThrownError::default() }
    }
}

fn raw_text(value: &Value<'_>) -> Option<String> {
    let is_short = value.is_string() && raw::utf16_length(value) <= (1 << 20);
    is_short.then(|| raw::primitive_text(value)).flatten()
}

fn member(error: &Object<'_>, name: &str) -> Option<String> {
    match error.get::<_, Value<'_>>(name) {
        Ok(value) => raw_text(&value),
        Err(_) => {
            // The exception of a getter is discarded.
            error.ctx().catch();
            None
        }
    }
}

/// Cuts `text` to at most `most` bytes, at a character boundary.
pub(super) fn truncate_text(text: &mut String, most: usize) {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
}

/// Cuts the text of an error to its maximum length.
pub(super) fn shorten_error_text(mut text: String) -> String {
    if text.len() > THROWN_BYTES {
        truncate_text(&mut text, THROWN_BYTES - '…'.len_utf8());
        text.push('…');
    }
    text
}

/// The stack frames that belong to the program.
fn of_program(stack: &str) -> String {
    let file = FILE.to_str().expect("it is ASCII");
    let frames = stack.lines().filter(|frame| frame.contains(file)).map(str::trim);
    frames.collect::<Vec<_>>().join("\n")
}

/// Line and column of the first stack frame that is not the error's own constructor, `made_by`.
fn position(stack: &str, made_by: &str) -> Option<(u32, u32)> {
    let file = FILE.to_str().expect("it is ASCII");
    let own = |frame: &&str| {
        let name = frame.strip_prefix("at ").and_then(|frame| frame.split_once(" (")).map(|(name, _)| name);
        !made_by.is_empty() && name.is_some_and(|name| name.trim_start_matches("new ") == made_by)
    };
    let frame = stack.lines().find(|frame| !own(frame)).or_else(|| stack.lines().next())?;
    let after = frame.split_once(file)?.1.strip_prefix(':')?;
    let mut numbers = after.split(|letter: char| !letter.is_ascii_digit());
    let line = numbers.next()?.parse().ok()?;
    let column = numbers.next().and_then(|column| column.parse().ok()).unwrap_or(0);
    Some((line, column))
}
