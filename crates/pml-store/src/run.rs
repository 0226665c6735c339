//! Runs: their state, their lease, and the journal they are resumed from.
//!
//! A run belongs to one process at a time, by a lease with a fence. Every append to a run and every change of it
//! carries the fence and is refused once another process has claimed the run. Bodies are sealed before they are stored
//! and opened when they are read; this module does not interpret them.

mod append;
mod ask;
mod claim;
mod follow;
mod history;
mod open;
mod place;
mod purge;
mod read;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use pml_model::question::{Answer, Question};
use pml_model::{CapabilityId, Digest, KeyId, Principal, RunId, RunState};

pub use follow::{FollowedEntry, FollowedRun, OpenRun, OpenRuns, RunNews};
pub use history::{CallEntries, ListedRun, RunHistory, RunListQuery, WorkPeriod};
pub use open::{AskingRunOutcome, OpenApprovalLimit, VoidedQuestion};
pub(crate) use open::{has_questions_about_server, void_questions};
pub(crate) use purge::delete_runs;

use crate::seal::SealKey;
use crate::{AllowedArguments, NewApprovalRule, NewAuditEntry, ProcessIdentity, RunMemory};

/// The kind of plan that a run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// A JavaScript program.
    Code,
    /// A DAG of tasks.
    Dag,
    /// One tool call.
    Tool,
}

impl RunKind {
    /// The name of the kind, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Code => "code",
            RunKind::Dag => "dag",
            RunKind::Tool => "tool",
        }
    }

    /// The kind with this name.
    pub fn parse(word: &str) -> Option<RunKind> {
        [RunKind::Code, RunKind::Dag, RunKind::Tool].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Id of the run, unique among all runs.
    pub id: RunId,
    /// The principal that the run belongs to.
    pub principal: Principal,
    /// The session that requested it.
    pub session: String,
    /// The kind of its plan.
    pub kind: RunKind,
    /// The intent, in the words of the client.
    pub intent: String,
    /// Hash of the code.
    pub code_hash: String,
    /// The capability that it executes, if it executes one.
    pub capability: Option<CapabilityId>,
    /// The client key that it was requested with, if any.
    pub client_key: Option<KeyId>,
    /// How many runs of that key may be under way, this one included; `None` for any number.
    pub key_runs_at_once: Option<u32>,
    /// Everything that replay needs beside the journal; sealed when stored.
    pub plan: Vec<u8>,
    /// When a waiting run expires; `None` for never.
    pub expires_at: Option<i64>,
    /// The idempotency key, if the client gave one.
    pub idempotency: Option<Idempotency>,
    /// Mark of the request. While the question of this run is open, a repeated request with the same mark finds it.
    pub request_mark: Option<String>,
    /// The process that executes it.
    pub owner: ProcessIdentity,
    /// When the lease of that process ends unless it is renewed.
    pub lease_until: i64,
    /// Audit entries to be stored in the same transaction.
    pub audit: Vec<NewAuditEntry>,
    /// Current time.
    pub now: i64,
}

/// Makes a request idempotent: repeated requests with the key get the same run. A key is valid for 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The key that the client chose.
    pub key: String,
    /// Digest of the request. It tells a repetition from another request with the same key.
    pub request: Digest,
}

/// The right to write to a run. Every append needs it; it is lost for good once another process claims the run. Clones
/// share it.
#[derive(Clone)]
pub struct Lease(Arc<LeaseInner>);

struct LeaseInner {
    run: RunId,
    fence: i64,
    key: SealKey,
    /// Number of the next journal entry.
    next: Mutex<i64>,
    /// Why the run could not be created, if it could not.
    not_made: OnceLock<crate::Error>,
}

impl Lease {
    fn new(run: RunId, fence: i64, key: SealKey, next: i64) -> Lease {
        Lease(Arc::new(LeaseInner { run, fence, key, next: Mutex::new(next), not_made: OnceLock::new() }))
    }

    /// Id of the run.
    pub fn run(&self) -> &RunId {
        &self.0.run
    }

    /// The fence: a number that grows with every claim of the run.
    pub fn fence(&self) -> i64 {
        self.0.fence
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("run", &self.0.run)
            .field("fence", &self.0.fence)
            .finish_non_exhaustive()
    }
}

/// An entry of the journal of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// The event that it records.
    pub kind: JournalEntryKind,
    /// Number of the call within the run; `None` if the entry is not about a call.
    pub call: Option<u32>,
    /// Number of the frame that issued the call.
    pub frame: u32,
    /// Id of the node of the structure, if known.
    pub node: Option<String>,
    /// `server:tool`.
    pub tool: Option<String>,
    /// Digest of the arguments.
    pub digest: Option<Digest>,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// Further data that replay needs: sealed when stored, at most 16 MiB, may be empty.
    pub body: Vec<u8>,
}

/// The event that a journal entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JournalEntryKind {
    /// The program issued a call.
    Issued,
    /// A call that is not idempotent is about to be sent.
    Sending,
    /// A delivery to the program: the end of a call, a timer, an answer.
    Delivered,
    /// A call in doubt is about to be sent again.
    Resending,
    /// A person approved calls of the run.
    Granted,
    /// A call that needs approval has it.
    Allowed,
}

impl JournalEntryKind {
    /// Every kind.
    pub const ALL: [JournalEntryKind; 6] = [
        JournalEntryKind::Issued,
        JournalEntryKind::Sending,
        JournalEntryKind::Delivered,
        JournalEntryKind::Resending,
        JournalEntryKind::Granted,
        JournalEntryKind::Allowed,
    ];

    /// The name of the kind, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            JournalEntryKind::Issued => "issued",
            JournalEntryKind::Sending => "sending",
            JournalEntryKind::Delivered => "delivered",
            JournalEntryKind::Resending => "again",
            JournalEntryKind::Granted => "granted",
            JournalEntryKind::Allowed => "allowed",
        }
    }

    /// The kind with this name.
    pub fn parse(word: &str) -> Option<JournalEntryKind> {
        JournalEntryKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A change of a run. A field that is `None` leaves its column as it is.
#[derive(Debug, Clone, Default)]
pub struct RunChange {
    /// The new state. A run that has ended or is interrupted loses its owner; one that has ended also loses its
    /// question and its wake-up time.
    pub state: Option<RunState>,
    /// When the run has to be resumed; `Some(None)` for never by itself.
    pub wake_at: Option<Option<i64>>,
    /// When the waiting run expires; `Some(None)` for never.
    pub expires_at: Option<Option<i64>>,
    /// The question that the run asks, with the id of the question; `Some(None)` closes it.
    pub question: Option<Option<(String, Question)>>,
    /// The outcome of the run; sealed when stored, at most 16 MiB.
    pub outcome: Option<Vec<u8>>,
    /// The end that was requested, for any process that comes to end the run; sealed when stored.
    pub requested_end: Option<Vec<u8>>,
    /// Code of the error that ended the run.
    pub error_code: Option<String>,
    /// Message of the error that ended the run, without secrets: it is not sealed.
    pub error_message: Option<String>,
    /// The calls so far.
    pub calls: Option<RunCallCounts>,
    /// The capability that the run became or counts for.
    pub learned: Option<CapabilityId>,
    /// What the run saved.
    pub savings: Option<RunSavings>,
    /// The run has recorded the request to pause before its next layer; the request is deleted.
    pub pause_acknowledged: bool,
    /// The owner releases the run: any process may claim it.
    pub release: bool,
    /// The trace and the procedure to be kept for good; stored in the transaction that ends the run.
    pub memory: Option<Box<RunMemory>>,
    /// Audit entries to be stored in the same transaction.
    pub audit: Vec<NewAuditEntry>,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
}

/// The numbers of calls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCallCounts {
    /// Calls that were made.
    pub made: u32,
    /// Calls that failed.
    pub failed: u32,
    /// Calls that were made before the program asked for them.
    pub speculated: u32,
}

/// What a run saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunSavings {
    /// Milliseconds that it waited less because of calls made ahead.
    pub waited_less_ms: u64,
    /// Bytes of the results of its calls.
    pub call_bytes: u64,
    /// Bytes of its own result, which is all that the client got.
    pub result_bytes: u64,
}

/// Outcome of claiming a run.
#[derive(Debug, Clone)]
pub enum Claim {
    /// The claim succeeded; the run is running.
    Taken(Lease),
    /// Another process holds the lease.
    Held {
        /// The process that holds it.
        by: ProcessIdentity,
        /// When its lease ends unless it is renewed.
        until: i64,
    },
    /// The run has ended, in this state.
    Ended(RunState),
    /// The principal has no such run.
    Unknown,
}

/// An answer to be stored.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// Id of the question.
    pub question_id: String,
    /// The answer.
    pub answer: Answer,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// The tools that the question shows, each with the digest of the definition it shows.
    pub shown_definitions: Vec<(String, Digest)>,
    /// The arguments that a person approves with this answer, by tool.
    pub allowed: Vec<AllowedArguments>,
    /// The approval rules that a person makes with this answer, each with its audit entry.
    pub rules: Vec<(NewApprovalRule, NewAuditEntry)>,
    /// Audit entries to be stored in the same transaction.
    pub audit: Vec<NewAuditEntry>,
}

/// Outcome of storing an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// The answer is stored.
    Stored,
    /// Another answer was stored first and counts.
    AlreadyAnswered,
    /// The run does not ask this question, or no longer.
    NotAsked,
    /// The definition of this tool is not the one the question showed, or was another one in between. The question is
    /// void: it cannot be answered any more.
    DefinitionChanged {
        /// `server:tool`.
        tool: String,
    },
    /// The principal has no such run.
    Unknown,
}

/// A run without its sealed bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Id of the run.
    pub id: RunId,
    /// The principal that the run belongs to.
    pub principal: Principal,
    /// The session that requested it.
    pub session: String,
    /// The kind of its plan.
    pub kind: RunKind,
    /// The intent, in the words of the client.
    pub intent: String,
    /// Hash of the code.
    pub code_hash: String,
    /// The capability that it executes, if it executes one.
    pub capability: Option<CapabilityId>,
    /// The capability that it became or counts for, if there is one.
    pub learned: Option<CapabilityId>,
    /// Current state.
    pub state: RunState,
    /// Code of the error that ended it; `None` for every other run.
    pub error_code: Option<String>,
    /// Message of that error, without secrets.
    pub error_message: Option<String>,
    /// Number of calls made, as last recorded.
    pub calls: u32,
    /// Number of calls that failed, as last recorded.
    pub failed_calls: u32,
    /// Number of calls made before the program asked for them, as last recorded.
    pub speculated_calls: u32,
    /// Id of the open question, if any.
    pub question_id: Option<String>,
    /// When the run was created.
    pub created_at: i64,
    /// When the state last changed.
    pub updated_at: i64,
    /// When the run ended; `None` while it has not.
    pub ended_at: Option<i64>,
    /// When the run has to be resumed; `None` for never by itself.
    pub wake_at: Option<i64>,
    /// When the waiting run expires; `None` for never.
    pub expires_at: Option<i64>,
    /// When its journal and results were purged; `None` while they are kept.
    pub purged_at: Option<i64>,
    /// The process that holds the lease, and when that lease ends unless it is renewed.
    pub owner: Option<(ProcessIdentity, i64)>,
    /// Current fence: the number of claims.
    pub fence: i64,
}

/// A run with its question and its outcome.
#[derive(Debug, Clone)]
pub struct RunOverview {
    /// The row of the run.
    pub run: RunRow,
    /// The open question, with its id.
    pub question: Option<(String, Question)>,
    /// The outcome; `None` until the run has one, and once its records are purged.
    pub outcome: Option<Vec<u8>>,
}

/// A run with an unanswered question.
#[derive(Debug, Clone)]
pub struct AskingRun {
    /// The row of the run.
    pub run: RunRow,
    /// Id of the question.
    pub id: String,
    /// The question.
    pub question: Question,
}

/// Stands for the unanswered questions of a principal: equal marks mean equal questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingMark {
    /// A digest of which runs ask what.
    pub digest: Digest,
    /// The number of runs that ask.
    pub runs: usize,
}

/// Everything that is stored of a run.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// The row of the run.
    pub run: RunRow,
    /// The plan from [`NewRun::plan`].
    pub plan: Vec<u8>,
    /// The journal; the entry at index `i` has number `i + 1`.
    pub entries: Vec<JournalEntry>,
    /// The open question, with its id.
    pub question: Option<(String, Question)>,
    /// The tool whose definition changed after the question was asked, which voids the question.
    pub voided_by: Option<String>,
    /// All answers so far, oldest first.
    pub answers: Vec<StoredAnswer>,
    /// The end that was requested before the run ended, if any.
    pub requested_end: Option<Vec<u8>>,
    /// The outcome, if the run has one.
    pub outcome: Option<Vec<u8>>,
}

/// What happened to the open question of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// A client or a person answered it.
    Answered(StoredAnswer),
    /// The definition of this tool changed after the question was asked.
    DefinitionChanged {
        /// `server:tool`.
        tool: String,
    },
}

/// A stored answer to a question of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// Id of the question.
    pub question_id: String,
    /// The answer.
    pub answer: Answer,
    /// The principal that answered.
    pub principal: Principal,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
}

/// Filter and page of a list of runs, latest first.
#[derive(Debug, Clone)]
pub struct RunQuery {
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Only runs created before this one.
    pub before: Option<RunId>,
    /// Maximum number of runs.
    pub limit: u32,
}

/// A run without a live owner that a process should resume or end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnattendedRun {
    /// The principal that the run belongs to.
    pub principal: Principal,
    /// Id of the run.
    pub run: RunId,
    /// Current state.
    pub state: RunState,
}

#[cfg(test)]
mod tests;
