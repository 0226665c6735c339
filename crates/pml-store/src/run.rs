//! Runs: how they stand, who works on them, and the journal from which they are resumed.
//!
//! A run belongs to one process at a time, by a lease with a fence. Every append and every change of
//! a run carries the fence and is refused once another process has taken the run. Bodies are sealed
//! on their way in and opened on their way out; what they mean is not known here.

mod append;
mod ask;
mod claim;
mod open;
mod place;
mod purge;
mod read;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use pml_model::question::{Answer, Question};
use pml_model::{Digest, Principal, RunId, RunState};

pub use open::{OpenLimit, Opened, VoidedQuestion};
pub(crate) use open::{has_questions, void_questions};

use crate::seal::Key;
use crate::{Allowed, Audit, Memory, NewRule, Process};

/// What kind of plan a run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// A program.
    Code,
    /// Tasks that depend on one another.
    Dag,
    /// One call of a tool.
    Tool,
}

impl RunKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Code => "code",
            RunKind::Dag => "dag",
            RunKind::Tool => "tool",
        }
    }

    /// The kind a word stands for.
    pub fn parse(word: &str) -> Option<RunKind> {
        [RunKind::Code, RunKind::Dag, RunKind::Tool].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A run to be.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its name, which no other run has.
    pub id: RunId,
    /// Whose it is.
    pub principal: Principal,
    /// The session it was asked for in.
    pub session: String,
    /// What kind of plan it executes.
    pub kind: RunKind,
    /// What it is for, in the words of whoever asked.
    pub intent: String,
    /// Hash of its code.
    pub code_hash: String,
    /// All that replaying it needs beside the journal.
    pub plan: Vec<u8>,
    /// Until when it may wait.
    pub expires_at: Option<i64>,
    /// How a repetition of the request is known.
    pub idempotency: Option<Idempotency>,
    /// Marks what is asked for, where a repeated request is to find this run while its question is open.
    pub request_mark: Option<String>,
    /// The process that works on it.
    pub owner: Process,
    /// Until when that process holds it without saying so again.
    pub lease_until: i64,
    /// What the audit log is told with it.
    pub audit: Vec<Audit>,
    /// The present time.
    pub now: i64,
}

/// What a client sends to have a request carried out once, however often it is sent. Counts for 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The key the client chose.
    pub key: String,
    /// Digest of the request, which tells a repetition from another request with the same key.
    pub request: Digest,
}

/// The right to write to a run: needed for every append, lost for good once another process takes
/// the run. Clones share it.
#[derive(Clone)]
pub struct Lease(Arc<Held>);

struct Held {
    run: RunId,
    fence: i64,
    key: Key,
    /// The number of the next entry.
    next: Mutex<i64>,
    /// Why the run could not be made, where it could not.
    not_made: OnceLock<crate::Error>,
}

impl Lease {
    fn new(run: RunId, fence: i64, key: Key, next: i64) -> Lease {
        Lease(Arc::new(Held { run, fence, key, next: Mutex::new(next), not_made: OnceLock::new() }))
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.0.run
    }

    /// Grows each time the run is taken.
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

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it tells.
    pub kind: Kind,
    /// The number of the call it tells of.
    pub call: Option<u32>,
    /// The frame the call was issued in.
    pub frame: u32,
    /// The node of the structure, where that is known.
    pub node: Option<String>,
    /// `server:tool`.
    pub tool: Option<String>,
    /// Digest of the arguments.
    pub digest: Option<Digest>,
    /// When.
    pub at: i64,
    /// What replaying needs beside that; sealed when stored, at most 16 MiB, empty where there is nothing.
    pub body: Vec<u8>,
}

/// What an entry of a journal tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The program issued a call.
    Issued,
    /// A call that is not idempotent is about to be sent.
    Sending,
    /// Something was delivered to the program: the end of a call, a timer, an answer.
    Delivered,
    /// A call that was in doubt is to be sent again.
    Again,
    /// A person gave their word for calls of the run.
    Granted,
    /// A call that needs a person's word has it.
    Allowed,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] =
        [Kind::Issued, Kind::Sending, Kind::Delivered, Kind::Again, Kind::Granted, Kind::Allowed];

    /// The word for it, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Issued => "issued",
            Kind::Sending => "sending",
            Kind::Delivered => "delivered",
            Kind::Again => "again",
            Kind::Granted => "granted",
            Kind::Allowed => "allowed",
        }
    }

    /// The kind a word stands for.
    pub fn parse(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What changes of a run; what is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// How it stands from now on. A run that is over or interrupted has no owner, and one that is
    /// over waits for nothing.
    pub state: Option<RunState>,
    /// When it has to be worked on again; `Some(None)` for never by itself.
    pub wake_at: Option<Option<i64>>,
    /// Until when it may wait; `Some(None)` for ever.
    pub expires_at: Option<Option<i64>>,
    /// What it asks, under a name of its own; `Some(None)` for nothing any more.
    pub question: Option<Option<(String, Question)>>,
    /// What came out of it; sealed when stored, at most 16 MiB.
    pub outcome: Option<Vec<u8>>,
    /// How it is to end, whoever comes to end it; sealed when stored.
    pub wish: Option<Vec<u8>>,
    /// Code of the error that ended it.
    pub error_code: Option<String>,
    /// How many calls it has made.
    pub calls: Option<u32>,
    /// That somebody wants it to wait before its next layer is known and recorded.
    pub pause_taken: bool,
    /// No process works on it any more: anyone may claim it.
    pub release: bool,
    /// What is kept of it for good; stored with its end.
    pub memory: Option<Box<Memory>>,
    /// What the audit log is told with it.
    pub audit: Vec<Audit>,
    /// When.
    pub at: i64,
}

/// What became of claiming a run.
#[derive(Debug, Clone)]
pub enum Claim {
    /// It is ours, and running.
    Taken(Lease),
    /// Another process works on it.
    Held {
        /// Which.
        by: Process,
        /// Until when it holds the run without saying so again.
        until: i64,
    },
    /// It has ended.
    Over(RunState),
    /// The principal has no such run.
    Unknown,
}

/// An answer to be.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// The name of the question.
    pub question_id: String,
    /// What is said.
    pub answer: Answer,
    /// When.
    pub at: i64,
    /// The tools the question shows, each with the definition it shows.
    pub shows: Vec<(String, Digest)>,
    /// What a person thereby allows tools to be called with.
    pub allowed: Vec<Allowed>,
    /// The rules a person makes with it, each with what the audit log is told of it.
    pub rules: Vec<(NewRule, Audit)>,
    /// What the audit log is told with it.
    pub audit: Vec<Audit>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It is the answer.
    Stored,
    /// Somebody else was quicker; theirs is the answer.
    AlreadyAnswered,
    /// The run does not ask this, or no longer.
    Gone,
    /// The question showed another definition of this tool than it has, or than it had in between: nobody can answer
    /// it any more.
    Changed {
        /// `server:tool`.
        tool: String,
    },
    /// The principal has no such run.
    Unknown,
}

/// A run, without what is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its name.
    pub id: RunId,
    /// Whose it is.
    pub principal: Principal,
    /// The session it was asked for in.
    pub session: String,
    /// What kind of plan it executes.
    pub kind: RunKind,
    /// What it is for.
    pub intent: String,
    /// Hash of its code.
    pub code_hash: String,
    /// How it stands.
    pub state: RunState,
    /// Code of the error that ended it.
    pub error_code: Option<String>,
    /// How many calls it has made, as last told.
    pub calls: u32,
    /// The name of the question it asks.
    pub question_id: Option<String>,
    /// When it was made.
    pub created_at: i64,
    /// When its state last changed.
    pub updated_at: i64,
    /// When it ended.
    pub ended_at: Option<i64>,
    /// When it has to be worked on again.
    pub wake_at: Option<i64>,
    /// Until when it may wait.
    pub expires_at: Option<i64>,
    /// When its journal and results went.
    pub purged_at: Option<i64>,
    /// The process that works on it, and until when it does without saying so again.
    pub owner: Option<(Process, i64)>,
    /// How often it was taken.
    pub fence: i64,
}

/// A run with what it asks and what came of it.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The run.
    pub run: RunRow,
    /// What it asks, with its name.
    pub question: Option<(String, Question)>,
    /// What came out of it.
    pub outcome: Option<Vec<u8>>,
}

/// A run that asks something nobody has answered.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The run.
    pub run: RunRow,
    /// The name of the question.
    pub id: String,
    /// What it asks.
    pub question: Question,
}

/// All that is stored of a run.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The run.
    pub run: RunRow,
    /// What it was made with.
    pub plan: Vec<u8>,
    /// Its journal; the entry at index `i` has number `i + 1`.
    pub entries: Vec<Entry>,
    /// What it asks, with its name.
    pub question: Option<(String, Question)>,
    /// The tool whose definition changed after what it asks was asked.
    pub voided_by: Option<String>,
    /// What was answered so far, oldest first.
    pub answers: Vec<StoredAnswer>,
    /// How it is to end, where that was said before it did.
    pub wish: Option<Vec<u8>>,
    /// What came out of it.
    pub outcome: Option<Vec<u8>>,
}

/// What became of the question a run asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It is answered.
    Answer(StoredAnswer),
    /// The definition of this tool changed since it was asked.
    Changed {
        /// `server:tool`.
        tool: String,
    },
}

/// An answer to a question of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The name of the question.
    pub question_id: String,
    /// What was said.
    pub answer: Answer,
    /// Who said it.
    pub principal: Principal,
    /// When.
    pub at: i64,
}

/// Which runs are asked for: the latest first.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Those in this state alone.
    pub state: Option<RunState>,
    /// Those made before this one alone.
    pub before: Option<RunId>,
    /// How many at most.
    pub limit: u32,
}

/// A run that somebody should see to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub principal: Principal,
    /// The run.
    pub run: RunId,
    /// How it stands.
    pub state: RunState,
}

#[cfg(test)]
mod tests;
