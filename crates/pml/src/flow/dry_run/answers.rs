//! Answers the calls that a dry run does not make: given by the caller, written before by the dry run itself, recorded,
//! or made up.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pml_mock::{GivenAnswer, GivenMocks, Mock, MockRequest};
use pml_model::json::raw;
use pml_model::structure::{Argument, EdgeBasis, EdgeLink, Structure};
use pml_model::{Digest, ToolId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::entities::ServerState;
use super::explore::{SteeredAnswer, Steering};
use super::recorded::{RecordedResults, UsedMock};
use crate::builtin::{FsChange, FsOverlay};
use crate::execute::dry_run::{AnswerSource, DryAnswer, DryCall, DryContent};
use crate::report::{DryRunMode, ValueOrigin};
use crate::runtime::run_blocking;
use crate::tools::DrySending;

/// 16 MiB: the results that further runs of the same request use again.
const KNOWN_BYTES: usize = 16 << 20;
/// The name of the built-in file server.
const FS: &str = "fs";

/// What a dry run knows of a tool.
#[derive(Debug, Clone, Default)]
pub(super) struct DryTool {
    /// Whether it changes nothing, by the operator's word.
    pub(super) effect_free: bool,
    /// Whether it may reach a network.
    pub(super) open_world: bool,
    /// Its output schema, declared or observed.
    pub(super) output_schema: Option<Value>,
}

/// What stays the same over all runs of one request.
pub(super) struct AnswerBasis {
    pub(super) mode: DryRunMode,
    pub(super) seed: u64,
    pub(super) given: GivenMocks,
    pub(super) tools: HashMap<ToolId, DryTool>,
    pub(super) structure: Structure,
    pub(super) recorded: RecordedResults,
    /// Results of calls that were really made in an earlier run of the same request, by tool and arguments.
    pub(super) known: Mutex<KnownReads>,
}

/// Results of calls that were really made, by tool and arguments.
#[derive(Default)]
pub(super) struct KnownReads {
    results: HashMap<(ToolId, Digest), Box<RawValue>>,
    bytes: usize,
}

impl KnownReads {
    /// Keeps a result, if there is room. Without it the tool is called again.
    pub(super) fn insert(&mut self, tool: &ToolId, arguments: &RawValue, result: &RawValue) {
        let key = (tool.clone(), Digest::of(arguments.get().as_bytes()));
        if self.bytes + result.get().len() <= KNOWN_BYTES && !self.results.contains_key(&key) {
            self.bytes += result.get().len();
            self.results.insert(key, result.to_owned());
        }
    }

    fn get(&self, tool: &ToolId, arguments: &RawValue) -> Option<Box<RawValue>> {
        if self.results.is_empty() {
            return None;
        }
        self.results.get(&(tool.clone(), Digest::of(arguments.get().as_bytes()))).cloned()
    }
}

impl AnswerBasis {
    /// The result of a tool, made up from what is known of it.
    pub(super) fn made_up(&self, tool: &ToolId, arguments: &Value) -> Mock {
        let output_schema = self.tools.get(tool).and_then(|known| known.output_schema.as_ref());
        pml_mock::generate(&MockRequest { tool, arguments, output_schema, seed: self.seed, variant: 0 })
    }
}

/// A change that a call would make.
#[derive(Debug, Clone)]
pub(super) enum DryEffect {
    File { call: u32, tool: ToolId, change: FsChange },
    Call { call: u32, tool: ToolId },
}

/// The answers of one run.
pub(super) struct Answers<'a> {
    basis: &'a AnswerBasis,
    steering: &'a Steering,
    files: Option<Arc<Mutex<FsOverlay>>>,
    /// Whether `fs` itself still answers as the overlay would: the program has not called anything that writes files.
    files_unwritten: bool,
    servers: ServerState,
    /// How often each tool was called.
    calls: HashMap<ToolId, usize>,
    pub(super) effects: Vec<DryEffect>,
    /// The recorded results that answered calls.
    pub(super) used: Vec<UsedMock>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(
        basis: &'a AnswerBasis,
        steering: &'a Steering,
        files: Option<FsOverlay>,
    ) -> Answers<'a> {
        Answers {
            basis,
            steering,
            files_unwritten: files.as_ref().is_some_and(FsOverlay::is_over_root),
            files: files.map(|files| Arc::new(Mutex::new(files))),
            servers: ServerState::default(),
            calls: HashMap::new(),
            effects: Vec::new(),
            used: Vec::new(),
        }
    }

    fn facts(&self, tool: &ToolId) -> DryTool {
        self.basis
            .tools
            .get(tool)
            .cloned()
            .unwrap_or_else(|| DryTool { open_world: true, ..DryTool::default() })
    }

    fn is_file_call(&self, call: &DryCall<'_>) -> bool {
        self.files.is_some() && call.tool.server.as_str() == FS
    }

    /// Whether the overlay must answer a call of `fs`. Before the first write the tool itself can: then the run that
    /// confirms the dry run finds the result, with the state of the files that were read. A write counts from when it
    /// is issued, because the overlay answers calls in that order.
    fn needs_overlay(&mut self, call: &DryCall<'_>) -> bool {
        if !self.is_file_call(call) {
            return false;
        }
        self.files_unwritten &= self.facts(call.tool).effect_free;
        !self.files_unwritten
    }

    fn given(&self, call: &DryCall<'_>, earlier: usize) -> Option<GivenAnswer> {
        self.basis.given.answer(call.tool, &arguments_of(call), earlier)
    }

    /// What the tool returned in an earlier run of the same request.
    fn known(&self, call: &DryCall<'_>) -> Option<Box<RawValue>> {
        self.basis.known.lock().get(call.tool, call.arguments)
    }

    fn note_effect(&mut self, call: u32, tool: &ToolId, effect_free: bool) {
        if !effect_free {
            self.effects.push(DryEffect::Call { call, tool: tool.clone() });
        }
    }

    async fn made_up(&mut self, call: &DryCall<'_>) -> DryAnswer {
        let (facts, arguments, number) = (self.facts(call.tool), arguments_of(call), call.number);
        let earlier = *self.calls.entry(call.tool.clone()).and_modify(|calls| *calls += 1).or_insert(1) - 1;
        let given = self.given(call, earlier);
        if given.is_none()
            && let Some(steered) = self.steering.answer(call.place.as_ref())
        {
            return match steered {
                SteeredAnswer::Failure => {
                    self.note_effect(number, call.tool, facts.effect_free);
                    let failure = format!("`{}` failed, for exploration", call.tool);
                    answer(DryContent::Failure(failure), ValueOrigin::Schema)
                }
                SteeredAnswer::Value(value) => {
                    self.dictated(call, &arguments, value, facts.effect_free).await;
                    answer(DryContent::Value(raw(value)), ValueOrigin::Schema)
                }
            };
        }
        match given {
            Some(GivenAnswer::Value(value)) => {
                self.dictated(call, &arguments, &value, facts.effect_free).await;
                return answer(DryContent::Value(raw(&value)), ValueOrigin::Given);
            }
            Some(GivenAnswer::Error(message)) => {
                self.note_effect(number, call.tool, facts.effect_free);
                return answer(DryContent::Failure(message), ValueOrigin::Given);
            }
            None => {}
        }
        if !self.servers.names_thing(call.tool, &arguments)
            && let Some(known) = self.known(call)
        {
            let unknown_state = self.servers.is_changed(call.tool);
            return DryAnswer { content: DryContent::Value(known), origin: ValueOrigin::Real, unknown_state };
        }
        if self.is_file_call(call) {
            if let Some(answer) = self.answer_of_files(call, number).await {
                return answer;
            }
        } else {
            self.note_effect(number, call.tool, facts.effect_free);
        }
        let (value, origin) = match self.basis.recorded.find(call.tool, &arguments).await {
            Some(recorded) => {
                self.used.push(UsedMock { call: number, id: recorded.id, status: recorded.status });
                (recorded.value, ValueOrigin::Recorded)
            }
            None => {
                let mock = self.basis.made_up(call.tool, &arguments);
                (mock.value, mock.origin)
            }
        };
        if facts.effect_free {
            return self.servers.read(call.tool, &arguments, value, origin, facts.output_schema.as_ref());
        }
        self.servers.note(call.tool, &arguments, &value, facts.effect_free);
        answer(DryContent::Value(raw(&value)), origin)
    }

    /// Takes note of a call that somebody dictated the result of. A file that it writes is written: what the tool says
    /// of it does not change that.
    async fn dictated(&mut self, call: &DryCall<'_>, arguments: &Value, result: &Value, effect_free: bool) {
        if !effect_free && self.is_file_call(call) {
            let known = self.effects.len();
            self.answer_of_files(call, call.number).await;
            if self.effects.len() > known {
                return self.servers.note_ids(result);
            }
        }
        self.note_effect(call.number, call.tool, effect_free);
        self.servers.note(call.tool, arguments, result, effect_free);
    }

    /// What the files of the dry run say; `None` if that is not known.
    async fn answer_of_files(&mut self, call: &DryCall<'_>, number: u32) -> Option<DryAnswer> {
        let files = Arc::clone(self.files.as_ref()?);
        let (tool, arguments) = (call.tool.tool.clone(), call.arguments.to_owned());
        let found = run_blocking(move || files.lock().call(&tool, &arguments)).await?;
        let effect =
            found.change.map(|change| DryEffect::File { call: number, tool: call.tool.clone(), change });
        self.effects.extend(effect);
        let real = found.is_real && self.facts(call.tool).effect_free;
        let origin = if real { ValueOrigin::Real } else { ValueOrigin::Overlay };
        Some(answer(DryContent::ToolResult(found.result), origin))
    }

    /// Whether an argument of the call comes from another tool, or may.
    fn is_derived(&self, call: &DryCall<'_>) -> bool {
        let Some(node) = call.node.filter(|_| !call.within_capability) else { return true };
        let structure = &self.basis.structure;
        let flows_in = structure.edges.iter().any(|edge| {
            edge.to == node && matches!(edge.link, EdgeLink::Provides { basis: EdgeBasis::Data, .. })
        });
        let Some(arguments) = structure.node(node).and_then(|node| node.kind.arguments()) else {
            return true;
        };
        let mut derived = flows_in;
        arguments.visit_leaves(&mut |leaf| {
            derived |= matches!(leaf, Argument::Reference { .. } | Argument::Item { .. });
        });
        derived
    }
}

impl AnswerSource for Answers<'_> {
    fn sending(&mut self, call: &DryCall<'_>) -> DrySending {
        let (facts, arguments) = (self.facts(call.tool), arguments_of(call));
        let earlier = self.calls.get(call.tool).copied().unwrap_or(0);
        let own = self.needs_overlay(call)
            || self.basis.mode == DryRunMode::Mocked
            || self.given(call, earlier).is_some()
            || self.known(call).is_some()
            || self.steering.steers(call.place.as_ref())
            // No server knows what only the dry run has created, or what was made up to stand for a thing.
            || self.servers.names_thing(call.tool, &arguments)
            || (self.servers.names_made_up(&arguments) && self.is_derived(call))
            // Neither what one tool returned nor what was made up must reach a network through another.
            || (facts.open_world && (self.is_derived(call) || self.steering.changes_arguments()));
        if own { DrySending::Nothing } else { DrySending::ReadOnly }
    }

    fn answer<'s>(&'s mut self, call: &'s DryCall<'_>) -> BoxFuture<'s, DryAnswer> {
        Box::pin(self.made_up(call))
    }

    fn is_stale(&self, tool: &ToolId) -> bool {
        self.servers.is_changed(tool)
    }
}

fn answer(content: DryContent, origin: ValueOrigin) -> DryAnswer {
    DryAnswer { content, origin, unknown_state: false }
}

fn arguments_of(call: &DryCall<'_>) -> Value {
    serde_json::from_str::<Value>(RawValue::get(call.arguments)).unwrap_or_default()
}
