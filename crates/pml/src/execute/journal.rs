//! The journal of a run: the records that are written, and the history that a later process reads from them.

use pml_model::question::{CallInDoubt, DoubtVerdict, ResolvedDoubt};
use pml_model::{Digest, RunId};
use pml_store::{JournalEntry, JournalEntryKind, RunRecord};
use serde_json::value::RawValue;

use super::delivery::{CallFailure, RunDelivery};
use super::issued_call::IssuedCall;
use crate::plan::{Grant, Plan};
use crate::problem::{ErrorCode, Problem};

/// A record of the journal.
#[derive(Debug)]
pub(super) enum JournalRecord {
    /// The program issued a call.
    Issued {
        /// The tool, as `server:tool`.
        tool: String,
        /// The issued call.
        issued: IssuedCall,
    },
    /// A call that is not idempotent is about to be sent.
    Sending {
        /// Number of the call within its run.
        call: u32,
        /// Time in milliseconds since the Unix epoch.
        at: i64,
    },
    /// Something was delivered to the program.
    Delivered {
        /// Time in milliseconds since the Unix epoch.
        at: i64,
        /// The delivery.
        what: RunDelivery,
    },
    /// A call in doubt had no effect and is to be sent again.
    Resend {
        /// Number of the call within its run.
        call: u32,
        /// When a person decided that.
        at: i64,
    },
    /// A person gave a grant.
    Granted {
        /// The grant that was given.
        grant: Grant,
        /// When the grant began to count.
        at: i64,
    },
    /// A grant was used for a call.
    Allowed {
        /// The number of the call.
        call: u32,
        /// The index of the grant, from 0.
        grant: u32,
        /// Time in milliseconds since the Unix epoch.
        at: i64,
    },
}

impl JournalRecord {
    /// The store entry of the record. `now` is the time of writing.
    pub(super) fn entry(&self, now: i64) -> JournalEntry {
        let empty = JournalEntry {
            kind: JournalEntryKind::Issued,
            call: None,
            frame: 0,
            node: None,
            tool: None,
            digest: None,
            at: now,
            body: Vec::new(),
        };
        match self {
            JournalRecord::Issued { tool, issued } => JournalEntry {
                call: Some(issued.call),
                frame: issued.frame,
                node: issued.node.clone(),
                tool: Some(tool.clone()),
                digest: Some(issued.digest.clone()),
                body: issued.arguments.as_bytes().to_vec(),
                ..empty
            },
            JournalRecord::Sending { call, at } => {
                JournalEntry { kind: JournalEntryKind::Sending, call: Some(*call), at: *at, ..empty }
            }
            JournalRecord::Resend { call, at } => {
                JournalEntry { kind: JournalEntryKind::Resending, call: Some(*call), at: *at, ..empty }
            }
            JournalRecord::Granted { grant, at } => JournalEntry {
                kind: JournalEntryKind::Granted,
                tool: Some(grant.tool.clone()),
                at: *at,
                body: serde_json::to_vec(grant).expect("a grant is plain data"),
                ..empty
            },
            JournalRecord::Allowed { call, grant, at } => JournalEntry {
                kind: JournalEntryKind::Allowed,
                call: Some(*call),
                at: *at,
                body: grant.to_string().into_bytes(),
                ..empty
            },
            JournalRecord::Delivered { at, what } => JournalEntry {
                kind: JournalEntryKind::Delivered,
                call: what.call(),
                at: *at,
                body: serde_json::to_vec(what).expect("a delivery is plain data"),
                ..empty
            },
        }
    }
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(super) struct LoggedCall {
    /// The tool, as `server:tool`.
    pub(super) tool: String,
    /// The frame that issued the call: the program, or a task of a DAG.
    pub(super) frame: u32,
    /// The node of the structure that the call belongs to.
    pub(super) node: Option<String>,
    /// The digest of the arguments.
    pub(super) digest: Digest,
    /// The arguments, as JSON.
    pub(super) arguments: String,
    /// When the program issued the call.
    pub(super) issued_at: i64,
    /// When the call was about to be sent; recorded only for calls that are not idempotent.
    pub(super) sending_at: Option<i64>,
    /// When the end of the call was recorded.
    pub(super) ended_at: Option<i64>,
    /// The index of the grant that was used for the call.
    pub(super) grant_index: Option<u32>,
}

/// Everything that was recorded.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The calls, in the order of issue.
    pub(super) calls: Vec<LoggedCall>,
    /// The grants, in the order in which they were given.
    pub(super) grants: Vec<Grant>,
    /// How many of the grants belong to a plan that a replan replaced; those allow nothing any more.
    pub(super) replaced_grants: Option<usize>,
    /// The number of questions that were answered.
    pub(super) questions_answered: u32,
    /// The deliveries, in the order in which they were made.
    pub(super) deliveries: Vec<(i64, RunDelivery)>,
    /// When people's answers came; the run was waiting until then.
    pub(super) decided_at: Vec<i64>,
}

/// The index of an entry that no version of this program writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {0} of the journal cannot be read")]
pub(super) struct UnreadableEntry(usize);

/// Decodes the plan and the history of a recorded run.
pub(super) fn decode_recorded(recorded: &RunRecord) -> Result<(Plan, History), Problem> {
    let id = &recorded.run.id;
    let plan = serde_json::from_slice(&recorded.plan).map_err(|error| unreadable(id, &error))?;
    let history = History::read(recorded.entries.clone()).map_err(|error| unreadable(id, &error))?;
    Ok((plan, history))
}

/// The error for a record that this version cannot read.
pub(super) fn unreadable(id: &RunId, why: &dyn std::error::Error) -> Problem {
    Problem::new(ErrorCode::Storage, format!("the record of run `{id}` cannot be read: {why}"))
}

impl History {
    /// Reads the entries of a run, in their order.
    pub(super) fn read(entries: Vec<JournalEntry>) -> Result<History, UnreadableEntry> {
        let mut history = History::default();
        for (index, entry) in entries.into_iter().enumerate() {
            history.take(entry).ok_or(UnreadableEntry(index))?;
        }
        Ok(history)
    }

    fn take(&mut self, entry: JournalEntry) -> Option<()> {
        match entry.kind {
            JournalEntryKind::Issued => {
                // Call numbers follow the order of issue, so they equal the position.
                if entry.call? as usize != self.calls.len() + 1 {
                    return None;
                }
                self.calls.push(LoggedCall {
                    tool: entry.tool?,
                    frame: entry.frame,
                    node: entry.node,
                    digest: entry.digest?,
                    arguments: String::from_utf8(entry.body).ok()?,
                    issued_at: entry.at,
                    sending_at: None,
                    ended_at: None,
                    grant_index: None,
                });
            }
            JournalEntryKind::Sending => self.call(entry.call?)?.sending_at = Some(entry.at),
            JournalEntryKind::Resending => self.call(entry.call?)?.sending_at = None,
            JournalEntryKind::Granted => {
                self.grants.push(serde_json::from_slice(&entry.body).ok()?);
                self.decided_at.push(entry.at);
            }
            JournalEntryKind::Allowed => {
                let grant = std::str::from_utf8(&entry.body).ok()?.parse().ok()?;
                self.call(entry.call?)?.grant_index = Some(grant);
            }
            JournalEntryKind::Delivered => {
                let what: RunDelivery = serde_json::from_slice(&entry.body).ok()?;
                if let Some(call) = what.call() {
                    let call = self.call(call)?;
                    call.ended_at = Some(entry.at);
                    if what.is_denied() && call.grant_index.is_none() {
                        self.decided_at.push(entry.at);
                    }
                }
                if let RunDelivery::Layer { replan: Some(_), .. } = &what {
                    self.replaced_grants = Some(self.grants.len());
                }
                self.deliveries.push((entry.at, what));
            }
        }
        Some(())
    }

    fn call(&mut self, number: u32) -> Option<&mut LoggedCall> {
        self.calls.get_mut((number as usize).checked_sub(1)?)
    }

    /// The calls in doubt: those about to be sent that have no end.
    pub(super) fn calls_in_doubt(&self) -> Vec<CallInDoubt> {
        let doubt = |(index, call): (usize, &LoggedCall)| {
            let sent_at = call.sending_at.filter(|_| call.ended_at.is_none())?;
            Some(CallInDoubt {
                call: u32::try_from(index + 1).ok()?,
                node: call.node.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                sent_at,
            })
        };
        self.calls.iter().enumerate().filter_map(doubt).collect()
    }

    /// Whether the run did anything, or was granted anything.
    pub(super) fn has_begun(&self) -> bool {
        !self.calls.is_empty() || !self.deliveries.is_empty() || !self.grants.is_empty()
    }

    /// The numbers of the calls in doubt.
    pub(super) fn call_numbers_in_doubt(&self) -> Vec<u32> {
        self.calls_in_doubt().into_iter().map(|doubt| doubt.call).collect()
    }

    /// Estimates how long the run was active. A pause long enough for parking counts as the shortest such pause; a
    /// pause that a person's answer ended does not count.
    pub(super) fn active_ms(&self, start: i64, park_after_ms: u64) -> u64 {
        let worked =
            self.calls.iter().map(|call| call.issued_at).chain(self.deliveries.iter().map(|(at, _)| *at));
        let worked = worked.chain([start]).map(|at| (at, true));
        let mut times: Vec<(i64, bool)> =
            self.decided_at.iter().map(|at| (*at, false)).chain(worked).collect();
        times.sort_unstable();
        let gaps = times.windows(2).filter(|pair| pair[1].1);
        let gaps = gaps.map(|pair| u64::try_from(pair[1].0 - pair[0].0).unwrap_or(0));
        gaps.map(|gap| gap.min(park_after_ms)).sum()
    }

    /// The records that result from a person's answer about calls in doubt.
    ///
    /// # Errors
    /// The answer omits one of them, or names another call; the number of that call.
    pub(super) fn resolve(&self, said: &[ResolvedDoubt], now: i64) -> Result<Vec<JournalRecord>, u32> {
        let calls = self.calls_in_doubt();
        if let Some(foreign) = said.iter().find(|said| calls.iter().all(|doubt| doubt.call != said.call)) {
            return Err(foreign.call);
        }
        let record = |doubt: &CallInDoubt| {
            let said = said.iter().find(|said| said.call == doubt.call).ok_or(doubt.call)?;
            let call = doubt.call;
            let what = match &said.verdict {
                DoubtVerdict::Again => return Ok(JournalRecord::Resend { call, at: now }),
                DoubtVerdict::Done { result } => {
                    let value = RawValue::from_string(result.clone()).map_err(|_| call)?;
                    RunDelivery::Result {
                        call,
                        value,
                        parts: Vec::new(),
                        saved_ms: None,
                        age_ms: None,
                        not_ahead: None,
                    }
                }
                DoubtVerdict::Failed => {
                    RunDelivery::Error { call, error: CallFailure::given_up(&doubt.tool) }
                }
            };
            Ok(JournalRecord::Delivered { at: now, what })
        };
        calls.iter().map(record).collect()
    }
}
