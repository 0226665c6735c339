//! Functions of the engine that its safe bindings do not offer.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use rquickjs::context::Intrinsic;
use rquickjs::{Ctx, Value, qjs};

/// Sets the engine's stack limit, in bytes from here on.
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

/// Stores the number of its frame in a context.
pub(super) fn set_frame(ctx: &Ctx<'_>, frame: u32) {
    // SAFETY: the context is alive; the number is never dereferenced.
    unsafe {
        qjs::JS_SetContextOpaque(ctx.as_raw().as_ptr(), std::ptr::without_provenance_mut(frame as usize));
    }
}

/// The frame number stored in a context.
pub(super) fn frame_of(ctx: &Ctx<'_>) -> u32 {
    // SAFETY: the context is alive.
    let number = unsafe { qjs::JS_GetContextOpaque(ctx.as_raw().as_ptr()) }.addr();
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Collects reference cycles that nothing else refers to.
pub(super) fn collect_garbage(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive, and so is its runtime.
    unsafe { qjs::JS_RunGC(qjs::JS_GetRuntime(ctx.as_raw().as_ptr())) }
}

/// `source` as bytecode, which any context of the engine can run.
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

/// Runs the bytecode of [`compile`] and returns its value. An exception stays in the context.
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
    // The engine requires a zero byte after the text.
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

/// The text of a primitive, as the language converts it; unpaired surrogates become U+FFFD. No code of the program
/// runs.
pub(super) fn primitive_text(value: &Value<'_>) -> Option<String> {
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

/// Length of a string in UTF-16 units.
pub(super) fn utf16_length(string: &Value<'_>) -> u64 {
    debug_assert!(string.is_string());
    own_length(string)
}

/// Length of a string, or of an array that is no proxy. Reading it runs no code of the program.
pub(super) fn own_length(value: &Value<'_>) -> u64 {
    let mut length = 0;
    // SAFETY: context and value are alive.
    unsafe { qjs::JS_GetLength(value.ctx().as_raw().as_ptr(), value.as_raw(), &raw mut length) };
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A member of an object as it is stored.
pub(super) enum StoredMember<'js> {
    Value(Value<'js>),
    /// A getter of the program, which is not called.
    Accessor,
    Missing,
}

/// The item of an array at `index`. The array must not be a proxy, so that no code of the program runs.
pub(super) fn own_item<'js>(array: &Value<'js>, index: u32) -> StoredMember<'js> {
    let raw = array.ctx().as_raw().as_ptr();
    // SAFETY: context and value are alive. The atom is ours and is given back.
    unsafe {
        let atom = qjs::JS_NewAtomUInt32(raw, index);
        let member = own_member(array, atom);
        qjs::JS_FreeAtom(raw, atom);
        member
    }
}

/// # Safety
/// The atom is alive.
unsafe fn own_member<'js>(object: &Value<'js>, atom: qjs::JSAtom) -> StoredMember<'js> {
    let ctx = object.ctx();
    let mut found = MaybeUninit::<qjs::JSPropertyDescriptor>::uninit();
    // SAFETY: context, value and atom are alive. When 1 is returned, the descriptor is filled in and its three values
    // are ours: each is owned by a `Value` from then on.
    unsafe {
        if qjs::JS_GetOwnProperty(ctx.as_raw().as_ptr(), found.as_mut_ptr(), object.as_raw(), atom) != 1 {
            return StoredMember::Missing;
        }
        let found = found.assume_init();
        let [value, _getter, _setter] =
            [found.value, found.getter, found.setter].map(|value| Value::from_raw(ctx.clone(), value));
        match found.flags & qjs::JS_PROP_GETSET as i32 {
            0 => StoredMember::Value(value),
            _ => StoredMember::Accessor,
        }
    }
}

/// The own enumerable members of an object with string keys, in order.
pub(super) struct OwnMembers<'js> {
    object: Value<'js>,
    start: *mut qjs::JSPropertyEnum,
    pub(super) count: u32,
    next: u32,
}

/// The members of an object that is no proxy, so that no code of the program runs; None when memory for the list is
/// lacking.
pub(super) fn own_members<'js>(object: &Value<'js>) -> Option<OwnMembers<'js>> {
    let (mut start, mut count) = (std::ptr::null_mut(), 0);
    let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as i32;
    // SAFETY: context and value are alive. What is returned is ours and is given back in `drop`.
    let done = unsafe {
        let raw = object.ctx().as_raw().as_ptr();
        qjs::JS_GetOwnPropertyNames(raw, &raw mut start, &raw mut count, object.as_raw(), flags)
    };
    (done == 0).then(|| OwnMembers { object: object.clone(), start, count, next: 0 })
}

impl<'js> Iterator for OwnMembers<'js> {
    type Item = (Value<'js>, StoredMember<'js>);

    /// The key, a string, and the stored member.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.count {
            return None;
        }
        let ctx = self.object.ctx();
        // SAFETY: there are `count` names from `start` on, whose atoms are alive until they are given back in `drop`.
        let found = unsafe {
            let atom = (*self.start.add(self.next as usize)).atom;
            let key = Value::from_raw(ctx.clone(), qjs::JS_AtomToString(ctx.as_raw().as_ptr(), atom));
            (key, own_member(&self.object, atom))
        };
        self.next += 1;
        Some(found)
    }
}

impl Drop for OwnMembers<'_> {
    fn drop(&mut self) {
        // SAFETY: they came from `JS_GetOwnPropertyNames` and are given back once.
        unsafe {
            qjs::JS_FreePropertyEnum(self.object.ctx().as_raw().as_ptr(), self.start, self.count);
        }
    }
}

/// Class number of an object, which the program cannot fake.
pub(super) fn class_id(value: &Value<'_>) -> u32 {
    // SAFETY: the value is alive.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// Names of all engine classes, indexed by class number; empty for an unused number.
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

/// The engine's UTF-8 as a `String`: it writes an unpaired surrogate as three bytes, which are replaced.
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
