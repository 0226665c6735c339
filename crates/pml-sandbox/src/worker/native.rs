//! The functions the prelude is given.

use std::rc::Rc;

use rquickjs::function::{IntoJsFunc, Opt};
use rquickjs::{Ctx, Exception, Function, Object, Value};

use super::json::Problem;
use super::run::{KINDS, LEVELS};
use super::world::World;
use super::{errors, raw, timers};
use crate::message::{Event, Reached};

/// The longest words of progress.
const WORDS_BYTES: usize = 4 << 10;

/// All of them, in one object.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, world: &Rc<World<'js>>) -> rquickjs::Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    timers::install(ctx, world, &native)?;
    let own = Rc::clone(world);
    add(&native, "kind", 1, move |value: Value<'js>| own.kind(&value))?;
    let own = Rc::clone(world);
    add(&native, "now", 0, move || own.run.now_ms.get() as f64)?;
    let own = Rc::clone(world);
    add(&native, "random", 0, move || own.run.random.next())?;
    let own = Rc::clone(world);
    add(&native, "uncaught", 1, move |ctx: Ctx<'js>, reason: Value<'js>| own.uncaught(&ctx, reason))?;
    let own = Rc::clone(world);
    add(&native, "consoleRoom", 0, move || own.console_left().map_or(-1.0, |left| left as f64))?;
    let own = Rc::clone(world);
    add(&native, "console", 2, move |level: usize, text: Value<'js>| {
        own.console(LEVELS[level], raw::text(&text).unwrap_or_default());
    })?;
    let own = Rc::clone(world);
    add(&native, "progress", 3, move |ctx, done, total, message| progress(&ctx, &own, done, total, message))?;
    let own = Rc::clone(world);
    add(&native, "hint", 1, move |ctx, value| hint(&ctx, &own, value))?;
    let own = Rc::clone(world);
    add(&native, "at", 2, move |point: u32, context: u32| own.run.site.set((point, context)))?;
    let own = Rc::clone(world);
    let reached = move |kind: usize, point: u32, context: u32, outcome: i32, count: f64, after: u32| {
        own.reached(Reached { kind: KINDS[kind], point, context, outcome, count: count as u64, after });
    };
    add(&native, "reached", 6, reached)?;
    let own = Rc::clone(world);
    add(&native, "made", 0, move || own.run.calls.made())?;
    let own = Rc::clone(world);
    add(&native, "began", 2, move |point: u32, context: u32| own.operation_began(point, context))?;
    let own = Rc::clone(world);
    let gave = move |point: u32, context: u32, value: Value<'js>| own.operation_gave(point, context, &value);
    add(&native, "gave", 3, gave)?;
    Ok(native)
}

fn add<'js, P, F>(native: &Object<'js>, name: &str, length: usize, function: F) -> rquickjs::Result<()>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    native.set(name, self::function(native.ctx(), name, length, function)?)
}

/// A function of this realm. The engine's bindings give all of them the prototype of the first realm there was.
pub(super) fn function<'js, P, F>(
    ctx: &Ctx<'js>,
    name: &str,
    length: usize,
    function: F,
) -> rquickjs::Result<Function<'js>>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    let function = Function::new(ctx.clone(), function)?.with_name(name)?.with_length(length)?;
    function.set_prototype(Some(&Function::prototype(ctx.clone())))?;
    Ok(function)
}

fn progress<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    done: Opt<Value<'js>>,
    total: Opt<Value<'js>>,
    message: Opt<Value<'js>>,
) -> rquickjs::Result<()> {
    let number =
        |value: Opt<Value<'js>>| value.0.as_ref().and_then(Value::as_number).filter(|it| it.is_finite());
    let Some(done) = number(done) else {
        return Err(Exception::throw_type(ctx, "pml.progress needs a number first"));
    };
    let mut message =
        message.0.filter(|it| it.is_string() && raw::units(it) <= 1 << 20).and_then(|it| raw::text(&it));
    if let Some(message) = &mut message {
        errors::cut(message, WORDS_BYTES);
    }
    // How far a program is that was called says nothing of the whole.
    if world.frame == 0 {
        world.run.progress(Event::Progress { done, total: number(total), message });
    }
    Ok(())
}

fn hint<'js>(ctx: &Ctx<'js>, world: &World<'js>, value: Opt<Value<'js>>) -> rquickjs::Result<()> {
    let wrong = |message: &str| Err(Exception::throw_type(ctx, message));
    let Some(value) = value.0 else { return wrong("pml.hint needs an object") };
    if world.is_over() {
        return Ok(());
    }
    match world.json(value, world.run.argument_size()) {
        Ok(Some(json)) if json.starts_with('{') => {
            // A program that was called has its name.
            if world.frame == 0 {
                world.run.hint(json);
            }
            Ok(())
        }
        Ok(_) => wrong("pml.hint needs an object"),
        Err(Problem::Refused { path, what }) => wrong(&format!("`{path}` of the hint is {what}")),
        Err(Problem::Long | Problem::Deep) => wrong("the hint is too large"),
        Err(Problem::Thrown) => Err(rquickjs::Error::Exception),
    }
}
