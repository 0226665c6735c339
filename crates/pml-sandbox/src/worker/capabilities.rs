//! Nested programs as a program sees them: functions that return promises.

use std::collections::BTreeMap;
use std::rc::Rc;

use pml_model::ErrorCode;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Promise, Value};

use super::calls::{self, CallRefusal};
use super::function::native_function;
use super::waiting::OpenFrame;
use super::world::RealmState;
use crate::message::{ExceededLimit, MOST_DEPTH, NestedProgram, ProgramEnding, WorkerEvent};

/// The JavaScript function that calls the nested program with index `place`.
pub(super) fn capability_function<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
    place: u32,
    name: &str,
) -> rquickjs::Result<Function<'js>> {
    let world = Rc::clone(world);
    let call = move |ctx: Ctx<'js>, argument: Opt<Value<'js>>| call(&ctx, &world, place, argument.0);
    native_function(ctx, name, 1, call)
}

/// Always returns a promise, like an async function; invalid arguments reject it.
fn call<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
    place: u32,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let run = &world.run;
    let (point, context) = run.call_site.take();
    let (promise, resolve, reject) = ctx.promise()?;
    if world.is_over() {
        return Ok(promise);
    }
    let nested = run.nested_program(place).expect("only those that are there are seen");
    let given = match world.depth < MOST_DEPTH {
        true => calls::read_arguments(world, "a capability", argument),
        false => Err(CallRefusal::TooLarge {
            message: format!("`{}` is called more than {MOST_DEPTH} levels deep", nested.name),
            code: ErrorCode::TooDeep,
        }),
    };
    let arguments = match given {
        Ok(given) => with_defaults(&given, nested),
        Err(wrong) => {
            reject.call::<_, ()>((wrong.into_error_value(ctx, world)?,))?;
            return Ok(promise);
        }
    };
    let frame = run.frames.made.get() + 1;
    if frame > run.limits().calls {
        match run.end_run(ProgramEnding::Limit(ExceededLimit::Calls))? {}
    }
    run.frames.made.set(frame);
    let parent = world.frame;
    let told = WorkerEvent::FrameBegan {
        frame,
        parent,
        nested: place,
        point,
        context,
        arguments: arguments.clone(),
    };
    run.out.send_event(told);
    let open = OpenFrame {
        nested: place,
        arguments,
        caller: world.frame,
        depth: world.depth + 1,
        resolve,
        reject,
        capability_error: world.exports().capability_error.clone(),
        probes: None,
    };
    run.frames.open.borrow_mut().insert(frame, open);
    Ok(promise)
}

/// `given`, a JSON object, with the missing members filled in from the defaults.
fn with_defaults(given: &str, nested: &NestedProgram) -> String {
    type Members<'g> = BTreeMap<std::borrow::Cow<'g, str>, serde::de::IgnoredAny>;
    if nested.defaults.is_empty() {
        return given.to_owned();
    }
    let there: Members<'_> = serde_json::from_str(given).unwrap_or_default();
    let mut text = given.strip_suffix('}').unwrap_or(given).to_owned();
    for (name, json) in nested.defaults.iter().filter(|(name, _)| !there.contains_key(name.as_str())) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&serde_json::to_string(name).expect("a text has a JSON form"));
        text.push(':');
        text.push_str(json);
    }
    text.push('}');
    text
}
