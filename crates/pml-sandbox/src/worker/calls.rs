//! Tools as the program sees them: functions that give promises.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Promise, Value};

use super::json::Problem;
use super::world::World;
use crate::message::{CallError, Ending, Event, Granted, Limit};

/// Calls that have no end yet, and how many there were.
#[derive(Default)]
pub(super) struct Calls<'js> {
    made: Cell<u32>,
    open: RefCell<HashMap<u32, Open<'js>>>,
}

struct Open<'js> {
    tool: Rc<str>,
    resolve: Function<'js>,
    reject: Function<'js>,
}

impl Calls<'_> {
    pub(super) fn made(&self) -> u32 {
        self.made.get()
    }

    pub(super) fn open(&self) -> usize {
        self.open.borrow().len()
    }
}

/// The function that calls `granted`.
pub(super) fn tool<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    granted: &Granted,
) -> rquickjs::Result<Function<'js>> {
    let own_name = granted.names.first().map_or("", String::as_str);
    let tool: Rc<str> = format!("{}:{own_name}", granted.server).into();
    let handle = granted.handle;
    let world = Rc::clone(world);
    let call = move |ctx: Ctx<'js>, argument: Opt<Value<'js>>| call(&ctx, &world, &tool, handle, argument.0);
    Function::new(ctx.clone(), call)?.with_name(own_name)?.with_length(1)
}

/// As an async function would, it always gives a promise; what is wrong with the arguments rejects it.
fn call<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    tool: &Rc<str>,
    handle: u32,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let (point, context) = world.site.take();
    let (promise, resolve, reject) = ctx.promise()?;
    let arguments = match arguments(ctx, world, argument) {
        Ok(arguments) => arguments,
        Err(reason) => {
            reject.call::<_, ()>((reason?,))?;
            return Ok(promise);
        }
    };
    let call = world.calls.made.get() + 1;
    if call > world.limits().calls {
        match world.end(Ending::Limit(Limit::Calls))? {}
    }
    world.calls.made.set(call);
    world.calls.open.borrow_mut().insert(call, Open { tool: Rc::clone(tool), resolve, reject });
    world.out.say(Event::Call { call, frame: 0, point, context, handle, arguments });
    Ok(promise)
}

/// The JSON object to send, or what the call is rejected with.
fn arguments<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    argument: Option<Value<'js>>,
) -> Result<String, rquickjs::Result<Value<'js>>> {
    const INVALID: &str = "INVALID_ARGUMENTS";
    const LARGE: &str = "ARGS_TOO_LARGE";
    let kept = world.kept();
    let wrong = |message: &str| Err(kept.type_error.call((message, INVALID)));
    let large = |message: String| Err(kept.range_error.call((message, LARGE)));
    if world.is_reading() {
        return wrong("a tool cannot be called while the arguments of another call are read");
    }
    let Some(argument) = argument else { return Ok("{}".to_owned()) };
    let size = world.argument_size();
    match world.json(argument, size) {
        Ok(None) => Ok("{}".to_owned()),
        Ok(Some(json)) if json.starts_with('{') => Ok(json),
        Ok(Some(_)) => wrong("the arguments of a tool must be one object"),
        Err(Problem::Refused { path, what }) => wrong(&format!("the argument `{path}` is {what}")),
        Err(Problem::Long) => {
            large(format!("the arguments have more than {} bytes (limits.arguments)", size.bytes))
        }
        Err(Problem::Deep) => {
            large(format!("the arguments have more than {} levels (limits.nesting)", size.nesting))
        }
        Err(Problem::Thrown) => Err(Ok(ctx.catch())),
    }
}

/// Ends a call with its result; nothing happens when it has ended.
pub(super) fn result<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    call: u32,
    json: String,
) -> rquickjs::Result<()> {
    let Some(open) = world.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    match ctx.json_parse(json) {
        Ok(value) => open.resolve.call((value,)),
        Err(_) => {
            // Such as more levels than the engine's stack has room for. What it says speaks of a text that the
            // program never saw.
            ctx.catch();
            let error = CallError {
                code: "RESULT_NOT_JSON".to_owned(),
                message: "the result of the tool cannot be read".to_owned(),
                hint: None,
                data: None,
            };
            reject(ctx, world, call, &open, error)
        }
    }
}

/// Ends a call with an error; nothing happens when it has ended.
pub(super) fn error<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    call: u32,
    error: CallError,
) -> rquickjs::Result<()> {
    let Some(open) = world.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    reject(ctx, world, call, &open, error)
}

fn reject<'js>(
    ctx: &Ctx<'js>,
    world: &World<'js>,
    call: u32,
    open: &Open<'js>,
    error: CallError,
) -> rquickjs::Result<()> {
    let data = match error.data.map(|json| ctx.json_parse(json)) {
        Some(Ok(value)) => Some(value),
        Some(Err(_)) => {
            ctx.catch();
            None
        }
        None => None,
    };
    let hint = match error.hint {
        Some(hint) => rquickjs::String::from_str(ctx.clone(), &hint)?.into_value(),
        None => Value::new_undefined(ctx.clone()),
    };
    let is_there = data.is_some();
    let data = data.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
    let tool: &str = &open.tool;
    let made: Value<'js> =
        world.kept().tool_error.call((error.message, error.code, call, tool, hint, data, is_there))?;
    open.reject.call((made,))
}
