//! The memory: traces of runs, the procedures they were runs of, and what is learned from them.
//!
//! A finished run leaves its trace and its procedure in the transaction that ends it. Numbers are learned
//! afterwards, from one trace after the other in the order they were stored and up to a mark that moves in
//! the same transaction: whoever learns, and however often it is stopped, each trace counts once, and
//! learning everything anew gives the same numbers. Nothing here is sealed: what comes in is free of secrets.

mod cache;
mod capability;
mod edge;
mod intents;
mod learn;
mod manage;
mod observed;
mod tool_use;
mod trace;

use pml_model::capability::{Procedure, ToolUse};
use pml_model::trace::Trace;
use rusqlite::Connection;
use serde_json::{Map, Value};

pub use cache::{CacheDrop, CacheKey, CacheUse, CachedResult, Dropped, NewResult};
pub use capability::{Capabilities, CapabilityChanges};
pub use edge::LearnedEdge;
pub use intents::ServedIntent;
pub use learn::Learned;
pub use manage::{Made, Renamed};
pub use observed::ObservedSchema;
pub use trace::{Order, Traces};

pub(crate) use cache::OwnedDropped;
pub(crate) use manage::{forget_plans, old_plans};
pub(crate) use trace::Remembered;

use crate::{BlockingStore, Error, Urgency};

/// What a finished run leaves behind.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What was run; `None` where nothing is to be remembered of it but the trace.
    pub procedure: Option<Box<Procedure>>,
    /// This run makes the procedure active.
    pub activates: bool,
    /// The definitions that its tools had; where it worked, they are the ones it is known to work with.
    pub tools: Vec<ToolUse>,
    /// What the parameters were given, by name; kept as examples where it worked.
    pub values: Map<String, Value>,
    /// What the intent of the run says of the procedure.
    pub intent: IntentFit,
    /// Nothing is learned from the trace: it is kept for people alone.
    pub untaught: bool,
    /// What happened.
    pub trace: Box<Trace>,
    /// What happened in the capabilities that it called.
    pub nested: Vec<Trace>,
}

/// Whether an intent may be remembered for the procedure that was run for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentFit {
    /// It was not compared with the constants of the procedure; it is remembered and checked later.
    Unchecked,
    /// Every value in it has its place, by the rules of this version of the analysis.
    Fits(u32),
    /// It names a value that the procedure has no place for, and is not remembered.
    Misfit,
}

impl BlockingStore {
    /// Stores a trace that belongs to no lease: an answer from a cache, a part of a run, an imported one.
    /// Storing one that is there already changes nothing.
    pub fn remember(
        &self,
        memory: Memory,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        match Remembered::of(memory) {
            Ok(remembered) => {
                let bytes = remembered.bytes();
                let work = move |connection: &Connection| remembered.store(connection);
                self.inner.writer.enqueue(bytes, urgency, work, done);
            }
            Err(error) => done(Err(error)),
        }
    }
}

/// Counts a change of capabilities, and gives the number that those changed carry.
fn next_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE memory SET version = version + 1 RETURNING version")?
        .query_row([], |row| row.get(0))
}

/// Says that a capability changed.
fn touch(connection: &Connection, capability: i64) -> rusqlite::Result<()> {
    let version = next_version(connection)?;
    connection
        .prepare_cached("UPDATE capability SET version = ?2 WHERE number = ?1")?
        .execute([capability, version])
        .map(drop)
}
