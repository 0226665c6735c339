//! Native functions that the prelude receives.

use std::rc::Rc;

use rquickjs::function::{IntoJsFunc, Opt};
use rquickjs::{Ctx, Exception, Object, Value};

use super::function::native_function;
use super::json::JsonProblem;
use super::world::RealmState;
use super::{errors, raw, timers};
use crate::message::{ConsoleLevel, ProbeKind, ReachedPoint, WorkerEvent};

/// Maximum size of a progress message, in bytes.
const WORDS_BYTES: usize = 4 << 10;

/// Probe kinds, indexed by the number the prelude uses.
const KINDS: [ProbeKind; 8] = [
    ProbeKind::Is,
    ProbeKind::Has,
    ProbeKind::Case,
    ProbeKind::Loop,
    ProbeKind::Turn,
    ProbeKind::Caught,
    ProbeKind::Did,
    ProbeKind::Fork,
];

/// Console levels, indexed by the number the prelude uses.
const LEVELS: [ConsoleLevel; 5] =
    [ConsoleLevel::Debug, ConsoleLevel::Log, ConsoleLevel::Info, ConsoleLevel::Warn, ConsoleLevel::Error];

/// One object with all native functions.
pub(super) fn native_functions<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    timers::install_functions(ctx, world, &native)?;
    let own = Rc::clone(world);
    add(&native, "kind", 1, move |value: Value<'js>| own.class_name(&value))?;
    let own = Rc::clone(world);
    add(&native, "now", 0, move || own.run.now_ms.get() as f64)?;
    let own = Rc::clone(world);
    add(&native, "random", 0, move || own.run.random.next())?;
    let own = Rc::clone(world);
    add(&native, "uncaught", 1, move |ctx: Ctx<'js>, reason: Value<'js>| own.note_uncaught(&ctx, reason))?;
    let own = Rc::clone(world);
    add(&native, "consoleRoom", 0, move || own.console_bytes_left().map_or(-1.0, |left| left as f64))?;
    let own = Rc::clone(world);
    add(&native, "console", 2, move |level: usize, text: Value<'js>| {
        own.write_console(LEVELS[level], raw::primitive_text(&text).unwrap_or_default());
    })?;
    let own = Rc::clone(world);
    add(&native, "progress", 3, move |ctx, done, total, message| progress(&ctx, &own, done, total, message))?;
    let own = Rc::clone(world);
    add(&native, "hint", 1, move |ctx, value| hint(&ctx, &own, value))?;
    let own = Rc::clone(world);
    add(&native, "at", 2, move |point: u32, context: u32| own.run.call_site.set((point, context)))?;
    let own = Rc::clone(world);
    let reached = move |kind: usize, point: u32, context: u32, outcome: i32, count: f64, after: u32| {
        own.probes.reached(ReachedPoint {
            kind: KINDS[kind],
            point,
            context,
            outcome,
            count: count as u64,
            after,
        });
    };
    add(&native, "reached", 6, reached)?;
    let own = Rc::clone(world);
    add(&native, "made", 0, move || own.run.calls.made_count())?;
    let own = Rc::clone(world);
    add(&native, "began", 2, move |point: u32, context: u32| own.operation_began(point, context))?;
    let own = Rc::clone(world);
    let gave =
        move |point: u32, context: u32, value: Value<'js>| own.operation_returned(point, context, &value);
    add(&native, "gave", 3, gave)?;
    Ok(native)
}

fn add<'js, P, F>(native: &Object<'js>, name: &str, length: usize, called: F) -> rquickjs::Result<()>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    native.set(name, native_function(native.ctx(), name, length, called)?)
}

fn progress<'js>(
    ctx: &Ctx<'js>,
    world: &RealmState<'js>,
    done: Opt<Value<'js>>,
    total: Opt<Value<'js>>,
    message: Opt<Value<'js>>,
) -> rquickjs::Result<()> {
    let number =
        |value: Opt<Value<'js>>| value.0.as_ref().and_then(Value::as_number).filter(|it| it.is_finite());
    let Some(done) = number(done) else {
        return Err(Exception::throw_type(ctx, "pml.progress needs a number first"));
    };
    let mut message = message
        .0
        .filter(|it| it.is_string() && raw::utf16_length(it) <= 1 << 20)
        .and_then(|it| raw::primitive_text(&it));
    if let Some(message) = &mut message {
        errors::truncate_text(message, WORDS_BYTES);
    }
    // Progress of a nested program says nothing about the whole run.
    if world.frame == 0 {
        world.run.output.set_progress(WorkerEvent::Progress { done, total: number(total), message });
    }
    Ok(())
}

fn hint<'js>(ctx: &Ctx<'js>, world: &RealmState<'js>, value: Opt<Value<'js>>) -> rquickjs::Result<()> {
    let wrong = |message: &str| Err(Exception::throw_type(ctx, message));
    let Some(value) = value.0 else { return wrong("pml.hint needs an object") };
    if world.is_over() {
        return Ok(());
    }
    match world.to_json(value, world.run.argument_size()) {
        Ok(Some(json)) if json.starts_with('{') => {
            // A nested program is a capability and has a name already, so its hint is ignored.
            if world.frame == 0 {
                world.run.output.set_hint(json);
            }
            Ok(())
        }
        Ok(_) => wrong("pml.hint needs an object"),
        Err(JsonProblem::Refused { path, what }) => wrong(&format!("`{path}` of the hint is {what}")),
        Err(JsonProblem::TooLong | JsonProblem::TooDeep) => wrong("the hint is too large"),
        Err(JsonProblem::Thrown) => Err(rquickjs::Error::Exception),
    }
}
