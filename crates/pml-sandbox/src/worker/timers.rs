//! `setTimeout` and its like: the host waits, the program is called.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rquickjs::function::{Args, Opt, Rest};
use rquickjs::{Coerced, Ctx, Exception, Function, Object, Value};

use super::native;
use super::run::Run;
use super::world::World;
use crate::message::Event;

/// How many may be set at a time.
const MOST: usize = 10_000;
/// The largest number that is exact in the language; some hundred thousand years.
const LONGEST_MS: f64 = 9_007_199_254_740_991.0;

/// Timers that are set.
#[derive(Default)]
pub(super) struct Timers<'js> {
    /// How many times one was set.
    made: Cell<u32>,
    /// By what the program knows them by: the number they first had.
    set: RefCell<HashMap<u32, Timer<'js>>>,
    /// From the number they have now.
    ids: RefCell<HashMap<u32, u32>>,
}

struct Timer<'js> {
    world: Rc<World<'js>>,
    number: u32,
    then: Function<'js>,
    given: Vec<Value<'js>>,
    /// It is set again whenever it fires.
    every_ms: Option<u64>,
}

impl Timers<'_> {
    pub(super) fn set(&self) -> usize {
        self.ids.borrow().len()
    }

    /// Adds the frames that wait for one.
    pub(super) fn add_frames(&self, waiting: &mut HashSet<u32>) {
        waiting.extend(self.set.borrow().values().map(|timer| timer.world.frame));
    }
}

/// Adds the four functions to `native`.
pub(super) fn install<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    native: &Object<'js>,
) -> rquickjs::Result<()> {
    for (name, repeats) in [("setTimeout", false), ("setInterval", true)] {
        let world = Rc::clone(world);
        let set =
            move |ctx: Ctx<'js>, then: Opt<Value<'js>>, ms: Opt<Value<'js>>, given: Rest<Value<'js>>| {
                set(&ctx, &world, name, then.0, ms.0, given.0, repeats)
            };
        native.set(name, native::function(ctx, name, 2, set)?)?;
    }
    for name in ["clearTimeout", "clearInterval"] {
        let world = Rc::clone(world);
        let clear = move |id: Opt<Value<'js>>| clear(&world, id.0.as_ref());
        native.set(name, native::function(ctx, name, 1, clear)?)?;
    }
    Ok(())
}

fn set<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    name: &str,
    then: Option<Value<'js>>,
    ms: Option<Value<'js>>,
    given: Vec<Value<'js>>,
    repeats: bool,
) -> rquickjs::Result<u32> {
    let Some(then) = then.and_then(Value::into_function) else {
        return Err(Exception::throw_type(ctx, &format!("{name} needs a function")));
    };
    let ms = match ms {
        Some(ms) => ms.get::<Coerced<f64>>()?.0,
        None => 0.0,
    };
    // What is not a number counts as 0.
    let delay_ms = if ms > 0.0 { ms.min(LONGEST_MS) as u64 } else { 0 };
    if world.is_over() {
        return Ok(0);
    }
    let run = &world.run;
    if run.timers.set() >= MOST {
        return Err(Exception::throw_range(ctx, &format!("more than {MOST} timers are set")));
    }
    let number = start(run, delay_ms);
    let world = Rc::clone(world);
    let timer = Timer { world, number, then, given, every_ms: repeats.then_some(delay_ms) };
    run.timers.set.borrow_mut().insert(number, timer);
    run.timers.ids.borrow_mut().insert(number, number);
    Ok(number)
}

fn start(run: &Run<'_>, delay_ms: u64) -> u32 {
    let timer = run.timers.made.get() + 1;
    run.timers.made.set(timer);
    run.out.say(Event::Timer { timer, delay_ms });
    timer
}

fn clear(world: &World<'_>, id: Option<&Value<'_>>) {
    let Some(id) = id.and_then(Value::as_number) else { return };
    let id = id as u32;
    // Numbers are given for the run, and one frame could guess another's.
    let own = world.run.timers.set.borrow().get(&id).is_some_and(|timer| timer.world.frame == world.frame);
    if own {
        remove(&world.run, id);
    }
}

fn remove(run: &Run<'_>, id: u32) {
    let Some(timer) = run.timers.set.borrow_mut().remove(&id) else { return };
    // An interval that clears itself while it fires has no number just then.
    if run.timers.ids.borrow_mut().remove(&timer.number).is_some() {
        run.out.say(Event::TimerCleared { timer: timer.number });
    }
}

/// Clears what `frame` has set.
pub(super) fn forget(run: &Run<'_>, frame: u32) {
    let set = run.timers.set.borrow();
    let mut ids: Vec<u32> =
        set.iter().filter(|(_, timer)| timer.world.frame == frame).map(|(id, _)| *id).collect();
    drop(set);
    ids.sort_unstable();
    ids.into_iter().for_each(|id| remove(run, id));
}

/// Calls what waits for timer `number`; nothing happens when it was cleared.
pub(super) fn fire(run: &Run<'_>, number: u32) -> rquickjs::Result<()> {
    let timers = &run.timers;
    let Some(id) = timers.ids.borrow_mut().remove(&number) else { return Ok(()) };
    let Some(Due { world, then, given, every_ms }) = timers.due(id) else { return Ok(()) };
    let ctx = then.ctx().clone();
    let mut args = Args::new(ctx.clone(), given.len());
    args.push_args(given)?;
    if then.call_arg::<Value<'_>>(args).is_err() {
        world.uncaught(&ctx, ctx.catch());
    }
    if let (Some(delay_ms), Some(timer)) = (every_ms, timers.set.borrow_mut().get_mut(&id)) {
        timer.number = start(run, delay_ms);
        timers.ids.borrow_mut().insert(timer.number, id);
    }
    Ok(())
}

/// What a timer calls when its time has come.
struct Due<'js> {
    world: Rc<World<'js>>,
    then: Function<'js>,
    given: Vec<Value<'js>>,
    every_ms: Option<u64>,
}

impl<'js> Timers<'js> {
    /// What to call; it is forgotten unless it repeats.
    fn due(&self, id: u32) -> Option<Due<'js>> {
        let mut set = self.set.borrow_mut();
        let timer = set.get(&id)?;
        let due = Due {
            world: Rc::clone(&timer.world),
            then: timer.then.clone(),
            given: timer.given.clone(),
            every_ms: timer.every_ms,
        };
        if due.every_ms.is_none() {
            set.remove(&id);
        }
        Some(due)
    }
}
