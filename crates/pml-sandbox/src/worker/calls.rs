//! Tools as the program sees them: functions that return promises.

use std::rc::Rc;

use pml_model::ErrorCode;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Promise, Value};

use super::function::native_function;
use super::json::JsonProblem;
use super::run::SandboxRun;
use super::waiting::OpenCall;
use super::world::RealmState;
use crate::message::{ExceededLimit, GrantedTool, ProgramEnding, ToolCallError, WorkerEvent};

/// The JavaScript function that calls `granted`.
pub(super) fn tool_function<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
    granted: &GrantedTool,
) -> rquickjs::Result<Function<'js>> {
    let own_name = granted.names.first().map_or("", String::as_str);
    let tool: Rc<str> = format!("{}:{own_name}", granted.server).into();
    let handle = granted.handle;
    let world = Rc::clone(world);
    let call = move |ctx: Ctx<'js>, argument: Opt<Value<'js>>| call(&ctx, &world, &tool, handle, argument.0);
    native_function(ctx, own_name, 1, call)
}

/// Always returns a promise, like an async function; invalid arguments reject it.
fn call<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
    tool: &Rc<str>,
    handle: u32,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let run = &world.run;
    let (point, context) = run.call_site.take();
    let (promise, resolve, reject) = ctx.promise()?;
    if world.is_over() {
        return Ok(promise);
    }
    let arguments = match read_arguments(world, "a tool", argument) {
        Ok(arguments) => arguments,
        Err(wrong) => {
            reject.call::<_, ()>((wrong.into_error_value(ctx, world)?,))?;
            return Ok(promise);
        }
    };
    let call = run.calls.made.get() + 1;
    if call > run.limits().calls {
        match run.end_run(ProgramEnding::Limit(ExceededLimit::Calls))? {}
    }
    run.calls.made.set(call);
    let tool_error = world.exports().tool_error.clone();
    let open = OpenCall { frame: world.frame, tool: Rc::clone(tool), resolve, reject, tool_error };
    run.calls.open.borrow_mut().insert(call, open);
    run.out.send_event(WorkerEvent::Call { call, frame: world.frame, point, context, handle, arguments });
    Ok(promise)
}

/// Reason why a call is refused.
pub(super) enum CallRefusal {
    /// The arguments are not valid.
    Invalid(String),
    /// The arguments are too large, or frames are nested too deeply.
    TooLarge { message: String, code: ErrorCode },
    /// Reading the arguments threw; the exception is in the context.
    Thrown,
}

impl CallRefusal {
    /// The error value that the call is rejected with.
    pub(super) fn into_error_value<'js>(
        self,
        ctx: &Ctx<'js>,
        world: &RealmState<'js>,
    ) -> rquickjs::Result<Value<'js>> {
        match self {
            CallRefusal::Invalid(message) => {
                world.exports().type_error.call((message, ErrorCode::InvalidArguments.as_str()))
            }
            CallRefusal::TooLarge { message, code } => {
                world.exports().range_error.call((message, code.as_str()))
            }
            CallRefusal::Thrown => Ok(ctx.catch()),
        }
    }
}

/// The arguments as a JSON object. `what` names the callee in messages.
pub(super) fn read_arguments<'js>(
    world: &RealmState<'js>,
    what: &str,
    argument: Option<Value<'js>>,
) -> Result<String, CallRefusal> {
    let large = |message: String| Err(CallRefusal::TooLarge { message, code: ErrorCode::ArgsTooLarge });
    if world.run.is_reading() {
        let message = format!("{what} cannot be called while the arguments of another call are read");
        return Err(CallRefusal::Invalid(message));
    }
    let Some(argument) = argument else { return Ok("{}".to_owned()) };
    let size = world.run.argument_size();
    match world.to_json(argument, size) {
        Ok(None) => Ok("{}".to_owned()),
        Ok(Some(json)) if json.starts_with('{') => Ok(json),
        Ok(Some(_)) => Err(CallRefusal::Invalid(format!("the arguments of {what} must be one object"))),
        Err(JsonProblem::Refused { path, what }) => {
            Err(CallRefusal::Invalid(format!("the argument `{path}` is {what}")))
        }
        Err(JsonProblem::TooLong) => {
            large(format!("the arguments have more than {} bytes (limits.arguments)", size.bytes))
        }
        Err(JsonProblem::TooDeep) => {
            large(format!("the arguments have more than {} levels (limits.nesting)", size.nesting))
        }
        Err(JsonProblem::Thrown) => Err(CallRefusal::Thrown),
    }
}

/// Resolves a call with its result; ignored when the call has ended.
pub(super) fn resolve_call(run: &SandboxRun<'_>, call: u32, json: String) -> rquickjs::Result<()> {
    let Some(open) = run.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    let ctx = open.resolve.ctx();
    match ctx.json_parse(json) {
        Ok(value) => open.resolve.call((value,)),
        Err(_) => {
            // Parsing fails when, for example, the value nests deeper than the engine's stack allows. The engine's
            // message is replaced, because it refers to a text that the program never saw.
            ctx.catch();
            let error = ToolCallError {
                code: ErrorCode::ResultNotJson,
                message: "the result of the tool cannot be read".to_owned(),
                hint: None,
                data: None,
            };
            reject(call, &open, error)
        }
    }
}

/// Rejects a call; ignored when the call has ended.
pub(super) fn reject_call(run: &SandboxRun<'_>, call: u32, error: ToolCallError) -> rquickjs::Result<()> {
    let Some(open) = run.calls.open.borrow_mut().remove(&call) else { return Ok(()) };
    reject(call, &open, error)
}

fn reject<'js>(call: u32, open: &OpenCall<'js>, error: ToolCallError) -> rquickjs::Result<()> {
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
        open.tool_error.call((error.message, error.code.as_str(), call, tool, hint, data, is_there))?;
    open.reject.call((made,))
}
