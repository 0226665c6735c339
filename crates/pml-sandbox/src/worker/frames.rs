//! Frames: calls of programs by programs, each in a realm of its own.
//!
//! Only text passes from one realm to another: arguments, return value and error. A frame begins after every job queued
//! before it has run. It ends when it has nothing left to do; its pending calls and timers are then dropped, so that a
//! realm whose program has ended never runs again.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use pml_model::ErrorCode;
use rquickjs::Value;

use super::realm::{Realm, RealmProgram};
use super::waiting::OpenFrame;
use super::{errors, raw, timers};
use crate::message::{NestedProgram, ProgramEnding, ThrownError, WorkerEvent};

/// Number of ended frames after which garbage is collected: realms are reference cycles.
const TIDY_AFTER: u32 = 8;

/// The realms of a run.
pub(super) struct Realms<'js> {
    /// Realm of the top-level program.
    pub(super) first: Realm<'js>,
    /// Realms of frames that have begun and not ended, by frame number.
    called: RefCell<BTreeMap<u32, Rc<Realm<'js>>>>,
}

impl<'js> Realms<'js> {
    pub(super) fn new(first: Realm<'js>) -> Realms<'js> {
        Realms { first, called: RefCell::default() }
    }

    fn get(&self, frame: u32) -> Option<Rc<Realm<'js>>> {
        self.called.borrow().get(&frame).cloned()
    }

    fn remove(&self, frame: u32) -> Option<Rc<Realm<'js>>> {
        self.called.borrow_mut().remove(&frame)
    }
}

/// Begins the frames that have not begun. Returns whether there were any.
pub(super) fn begin_waiting_frames<'js>(realms: &Realms<'js>) -> rquickjs::Result<bool> {
    let run = &realms.first.state.run;
    let wanted = |(number, frame): (&u32, &OpenFrame<'js>)| {
        let waits = frame.probes.is_none();
        waits.then(|| (*number, frame.nested, frame.depth, frame.arguments.clone()))
    };
    let waiting: Vec<_> = run.frames.open.borrow().iter().filter_map(wanted).collect();
    for (number, place, depth, arguments) in &waiting {
        let mut realm = realms.first.new_sibling(*number, *depth)?;
        let nested = run.nested_program(*place).expect("only those that are there are called");
        let begun = realm.begin(&RealmProgram::of_nested(nested, arguments))?;
        run.call_site.take();
        if let Some(frame) = run.frames.open.borrow_mut().get_mut(number) {
            frame.probes = Some(Rc::clone(&realm.state.probes));
            realms.called.borrow_mut().insert(*number, Rc::new(realm));
        }
        if let Err(thrown) = begun {
            end(realms, *number, Err(thrown))?;
        }
    }
    Ok(!waiting.is_empty())
}

/// Ends the frames that have nothing left to do. Returns whether there were any. Call it only when the job queue is
/// empty.
pub(super) fn end_settled_frames<'js>(realms: &Realms<'js>) -> rquickjs::Result<bool> {
    let run = &realms.first.state.run;
    let numbers: Vec<u32> = run.frames.open.borrow().keys().copied().collect();
    if numbers.is_empty() {
        return Ok(false);
    }
    let waiting = waiting(realms);
    let mut any = false;
    // Callers come before callees: what a caller did not await ends with it.
    for number in numbers {
        let Some(realm) = realms.get(number) else { continue };
        if !realm.is_pending() || !waiting.contains(&number) {
            end(realms, number, outcome(realms, realm.ending()?))?;
            any = true;
        }
    }
    Ok(any)
}

/// Frames that still wait for a call, a timer or another frame.
fn waiting(realms: &Realms<'_>) -> HashSet<u32> {
    let run = &realms.first.state.run;
    let mut waiting: HashSet<u32> = run.frames.open.borrow().values().map(|open| open.caller).collect();
    run.calls.collect_waiting_frames(&mut waiting);
    run.timers.collect_waiting_frames(&mut waiting);
    waiting
}

fn outcome(realms: &Realms<'_>, ending: ProgramEnding) -> Result<String, ThrownError> {
    let error = |code: ErrorCode, message: String| ThrownError {
        name: "Error".to_owned(),
        message,
        code: Some(code),
        ..ThrownError::default()
    };
    match ending {
        ProgramEnding::Value(json) => Ok(json),
        ProgramEnding::Thrown(thrown) => Err(thrown),
        ProgramEnding::Unhandled(thrown) => {
            let message = errors::shorten_error_text(format!("nobody handled an error: {}", thrown.message));
            Err(ThrownError { message, ..thrown })
        }
        ProgramEnding::Deadlock => {
            let message = "it waits for something that cannot come: no call and no timer is left";
            Err(error(ErrorCode::Deadlock, message.to_owned()))
        }
        ProgramEnding::Limit(_) => {
            let most = realms.first.state.run.limits().result_bytes;
            Err(error(
                ErrorCode::ResultTooLarge,
                format!("it returned more than {most} bytes (limits.result)"),
            ))
        }
    }
}

/// Ends a frame: reports it, drops what it left behind, and resumes its caller.
fn end(realms: &Realms<'_>, number: u32, end: Result<String, ThrownError>) -> rquickjs::Result<()> {
    let run = &realms.first.state.run;
    if let Some(realm) = realms.get(number) {
        realm.state.probes.tell(&run.out)?;
    }
    let Some(frame) = run.frames.open.borrow_mut().remove(&number) else { return Ok(()) };
    run.out.send_event(WorkerEvent::FrameEnded { frame: number, end: end.clone() });
    let realm = realms.remove(number);
    give_up(realms, number, realm.as_deref());
    tidy(realms);
    let ctx = frame.resolve.ctx().clone();
    let nested = run.nested_program(frame.nested).expect("it was called");
    match end.map(|json| ctx.json_parse(json)) {
        Ok(Ok(value)) => frame.resolve.call((value,)),
        Ok(Err(_)) => {
            // Parsing fails when, for example, the value nests deeper than the engine's stack allows.
            ctx.catch();
            let message = "the result cannot be read".to_owned();
            let code = Some(ErrorCode::ResultNotJson);
            reject(&frame, nested, number, &ThrownError { message, code, ..ThrownError::default() })
        }
        Err(thrown) => reject(&frame, nested, number, &thrown),
    }
}

fn reject(
    frame: &OpenFrame<'_>,
    nested: &NestedProgram,
    number: u32,
    thrown: &ThrownError,
) -> rquickjs::Result<()> {
    let what = match (thrown.name.as_str(), thrown.message.as_str()) {
        ("" | "Error" | "ToolError" | "CapabilityError" | "string", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    let message = errors::shorten_error_text(format!("`{}` failed: {what}", nested.name));
    let code = thrown.code.unwrap_or(ErrorCode::CapabilityFailed).as_str();
    let (call, name) = (thrown.call.unwrap_or(0), nested.name.as_str());
    let made: Value<'_> = frame.capability_error.call((message, code, call, number, name))?;
    frame.reject.call((made,))
}

/// Drops the calls, timers and frames that an ended frame still waited for.
fn give_up(realms: &Realms<'_>, number: u32, realm: Option<&Realm<'_>>) {
    let run = &realms.first.state.run;
    run.calls.forget_frame(number);
    timers::clear_frame_timers(run, number);
    errors::forget_frame(&run.rejections, number);
    if let Some(realm) = realm {
        realm.state.close();
    }
    let inner: Vec<u32> =
        run.frames.open.borrow().iter().filter(|(_, open)| open.caller == number).map(|(n, _)| *n).collect();
    for number in inner {
        let removed = run.frames.open.borrow_mut().remove(&number);
        let realm = realms.remove(number);
        if removed.is_some() {
            give_up(realms, number, realm.as_deref());
        }
    }
}

fn tidy(realms: &Realms<'_>) {
    let ended = realms.first.state.run.frames.ended.get() + 1;
    realms.first.state.run.frames.ended.set(ended);
    if ended.is_multiple_of(TIDY_AFTER) {
        raw::collect_garbage(&realms.first.ctx);
    }
}
