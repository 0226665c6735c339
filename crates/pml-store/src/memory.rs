//! The memory: traces of runs, the procedures they executed, and what was learned from them.
//!
//! A finished run stores its trace and its procedure in the transaction that ends it. Learning follows later: it folds
//! the traces in the order in which they were stored, up to a cursor that moves in the same transaction. Whichever
//! process learns, and however often it is interrupted, each trace counts once, and learning everything again gives
//! the same numbers. Nothing here is sealed: the data is sanitised before it comes in.

pub(crate) mod cache;
mod capability;
mod edge;
mod explored;
mod golden;
mod identity;
mod intents;
pub(crate) mod learn;
pub(crate) mod manage;
mod observed;
mod publication;
mod release;
mod tool_use;
mod trace;
mod trace_details;
mod version;

use crate::sql::Connection;
use pml_model::capability::{Procedure, ToolUse};
use pml_model::observed::ObservedShape;
use pml_model::trace::Trace;
use serde_json::{Map, Value};

pub use cache::{
    CacheInvalidation, CacheKey, CacheUsage, CachedResult, InvalidationScope, NewCachedResult, SeenWrites,
};
pub use capability::{CapabilityChanges, CapabilityQuery};
pub use edge::LearnedEdge;
pub use intents::ServedIntent;
pub use learn::LearnedBatch;
pub use manage::{CreateOutcome, NewName, RenameOutcome};
pub use observed::ObservedSchema;
pub use trace::{TraceOrder, TraceQuery};
pub use version::{OfferOutcome, VersionOutcome};

pub(crate) use cache::OwnedInvalidationScope;
pub(crate) use manage::{delete_expired_plans, expired_plans};
pub(crate) use trace::EncodedMemory;

use crate::{BlockingStore, Error, Urgency};

/// What a finished run leaves in memory.
#[derive(Debug, Clone)]
pub struct RunMemory {
    /// The procedure that was run; `None` if only the trace is to be kept.
    pub procedure: Option<Box<Procedure>>,
    /// Whether this run makes the capability active.
    pub activates: bool,
    /// The tools it used, with their definitions. If the run succeeded, these are the definitions it is known to work
    /// with.
    pub tools: Vec<ToolUse>,
    /// The arguments by parameter name; kept as examples if the run succeeded.
    pub values: Map<String, Value>,
    /// The shape of the result; `None` if there is none that may be kept.
    pub result: Option<ObservedShape>,
    /// Whether the run may be a golden one: it worked, and nothing had to be removed from what is kept of it.
    pub golden: bool,
    /// Whether the intent fits the procedure.
    pub intent: IntentFit,
    /// Whether learning skips the trace: it is kept for people alone.
    pub excluded_from_learning: bool,
    /// The trace of the run.
    pub trace: Box<Trace>,
    /// The traces of the capabilities that it called.
    pub nested: Vec<Trace>,
}

/// Whether an intent may be stored for the procedure that was run for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentFit {
    /// The intent was not compared with the constants of the procedure. It is stored and checked later.
    Unchecked,
    /// Every value in the intent maps to the procedure, by the rules of this version of the analysis.
    Fits(u32),
    /// The intent names a value that the procedure has no place for. It is not stored.
    Misfit,
}

impl BlockingStore {
    /// Stores a trace that needs no lease: a cached answer, a part of a run, an imported trace. Idempotent: storing a
    /// trace that exists changes nothing.
    pub fn store_memory(
        &self,
        memory: RunMemory,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        match EncodedMemory::encode(memory) {
            Ok(remembered) => {
                let bytes = remembered.bytes();
                let work = move |connection: &Connection| remembered.store(connection);
                self.inner.writer.enqueue(bytes, urgency, work, done);
            }
            Err(error) => done(Err(error)),
        }
    }
}

/// Increments the version of the capabilities and returns it; changed capabilities carry it.
fn next_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE memory SET version = version + 1 RETURNING version")?
        .query_row([], |row| row.get(0))
}

/// Records that a capability changed.
pub(crate) fn bump_capability_version(connection: &Connection, capability: i64) -> rusqlite::Result<()> {
    let version = next_version(connection)?;
    connection
        .prepare_cached("UPDATE capability SET version = ?2 WHERE number = ?1")?
        .execute([capability, version])
        .map(drop)
}
