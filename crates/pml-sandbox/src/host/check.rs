//! Checks which events a worker may send, and when.
//!
//! A worker runs hostile code, and code that broke out of the engine could write anything to its socket. So every event
//! is checked as hostile: numbers are consecutive, handles were granted, sizes are within the limits, and JSON is well
//! formed.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use crate::message::{
    MOST_OPERATIONS, PREVIEW_BYTES, ProgramEnding, SandboxLimits, SandboxProgram, THROWN_BYTES, ThrownError,
    WorkerEvent,
};

/// Maximum number of timers that one program sets in all: the host remembers each timer that is set.
const MAX_TIMERS: u64 = 1_000_000;

/// State of a program as its host tracks it.
#[derive(Debug, Default)]
pub(super) struct EventChecker {
    program: Option<ProgramGrants>,
    calls: u32,
    timers: u32,
    frames: u32,
    operations: u32,
    /// Open frames, each with its caller and the index of its program.
    open: BTreeMap<u32, (u32, usize)>,
    console_bytes: u64,
    delivered: u32,
    /// Number of deliveries taken at the last `Quiet` event.
    quiet: Option<u32>,
}

#[derive(Debug)]
struct ProgramGrants {
    /// Grants of the program, then those of each nested program.
    sees: Vec<FrameGrants>,
    limits: SandboxLimits,
}

#[derive(Debug)]
struct FrameGrants {
    handles: HashSet<u32>,
    nested: HashSet<u32>,
    /// Bytes that defaults may add to the arguments the caller gives.
    defaults_bytes: u64,
}

impl FrameGrants {
    fn new(
        tools: &[crate::message::GrantedTool],
        nested: &[u32],
        defaults: &[(String, String)],
    ) -> FrameGrants {
        // Each name is quoted and followed by a colon, each member by a comma; escapes may make a name six times as
        // long.
        let size = |(name, json): &(String, String)| (6 * name.len() + json.len() + 4) as u64;
        FrameGrants {
            handles: tools.iter().map(|tool| tool.handle).collect(),
            nested: nested.iter().copied().collect(),
            defaults_bytes: defaults.iter().map(size).sum(),
        }
    }
}

impl EventChecker {
    pub(super) fn begin_program(&mut self, program: &SandboxProgram) {
        assert!(self.program.is_none(), "a worker runs one program");
        let first = FrameGrants::new(&program.tools, &program.sees, &[]);
        let nested = program
            .nested
            .iter()
            .map(|nested| FrameGrants::new(&nested.tools, &nested.sees, &nested.defaults));
        self.program = Some(ProgramGrants {
            sees: std::iter::once(first).chain(nested).collect(),
            limits: program.limits.clone(),
        });
    }

    pub(super) fn count_delivery(&mut self) {
        self.delivered += 1;
    }

    /// Whether the worker waits for a delivery.
    pub(super) fn is_idle(&self) -> bool {
        self.quiet == Some(self.delivered)
    }

    /// Returns what is wrong with `event`; updates the state when it is sound.
    pub(super) fn check_event(&mut self, event: &WorkerEvent) -> Result<(), String> {
        let Some(ProgramGrants { sees, limits }) = &self.program else {
            return Err("an event before a program began".to_owned());
        };
        if self.is_idle() {
            return Err("an event while nothing could happen".to_owned());
        }
        // Grants of a frame that has not ended.
        let seen = |frame: u32| match frame {
            0 => sees.first(),
            frame => self.open.get(&frame).and_then(|(_, place)| sees.get(place + 1)),
        };
        match event {
            WorkerEvent::Call { call, frame, handle, arguments, .. } => {
                follows("call", *call, &mut self.calls)?;
                within("calls", u64::from(*call), u64::from(limits.calls))?;
                within("bytes of arguments", arguments.len() as u64, limits.argument_bytes)?;
                if !seen(*frame).is_some_and(|seen| seen.handles.contains(handle)) {
                    return Err(format!("a call of handle {handle} in frame {frame}, which was not given"));
                }
                object(arguments)
            }
            WorkerEvent::Timer { timer, .. } => {
                follows("timer", *timer, &mut self.timers)?;
                within("timers", u64::from(*timer), MAX_TIMERS)
            }
            WorkerEvent::TimerCleared { timer } => {
                within("timers", u64::from(*timer), u64::from(self.timers))
            }
            WorkerEvent::Console { frame, text, .. } => {
                there(*frame, seen(*frame).is_some())?;
                self.console_bytes += text.len() as u64 + 1;
                within("bytes on the console", self.console_bytes, limits.console_bytes)
            }
            WorkerEvent::Progress { done, total, message } => {
                let finite = done.is_finite() && total.is_none_or(f64::is_finite);
                let long = message.as_ref().is_some_and(|message| message.len() > THROWN_BYTES);
                match finite && !long {
                    true => Ok(()),
                    false => Err("progress that is no number, or with a long message".to_owned()),
                }
            }
            WorkerEvent::Hint { json } => {
                within("bytes of a hint", json.len() as u64, limits.argument_bytes)?;
                object(json)
            }
            WorkerEvent::ConsoleCut => Ok(()),
            WorkerEvent::Reached { frame, .. } => there(*frame, seen(*frame).is_some()),
            WorkerEvent::Operation { frame, gave, .. } => {
                there(*frame, seen(*frame).is_some())?;
                self.operations += 1;
                within("operations", u64::from(self.operations), u64::from(MOST_OPERATIONS))?;
                within("bytes of a preview", gave.json.len() as u64, PREVIEW_BYTES as u64)?;
                valid(&gave.json)
            }
            WorkerEvent::FrameBegan { frame, parent, nested, arguments, .. } => {
                let place = *nested as usize;
                let called = sees
                    .get(place + 1)
                    .filter(|_| seen(*parent).is_some_and(|seen| seen.nested.contains(nested)));
                let Some(called) = called else {
                    return Err(format!("a call of program {nested} in frame {parent}, which was not given"));
                };
                within(
                    "bytes of arguments",
                    arguments.len() as u64,
                    limits.argument_bytes + called.defaults_bytes,
                )?;
                follows("frame", *frame, &mut self.frames)?;
                within("frames", u64::from(*frame), u64::from(limits.calls))?;
                self.open.insert(*frame, (*parent, place));
                object(arguments)
            }
            WorkerEvent::FrameEnded { frame, end } => {
                there(*frame, *frame != 0 && seen(*frame).is_some())?;
                close(&mut self.open, *frame);
                match end {
                    Ok(json) => {
                        within("bytes of value", json.len() as u64, limits.result_bytes)?;
                        valid(json)
                    }
                    Err(error) => thrown(error),
                }
            }
            WorkerEvent::Quiet { taken, .. } => {
                let expected = self.quiet.map_or(0, |taken| taken + 1);
                if *taken != expected || *taken > self.delivered {
                    return Err(format!("that it took {taken} deliveries, of {}", self.delivered));
                }
                self.quiet = Some(*taken);
                Ok(())
            }
            WorkerEvent::Ended(ending) => ended(ending, limits),
        }
    }
}

/// Removes a frame and the frames called within it.
fn close(open: &mut BTreeMap<u32, (u32, usize)>, frame: u32) {
    open.remove(&frame);
    let inner: Vec<u32> =
        open.iter().filter(|(_, (parent, _))| *parent == frame).map(|(inner, _)| *inner).collect();
    inner.into_iter().for_each(|inner| close(open, inner));
}

fn there(frame: u32, is_there: bool) -> Result<(), String> {
    match is_there {
        true => Ok(()),
        false => Err(format!("something of frame {frame}, which is not there")),
    }
}

fn ended(ending: &ProgramEnding, limits: &SandboxLimits) -> Result<(), String> {
    match ending {
        ProgramEnding::Value(json) => {
            within("bytes of value", json.len() as u64, limits.result_bytes)?;
            valid(json)
        }
        ProgramEnding::Thrown(error) | ProgramEnding::Unhandled(error) => thrown(error),
        ProgramEnding::Deadlock | ProgramEnding::Limit(_) => Ok(()),
    }
}

fn thrown(error: &ThrownError) -> Result<(), String> {
    let ThrownError { name, message, stack, .. } = error;
    let longest = [name, message, stack].map(String::len);
    within("bytes of an error", longest.into_iter().max().unwrap_or(0) as u64, THROWN_BYTES as u64)
}

fn follows(what: &str, number: u32, last: &mut u32) -> Result<(), String> {
    if Some(number) != last.checked_add(1) {
        return Err(format!("{what} {number} after {what} {last}"));
    }
    *last = number;
    Ok(())
}

fn within(what: &str, number: u64, most: u64) -> Result<(), String> {
    match number <= most {
        true => Ok(()),
        false => Err(format!("{number} {what}, more than {most}")),
    }
}

fn object(json: &str) -> Result<(), String> {
    match json.starts_with('{') {
        true => valid(json),
        false => Err("something that is not an object".to_owned()),
    }
}

fn valid(json: &str) -> Result<(), String> {
    serde_json::from_str::<&RawValue>(json)
        .map(drop)
        .map_err(|error| format!("something that is not JSON: {error}"))
}
