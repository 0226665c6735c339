//! One realm: an engine's globals with the prelude in them, and the program that runs there.

use std::rc::Rc;

use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, Promise, Value};

use super::errors::{FILE, PRELUDE};
use super::json::Problem;
use super::run::Run;
use super::world::{Kept, World};
use super::{Intrinsics, calls, errors, frames, native, raw};
use crate::message::{Ending, Entry, Granted, Limit, Nested, Program, Thrown};

/// For reading a program, which may be nested much deeper than it ever runs. The process has eight.
const READING_STACK_BYTES: usize = 6 << 20;

const PRELUDE_TEXT: &str = include_str!("prelude.js");

/// What runs in a realm.
pub(super) struct Text<'p> {
    js: &'p str,
    probe: &'p str,
    entries: &'p [Entry],
    tools: &'p [Granted],
    sees: &'p [u32],
    /// JSON of `args`.
    arguments: &'p str,
}

impl<'p> Text<'p> {
    /// The program itself.
    pub(super) fn of(program: &'p Program) -> Text<'p> {
        let Program { js, probe, entries, tools, sees, arguments, .. } = program;
        Text { js, probe, entries, tools, sees, arguments }
    }

    /// One that is called with `arguments`.
    pub(super) fn called(nested: &'p Nested, arguments: &'p str) -> Text<'p> {
        let Nested { js, probe, entries, tools, sees, .. } = nested;
        Text { js, probe, entries, tools, sees, arguments }
    }
}

/// The prelude for all realms but the first: reading its text takes most of the time that a realm does.
pub(super) fn compiled_prelude(ctx: &Ctx<'_>) -> rquickjs::Result<Vec<u8>> {
    raw::compile(ctx, PRELUDE_TEXT, PRELUDE)
}

/// A realm with the prelude in it.
pub(super) struct Realm<'js> {
    pub(super) ctx: Ctx<'js>,
    pub(super) world: Rc<World<'js>>,
    kept: Object<'js>,
    main: Option<Promise<'js>>,
}

impl<'js> Realm<'js> {
    /// Puts the prelude into `ctx`, which is new.
    pub(super) fn new(
        ctx: &Ctx<'js>,
        run: &Rc<Run<'js>>,
        frame: u32,
        depth: u32,
    ) -> rquickjs::Result<Realm<'js>> {
        raw::set_frame(ctx, frame);
        let world = Rc::new(World::new(run, frame, depth));
        let prelude = match frame {
            0 => raw::evaluate(ctx, PRELUDE_TEXT.to_owned(), PRELUDE, 1)?,
            _ => raw::run_compiled(ctx, run.prelude(ctx)?)?,
        };
        let prelude = prelude.into_function().ok_or(rquickjs::Error::Unknown)?;
        let kept: Object<'js> = prelude.call((native::functions(ctx, &world)?,))?;
        world.keep(Kept::new(ctx, &kept)?);
        Ok(Realm { ctx: ctx.clone(), world, kept, main: None })
    }

    /// Another realm of the same engine, which shares no object with this one.
    pub(super) fn another(&self, frame: u32, depth: u32) -> rquickjs::Result<Realm<'js>> {
        let ctx = raw::another_context::<Intrinsics>(&self.ctx).ok_or(rquickjs::Error::Allocation)?;
        Realm::new(&ctx, &self.world.run, frame, depth)
    }

    /// Runs something small, so that what every program needs is in memory.
    pub(super) fn warm_up(&self) -> rquickjs::Result<()> {
        let probe = Value::new_undefined(self.ctx.clone());
        let main: Promise<'js> = self
            .read("for (const x of [{ a: [1, 'b'] }]) await x; return { c: `${1}` };", "_", probe)?
            .call(())?;
        while self.ctx.execute_pending_job() {}
        let size = super::json::Size { bytes: 100, nesting: 3 };
        match main.result::<Value<'js>>() {
            Some(Ok(value)) => drop(self.world.json(value, size)),
            Some(Err(_)) | None => return Err(rquickjs::Error::Unknown),
        }
        Ok(())
    }

    /// Begins `text`; what it throws before it is a program at all is in the result.
    pub(super) fn begin(&mut self, text: &Text<'_>) -> rquickjs::Result<Result<(), Thrown>> {
        self.furnish(text)?;
        let probe = self.kept.get("probe")?;
        raw::limit_stack(&self.ctx, READING_STACK_BYTES);
        let read = self.read(text.js, text.probe, probe);
        let stack_bytes = self.world.run.limits().stack_bytes;
        raw::limit_stack(&self.ctx, usize::try_from(stack_bytes).unwrap_or(usize::MAX));
        Ok(match read.and_then(|main| main.call(())) {
            Ok(main) => {
                self.main = Some(main);
                Ok(())
            }
            Err(_) => Err(self.tell(&self.ctx.catch())),
        })
    }

    /// Tools, other programs, arguments and what the probes need to know.
    fn furnish(&self, text: &Text<'_>) -> rquickjs::Result<()> {
        let add_tool: Function<'js> = self.kept.get("addTool")?;
        for granted in text.tools {
            let tool = calls::tool(&self.ctx, &self.world, granted)?;
            for name in &granted.names {
                add_tool.call::<_, ()>((granted.server.as_str(), name.as_str(), tool.clone()))?;
            }
        }
        let add_capability: Function<'js> = self.kept.get("addCapability")?;
        for place in text.sees {
            if let Some(nested) = self.world.run.nested(*place) {
                let capability = frames::capability(&self.ctx, &self.world, *place, &nested.name)?;
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

    /// The async function whose body is `js`. Its first line is line 1: what is around it has lines before that. There
    /// are two, because the engine takes a start at line 0 for no wish.
    fn read(&self, js: &str, probe: &str, value: Value<'js>) -> rquickjs::Result<Function<'js>> {
        let text =
            format!("(function ({probe}) {{ return async function () {{\n\"use strict\";\n{js}\n}} }})");
        let around =
            raw::evaluate(&self.ctx, text, FILE, -1)?.into_function().ok_or(rquickjs::Error::Unknown)?;
        around.call((value,))
    }

    /// Whether the program still has something to wait for, as far as itself goes.
    pub(super) fn is_pending(&self) -> bool {
        self.main.as_ref().is_some_and(|main| main.state() == PromiseState::Pending)
    }

    /// How the program has ended. One that has not waits for something that cannot come.
    pub(super) fn ending(&self) -> rquickjs::Result<Ending> {
        let main = self.main.as_ref().expect("the program has begun");
        let result = main.result::<Value<'js>>();
        if let Some(Err(_)) = result {
            return Ok(Ending::Thrown(self.tell(&self.ctx.catch())));
        }
        if let Some(reason) = errors::first(&self.world.run.rejections, &self.ctx, main.as_value())? {
            return Ok(Ending::Unhandled(self.tell(&reason)));
        }
        Ok(match result {
            Some(value) => self.value(value?),
            None => Ending::Deadlock,
        })
    }

    fn value(&self, value: Value<'js>) -> Ending {
        let not_json = |message: String| {
            let (name, code) = ("TypeError".to_owned(), Some("RESULT_NOT_JSON".to_owned()));
            Ending::Thrown(Thrown { name, message, code, ..Thrown::default() })
        };
        let size = self.world.run.result_size();
        match self.world.json(value, size) {
            Ok(json) => Ending::Value(json.unwrap_or_else(|| "null".to_owned())),
            Err(Problem::Refused { path, what }) => not_json(format!("the result `{path}` is {what}")),
            Err(Problem::Deep) => {
                not_json(format!("the result has more than {} levels (limits.nesting)", size.nesting))
            }
            Err(Problem::Long) => Ending::Limit(Limit::Result),
            Err(Problem::Thrown) => Ending::Thrown(self.tell(&self.ctx.catch())),
        }
    }

    fn tell(&self, value: &Value<'js>) -> Thrown {
        // Members of what was thrown may be code.
        let _reading = self.world.run.reading();
        self.world.kept().teller.tell(value)
    }
}
