//! What is written down of a run, and what a later process reads in it.

use pml_model::Digest;
use pml_model::question::{Doubt, Resolved, Verdict};
use pml_store::{Entry, Kind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::frames::Kept;
use super::observe::Ending;
use super::run::Issued;
use super::{TOOL_CHANGED, changed_since_asked};
use crate::plan::Grant;
use crate::plan::Replan;
use crate::problem::Problem;
use crate::report::Failure;
use crate::report::Part;

/// Something the program was given: what replay gives it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Delivered {
    /// The value of a call.
    Result {
        /// Which.
        call: u32,
        /// What the program sees.
        value: Box<RawValue>,
        /// Images and the like, for which the value holds handles.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Part>,
    },
    /// The failure of a call.
    Error {
        /// Which.
        call: u32,
        /// What the program can catch.
        error: CallError,
    },
    /// A timer.
    Timer {
        /// Which.
        timer: u64,
    },
    /// The end of a task of a DAG that is a program.
    Frame {
        /// Which.
        frame: u32,
        /// What it returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Box<RawValue>>,
        /// Why it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<CallError>,
        /// The capabilities it called: it is not gone through again, so they would not be known any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        called: Vec<Kept>,
    },
    /// A word on how a DAG goes on after a layer.
    Layer {
        /// Which.
        layer: u32,
        /// The tasks from now on, where they are others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replan: Option<Box<Replan>>,
    },
    /// Somebody wants a DAG to wait before its next layer.
    Pause,
}

/// Why a call failed, as the program can catch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallError {
    /// For programs.
    pub(super) code: String,
    /// For people.
    pub(super) message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// The tool's own words, JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<String>,
    /// It was sent, and whether the tool acted is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unknown: bool,
}

/// Something to be written down.
#[derive(Debug)]
pub(super) enum Record {
    /// The program asked for a call.
    Issued {
        /// `server:tool`.
        tool: String,
        /// The call.
        issued: Issued,
    },
    /// A call that is not idempotent is about to be sent.
    Sending {
        /// Which.
        call: u32,
        /// When.
        at: i64,
    },
    /// The program is given something.
    Delivered {
        /// When.
        at: i64,
        /// What.
        what: Delivered,
    },
    /// A call in doubt had no effect and is to be sent again.
    Again {
        /// Which.
        call: u32,
        /// When that was said.
        at: i64,
    },
    /// A person allowed something.
    Granted {
        /// What.
        grant: Grant,
        /// When it began to count.
        at: i64,
    },
    /// A grant was used for a call.
    Allowed {
        /// For which.
        call: u32,
        /// Which grant, from 0.
        grant: u32,
        /// When.
        at: i64,
    },
}

impl Record {
    /// As the store keeps it. `now` is when it is written.
    pub(super) fn entry(&self, now: i64) -> Entry {
        let empty = Entry {
            kind: Kind::Issued,
            call: None,
            frame: 0,
            node: None,
            tool: None,
            digest: None,
            at: now,
            body: Vec::new(),
        };
        match self {
            Record::Issued { tool, issued } => Entry {
                call: Some(issued.call),
                frame: issued.frame,
                node: issued.node.clone(),
                tool: Some(tool.clone()),
                digest: Some(issued.digest.clone()),
                body: issued.arguments.as_bytes().to_vec(),
                ..empty
            },
            Record::Sending { call, at } => {
                Entry { kind: Kind::Sending, call: Some(*call), at: *at, ..empty }
            }
            Record::Again { call, at } => Entry { kind: Kind::Again, call: Some(*call), at: *at, ..empty },
            Record::Granted { grant, at } => Entry {
                kind: Kind::Granted,
                tool: Some(grant.tool.clone()),
                at: *at,
                body: serde_json::to_vec(grant).expect("a grant is plain data"),
                ..empty
            },
            Record::Allowed { call, grant, at } => Entry {
                kind: Kind::Allowed,
                call: Some(*call),
                at: *at,
                body: grant.to_string().into_bytes(),
                ..empty
            },
            Record::Delivered { at, what } => Entry {
                kind: Kind::Delivered,
                call: what.call(),
                at: *at,
                body: serde_json::to_vec(what).expect("a delivery is plain data"),
                ..empty
            },
        }
    }
}

impl Delivered {
    /// How much it takes to keep it.
    pub(super) fn size(&self) -> usize {
        match self {
            Delivered::Result { value, parts, .. } => {
                value.get().len() + parts.iter().map(|part| part.content.get().len()).sum::<usize>()
            }
            Delivered::Error { error, .. } => error.message.len(),
            Delivered::Frame { value, .. } => value.as_ref().map_or(0, |value| value.get().len()),
            Delivered::Timer { .. } | Delivered::Layer { .. } | Delivered::Pause => 0,
        }
    }

    /// Whether it tells the program that it may not.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Delivered::Error { error, .. } if error.code == "DENIED")
    }

    /// The call it ends.
    pub(super) fn call(&self) -> Option<u32> {
        match self {
            Delivered::Result { call, .. } | Delivered::Error { call, .. } => Some(*call),
            Delivered::Timer { .. }
            | Delivered::Frame { .. }
            | Delivered::Layer { .. }
            | Delivered::Pause => None,
        }
    }
}

/// How somebody wants a run to end. Recorded where that takes a while, so that it does also when the process is killed
/// meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Wish {
    /// Whoever asked for it no longer wants it.
    Cancel,
    /// Somebody ends it.
    Abort {
        /// Why.
        reason: Option<String>,
    },
}

impl Wish {
    /// The wish behind an ending, where there is one.
    pub(super) fn behind(ending: &Ending) -> Option<Wish> {
        match ending {
            Ending::Cancelled => Some(Wish::Cancel),
            Ending::Aborted(reason) => Some(Wish::Abort { reason: reason.clone() }),
            Ending::Value(_) | Ending::Failed(_) | Ending::Suspended => None,
        }
    }

    /// The ending it wants.
    pub(super) fn ending(self) -> Ending {
        match self {
            Wish::Cancel => Ending::Cancelled,
            Wish::Abort { reason } => Ending::Aborted(reason),
        }
    }
}

/// A call as it was recorded.
#[derive(Debug, Clone)]
pub(super) struct LoggedCall {
    /// `server:tool`.
    pub(super) tool: String,
    /// Who asked for it: the program, or a task of a DAG.
    pub(super) frame: u32,
    /// The node of the structure it belongs to.
    pub(super) node: Option<String>,
    /// Of its arguments.
    pub(super) digest: Digest,
    /// What it was called with.
    pub(super) arguments: String,
    /// When the program asked for it.
    pub(super) at: i64,
    /// When it was about to be sent, where that had to be known beforehand.
    pub(super) sending: Option<i64>,
    /// When its end was recorded.
    pub(super) ended: Option<i64>,
    /// The grant that was used for it.
    pub(super) allowed: Option<u32>,
}

/// All that was recorded.
#[derive(Debug, Default)]
pub(super) struct History {
    /// In the order they were asked for.
    pub(super) calls: Vec<LoggedCall>,
    /// What people allowed, in the order of their words.
    pub(super) grants: Vec<Grant>,
    /// How many of those were for a plan that another one has replaced: they allow nothing any more.
    pub(super) replaced_grants: Option<usize>,
    /// How many questions were answered.
    pub(super) answered: u32,
    /// In the order they were made.
    pub(super) deliveries: Vec<(i64, Delivered)>,
    /// When people's words came: until then they were waited for.
    pub(super) decided_at: Vec<i64>,
}

/// A journal that no version of this program writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {0} of the journal cannot be read")]
pub(super) struct Unreadable(usize);

impl History {
    /// Reads the entries of a run, in their order.
    pub(super) fn read(entries: Vec<Entry>) -> Result<History, Unreadable> {
        let mut history = History::default();
        for (index, entry) in entries.into_iter().enumerate() {
            history.take(entry).ok_or(Unreadable(index))?;
        }
        Ok(history)
    }

    fn take(&mut self, entry: Entry) -> Option<()> {
        match entry.kind {
            Kind::Issued => {
                // Numbers are given in the order of asking, so they need not be looked for.
                if entry.call? as usize != self.calls.len() + 1 {
                    return None;
                }
                self.calls.push(LoggedCall {
                    tool: entry.tool?,
                    frame: entry.frame,
                    node: entry.node,
                    digest: entry.digest?,
                    arguments: String::from_utf8(entry.body).ok()?,
                    at: entry.at,
                    sending: None,
                    ended: None,
                    allowed: None,
                });
            }
            Kind::Sending => self.call(entry.call?)?.sending = Some(entry.at),
            Kind::Again => self.call(entry.call?)?.sending = None,
            Kind::Granted => {
                self.grants.push(serde_json::from_slice(&entry.body).ok()?);
                self.decided_at.push(entry.at);
            }
            Kind::Allowed => {
                let grant = std::str::from_utf8(&entry.body).ok()?.parse().ok()?;
                self.call(entry.call?)?.allowed = Some(grant);
            }
            Kind::Delivered => {
                let what: Delivered = serde_json::from_slice(&entry.body).ok()?;
                if let Some(call) = what.call() {
                    let call = self.call(call)?;
                    call.ended = Some(entry.at);
                    if what.is_denied() && call.allowed.is_none() {
                        self.decided_at.push(entry.at);
                    }
                }
                if let Delivered::Layer { replan: Some(_), .. } = &what {
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

    /// What nobody knows: calls that were about to be sent and have no end.
    pub(super) fn doubts(&self) -> Vec<Doubt> {
        let doubt = |(index, call): (usize, &LoggedCall)| {
            let sent_at = call.sending.filter(|_| call.ended.is_none())?;
            Some(Doubt {
                call: u32::try_from(index + 1).ok()?,
                node: call.node.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                sent_at,
            })
        };
        self.calls.iter().enumerate().filter_map(doubt).collect()
    }

    /// Whether anything was done, or allowed.
    pub(super) fn has_begun(&self) -> bool {
        !self.calls.is_empty() || !self.deliveries.is_empty() || !self.grants.is_empty()
    }

    /// The numbers of those calls.
    pub(super) fn in_doubt(&self) -> Vec<u32> {
        self.doubts().into_iter().map(|doubt| doubt.call).collect()
    }

    /// How long the run was worked on, as far as can be told: a pause that is long enough for it to have been put aside
    /// counts as the shortest such pause, and one that a person's word ended not at all.
    pub(super) fn active_ms(&self, start: i64, park_after_ms: u64) -> u64 {
        let worked = self.calls.iter().map(|call| call.at).chain(self.deliveries.iter().map(|(at, _)| *at));
        let worked = worked.chain([start]).map(|at| (at, true));
        let mut times: Vec<(i64, bool)> =
            self.decided_at.iter().map(|at| (*at, false)).chain(worked).collect();
        times.sort_unstable();
        let gaps = times.windows(2).filter(|pair| pair[1].1);
        let gaps = gaps.map(|pair| u64::try_from(pair[1].0 - pair[0].0).unwrap_or(0));
        gaps.map(|gap| gap.min(park_after_ms)).sum()
    }

    /// The records that a person's word on calls in doubt amounts to.
    ///
    /// # Errors
    /// It is silent about one of them, or speaks of another; the number of that call.
    pub(super) fn resolve(&self, said: &[Resolved], now: i64) -> Result<Vec<Record>, u32> {
        let calls = self.doubts();
        if let Some(foreign) = said.iter().find(|said| calls.iter().all(|doubt| doubt.call != said.call)) {
            return Err(foreign.call);
        }
        let record = |doubt: &Doubt| {
            let said = said.iter().find(|said| said.call == doubt.call).ok_or(doubt.call)?;
            let call = doubt.call;
            let what = match &said.verdict {
                Verdict::Again => return Ok(Record::Again { call, at: now }),
                Verdict::Done { result } => {
                    let value = RawValue::from_string(result.clone()).map_err(|_| call)?;
                    Delivered::Result { call, value, parts: Vec::new() }
                }
                Verdict::Failed => Delivered::Error { call, error: CallError::given_up(&doubt.tool) },
            };
            Ok(Record::Delivered { at: now, what })
        };
        calls.iter().map(record).collect()
    }
}

impl CallError {
    /// A failure without anything to do about it.
    pub(super) fn new(code: &str, message: String) -> CallError {
        CallError { code: code.to_owned(), message, hint: None, data: None, unknown: false }
    }

    /// As a worker is told of it.
    pub(super) fn for_worker(&self) -> pml_sandbox::CallError {
        pml_sandbox::CallError {
            code: self.code.clone(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            data: self.data.clone(),
        }
    }

    /// A person did not allow a call.
    pub(super) fn denied(tool: &str, reason: Option<&str>) -> CallError {
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        CallError {
            code: "DENIED".to_owned(),
            message: format!("a person did not allow `{tool}` to be called{reason}"),
            hint: Some("do without it; asking again for the same is answered the same".to_owned()),
            data: None,
            unknown: false,
        }
    }

    /// The definition of a tool changed after it was asked whether it may be called.
    pub(super) fn tool_changed(tool: &str) -> CallError {
        CallError {
            hint: Some(Failure::RUN_ANEW.to_owned()),
            ..CallError::new(TOOL_CHANGED, changed_since_asked(tool))
        }
    }

    /// Too many questions of the client are open.
    pub(super) fn too_many_open(tool: &str, problem: &Problem) -> CallError {
        CallError {
            hint: problem.hint.clone(),
            ..CallError::new(
                "TOO_MANY_QUESTIONS",
                format!("`{tool}` needs a person's answer, and {}", problem.message),
            )
        }
    }

    /// The run has asked too often to ask once more.
    pub(super) fn too_many_questions(tool: &str, most: u32) -> CallError {
        CallError {
            code: "TOO_MANY_QUESTIONS".to_owned(),
            message: format!("`{tool}` needs a person's word, and the run has asked {most} times already"),
            hint: Some("ask for fewer calls, or have any arguments allowed for so many calls".to_owned()),
            data: None,
            unknown: false,
        }
    }

    /// A person says that a call in doubt failed.
    fn given_up(tool: &str) -> CallError {
        CallError {
            code: "OUTCOME_UNKNOWN".to_owned(),
            message: format!(
                "whether `{tool}` acted is not known; a person decided to go on as if it had failed"
            ),
            hint: None,
            data: None,
            unknown: true,
        }
    }
}
