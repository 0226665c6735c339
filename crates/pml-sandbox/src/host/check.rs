//! What a worker may say, and when.
//!
//! A worker runs hostile code, and code that broke out of the engine could write anything to its socket. So
//! everything is checked as if it had: numbers follow each other, handles were given, sizes are within the limits,
//! and what should be JSON is.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use crate::message::{Ending, Event, Limits, MOST_OPERATIONS, PREVIEW_BYTES, Program, THROWN_BYTES, Thrown};

/// Timers of one program in all: the host remembers each that is set.
const MAX_TIMERS: u64 = 1_000_000;

/// The state of a program as its host knows it.
#[derive(Debug, Default)]
pub(super) struct Check {
    program: Option<Granted>,
    calls: u32,
    timers: u32,
    frames: u32,
    operations: u32,
    /// Those that have no end, with the one each was called by and the place of its program.
    open: BTreeMap<u32, (u32, usize)>,
    console_bytes: u64,
    delivered: u32,
    /// How many deliveries had been taken when it was last quiet.
    quiet: Option<u32>,
}

#[derive(Debug)]
struct Granted {
    /// What the program sees, then what each of those sees that can be called.
    sees: Vec<Sees>,
    limits: Limits,
}

#[derive(Debug)]
struct Sees {
    handles: HashSet<u32>,
    nested: HashSet<u32>,
    /// How much its arguments may have beside what its caller gives.
    defaults_bytes: u64,
}

impl Sees {
    fn new(tools: &[crate::message::Granted], nested: &[u32], defaults: &[(String, String)]) -> Sees {
        // Each stands between quotes, with a colon and a comma, and may hold letters that are written longer.
        let size = |(name, json): &(String, String)| (6 * name.len() + json.len() + 4) as u64;
        Sees {
            handles: tools.iter().map(|tool| tool.handle).collect(),
            nested: nested.iter().copied().collect(),
            defaults_bytes: defaults.iter().map(size).sum(),
        }
    }
}

impl Check {
    pub(super) fn begin(&mut self, program: &Program) {
        assert!(self.program.is_none(), "a worker runs one program");
        let first = Sees::new(&program.tools, &program.sees, &[]);
        let nested =
            program.nested.iter().map(|nested| Sees::new(&nested.tools, &nested.sees, &nested.defaults));
        self.program = Some(Granted {
            sees: std::iter::once(first).chain(nested).collect(),
            limits: program.limits.clone(),
        });
    }

    pub(super) fn deliver(&mut self) {
        self.delivered += 1;
    }

    /// Whether it waits for a delivery.
    pub(super) fn is_idle(&self) -> bool {
        self.quiet == Some(self.delivered)
    }

    /// Says what is wrong with `event`, else takes note of it.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), String> {
        let Some(Granted { sees, limits }) = &self.program else {
            return Err("an event before a program began".to_owned());
        };
        if self.is_idle() {
            return Err("an event while nothing could happen".to_owned());
        }
        // What a frame sees, as long as it has no end.
        let seen = |frame: u32| match frame {
            0 => sees.first(),
            frame => self.open.get(&frame).and_then(|(_, place)| sees.get(place + 1)),
        };
        match event {
            Event::Call { call, frame, handle, arguments, .. } => {
                follows("call", *call, &mut self.calls)?;
                within("calls", u64::from(*call), u64::from(limits.calls))?;
                within("bytes of arguments", arguments.len() as u64, limits.argument_bytes)?;
                if !seen(*frame).is_some_and(|seen| seen.handles.contains(handle)) {
                    return Err(format!("a call of handle {handle} in frame {frame}, which was not given"));
                }
                object(arguments)
            }
            Event::Timer { timer, .. } => {
                follows("timer", *timer, &mut self.timers)?;
                within("timers", u64::from(*timer), MAX_TIMERS)
            }
            Event::TimerCleared { timer } => within("timers", u64::from(*timer), u64::from(self.timers)),
            Event::Console { frame, text, .. } => {
                there(*frame, seen(*frame).is_some())?;
                self.console_bytes += text.len() as u64 + 1;
                within("bytes on the console", self.console_bytes, limits.console_bytes)
            }
            Event::Progress { done, total, message } => {
                let finite = done.is_finite() && total.is_none_or(f64::is_finite);
                let long = message.as_ref().is_some_and(|message| message.len() > THROWN_BYTES);
                match finite && !long {
                    true => Ok(()),
                    false => Err("progress that is no number, or with a long message".to_owned()),
                }
            }
            Event::Hint { json } => {
                within("bytes of a hint", json.len() as u64, limits.argument_bytes)?;
                object(json)
            }
            Event::ConsoleCut => Ok(()),
            Event::Reached { frame, .. } => there(*frame, seen(*frame).is_some()),
            Event::Operation { frame, gave, .. } => {
                there(*frame, seen(*frame).is_some())?;
                self.operations += 1;
                within("operations", u64::from(self.operations), u64::from(MOST_OPERATIONS))?;
                within("bytes of a preview", gave.json.len() as u64, PREVIEW_BYTES as u64)?;
                valid(&gave.json)
            }
            Event::FrameBegan { frame, parent, nested, arguments, .. } => {
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
            Event::FrameEnded { frame, end } => {
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
            Event::Quiet { taken, .. } => {
                let expected = self.quiet.map_or(0, |taken| taken + 1);
                if *taken != expected || *taken > self.delivered {
                    return Err(format!("that it took {taken} deliveries, of {}", self.delivered));
                }
                self.quiet = Some(*taken);
                Ok(())
            }
            Event::Ended(ending) => ended(ending, limits),
        }
    }
}

/// Forgets a frame and those that were called in it.
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

fn ended(ending: &Ending, limits: &Limits) -> Result<(), String> {
    match ending {
        Ending::Value(json) => {
            within("bytes of value", json.len() as u64, limits.result_bytes)?;
            valid(json)
        }
        Ending::Thrown(error) | Ending::Unhandled(error) => thrown(error),
        Ending::Deadlock | Ending::Limit(_) => Ok(()),
    }
}

fn thrown(error: &Thrown) -> Result<(), String> {
    let Thrown { name, message, code, stack, .. } = error;
    let longest = [name, message, stack, code.as_ref().unwrap_or(name)].map(String::len);
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
