//! Answers the program's questions from its database; owns migrations and every line of SQL.
//!
//! One SQLite file is shared by any number of processes. Every question is asked for a principal
//! and sees that principal's rows alone; only what the program does on its own, such as looking for
//! runs that were left behind, goes over all of them. Times are passed in; nothing here speaks MCP or
//! decides what a change means. What runs leave behind is sealed with keys that the file beside the
//! database, `seal.key`, unlocks; the same file vouches for the audit log, for standing rules and for the keys of clients.
//!
//! [`Store`] is asynchronous and waits on threads of its own. [`BlockingStore`] asks the same questions on the caller's
//! thread. Methods that take a `done` queue a change and return at once. `done` is called exactly once with what became
//! of it, on the thread that writes or, where nothing could be queued, on the caller's. It must neither block nor ask
//! the store anything.

mod allowed;
mod audit;
mod backup;
mod blocking;
mod catalogue;
mod check;
mod column;
mod connection;
mod database;
mod epoch;
mod error;
mod head;
mod key;
mod lock;
mod memory;
mod rule;
mod run;
mod seal;
mod sign_in;
mod state;
mod store;
mod table;
mod vector;
mod vouch;
mod watcher;
mod writer;

pub use allowed::Allowed;
pub use audit::{Audit, AuditRow, Damage, Verified};
pub use backup::{BackedUp, KeyInBackup, Restored, restore};
pub use blocking::BlockingStore;
pub use catalogue::{
    Acceptance, AcceptedDefinition, AcceptedDefinitions, CatalogueChange, ChangedTool, KnownDefinition,
    Listing, Manifest, ManifestChange, ServerAbout, StoredTool, Welcome,
};
pub use check::Integrity;
pub use error::Error;
pub use key::{ClientKey, NewKey};
pub use memory::{
    CacheDrop, CacheKey, CacheUse, CachedResult, Capabilities, CapabilityChanges, Dropped, IntentFit,
    Learned, LearnedEdge, Made, Memory, NewResult, ObservedSchema, Order, Renamed, ServedIntent, Traces,
};
pub use rule::{ApprovalRule, EndedRule, Maker, NewRule};
pub use run::{
    Answered, Asking, Change, Claim, Entry, Filter, Found, Heard, Idempotency, Kind, Lease, NewAnswer,
    NewRun, OpenLimit, Opened, Recorded, RunKind, RunRow, Standing, StoredAnswer, VoidedQuestion,
};
pub use sign_in::Attempt;
pub use state::{Process, ServerState};
pub use store::{Changes, Store};
pub use vector::StoredVector;
pub use writer::Urgency;
