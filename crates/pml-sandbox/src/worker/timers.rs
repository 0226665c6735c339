//! `setTimeout` and its relatives: the host waits, then the worker calls the callback.

use std::rc::Rc;

use rquickjs::function::{Args, Opt, Rest};
use rquickjs::{Coerced, Ctx, Exception, Object, Value};

use super::errors;
use super::function::native_function;
use super::run::SandboxRun;
use super::waiting::{DueTimer, ProgramTimer};
use super::world::RealmState;
use crate::message::WorkerEvent;

/// Maximum number of timers that are set at the same time.
const MOST: usize = 10_000;
/// Longest delay in milliseconds: the largest integer that is exact in JavaScript, some 285,000 years.
const LONGEST_MS: f64 = 9_007_199_254_740_991.0;

/// Adds the four timer functions to `native`.
pub(super) fn install_functions<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
    native: &Object<'js>,
) -> rquickjs::Result<()> {
    for (name, repeats) in [("setTimeout", false), ("setInterval", true)] {
        let world = Rc::clone(world);
        let set =
            move |ctx: Ctx<'js>, then: Opt<Value<'js>>, ms: Opt<Value<'js>>, given: Rest<Value<'js>>| {
                set(&ctx, &world, name, then.0, ms.0, given.0, repeats)
            };
        native.set(name, native_function(ctx, name, 2, set)?)?;
    }
    for name in ["clearTimeout", "clearInterval"] {
        let world = Rc::clone(world);
        let clear = move |id: Opt<Value<'js>>| clear(&world, id.0.as_ref());
        native.set(name, native_function(ctx, name, 1, clear)?)?;
    }
    Ok(())
}

fn set<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<RealmState<'js>>,
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
    // A delay that is not a number counts as 0.
    let delay_ms = if ms > 0.0 { ms.min(LONGEST_MS) as u64 } else { 0 };
    if world.is_over() {
        return Ok(0);
    }
    let run = &world.run;
    if run.timers.set_count() >= MOST {
        return Err(Exception::throw_range(ctx, &format!("more than {MOST} timers are set")));
    }
    let number = start(run, delay_ms);
    let every_ms = repeats.then_some(delay_ms);
    let timer = ProgramTimer { frame: world.frame, number, then, given, every_ms };
    run.timers.set.borrow_mut().insert(number, timer);
    run.timers.ids.borrow_mut().insert(number, number);
    Ok(number)
}

fn start(run: &SandboxRun<'_>, delay_ms: u64) -> u32 {
    let timer = run.timers.made.get() + 1;
    run.timers.made.set(timer);
    run.out.send_event(WorkerEvent::Timer { timer, delay_ms });
    timer
}

fn clear(world: &RealmState<'_>, id: Option<&Value<'_>>) {
    let Some(id) = id.and_then(Value::as_number) else { return };
    let id = id as u32;
    // Timer ids are unique in the run, not in the frame: a frame could guess the id of another frame's timer.
    let own = world.run.timers.set.borrow().get(&id).is_some_and(|timer| timer.frame == world.frame);
    if own {
        remove(&world.run, id);
    }
}

fn remove(run: &SandboxRun<'_>, id: u32) {
    let Some(timer) = run.timers.set.borrow_mut().remove(&id) else { return };
    // An interval that clears itself while it fires has no number at that moment.
    if run.timers.ids.borrow_mut().remove(&timer.number).is_some() {
        run.out.send_event(WorkerEvent::TimerCleared { timer: timer.number });
    }
}

/// Clears the timers of `frame`.
pub(super) fn clear_frame_timers(run: &SandboxRun<'_>, frame: u32) {
    let set = run.timers.set.borrow();
    let mut ids: Vec<u32> = set.iter().filter(|(_, timer)| timer.frame == frame).map(|(id, _)| *id).collect();
    drop(set);
    ids.sort_unstable();
    ids.into_iter().for_each(|id| remove(run, id));
}

/// Calls the callback of timer `number`; ignored when the timer was cleared.
pub(super) fn fire_timer(run: &SandboxRun<'_>, number: u32) -> rquickjs::Result<()> {
    let timers = &run.timers;
    let Some(id) = timers.ids.borrow_mut().remove(&number) else { return Ok(()) };
    let Some(DueTimer { then, given, every_ms }) = timers.due(id) else { return Ok(()) };
    let ctx = then.ctx().clone();
    let mut args = Args::new(ctx.clone(), given.len());
    args.push_args(given)?;
    if then.call_arg::<Value<'_>>(args).is_err() {
        errors::note_uncaught(&run.rejections, &ctx, ctx.catch());
    }
    if let (Some(delay_ms), Some(timer)) = (every_ms, timers.set.borrow_mut().get_mut(&id)) {
        timer.number = start(run, delay_ms);
        timers.ids.borrow_mut().insert(timer.number, id);
    }
    Ok(())
}
