//! Runs the body of a program in a real JavaScript engine and remembers what it did.
//!
//! The world is `host.js`. An execution is bounded, so a program that never ends is an outcome, not a
//! test that hangs.

use std::cell::Cell;

use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime};
use serde::Deserialize;

/// How often the engine may ask whether to go on; it asks every ten thousand steps or so.
const PATIENCE: u32 = 2_000;
/// How many jobs and deliveries a run may have.
const JOBS: u32 = 200_000;

/// Enough to compile the deepest tree the analysis accepts, also where the engine is built without optimisation.
const STACK: usize = 1 << 20;

/// What could be seen of an execution from outside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Outcome {
    /// `value …`, `error …`, or why there is neither.
    pub(crate) end: String,
    /// What was written to the console.
    pub(crate) log: Vec<String>,
    /// Tools called, in order of issue.
    pub(crate) calls: Vec<Call>,
}

/// One tool called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Call {
    /// `server:tool`, or `capability:name`.
    pub(crate) tool: String,
    /// JSON of the first argument.
    pub(crate) arguments: String,
    /// How many arguments there were.
    pub(crate) given: u32,
}

/// A probe point in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub(crate) struct At {
    /// The number in the probe.
    pub(crate) point: u32,
    /// The context.
    pub(crate) context: u32,
}

/// What a probe said.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Report {
    /// The method of the probe object.
    pub(crate) kind: String,
    /// The number in the probe.
    pub(crate) point: u32,
    /// The context.
    pub(crate) context: u32,
    /// A truth, the index of a case, or nothing.
    pub(crate) value: serde_json::Value,
}

/// One execution.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    /// What could be seen from outside.
    pub(crate) outcome: Outcome,
    /// Which point each call came from.
    pub(crate) at: Vec<Option<At>>,
    /// What the probes said, in order.
    pub(crate) reports: Vec<Report>,
}

/// Where a followed call leads; as in the analysis.
pub(crate) type Entries = serde_json::Value;

/// Whether the engine's parser takes `body` as the body of an async function.
pub(crate) fn compile(body: &str, probe: &str) -> Result<(), String> {
    let runtime = Runtime::new().expect("the engine starts");
    runtime.set_max_stack_size(STACK);
    let context = Context::full(&runtime).expect("the engine gives a context");
    context.with(|ctx| program(&ctx, body, probe).map(|_| ()))
}

/// Runs `body`; the probe object is called `probe` around it, and nowhere else.
pub(crate) fn run(body: &str, probe: &str, entries: &Entries) -> Result<Run, String> {
    let runtime = Runtime::new().expect("the engine starts");
    runtime.set_memory_limit(128 << 20);
    runtime.set_max_stack_size(STACK);
    let asked = Cell::new(0);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        asked.set(asked.get() + 1);
        asked.get() > PATIENCE
    })));
    let context = Context::full(&runtime).expect("the engine gives a context");
    let begun = context.with(|ctx| -> Result<_, String> {
        let program = program(&ctx, body, probe)?;
        let host = host(&ctx, entries)?;
        let start: Function = host.get("start").expect("the host can start");
        start.call::<_, ()>((program,)).catch(&ctx).map_err(|error| format!("did not start: {error}"))?;
        Ok(rquickjs::Persistent::save(&ctx, host))
    });
    let host = begun?;
    let idle = drive(&runtime, &context, &host);
    context.with(|ctx| {
        let host = host.restore(&ctx).expect("the host belongs to this runtime");
        let report: Function = host.get("report").expect("the host can report");
        let text: String = report.call(()).catch(&ctx).map_err(|error| format!("no report: {error}"))?;
        let mut run: Run = serde_json::from_str(&text).map_err(|error| format!("bad report: {error}"))?;
        if !idle {
            "did not end".clone_into(&mut run.outcome.end);
        }
        Ok(run)
    })
}

/// Runs jobs until there are none, then delivers one thing, until nothing waits. False when that was too much.
fn drive(runtime: &Runtime, context: &Context, host: &rquickjs::Persistent<Object<'static>>) -> bool {
    for _ in 0..JOBS {
        match runtime.execute_pending_job() {
            Ok(true) => continue,
            Ok(false) => {}
            Err(_) => return false,
        }
        let delivered = context.with(|ctx| {
            let host = host.clone().restore(&ctx).expect("the host belongs to this runtime");
            let deliver: Function = host.get("deliver").expect("the host can deliver");
            deliver.call::<_, bool>(()).catch(&ctx).ok()
        });
        match delivered {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
    }
    false
}

fn program<'js>(ctx: &Ctx<'js>, body: &str, probe: &str) -> Result<Function<'js>, String> {
    // The line ends keep a comment at the end of the body from swallowing the rest.
    let text = format!("(function ({probe}) {{ return async function () {{ \"use strict\";\n{body}\n}} }})");
    ctx.eval(text).catch(ctx).map_err(said)
}

fn host<'js>(ctx: &Ctx<'js>, entries: &Entries) -> Result<Object<'js>, String> {
    let make: Function = ctx.eval(include_str!("host.js")).catch(ctx).map_err(said)?;
    let entries = ctx.json_parse(entries.to_string()).catch(ctx).map_err(said)?;
    make.call((entries,)).catch(ctx).map_err(said)
}

fn said(error: CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => exception.message().unwrap_or_default(),
        other => other.to_string(),
    }
}
