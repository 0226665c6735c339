//! Builds what a run that its client made itself leaves in memory, by the same code as for a run of this process.
//!
//! Nothing of it is believed beyond what the analysed program allows: status and numbers are computed here, tools and
//! nodes must be those of the program, and what the client says of results teaches no shapes.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::json::raw;
use pml_model::remote::{ClientCall, ClientTrace};
use pml_model::structure::{NodeId, NodeKind, Structure};
use pml_model::trace::TraceEdge;
use pml_model::{Digest, Principal, RunId, RunState, TraceId};
use pml_store::{IntentFit, RunMemory};
use serde_json::json;

use super::RunRegistry;
use super::remember::{self, FinishedRun, RecordedRun, RunOrigin};
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::report::{CallReport, ExecutedPath, PathDecision, RunFailure, RunReport, TaskStatus};
use crate::trace::{CallEnding, CallRef, Recorder, TraceContext, TurnTime};

/// A run that a client made itself.
pub(crate) struct ClientRun<'a> {
    pub(crate) principal: &'a Principal,
    /// The id that the client was told.
    pub(crate) workflow: &'a RunId,
    pub(crate) trace: &'a ClientTrace,
    /// When the trace arrived, in milliseconds since the Unix epoch.
    pub(crate) received_at: i64,
}

impl ClientRun<'_> {
    /// What the run of an analysed program leaves in memory; `None` if nothing is to be learned from it.
    ///
    /// # Errors
    /// The trace is not one of this program.
    pub(crate) async fn memory(
        &self,
        runs: &Arc<RunRegistry>,
        plan: &Plan,
    ) -> Result<Option<RunMemory>, Problem> {
        let nodes = self.nodes(plan)?;
        let recorder = self.recorder(&nodes);
        let report = self.report(&nodes);
        let known = remember::is_known(runs, self.principal, plan).await;
        let over = FinishedRun {
            run: self.workflow,
            principal: self.principal,
            plan,
            recorded: RecordedRun { recorder: &recorder, frames: &[], report: &report },
            layers: HashMap::new(),
            active_ms: self.trace.duration_ms as i64,
            approved: false,
            origin: RunOrigin::Client,
        };
        let Some(mut memory) = remember::build_memory(runs, &over, known) else { return Ok(None) };
        if memory.trace.status.evidence() != Some(true) {
            memory.procedure = None;
            if !known {
                memory.trace.capability_id = None;
            }
        }
        let body = &mut memory.trace.body;
        body.task_results.iter_mut().for_each(|task| task.altered = true);
        if body.omitted == 0 {
            add_edges(&mut body.edges, &self.trace.edges);
        }
        Ok(Some(*memory))
    }

    /// What is kept of a run of which nothing else is known: its trace, for people alone.
    pub(crate) fn memory_without_plan(&self, runs: &RunRegistry) -> RunMemory {
        let nodes = vec![None; self.trace.task_results.len()];
        let mut report = self.report(&nodes);
        report.path = ExecutedPath::default();
        let (structure, arguments) = (Structure::default(), raw(&json!({})));
        let mut trace = self.recorder(&nodes).build_trace(&TraceContext {
            run: self.workflow,
            principal: self.principal,
            session: "",
            intent: "",
            code_hash: "",
            structure: &structure,
            arguments: &arguments,
            tasks: HashMap::new(),
            digest: &|_: &str| Digest::of(b""),
            report: &report,
            active_ms: self.trace.duration_ms as i64,
            approved: false,
            sanitiser: &runs.knowledge.memory.sanitiser(),
        });
        // The id of the run may be that of a real one, whose own trace counts. Two people may send the same trace.
        let own = Digest::of(format!("{}\n{}", self.principal, self.trace.hash).as_bytes());
        trace.id = TraceId::from_text(&format!("trace_{}", &own.as_str()[..32]));
        trace.body.task_results.iter_mut().for_each(|task| task.altered = true);
        RunMemory {
            procedure: None,
            activates: false,
            tools: Vec::new(),
            values: serde_json::Map::new(),
            result: None,
            golden: false,
            intent: IntentFit::Unchecked,
            excluded_from_learning: true,
            nested: Vec::new(),
            trace: Box::new(trace),
        }
    }

    /// The node of each call. A call of a tool that the program calls at one place needs none.
    fn nodes(&self, plan: &Plan) -> Result<Vec<Option<NodeId>>, Problem> {
        let foreign = |text: String| Problem::new(ErrorCode::InvalidRequest, text);
        for node in &self.trace.executed_path {
            if plan.structure.node(*node).is_none() {
                return Err(foreign(format!("the program has no node `{node}`")));
            }
        }
        for decided in &self.trace.decisions {
            let decides = |kind: &NodeKind| matches!(kind, NodeKind::Decision { .. } | NodeKind::Try);
            if !plan.structure.node(decided.node_id).is_some_and(|node| decides(&node.kind)) {
                return Err(foreign(format!("the program decides nothing at `{}`", decided.node_id)));
            }
        }
        let node_of = |call: &ClientCall| {
            if !plan.tools.iter().any(|tool| tool.id.to_string() == call.tool) {
                return Err(foreign(format!("the program does not call `{}`", call.tool)));
            }
            let calls = |kind: &NodeKind| matches!(kind, NodeKind::Task { tool, .. } if *tool == call.tool);
            let mut places = plan.structure.nodes.iter().filter(|node| calls(&node.kind)).map(|node| node.id);
            match call.node_id {
                Some(node) if places.any(|place| place == node) => Ok(Some(node)),
                Some(node) => Err(foreign(format!("the program does not call `{}` at `{node}`", call.tool))),
                None => {
                    let first = places.next();
                    Ok(first.filter(|_| places.next().is_none()))
                }
            }
        };
        self.trace.task_results.iter().map(node_of).collect()
    }

    /// When each call began and ended, in milliseconds since the start of the run.
    fn times(&self) -> Vec<(f64, f64)> {
        let mut last = 0.0;
        let times = self.trace.task_results.iter().map(|call| {
            let began = call.started_ms.unwrap_or(last);
            last = began + call.duration_ms;
            (began, last)
        });
        times.collect()
    }

    fn started_at(&self) -> i64 {
        self.received_at.saturating_sub(self.trace.duration_ms as i64)
    }

    fn recorder(&self, nodes: &[Option<NodeId>]) -> Recorder {
        let times = self.times();
        // Ends come before beginnings of the same moment, and a call begins before it ends.
        let mut moments: Vec<(f64, u8, usize)> = Vec::with_capacity(times.len() * 2);
        for (place, (began, ended)) in times.iter().enumerate() {
            moments.push((*began, 1, place));
            moments.push((*ended, if ended > began { 0 } else { 2 }, place));
        }
        moments.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        let (start, mut recorder) = (self.started_at(), Recorder::default());
        let nothing = raw(&serde_json::Value::Null);
        for (turn, (at, kind, place)) in (0..).zip(moments) {
            let call = &self.trace.task_results[place];
            let which = CallRef::Call(u32::try_from(place + 1).unwrap_or(u32::MAX));
            let when = TurnTime { turn, at: start.saturating_add(at as i64) };
            if kind == 1 {
                recorder.record_call(which, nodes[place], &call.tool, call.args.get(), when);
                continue;
            }
            let ended = match (&call.result, call.success) {
                (Some(value), _) => CallEnding::Result { value, saved_ms: None, age_ms: None },
                (None, true) => CallEnding::Result { value: &nothing, saved_ms: None, age_ms: None },
                (None, false) => CallEnding::Error {
                    code: ErrorCode::ToolError.as_str(),
                    message: call.error.as_deref().unwrap_or("the client reported a failure"),
                    data: None,
                },
            };
            recorder.record_end(which, &ended, when);
        }
        recorder
    }

    fn report(&self, nodes: &[Option<NodeId>]) -> RunReport {
        let started_at = self.started_at();
        let calls = self.trace.task_results.iter().zip(nodes).zip(self.times()).zip(1..);
        let tasks = calls.map(|(((call, node), (began, _)), number)| CallReport {
            node_id: *node,
            status: if call.success { TaskStatus::Success } else { TaskStatus::Error },
            execution_time_ms: Some(call.duration_ms as i64),
            ..CallReport::issued(number, call.tool.clone(), started_at.saturating_add(began as i64))
        });
        let decisions = self.trace.decisions.iter().map(|decided| PathDecision {
            node: decided.node_id,
            outcome: decided.outcome.clone(),
            times: decided.times,
        });
        let error =
            self.trace.error.as_ref().map(|error| RunFailure::new(ErrorCode::ProgramError, error.clone()));
        RunReport {
            state: if self.trace.success { RunState::Done } else { RunState::Failed },
            error,
            tasks: tasks.collect(),
            path: ExecutedPath {
                nodes: self.trace.executed_path.clone(),
                decisions: decisions.collect(),
                loops: Vec::new(),
            },
            ..RunReport::empty(started_at, self.received_at)
        }
    }
}

/// Adds the edges that the client found: it may have seen values that it does not tell.
fn add_edges(known: &mut Vec<TraceEdge>, told: &[TraceEdge]) {
    for edge in told {
        if !known.contains(edge) {
            known.push(*edge);
        }
    }
}
