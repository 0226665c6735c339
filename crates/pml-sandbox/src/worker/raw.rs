//! What the engine can do and its safe bindings do not offer.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use rquickjs::context::Intrinsic;
use rquickjs::{Ctx, Value, qjs};

/// Sets how much stack the engine may use from here on.
pub(super) fn limit_stack(ctx: &Ctx<'_>, bytes: usize) {
    // SAFETY: the context is alive, and so is its runtime.
    unsafe { qjs::JS_SetMaxStackSize(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), bytes as qjs::size_t) }
}

/// Another context of the same engine, with these intrinsics.
pub(super) fn another_context<'js, I: Intrinsic>(ctx: &Ctx<'js>) -> Option<Ctx<'js>> {
    // SAFETY: the runtime is alive and locked as long as `ctx` is there, whose lifetime the new one has. It has one
    // reference when it is made, which is given back once `Ctx` has its own.
    unsafe {
        let made = NonNull::new(qjs::JS_NewContextRaw(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())))?;
        qjs::JS_AddIntrinsicBaseObjects(made.as_ptr());
        I::add_intrinsic(made);
        let own = Ctx::from_raw(made);
        qjs::JS_FreeContext(made.as_ptr());
        Some(own)
    }
}

/// Says which frame a context is of.
pub(super) fn set_frame(ctx: &Ctx<'_>, frame: u32) {
    // SAFETY: the context is alive; nobody takes the number for a place in memory.
    unsafe {
        qjs::JS_SetContextOpaque(ctx.as_raw().as_ptr(), std::ptr::without_provenance_mut(frame as usize));
    }
}

/// The frame a context is of.
pub(super) fn frame(ctx: &Ctx<'_>) -> u32 {
    // SAFETY: the context is alive.
    let number = unsafe { qjs::JS_GetContextOpaque(ctx.as_raw().as_ptr()) }.addr();
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Takes away what refers to itself in circles and nothing else refers to.
pub(super) fn collect_garbage(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive, and so is its runtime.
    unsafe { qjs::JS_RunGC(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) }
}

/// `source` in the engine's own form, which any context can run.
pub(super) fn compile(ctx: &Ctx<'_>, source: &str, file: &CStr) -> rquickjs::Result<Vec<u8>> {
    let only = qjs::JS_EVAL_FLAG_COMPILE_ONLY as i32;
    let compiled = evaluate_as(ctx, source.to_owned(), file, 1, only)?;
    let mut length = 0;
    // SAFETY: context and value are alive. The bytes are valid for `length` until they are given back below.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = qjs::JS_WRITE_OBJ_BYTECODE as i32;
        let start = qjs::JS_WriteObject(raw, &raw mut length, compiled.as_raw(), flags);
        if start.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let bytes = std::slice::from_raw_parts(start, length as usize).to_vec();
        qjs::js_free(raw, start.cast());
        Ok(bytes)
    }
}

/// Runs what [`compile`] made, and gives its value. An exception stays in the context.
pub(super) fn run_compiled<'js>(ctx: &Ctx<'js>, compiled: &[u8]) -> rquickjs::Result<Value<'js>> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive, and the bytes are the engine's own: this process has just had it write them. The
    // function takes what was read.
    let value = unsafe {
        let flags = qjs::JS_READ_OBJ_BYTECODE as i32;
        let read = qjs::JS_ReadObject(raw, compiled.as_ptr(), compiled.len() as qjs::size_t, flags);
        let read = Value::from_raw(ctx.clone(), read);
        if read.is_exception() {
            return Err(rquickjs::Error::Exception);
        }
        let function = qjs::JS_DupValue(raw, read.as_raw());
        Value::from_raw(ctx.clone(), qjs::JS_EvalFunction(raw, function))
    };
    match value.is_exception() {
        true => Err(rquickjs::Error::Exception),
        false => Ok(value),
    }
}

/// Evaluates `source`, whose first line has number `line`. An exception stays in the context.
pub(super) fn evaluate<'js>(
    ctx: &Ctx<'js>,
    source: String,
    file: &CStr,
    line: i32,
) -> rquickjs::Result<Value<'js>> {
    evaluate_as(ctx, source, file, line, 0)
}

fn evaluate_as<'js>(
    ctx: &Ctx<'js>,
    mut source: String,
    file: &CStr,
    line: i32,
    how: i32,
) -> rquickjs::Result<Value<'js>> {
    let mut options = qjs::JSEvalOptions {
        version: qjs::JS_EVAL_OPTIONS_VERSION as i32,
        eval_flags: qjs::JS_EVAL_TYPE_GLOBAL as i32 | how,
        filename: file.as_ptr(),
        line_num: line,
    };
    let bytes = source.len();
    // The engine wants a zero behind the text.
    source.push('\0');
    // SAFETY: the context is alive; text, name and options live until the call has returned; the text ends with a
    // zero that its length does not count.
    let value = unsafe {
        let value = qjs::JS_Eval2(
            ctx.as_raw().as_ptr(),
            source.as_ptr().cast(),
            bytes as qjs::size_t,
            &raw mut options,
        );
        Value::from_raw(ctx.clone(), value)
    };
    match value.is_exception() {
        true => Err(rquickjs::Error::Exception),
        false => Ok(value),
    }
}

/// The text of a primitive as the language writes it; halves of surrogate pairs become U+FFFD. No code of the
/// program runs.
pub(super) fn text(value: &Value<'_>) -> Option<String> {
    debug_assert!(!value.is_object() && !value.is_symbol());
    let ctx = value.ctx().as_raw().as_ptr();
    let mut length = MaybeUninit::uninit();
    // SAFETY: context and value are alive. The bytes are valid for `length` until they are given back below.
    unsafe {
        let start = qjs::JS_ToCStringLen(ctx, length.as_mut_ptr(), value.as_raw());
        if start.is_null() {
            return None;
        }
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length.assume_init());
        let text = well_formed(bytes);
        qjs::JS_FreeCString(ctx, start);
        Some(text)
    }
}

/// How many UTF-16 units a string has.
pub(super) fn units(string: &Value<'_>) -> u64 {
    debug_assert!(string.is_string());
    let mut length = 0;
    // SAFETY: context and value are alive; the length of a string is its own and runs no code.
    unsafe { qjs::JS_GetLength(string.ctx().as_raw().as_ptr(), string.as_raw(), &raw mut length) };
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What kind of object it is, whatever it pretends: the number of its class.
pub(super) fn class(value: &Value<'_>) -> u32 {
    // SAFETY: the value is alive.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// The names of all classes, by number; empty where there is none.
pub(super) fn class_names(ctx: &Ctx<'_>) -> Vec<String> {
    const MOST: u32 = 128;
    (0..MOST).map(|class| class_name(ctx, class)).collect()
}

fn class_name(ctx: &Ctx<'_>, class: u32) -> String {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive. The atom is ours and is given back; its text is copied before that is given
    // back.
    unsafe {
        let atom = qjs::JS_GetClassName(qjs::JS_GetRuntime(raw), class);
        if atom == qjs::JS_ATOM_NULL {
            return String::new();
        }
        let start = qjs::JS_AtomToCStringLen(raw, std::ptr::null_mut(), atom);
        let name = match start.is_null() {
            true => String::new(),
            false => CStr::from_ptr(start).to_string_lossy().into_owned(),
        };
        qjs::JS_FreeCString(raw, start);
        qjs::JS_FreeAtom(raw, atom);
        name
    }
}

/// The engine writes UTF-8, but for half a surrogate pair three bytes that are none.
fn well_formed(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => {
                let (good, bad) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(good));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = bad.get(3..).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::well_formed;

    #[test]
    fn half_a_surrogate_pair_is_one_replacement_character() {
        assert_eq!(well_formed(b"a\xed\xa0\x80b\xed\xbf\xbf"), "a\u{fffd}b\u{fffd}");
        assert_eq!(well_formed("aé😀".as_bytes()), "aé😀");
    }
}
