//! Member access, and optional chains.

use std::rc::Rc;

use oxc_ast::ast::{ChainElement, ChainExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, PathStep};
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::{extend_path, has_sources};
use super::parts::flow::{FlowPath, OptionalChain};
use super::parts::graph::DraftKind;
use super::places::step_of;
use super::target::CallTarget;
use crate::analysis::{ComplaintCode, Severity};
use crate::marks::ProbePlace;
use crate::value::{AbstractValue, MemberPath, RecordKind, one_of};
use crate::{schema, surface};

impl<'a> Walker<'a, '_> {
    /// A member with a known name.
    pub(super) fn read_member(
        &mut self,
        object: AbstractValue<'a>,
        key: &PathStep,
        key_span: Span,
        span: Span,
    ) -> AbstractValue<'a> {
        let number;
        let name = match key {
            PathStep::Key(name) => name.as_str(),
            PathStep::Index(index) => {
                number = index.to_string();
                number.as_str()
            }
            PathStep::Any => return self.memory.part(&object, key),
        };
        if name == "constructor" && !self.has_own(&object, key) {
            self.permissions.note_opaque(span, "`constructor` gives access to functions made from text");
        }
        match object {
            AbstractValue::Mcp => AbstractValue::Server(name.into()),
            AbstractValue::Server(server) => AbstractValue::Tool(server, name.into()),
            AbstractValue::Capabilities => AbstractValue::Capability(name.into()),
            AbstractValue::Global(global) => self.global_member(&global, name, span),
            AbstractValue::Promise(inner, pending) => {
                if !matches!(name, "then" | "catch" | "finally") {
                    let promise = AbstractValue::Promise(Rc::clone(&inner), pending);
                    self.complain_if_unawaited(&promise, span, format_args!("is asked for `{name}`"));
                }
                self.read_member((*inner).clone(), key, key_span, span)
            }
            AbstractValue::Class(class) => self.static_member(&class, key),
            AbstractValue::Object(index) => self.object_member(index, key),
            _ if name == "length" => self.memory.computed(span, &[object]),
            AbstractValue::Result(node, path) => {
                self.check_field(node, &path, key, key_span);
                self.memory.part(&AbstractValue::Result(node, path), key)
            }
            AbstractValue::Parameter(path) => {
                let path = extend_path(&path, key);
                self.uses.note_read(&path);
                AbstractValue::Parameter(path)
            }
            AbstractValue::Function(_) | AbstractValue::Tool(..) | AbstractValue::Capability(_) => {
                AbstractValue::Unknown
            }
            other => self.memory.part(&other, key),
        }
    }

    fn has_own(&self, object: &AbstractValue<'a>, key: &PathStep) -> bool {
        matches!(object, AbstractValue::Object(index) if self.memory.state.object(*index).field(key).is_some())
    }

    /// A member with a computed name.
    pub(super) fn read_computed_member(
        &mut self,
        object: AbstractValue<'a>,
        key: &AbstractValue<'a>,
        key_span: Span,
        span: Span,
    ) -> AbstractValue<'a> {
        if let Some(step) = step_of(key) {
            return self.read_member(object, &step, key_span, span);
        }
        match object {
            AbstractValue::Mcp | AbstractValue::Server(_) | AbstractValue::Capabilities => {
                let what = format!("`{}` is decided when the program runs", self.input.text(span));
                self.permissions.note_opaque(span, what);
                AbstractValue::Unknown
            }
            AbstractValue::Global(name) if &*name == "globalThis" => {
                self.permissions.note_opaque(
                    span,
                    "`globalThis` is read by a name that is known only when the program runs",
                );
                AbstractValue::Unknown
            }
            object => {
                let part = match &object {
                    AbstractValue::Parameter(path) => {
                        self.uses.note_read(path);
                        self.memory.part(&object, &PathStep::Any)
                    }
                    _ => self.memory.part(&object, &PathStep::Any),
                };
                // A value looked up by another depends on both; a function keeps its identity.
                if has_sources(key) && !self.memory.can_reach_tool(&part, 0) {
                    self.memory.computed(span, &[part, key.clone()])
                } else {
                    part
                }
            }
        }
    }

    /// A value looked up by another: in a table of constants it is computed from the key, elsewhere the key only
    /// selects it.
    pub(super) fn look_up(
        &mut self,
        held: AbstractValue<'a>,
        key: &AbstractValue<'a>,
        span: Span,
    ) -> AbstractValue<'a> {
        let is_table = !has_sources(&self.memory.freeze(&held)) && !self.memory.can_reach_tool(&held, 0);
        if is_table && has_sources(key) {
            self.memory.computed(span, std::slice::from_ref(key))
        } else {
            held
        }
    }

    fn global_member(&mut self, global: &str, name: &str, span: Span) -> AbstractValue<'a> {
        if global != "globalThis" {
            return AbstractValue::Global(format!("{global}.{name}").into());
        }
        match name {
            "mcp" => AbstractValue::Mcp,
            "args" => AbstractValue::Parameter(MemberPath::default()),
            "capabilities" => AbstractValue::Capabilities,
            _ if surface::is_ambient(name) => {
                self.permissions.note_ambient(span, name);
                if matches!(name, "eval" | "Function") {
                    self.permissions.note_opaque(span, format!("`{name}` could run anything"));
                }
                AbstractValue::Unknown
            }
            _ => AbstractValue::Global(name.into()),
        }
    }

    fn object_member(&mut self, index: u32, key: &PathStep) -> AbstractValue<'a> {
        let record = Rc::clone(self.memory.state.object(index));
        if let Some(member) = record.field(key)
            && member.getter
            && let AbstractValue::Function(getter) = &member.value
        {
            return self.follow_call(
                &Rc::clone(getter),
                CallArguments::new(),
                None,
                Some(AbstractValue::Object(index)),
            );
        }
        if record.field(key).is_none()
            && let RecordKind::Instance(class) = &record.kind
        {
            let class = Rc::clone(class);
            if let Some(value) = self.inherited_member(&class, key, &AbstractValue::Object(index)) {
                return value;
            }
        }
        if matches!(key, PathStep::Key(name) if name == "length") && record.field(key).is_none() {
            return self.memory.computed(Span::default(), &[AbstractValue::Object(index)]);
        }
        self.memory.part(&AbstractValue::Object(index), key)
    }

    /// Complains when the declared result of a tool has no such member.
    fn check_field(&mut self, node: u32, path: &MemberPath, key: &PathStep, span: Span) {
        let DraftKind::Call(call) = &self.graph.nodes[node as usize].kind else { return };
        let CallTarget::Tool { server, name } = &call.target else { return };
        let Some(output) = self.input.catalogue.tool(server, name).and_then(|tool| tool.output_schema())
        else {
            return;
        };
        let mut steps = path.steps().to_vec();
        steps.push(key.clone());
        let Err(missing) = schema::follow(output, output, &steps) else { return };
        let has = if missing.closed { "has no" } else { "names no" };
        // A member missing further up has been reported already.
        if missing.taken != path.steps().len() {
            return;
        }
        let (PathStep::Key(wanted), false) = (key, is_method_of_values(key)) else { return };
        let id = self.graph.nodes[node as usize].id;
        let known: Vec<&str> = missing.known.clone();
        let near = schema::closest_names(wanted, known.iter().copied());
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", list(&known)),
        };
        self.diagnostics.complain(
            Severity::Warning,
            ComplaintCode::UnknownField,
            span,
            format!("the result of {id} (`{server}:{name}`) {has} `{wanted}`"),
            Some(hint),
        );
        self.diagnostics.last_is_about(id);
    }

    pub(super) fn chain_expression(&mut self, it: &'a ChainExpression<'a>) -> AbstractValue<'a> {
        self.flow.chains.push(OptionalChain { end: it.span.end, decisions: Vec::new() });
        let mark = self.memory.state.mark();
        let value = match &it.expression {
            ChainElement::CallExpression(call) => self.call(call),
            ChainElement::TSNonNullExpression(inner) => self.evaluate_raw(&inner.expression),
            ChainElement::StaticMemberExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                self.read_member(
                    object,
                    &PathStep::Key(it.property.name.to_string()),
                    it.property.span,
                    it.span,
                )
            }
            ChainElement::ComputedMemberExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                let key = self.evaluate_key(&object, &it.expression);
                self.read_computed_member(object, &key, it.expression.span(), it.span)
            }
            ChainElement::PrivateFieldExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                self.read_member(
                    object,
                    &PathStep::Key(format!("#{}", it.field.name)),
                    it.field.span,
                    it.span,
                )
            }
        };
        let decisions = self.flow.chains.pop().expect("pushed above").decisions;
        if decisions.is_empty() {
            return value;
        }
        // Changes in the guarded part may not have happened.
        let done = self.flow.end_arm(&mut self.memory.state, mark);
        let frontier = decisions.iter().map(|(node, ends)| (*node, Some(self.graph.outcome(ends)))).collect();
        let skipped = FlowPath::unchanged(frontier);
        self.flow.rejoin(&mut self.memory.state, done.into_iter().chain([skipped]));
        one_of([value, AbstractValue::Undefined])
    }

    /// `object?.…`: the rest of the chain runs only when the object is neither null nor undefined.
    pub(super) fn optional_link(
        &mut self,
        optional: bool,
        span: Span,
        object_expression: &'a Expression<'a>,
        object: AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        if !optional {
            return object;
        }
        if let AbstractValue::Parameter(path) = &object
            && !path.steps().is_empty()
        {
            self.uses.note_optional(path);
        }
        let Some(end) = self.flow.chains.last().map(|chain| chain.end) else { return object };
        if self.memory.leads_to_tool(&object)
            || self.reaches_tool(Span::new(object_expression.span().end, end))
        {
            let node = self.decision_with(
                ProbePlace::Optional,
                span,
                object_expression.span(),
                DecisionForm::Optional,
                Vec::new(),
                " != null",
            );
            if let Some(node) = node {
                self.flow.frontier = smallvec![(node, Some(self.graph.outcome("true")))];
                if let Some(chain) = self.flow.chains.last_mut() {
                    chain.decisions.push((node, "false"));
                }
            }
        }
        object
    }
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "no members".to_owned(),
        count if count > 8 => format!("{} and {} more", shown.join(", "), count - 8),
        _ => shown.join(", "),
    }
}

/// Members that every value of the language has.
fn is_method_of_values(key: &PathStep) -> bool {
    matches!(key, PathStep::Key(name) if matches!(name.as_str(), "length" | "toString" | "valueOf" | "constructor" | "hasOwnProperty" | "then"))
}
