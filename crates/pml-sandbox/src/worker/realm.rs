//! One realm: a set of globals of the engine, the prelude, and the program that runs in it.

use std::rc::Rc;

use pml_model::ErrorCode;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, Promise, Value};

use super::errors::{FILE, PRELUDE};
use super::json::JsonProblem;
use super::run::SandboxRun;
use super::world::{PreludeExports, RealmState};
use super::{Intrinsics, calls, capabilities, errors, native, prelude, raw};
use crate::message::{
    ExceededLimit, GrantedTool, NestedProgram, ProbeEntry, ProgramEnding, SandboxProgram, ThrownError,
};

/// Stack for parsing, in bytes: source may nest deeper than it ever runs. The process has 8 MiB.
const READING_STACK_BYTES: usize = 6 << 20;

/// The program that a realm runs.
pub(super) struct RealmProgram<'p> {
    js: &'p str,
    probe: &'p str,
    entries: &'p [ProbeEntry],
    tools: &'p [GrantedTool],
    sees: &'p [u32],
    /// `args`, a JSON object.
    arguments: &'p str,
}

impl<'p> RealmProgram<'p> {
    /// The top-level program.
    pub(super) fn of_program(program: &'p SandboxProgram) -> RealmProgram<'p> {
        let SandboxProgram { js, probe, entries, tools, sees, arguments, .. } = program;
        RealmProgram { js, probe, entries, tools, sees, arguments }
    }

    /// A nested program, called with `arguments`.
    pub(super) fn of_nested(nested: &'p NestedProgram, arguments: &'p str) -> RealmProgram<'p> {
        let NestedProgram { js, probe, entries, tools, sees, .. } = nested;
        RealmProgram { js, probe, entries, tools, sees, arguments }
    }
}

/// A realm with the prelude in it.
pub(super) struct Realm<'js> {
    pub(super) ctx: Ctx<'js>,
    pub(super) state: Rc<RealmState<'js>>,
    kept: Object<'js>,
    main: Option<Promise<'js>>,
}

impl<'js> Realm<'js> {
    /// Evaluates the prelude in `ctx`, a fresh context.
    pub(super) fn new(
        ctx: &Ctx<'js>,
        run: &Rc<SandboxRun<'js>>,
        frame: u32,
        depth: u32,
    ) -> rquickjs::Result<Realm<'js>> {
        raw::set_frame(ctx, frame);
        let world = Rc::new(RealmState::new(run, frame, depth));
        let read = match frame {
            0 => raw::evaluate(ctx, prelude::TEXT.to_owned(), PRELUDE, 1)?,
            _ => raw::run_compiled(ctx, run.prelude(ctx)?)?,
        };
        let read = read.into_function().ok_or(rquickjs::Error::Unknown)?;
        let kept: Object<'js> = read.call((native::native_functions(ctx, &world)?,))?;
        world.store_exports(PreludeExports::new(ctx, &kept)?, kept.get("drain")?);
        Ok(Realm { ctx: ctx.clone(), state: world, kept, main: None })
    }

    /// Another realm of the same engine, which shares no object with this one.
    pub(super) fn new_sibling(&self, frame: u32, depth: u32) -> rquickjs::Result<Realm<'js>> {
        let ctx = raw::another_context::<Intrinsics>(&self.ctx).ok_or(rquickjs::Error::Allocation)?;
        Realm::new(&ctx, &self.state.run, frame, depth)
    }

    /// Runs a small program, so that the code every program needs is in memory.
    pub(super) fn warm_up(&self) -> rquickjs::Result<()> {
        let probe = Value::new_undefined(self.ctx.clone());
        let main: Promise<'js> = self
            .read("for (const x of [{ a: [1, 'b'] }]) await x; return { c: `${1}` };", "_", probe)?
            .call(())?;
        while self.ctx.execute_pending_job() {}
        let size = super::json::JsonSizeLimit { bytes: 100, nesting: 3 };
        match main.result::<Value<'js>>() {
            Some(Ok(value)) => drop(self.state.to_json(value, size)),
            Some(Err(_)) | None => return Err(rquickjs::Error::Unknown),
        }
        Ok(())
    }

    /// Starts `text`. The inner result is the error when it does not even parse.
    pub(super) fn begin(&mut self, text: &RealmProgram<'_>) -> rquickjs::Result<Result<(), ThrownError>> {
        self.furnish(text)?;
        let probe = self.kept.get("probe")?;
        raw::limit_stack(&self.ctx, READING_STACK_BYTES);
        let read = self.read(text.js, text.probe, probe);
        let stack_bytes = self.state.run.limits().stack_bytes;
        raw::limit_stack(&self.ctx, usize::try_from(stack_bytes).unwrap_or(usize::MAX));
        Ok(match read.and_then(|main| main.call(())) {
            Ok(main) => {
                self.main = Some(main);
                Ok(())
            }
            Err(_) => Err(self.tell(&self.ctx.catch())),
        })
    }

    /// Installs tools, nested programs, arguments and probe entries.
    fn furnish(&self, text: &RealmProgram<'_>) -> rquickjs::Result<()> {
        let add_tool: Function<'js> = self.kept.get("addTool")?;
        for granted in text.tools {
            let tool = calls::tool_function(&self.ctx, &self.state, granted)?;
            for name in &granted.names {
                add_tool.call::<_, ()>((granted.server.as_str(), name.as_str(), tool.clone()))?;
            }
        }
        let add_capability: Function<'js> = self.kept.get("addCapability")?;
        for place in text.sees {
            if let Some(nested) = self.state.run.nested_program(*place) {
                let capability =
                    capabilities::capability_function(&self.ctx, &self.state, *place, &nested.name)?;
                add_capability.call::<_, ()>((nested.name.as_str(), capability))?;
            }
        }
        let add_entry: Function<'js> = self.kept.get("addEntry")?;
        for entry in text.entries {
            add_entry.call::<_, ()>((entry.point, entry.context, entry.function, entry.enters))?;
        }
        let begin: Function<'js> = self.kept.get("begin")?;
        begin.call((self.ctx.json_parse(text.arguments)?,))
    }

    /// The async function whose body is `js`. The first line of `js` is line 1, so the wrapper has to occupy the lines
    /// before it. The wrapper has two lines, because the engine treats a start at line 0 as unset.
    fn read(&self, js: &str, probe: &str, value: Value<'js>) -> rquickjs::Result<Function<'js>> {
        let text =
            format!("(function ({probe}) {{ return async function () {{\n\"use strict\";\n{js}\n}} }})");
        let around =
            raw::evaluate(&self.ctx, text, FILE, -1)?.into_function().ok_or(rquickjs::Error::Unknown)?;
        around.call((value,))
    }

    /// Whether the program itself has not settled yet.
    pub(super) fn is_pending(&self) -> bool {
        self.main.as_ref().is_some_and(|main| main.state() == PromiseState::Pending)
    }

    /// How the program ended. A program that is still pending is deadlocked.
    pub(super) fn ending(&self) -> rquickjs::Result<ProgramEnding> {
        let main = self.main.as_ref().expect("the program has begun");
        let result = main.result::<Value<'js>>();
        if let Some(Err(_)) = result {
            return Ok(ProgramEnding::Thrown(self.tell(&self.ctx.catch())));
        }
        if let Some(reason) = errors::first_unhandled(&self.state.run.rejections, &self.ctx, main.as_value())?
        {
            return Ok(ProgramEnding::Unhandled(self.tell(&reason)));
        }
        Ok(match result {
            Some(value) => self.value(value?),
            None => ProgramEnding::Deadlock,
        })
    }

    fn value(&self, value: Value<'js>) -> ProgramEnding {
        let not_json = |message: String| {
            let (name, code) = ("TypeError".to_owned(), Some(ErrorCode::ResultNotJson));
            ProgramEnding::Thrown(ThrownError { name, message, code, ..ThrownError::default() })
        };
        let size = self.state.run.result_size();
        match self.state.to_json(value, size) {
            Ok(json) => ProgramEnding::Value(json.unwrap_or_else(|| "null".to_owned())),
            Err(JsonProblem::Refused { path, what }) => not_json(format!("the result `{path}` is {what}")),
            Err(JsonProblem::TooDeep) => {
                not_json(format!("the result has more than {} levels (limits.nesting)", size.nesting))
            }
            Err(JsonProblem::TooLong) => ProgramEnding::Limit(ExceededLimit::Result),
            Err(JsonProblem::Thrown) => ProgramEnding::Thrown(self.tell(&self.ctx.catch())),
        }
    }

    fn tell(&self, value: &Value<'js>) -> ThrownError {
        // Getters of the thrown value may run code of the program.
        let _reading = self.state.run.start_reading();
        self.state.exports().thrown_reader.read_thrown(value)
    }
}
