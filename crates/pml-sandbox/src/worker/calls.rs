//! Tools as the program sees them: functions that give promises.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Promise, Value};

use super::json::Problem;
use super::native;
use super::run::Run;
use super::world::World;
use crate::message::{CallError, Ending, Event, Granted, Limit};

/// Calls that have no end yet, and how many there were.
#[derive(Default)]
pub(super) struct Calls<'js> {
    made: Cell<u32>,
    open: RefCell<HashMap<u32, Open<'js>>>,
}

struct Open<'js> {
    world: Rc<World<'js>>,
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

    /// Adds the frames that wait for one.
    pub(super) fn add_frames(&self, waiting: &mut HashSet<u32>) {
        waiting.extend(self.open.borrow().values().map(|open| open.world.frame));
    }

    /// Nobody waits any more for those that `frame` made.
    pub(super) fn forget(&self, frame: u32) {
        self.open.borrow_mut().retain(|_, open| open.world.frame != frame);
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
    native::function(ctx, own_name, 1, call)
}

/// As an async function would, it always gives a promise; what is wrong with the arguments rejects it.
fn call<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    tool: &Rc<str>,
    handle: u32,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let run = &world.run;
    let (point, context) = run.site.take();
    let (promise, resolve, reject) = ctx.promise()?;
    if world.is_over() {
        return Ok(promise);
    }
    let arguments = match arguments(world, "a tool", argument) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            reject.call::<_, ()>((wrong.thrown(ctx, world)?,))?;
            return Ok(promise);
        }
    };
    let call = run.calls.made.get() + 1;
    if call > run.limits().calls {
        match run.end(Ending::Limit(Limit::Calls))? {}
    }
    run.calls.made.set(call);
    let open = Open { world: Rc::clone(world), tool: Rc::clone(tool), resolve, reject };
    run.calls.open.borrow_mut().insert(call, open);
    run.out.say(Event::Call { call, frame: world.frame, point, context, handle, arguments });
    Ok(promise)
}

/// Why a call is not made.
pub(super) enum Wrong {
    /// It is given something that it cannot be given.
    Invalid(String),
    /// It is too much of something.
    Large { message: String, code: &'static str },
    /// Reading what it is given threw; the exception is in the context.
    Thrown,
}

impl Wrong {
    /// What the call is rejected with.
    pub(super) fn thrown<'js>(self, ctx: &Ctx<'js>, world: &World<'js>) -> rquickjs::Result<Value<'js>> {
        match self {
            Wrong::Invalid(message) => world.kept().type_error.call((message, "INVALID_ARGUMENTS")),
            Wrong::Large { message, code } => world.kept().range_error.call((message, code)),
            Wrong::Thrown => Ok(ctx.catch()),
        }
    }
}

/// The JSON object to send, or why there is none. `what` is called, in words.
pub(super) fn arguments<'js>(
    world: &World<'js>,
    what: &str,
    argument: Option<Value<'js>>,
) -> Result<String, Wrong> {
    let large = |message: String| Err(Wrong::Large { message, code: "ARGS_TOO_LARGE" });
    if world.run.is_reading() {
        let message = format!("{what} cannot be called while the arguments of another call are read");
        return Err(Wrong::Invalid(message));
    }
    let Some(argument) = argument else { return Ok("{}".to_owned()) };
    let size = world.run.argument_size();
    match world.json(argument, size) {
        Ok(None) => Ok("{}".to_owned()),
        Ok(Some(json)) if json.starts_with('{') => Ok(json),
        Ok(Some(_)) => Err(Wrong::Invalid(format!("the arguments of {what} must be one object"))),
        Err(Problem::Refused { path, what }) => {
            Err(Wrong::Invalid(format!("the argument `{path}` is {what}")))
        }
        Err(Problem::Long) => {
            large(format!("the arguments have more than {} bytes (limits.arguments)", size.bytes))
        }
        Err(Problem::Deep) => {
            large(format!("the arguments have more than {} levels (limits.nesting)", size.nesting))
        }
        Err(Problem::Thrown) => Err(Wrong::Thrown),
    }
}

/// Ends a call with its result; nothing happens when it has ended.
pub(super) fn result(run: &Run<'_>, call: u32, json: String) -> rquickjs::Result<()> {
    let Some(open) = run.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    let ctx = open.resolve.ctx();
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
            reject(call, &open, error)
        }
    }
}

/// Ends a call with an error; nothing happens when it has ended.
pub(super) fn error(run: &Run<'_>, call: u32, error: CallError) -> rquickjs::Result<()> {
    let Some(open) = run.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    reject(call, &open, error)
}

fn reject<'js>(call: u32, open: &Open<'js>, error: CallError) -> rquickjs::Result<()> {
    let ctx = open.reject.ctx();
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
        open.world.kept().tool_error.call((error.message, error.code, call, tool, hint, data, is_there))?;
    open.reject.call((made,))
}
