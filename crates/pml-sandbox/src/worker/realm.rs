//! One program in its world, turn by turn.

use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, Promise, Value};

use super::errors::{self, FILE, PRELUDE, Rejections};
use super::json::Problem;
use super::out::Out;
use super::world::{Kept, World};
use super::{calls, native, raw, timers};
use crate::message::{Delivery, Ending, Event, Limit, Program, Thrown, What};

/// For reading a program, which may be nested much deeper than it ever runs. The process has eight.
const READING_STACK_BYTES: usize = 6 << 20;

/// The engine with the prelude in it.
pub(super) struct Realm<'js> {
    ctx: Ctx<'js>,
    world: Rc<World<'js>>,
    kept: Object<'js>,
    main: Option<Promise<'js>>,
    taken: u32,
}

impl<'js> Realm<'js> {
    pub(super) fn new(
        ctx: &Ctx<'js>,
        out: &Rc<Out>,
        rejections: &Rc<Rejections>,
    ) -> rquickjs::Result<Realm<'js>> {
        let world = Rc::new(World::new(out, rejections));
        let mut options = EvalOptions::default();
        options.filename = Some(PRELUDE.to_owned());
        let prelude: Function<'js> = ctx.eval_with_options(include_str!("prelude.js"), options)?;
        let kept: Object<'js> = prelude.call((native::functions(ctx, &world)?,))?;
        world.keep(Kept::new(ctx, &kept)?);
        Ok(Realm { ctx: ctx.clone(), world, kept, main: None, taken: 0 })
    }

    /// Runs something small, so that what every program needs is in memory.
    pub(super) fn warm_up(&self) -> rquickjs::Result<()> {
        let probe = Value::new_undefined(self.ctx.clone());
        let main =
            self.start("for (const x of [{ a: [1, 'b'] }]) await x; return { c: `${1}` };", "_", probe)?;
        while self.ctx.execute_pending_job() {}
        let size = super::json::Size { bytes: 100, nesting: 3 };
        match main.result::<Value<'js>>() {
            Some(Ok(value)) => drop(self.world.json(value, size)),
            Some(Err(_)) | None => return Err(rquickjs::Error::Unknown),
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, program: &Program) -> rquickjs::Result<()> {
        self.world.begin(program);
        self.furnish(program)?;
        let probe = self.kept.get("probe")?;
        raw::limit_stack(&self.ctx, READING_STACK_BYTES);
        let started = self.read(&program.js, &program.probe, probe);
        raw::limit_stack(&self.ctx, usize::try_from(program.limits.stack_bytes).unwrap_or(usize::MAX));
        match started.and_then(|main| main.call(())) {
            Ok(main) => self.main = Some(main),
            Err(_) => {
                let thrown = self.tell(&self.ctx.catch());
                match self.world.end(Ending::Thrown(thrown))? {}
            }
        }
        self.settle()
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) -> rquickjs::Result<()> {
        self.taken += 1;
        self.world.now_ms.set(delivery.now_ms);
        match delivery.what {
            What::Result { call, json } => calls::result(&self.ctx, &self.world, call, json)?,
            What::Error { call, error } => calls::error(&self.ctx, &self.world, call, error)?,
            What::Timer { timer } => timers::fire(&self.ctx, &self.world, timer)?,
        }
        self.settle()
    }

    /// Tools, arguments and what the probes need to know.
    fn furnish(&self, program: &Program) -> rquickjs::Result<()> {
        let add_tool: Function<'js> = self.kept.get("addTool")?;
        for granted in &program.tools {
            let tool = calls::tool(&self.ctx, &self.world, granted)?;
            for name in &granted.names {
                add_tool.call::<_, ()>((granted.server.as_str(), name.as_str(), tool.clone()))?;
            }
        }
        let add_entry: Function<'js> = self.kept.get("addEntry")?;
        for entry in &program.entries {
            add_entry.call::<_, ()>((entry.point, entry.context, entry.function, entry.enters))?;
        }
        let begin: Function<'js> = self.kept.get("begin")?;
        begin.call((self.ctx.json_parse(program.arguments.as_str())?,))
    }

    fn start(&self, js: &str, probe: &str, value: Value<'js>) -> rquickjs::Result<Promise<'js>> {
        self.read(js, probe, value)?.call(())
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

    /// Runs until nothing is left to do, and says what there is to say.
    fn settle(&self) -> rquickjs::Result<()> {
        self.world.site.take();
        while self.ctx.execute_pending_job() {
            // A call that follows its probe does so in the same job, or not at all.
            self.world.site.take();
        }
        if let Some(ending) = self.ending()? {
            match self.world.end(ending)? {}
        }
        self.world.tell_turn()?;
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.world.out.say(Event::Quiet {
            taken: self.taken,
            calls: count(self.world.calls.open()),
            timers: count(self.world.timers.set()),
        });
        Ok(())
    }

    /// How the program has ended, if it has.
    fn ending(&self) -> rquickjs::Result<Option<Ending>> {
        let main = self.main.as_ref().expect("the program has begun");
        let waits = self.world.calls.open() > 0 || self.world.timers.set() > 0;
        if main.state() == PromiseState::Pending && waits {
            return Ok(None);
        }
        let result = main.result::<Value<'js>>();
        if let Some(Err(_)) = result {
            return Ok(Some(Ending::Thrown(self.tell(&self.ctx.catch()))));
        }
        if let Some(reason) = errors::first(&self.world.rejections, &self.ctx, main.as_value())? {
            return Ok(Some(Ending::Unhandled(self.tell(&reason))));
        }
        Ok(Some(match result {
            Some(value) => self.value(value?),
            None => Ending::Deadlock,
        }))
    }

    fn value(&self, value: Value<'js>) -> Ending {
        let not_json = |message: String| {
            let (name, code) = ("TypeError".to_owned(), Some("RESULT_NOT_JSON".to_owned()));
            Ending::Thrown(Thrown { name, message, code, ..Thrown::default() })
        };
        let size = self.world.result_size();
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
        let _reading = self.world.reading();
        self.world.kept().teller.tell(value)
    }
}
