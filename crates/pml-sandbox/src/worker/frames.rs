//! Programs that are called by programs: each call is a frame, with a realm of its own.
//!
//! Nothing but text goes from one realm to another: what a program is given, what it returns, what it fails with. A frame
//! begins when everything before it has run, and ends when nothing in it is left to do; what it did not wait for is given
//! up with it, so that a realm whose program has ended never runs again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use rquickjs::function::Opt;
use rquickjs::{Ctx, Function, Promise, Value};

use super::calls::{self, Wrong};
use super::realm::{Realm, Text};
use super::world::World;
use super::{errors, native, raw, timers};
use crate::message::{Ending, Event, Limit, MOST_DEPTH, Nested, Thrown};

/// After so many frames what is left of their realms is taken away: they refer to themselves in circles.
const TIDY_AFTER: u32 = 8;

/// Frames that have no end yet, and how many there were.
#[derive(Default)]
pub(super) struct Frames<'js> {
    made: Cell<u32>,
    ended: Cell<u32>,
    open: RefCell<BTreeMap<u32, Frame<'js>>>,
}

struct Frame<'js> {
    nested: u32,
    arguments: String,
    caller: Rc<World<'js>>,
    resolve: Function<'js>,
    reject: Function<'js>,
    /// None until it begins.
    realm: Option<Rc<Realm<'js>>>,
}

impl<'js> Frames<'js> {
    /// The worlds of those that have begun, in their order.
    pub(super) fn worlds(&self) -> Vec<Rc<World<'js>>> {
        let open = self.open.borrow();
        open.values().filter_map(|frame| frame.realm.as_ref()).map(|realm| Rc::clone(&realm.world)).collect()
    }

    /// The realm of one that has begun.
    fn realm(&self, number: u32) -> Option<Rc<Realm<'js>>> {
        self.open.borrow().get(&number)?.realm.clone()
    }

    /// Whether any has not ended.
    pub(super) fn any(&self) -> bool {
        !self.open.borrow().is_empty()
    }
}

/// The function that calls the program at `place`.
pub(super) fn capability<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    place: u32,
    name: &str,
) -> rquickjs::Result<Function<'js>> {
    let world = Rc::clone(world);
    let call = move |ctx: Ctx<'js>, argument: Opt<Value<'js>>| call(&ctx, &world, place, argument.0);
    native::function(ctx, name, 1, call)
}

/// As an async function would, it always gives a promise; what is wrong with the arguments rejects it.
fn call<'js>(
    ctx: &Ctx<'js>,
    world: &Rc<World<'js>>,
    place: u32,
    argument: Option<Value<'js>>,
) -> rquickjs::Result<Promise<'js>> {
    let run = &world.run;
    let (point, context) = run.site.take();
    let (promise, resolve, reject) = ctx.promise()?;
    if world.is_over() {
        return Ok(promise);
    }
    let nested = run.nested(place).expect("only those that are there are seen");
    let given = match world.depth < MOST_DEPTH {
        true => calls::arguments(world, "a capability", argument),
        false => Err(Wrong::Large {
            message: format!("`{}` is called more than {MOST_DEPTH} levels deep", nested.name),
            code: "TOO_DEEP",
        }),
    };
    let arguments = match given {
        Ok(given) => with_defaults(&given, nested),
        Err(wrong) => {
            reject.call::<_, ()>((wrong.thrown(ctx, world)?,))?;
            return Ok(promise);
        }
    };
    let frame = run.frames.made.get() + 1;
    if frame > run.limits().calls {
        match run.end(Ending::Limit(Limit::Calls))? {}
    }
    run.frames.made.set(frame);
    let parent = world.frame;
    let told =
        Event::FrameBegan { frame, parent, nested: place, point, context, arguments: arguments.clone() };
    run.out.say(told);
    let open = Frame { nested: place, arguments, caller: Rc::clone(world), resolve, reject, realm: None };
    run.frames.open.borrow_mut().insert(frame, open);
    Ok(promise)
}

/// `given`, an object, with the members that it lacks.
fn with_defaults(given: &str, nested: &Nested) -> String {
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

/// Begins the frames that have not begun, and says whether there were any.
pub(super) fn begin<'js>(first: &Realm<'js>) -> rquickjs::Result<bool> {
    let run = &first.world.run;
    let wanted = |(number, frame): (&u32, &Frame<'js>)| {
        let waits = frame.realm.is_none();
        waits.then(|| (*number, frame.nested, frame.caller.depth + 1, frame.arguments.clone()))
    };
    let waiting: Vec<_> = run.frames.open.borrow().iter().filter_map(wanted).collect();
    for (number, place, depth, arguments) in &waiting {
        let mut realm = first.another(*number, *depth)?;
        let nested = run.nested(*place).expect("only those that are there are called");
        let begun = realm.begin(&Text::called(nested, arguments))?;
        run.site.take();
        if let Some(frame) = run.frames.open.borrow_mut().get_mut(number) {
            frame.realm = Some(Rc::new(realm));
        }
        if let Err(thrown) = begun {
            end(first, *number, Err(thrown))?;
        }
    }
    Ok(!waiting.is_empty())
}

/// Ends the frames that have nothing left to do, and says whether there were any. To be called when no job is left.
pub(super) fn settle<'js>(first: &Realm<'js>) -> rquickjs::Result<bool> {
    let run = &first.world.run;
    let numbers: Vec<u32> = run.frames.open.borrow().keys().copied().collect();
    if numbers.is_empty() {
        return Ok(false);
    }
    let waiting = waiting(first);
    let mut any = false;
    // Whoever called comes first: what it did not wait for goes with it.
    for number in numbers {
        let Some(realm) = run.frames.realm(number) else { continue };
        if !realm.is_pending() || !waiting.contains(&number) {
            end(first, number, outcome(first, realm.ending()?))?;
            any = true;
        }
    }
    Ok(any)
}

/// The frames for which something can still come.
fn waiting(first: &Realm<'_>) -> HashSet<u32> {
    let run = &first.world.run;
    let mut waiting: HashSet<u32> = run.frames.open.borrow().values().map(|open| open.caller.frame).collect();
    run.calls.add_frames(&mut waiting);
    run.timers.add_frames(&mut waiting);
    waiting
}

fn outcome(first: &Realm<'_>, ending: Ending) -> Result<String, Thrown> {
    let error = |code: &str, message: String| Thrown {
        name: "Error".to_owned(),
        message,
        code: Some(code.to_owned()),
        ..Thrown::default()
    };
    match ending {
        Ending::Value(json) => Ok(json),
        Ending::Thrown(thrown) => Err(thrown),
        Ending::Unhandled(thrown) => {
            let message = errors::short(format!("nobody handled an error: {}", thrown.message));
            Err(Thrown { message, ..thrown })
        }
        Ending::Deadlock => {
            let message = "it waits for something that cannot come: no call and no timer is left";
            Err(error("DEADLOCK", message.to_owned()))
        }
        Ending::Limit(_) => {
            let most = first.world.run.limits().result_bytes;
            Err(error("RESULT_TOO_LARGE", format!("it returned more than {most} bytes (limits.result)")))
        }
    }
}

/// Ends a frame: tells of it, gives up what it left behind, and lets its caller go on.
fn end(first: &Realm<'_>, number: u32, end: Result<String, Thrown>) -> rquickjs::Result<()> {
    let run = &first.world.run;
    if let Some(realm) = run.frames.realm(number) {
        realm.world.tell_reached()?;
    }
    let Some(frame) = run.frames.open.borrow_mut().remove(&number) else { return Ok(()) };
    run.out.say(Event::FrameEnded { frame: number, end: end.clone() });
    give_up(first, number, &frame);
    tidy(first);
    let ctx = frame.resolve.ctx().clone();
    let nested = run.nested(frame.nested).expect("it was called");
    match end.map(|json| ctx.json_parse(json)) {
        Ok(Ok(value)) => frame.resolve.call((value,)),
        Ok(Err(_)) => {
            // Such as more levels than the engine's stack has room for.
            ctx.catch();
            let message = "the result cannot be read".to_owned();
            let code = Some("RESULT_NOT_JSON".to_owned());
            reject(&frame, nested, number, &Thrown { message, code, ..Thrown::default() })
        }
        Err(thrown) => reject(&frame, nested, number, &thrown),
    }
}

fn reject(frame: &Frame<'_>, nested: &Nested, number: u32, thrown: &Thrown) -> rquickjs::Result<()> {
    let what = match (thrown.name.as_str(), thrown.message.as_str()) {
        ("" | "Error" | "ToolError" | "CapabilityError" | "string", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    let message = errors::short(format!("`{}` failed: {what}", nested.name));
    let code = thrown.code.as_deref().unwrap_or("CAPABILITY_FAILED");
    let (call, name) = (thrown.call.unwrap_or(0), nested.name.as_str());
    let made: Value<'_> = frame.caller.kept().capability_error.call((message, code, call, number, name))?;
    frame.reject.call((made,))
}

/// Forgets what a frame that has ended still waited for.
fn give_up<'js>(first: &Realm<'js>, number: u32, frame: &Frame<'js>) {
    let run = &first.world.run;
    run.calls.forget(number);
    timers::forget(run, number);
    errors::forget(&run.rejections, number);
    if let Some(realm) = &frame.realm {
        realm.world.close();
    }
    let inner: Vec<u32> = run
        .frames
        .open
        .borrow()
        .iter()
        .filter(|(_, open)| open.caller.frame == number)
        .map(|(n, _)| *n)
        .collect();
    for number in inner {
        let removed = run.frames.open.borrow_mut().remove(&number);
        if let Some(frame) = removed {
            give_up(first, number, &frame);
        }
    }
}

fn tidy(first: &Realm<'_>) {
    let ended = first.world.run.frames.ended.get() + 1;
    first.world.run.frames.ended.set(ended);
    if ended.is_multiple_of(TIDY_AFTER) {
        raw::collect_garbage(&first.ctx);
    }
}
