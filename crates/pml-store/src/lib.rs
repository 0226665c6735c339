//! The database of PML: every query, every migration and every line of SQL.
//!
//! Any number of processes share one database: an SQLite file, or a PostgreSQL database that gateways on several
//! machines use. Every query is written once, for both (`sql`, `postgres::dialect`). Every query names a principal and sees only that principal's rows.
//! Only maintenance, such as finding orphaned runs, covers all principals. Callers pass times in, as milliseconds
//! since the Unix epoch. This crate does not speak MCP and does not decide what a change means. The content of runs is
//! sealed with keys that the file beside the database, `seal.key`, unlocks. The same file authenticates the audit log,
//! the approval rules and the client keys.
//!
//! [`Store`] is asynchronous and runs queries on its own threads. [`BlockingStore`] has the same methods and blocks
//! the caller's thread. Methods that take a `done` callback queue a change and return at once. `done` is called
//! exactly once with the outcome: on the writer thread, or on the caller's thread if the change could not be queued.
//! `done` must neither block nor call the store.

mod allowed;
mod audit;
mod backend;
mod backup;
mod blocking;
mod catalogue;
mod check;
mod client_run;
mod column;
mod connection;
mod copy;
mod dashboard_session;
mod database;
mod epoch;
mod error;
mod failure;
mod forget;
mod head;
mod key;
mod key_use;
mod lock;
mod memory;
mod mock;
mod package;
mod person;
mod postgres;
mod process;
mod rule;
mod run;
mod savings;
mod seal;
mod server_sign_in;
mod sign_in;
mod speculation;
mod sql;
mod state;
mod store;
mod table;
mod vector;
mod vouch;
mod watcher;
mod writer;

pub use allowed::AllowedArguments;
pub use audit::{AuditDamage, AuditEntry, AuditVerification, NewAuditEntry};
pub use backup::{BackupReport, KeyInBackup, RestoreReport, restore_backup, restore_backup_to_server};
pub use blocking::{BlockingStore, ServerHealth};
pub use catalogue::{
    Acceptance, AcceptancePolicy, AcceptedDefinition, AcceptedDefinitions, CatalogueChange, ChangedTool,
    DefinitionVersion, Manifest, ManifestChange, ServerListing, StoredServerProfile, StoredTool,
};
pub use check::IntegrityReport;
pub use client_run::{ChainPlace, ClientTraceRow, ContextOwner, TakenTrace};
pub use copy::{CopyProgress, DatabasePlace, TableReport, copy_database};
pub use dashboard_session::DashboardSession;
pub use error::Error;
pub use forget::{ForgetScope, ForgottenCounts};
pub use key::{ClientKey, NewClientKey};
pub use key_use::{CountedKeyUse, KeyUse};
pub use memory::{
    CacheInvalidation, CacheKey, CacheUsage, CachedResult, CapabilityChanges, CapabilityQuery, CreateOutcome,
    IntentFit, InvalidationScope, LearnedBatch, LearnedEdge, NewCachedResult, NewName, ObservedSchema,
    OfferOutcome, RenameOutcome, RunMemory, SeenWrites, ServedIntent, TraceOrder, TraceQuery, VersionOutcome,
};
pub use mock::{FoundMock, MockLookups, MockScope, MockTotals, NewMock, StoredMock};
pub use package::{PackageSignature, is_signed_by};
pub use person::Person;
pub use postgres::passwords_in;
pub use process::ProcessIdentity;
pub use rule::{ApprovalRule, EndedRule, NewApprovalRule, RuleMaker};
pub use run::{
    AnswerOutcome, AskingMark, AskingRun, AskingRunOutcome, CallEntries, Claim, FollowedEntry, FollowedRun,
    Idempotency, JournalEntry, JournalEntryKind, Lease, ListedRun, NewAnswer, NewRun, OpenApprovalLimit,
    OpenRun, OpenRuns, QuestionOutcome, RunCallCounts, RunChange, RunHistory, RunKind, RunListQuery, RunNews,
    RunOverview, RunQuery, RunRecord, RunRow, RunSavings, StoredAnswer, UnattendedRun, VoidedQuestion,
    WorkPeriod,
};
pub use savings::DailySavings;
pub use server_sign_in::ServerSignIn;
pub use sign_in::SignInAttempt;
pub use speculation::{ConfidenceOutcomes, SpeculationCounts, ToolSpeculation};
pub use state::PublishedServerState;
pub use store::{ChangeSubscription, Store};
pub use vector::StoredVector;
pub use writer::Urgency;
