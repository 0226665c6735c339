//! What a worker may say, and when.
//!
//! A worker runs hostile code, and code that broke out of the engine could write anything to its socket. So
//! everything is checked as if it had: numbers follow each other, handles were given, sizes are within the limits,
//! and what should be JSON is.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::message::{Ending, Event, Limits, Program, THROWN_BYTES, Thrown};

/// Timers of one program in all: the host remembers each that is set.
const MAX_TIMERS: u64 = 1_000_000;

/// The state of a program as its host knows it.
#[derive(Debug, Default)]
pub(super) struct Check {
    program: Option<Granted>,
    calls: u32,
    timers: u32,
    console_bytes: u64,
    delivered: u32,
    /// How many deliveries had been taken when it was last quiet.
    quiet: Option<u32>,
}

#[derive(Debug)]
struct Granted {
    handles: HashSet<u32>,
    limits: Limits,
}

impl Check {
    pub(super) fn begin(&mut self, program: &Program) {
        assert!(self.program.is_none(), "a worker runs one program");
        self.program = Some(Granted {
            handles: program.tools.iter().map(|tool| tool.handle).collect(),
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
        let Some(Granted { handles, limits }) = &self.program else {
            return Err("an event before a program began".to_owned());
        };
        if self.is_idle() {
            return Err("an event while nothing could happen".to_owned());
        }
        match event {
            Event::Call { call, frame, handle, arguments, .. } => {
                follows("call", *call, &mut self.calls)?;
                within("calls", u64::from(*call), u64::from(limits.calls))?;
                within("bytes of arguments", arguments.len() as u64, limits.argument_bytes)?;
                if *frame != 0 || !handles.contains(handle) {
                    return Err(format!("a call of handle {handle} in frame {frame}, which was not given"));
                }
                object(arguments)
            }
            Event::Timer { timer, .. } => {
                follows("timer", *timer, &mut self.timers)?;
                within("timers", u64::from(*timer), MAX_TIMERS)
            }
            Event::TimerCleared { timer } => within("timers", u64::from(*timer), u64::from(self.timers)),
            Event::Console { text, .. } => {
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
            Event::ConsoleCut | Event::Reached(_) => Ok(()),
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

fn ended(ending: &Ending, limits: &Limits) -> Result<(), String> {
    match ending {
        Ending::Value(json) => {
            within("bytes of value", json.len() as u64, limits.result_bytes)?;
            valid(json)
        }
        Ending::Thrown(thrown) | Ending::Unhandled(thrown) => {
            let Thrown { name, message, code, stack, .. } = thrown;
            let longest = [name, message, stack, code.as_ref().unwrap_or(name)].map(String::len);
            within("bytes of an error", longest.into_iter().max().unwrap_or(0) as u64, THROWN_BYTES as u64)
        }
        Ending::Deadlock | Ending::Limit(_) => Ok(()),
    }
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
