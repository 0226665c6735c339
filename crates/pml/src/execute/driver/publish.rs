//! Publishes to the live feed what the driver observes. Replayed steps are not published again.

use pml_model::question::Question;
use pml_sandbox::WorkerEvent;
use serde::Deserialize;

use super::super::delivery::RunDelivery;
use super::super::frames::FrameKey;
use super::super::journal::JournalRecord;
use super::super::observe::level_name;
use super::Driver;
use crate::clock::now_ms;
use crate::events::{CapabilityRef, EventError, FeedEvent, RunSummary, TaskOutcome, shortened};
use crate::report::{CallReport, RunReport, TaskStatus};

/// The hint of a program, as far as the feed shows it.
#[derive(Deserialize)]
struct ProgramHint {
    name: Option<String>,
    description: Option<String>,
}

impl Driver {
    fn publish(&self, at: i64, event: impl FnOnce() -> Option<FeedEvent>) {
        let feed = &self.driven.runs.feed;
        if !feed.is_followed() {
            return;
        }
        if let Some(event) = event() {
            feed.publish(&self.driven.principal, self.driven.lease.run(), at, || event);
        }
    }

    /// Publishes that this process has the run.
    pub(super) fn publish_start(&self) {
        self.publish(now_ms(), || {
            let plan = &self.driven.plan;
            Some(FeedEvent::RunStart(RunSummary {
                kind: match plan.dag() {
                    None => "program",
                    Some(dag) if dag.single => "tool",
                    Some(_) => "dag",
                },
                intent: self.driven.runs.knowledge.memory.sanitiser().clean_text(&plan.intent).into_owned(),
                session: plan.session.clone(),
                // Every claim after the first raises the fence.
                resumed: self.driven.lease.fence() > 1,
                started_at: plan.start,
            }))
        });
    }

    /// Publishes the start or the end of a call, or of a task that is a capability.
    pub(super) fn publish_record(&self, record: &JournalRecord, now: i64) {
        match record {
            JournalRecord::Issued { issued, .. } => self.publish(now, || {
                let report = self.observer.call_report(issued.call)?;
                Some(FeedEvent::TaskStart {
                    call: report.call,
                    tool: report.tool.clone(),
                    node_id: issued.node.clone(),
                    capability: report.capability.clone(),
                })
            }),
            JournalRecord::Delivered { at, what: RunDelivery::Frame { frame, error, .. } } => {
                self.publish_capability_end((*frame, 0), error.is_none(), *at);
            }
            JournalRecord::Delivered { at, what } => self.publish(*at, || {
                let report = self.observer.call_report(what.call()?)?;
                Some(FeedEvent::TaskComplete(Box::new(outcome(report, self.observer.node_path(report.call)))))
            }),
            JournalRecord::Sending { .. }
            | JournalRecord::Resend { .. }
            | JournalRecord::Granted { .. }
            | JournalRecord::Allowed { .. } => {}
        }
    }

    /// Publishes an event of the program of a task; the program of the run itself is task 0.
    pub(super) fn publish_worker_event(&self, task: u32, seen: &WorkerEvent) {
        if !self.driven.runs.feed.is_followed() {
            return;
        }
        let now = now_ms();
        match seen {
            WorkerEvent::Console { level, text, .. } => self
                .publish(now, || Some(FeedEvent::Log { level: level_name(*level), text: shortened(text) })),
            WorkerEvent::FrameBegan { frame, .. } => self.publish_capability_start((task, *frame)),
            WorkerEvent::FrameEnded { frame, end } => {
                self.publish_capability_end((task, *frame), end.is_ok(), now);
            }
            WorkerEvent::Hint { json } => self.publish(now, || {
                let hint: ProgramHint = serde_json::from_str(json).ok()?;
                Some(FeedEvent::CapabilityHint {
                    name: hint.name,
                    description: hint.description,
                    tools_used: self.driven.plan.tools.iter().map(|tool| tool.id.to_string()).collect(),
                })
            }),
            _ => {}
        }
    }

    /// Publishes the start of a capability.
    pub(super) fn publish_capability_start(&self, key: FrameKey) {
        self.publish(now_ms(), || {
            let number = self.observer.frames().number(key);
            let frame = self.observer.frames().get(number)?;
            Some(FeedEvent::CapabilityStart {
                capability: self.capability_ref(number)?,
                frame: number,
                node_id: frame.node.map(|node| node.to_string()),
            })
        });
    }

    fn publish_capability_end(&self, key: FrameKey, ok: bool, at: i64) {
        self.publish(at, || {
            let number = self.observer.frames().number(key);
            let frame = self.observer.frames().get(number)?;
            Some(FeedEvent::CapabilityEnd {
                capability: self.capability_ref(number)?,
                frame: number,
                status: if ok { "ok" } else { "error" },
                duration_ms: at - frame.began,
            })
        });
    }

    fn capability_ref(&self, frame: u32) -> Option<CapabilityRef> {
        let called = self.observer.frames().get(frame)?.planned_capability(&self.driven.plan)?;
        Some(CapabilityRef { id: called.id.to_string(), name: called.name.clone() })
    }

    /// Publishes the layers that a delivery completed.
    pub(super) fn publish_completed_layers(&mut self) {
        let Some(dag) = &mut self.work.dag else { return };
        let (completed, layers) = dag.take_completed_layers();
        for layer in completed {
            self.publish(now_ms(), || Some(FeedEvent::LayerComplete { layer, layers }));
        }
    }

    /// Publishes the question that the run waits on.
    pub(super) fn publish_question(&self, (id, question): &(String, Question)) {
        self.publish(now_ms(), || Some(FeedEvent::question(id, question)));
    }

    /// Publishes how far the run is.
    pub(super) fn publish_progress(&self, status: &'static str) {
        self.publish(now_ms(), || {
            let progress = self.observer.progress();
            Some(FeedEvent::Progress {
                status,
                calls: progress.calls,
                ended: progress.ended,
                done: progress.done,
                total: progress.total,
                message: progress.message.as_deref().map(shortened),
            })
        });
    }

    /// Publishes the end of the run.
    pub(super) fn publish_end(&self, report: &RunReport) {
        self.driven.runs.own.end(self.driven.lease.run());
        self.publish(report.ended_at, || {
            let failed = |task: &&CallReport| matches!(task.status, TaskStatus::Error | TaskStatus::Unknown);
            Some(FeedEvent::RunEnd {
                status: report.state,
                duration_ms: report.ended_at - report.started_at,
                calls: self.observer.progress().calls,
                failed_calls: Some(report.tasks.iter().filter(failed).count()),
                capability: report.capability_id.as_ref().map(ToString::to_string),
                error: report.error.as_ref().map(|error| EventError {
                    code: error.code.to_string(),
                    message: shortened(&error.message),
                }),
            })
        });
    }
}

fn outcome(report: &CallReport, node: Option<&str>) -> TaskOutcome {
    TaskOutcome {
        call: report.call,
        tool: report.tool.clone(),
        node_id: node.map(str::to_owned),
        capability: report.capability.clone(),
        status: match report.status {
            TaskStatus::Success => "ok",
            TaskStatus::Unknown => "in_doubt",
            TaskStatus::Error | TaskStatus::Cancelled => "error",
        },
        duration_ms: report.execution_time_ms.unwrap_or_default(),
        result_preview: report.result_preview.clone(),
        result_size: report.result_size,
        speculated: report.speculated,
        saved_ms: report.saved_ms,
    }
}
