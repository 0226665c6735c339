//! Reading members, and the chains that may end early.

use std::rc::Rc;

use oxc_ast::ast::{ChainElement, ChainExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, Step};
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::{has_sources, longer};
use super::parts::flow::{FlowPath, OptionalChain};
use super::parts::graph::DraftKind;
use super::places::step_of;
use super::target::CallTarget;
use crate::analysis::{Code, Severity};
use crate::marks::ProbePlace;
use crate::value::{MemberPath, RecordKind, Value, one_of};
use crate::{schema, surface};

impl<'a> Walker<'a, '_> {
    /// A member whose name is known.
    pub(super) fn read_member(
        &mut self,
        object: Value<'a>,
        key: &Step,
        key_span: Span,
        span: Span,
    ) -> Value<'a> {
        let number;
        let name = match key {
            Step::Key(name) => name.as_str(),
            Step::Index(index) => {
                number = index.to_string();
                number.as_str()
            }
            Step::Any => return self.memory.part(&object, key),
        };
        if name == "constructor" && !self.has_own(&object, key) {
            self.permissions.opaque(span, "`constructor` gives access to functions made from text");
        }
        match object {
            Value::Mcp => Value::Server(name.into()),
            Value::Server(server) => Value::Tool(server, name.into()),
            Value::Capabilities => Value::Capability(name.into()),
            Value::Global(global) => self.global_member(&global, name, span),
            Value::Promise(inner, pending) => {
                if !matches!(name, "then" | "catch" | "finally") {
                    let promise = Value::Promise(Rc::clone(&inner), pending);
                    self.complain_if_unawaited(&promise, span, format_args!("is asked for `{name}`"));
                }
                self.read_member((*inner).clone(), key, key_span, span)
            }
            Value::Class(class) => self.static_member(&class, key),
            Value::Object(index) => self.object_member(index, key),
            _ if name == "length" => self.memory.computed(span, &[object]),
            Value::Result(node, path) => {
                self.check_field(node, &path, key, key_span);
                self.memory.part(&Value::Result(node, path), key)
            }
            Value::Parameter(path) => {
                let path = longer(&path, key);
                self.uses.note_read(&path);
                Value::Parameter(path)
            }
            Value::Function(_) | Value::Tool(..) | Value::Capability(_) => Value::Unknown,
            other => self.memory.part(&other, key),
        }
    }

    fn has_own(&self, object: &Value<'a>, key: &Step) -> bool {
        matches!(object, Value::Object(index) if self.memory.state.object(*index).field(key).is_some())
    }

    /// A member whose name is a value.
    pub(super) fn read_computed_member(
        &mut self,
        object: Value<'a>,
        key: &Value<'a>,
        key_span: Span,
        span: Span,
    ) -> Value<'a> {
        if let Some(step) = step_of(key) {
            return self.read_member(object, &step, key_span, span);
        }
        match object {
            Value::Mcp | Value::Server(_) | Value::Capabilities => {
                let what = format!("`{}` is decided when the program runs", self.input.text(span));
                self.permissions.opaque(span, what);
                Value::Unknown
            }
            Value::Global(name) if &*name == "globalThis" => {
                self.permissions
                    .opaque(span, "`globalThis` is read by a name that is known only when the program runs");
                Value::Unknown
            }
            object => {
                let part = match &object {
                    Value::Parameter(path) => {
                        self.uses.note_read(path);
                        self.memory.part(&object, &Step::Any)
                    }
                    _ => self.memory.part(&object, &Step::Any),
                };
                // A value looked up by another depends on both; a function stays what it is.
                if has_sources(key) && !self.memory.can_reach_tool(&part, 0) {
                    self.memory.computed(span, &[part, key.clone()])
                } else {
                    part
                }
            }
        }
    }

    /// A value looked up by another: in a table of constants it is made from the key, elsewhere the key only
    /// says which one.
    pub(super) fn look_up(&mut self, held: Value<'a>, key: &Value<'a>, span: Span) -> Value<'a> {
        let is_table = !has_sources(&self.memory.freeze(&held)) && !self.memory.can_reach_tool(&held, 0);
        if is_table && has_sources(key) {
            self.memory.computed(span, std::slice::from_ref(key))
        } else {
            held
        }
    }

    fn global_member(&mut self, global: &str, name: &str, span: Span) -> Value<'a> {
        if global != "globalThis" {
            return Value::Global(format!("{global}.{name}").into());
        }
        match name {
            "mcp" => Value::Mcp,
            "args" => Value::Parameter(MemberPath::default()),
            "capabilities" => Value::Capabilities,
            _ if surface::is_ambient(name) => {
                self.permissions.ambient(span, name);
                if matches!(name, "eval" | "Function") {
                    self.permissions.opaque(span, format!("`{name}` could run anything"));
                }
                Value::Unknown
            }
            _ => Value::Global(name.into()),
        }
    }

    fn object_member(&mut self, index: u32, key: &Step) -> Value<'a> {
        let record = Rc::clone(self.memory.state.object(index));
        if let Some(member) = record.field(key)
            && member.getter
            && let Value::Function(getter) = &member.value
        {
            return self.follow_call(
                &Rc::clone(getter),
                CallArguments::new(),
                None,
                Some(Value::Object(index)),
            );
        }
        if record.field(key).is_none()
            && let RecordKind::Instance(class) = &record.kind
        {
            let class = Rc::clone(class);
            if let Some(value) = self.inherited_member(&class, key, &Value::Object(index)) {
                return value;
            }
        }
        if matches!(key, Step::Key(name) if name == "length") && record.field(key).is_none() {
            return self.memory.computed(Span::default(), &[Value::Object(index)]);
        }
        self.memory.part(&Value::Object(index), key)
    }

    /// The result of a tool that says what it gives has no such member.
    fn check_field(&mut self, node: u32, path: &MemberPath, key: &Step, span: Span) {
        let DraftKind::Call(call) = &self.graph.nodes[node as usize].kind else { return };
        let CallTarget::Tool { server, name } = &call.target else { return };
        let Some(output) = self.input.catalogue.tool(server, name).and_then(|tool| tool.output()) else {
            return;
        };
        let mut steps = path.steps().to_vec();
        steps.push(key.clone());
        let Err(missing) = schema::follow(output, output, &steps) else { return };
        let has = if missing.closed { "has no" } else { "names no" };
        // What is missing further up has been said already.
        if missing.taken != path.steps().len() {
            return;
        }
        let (Step::Key(wanted), false) = (key, is_method_of_values(key)) else { return };
        let id = self.graph.nodes[node as usize].id;
        let known: Vec<&str> = missing.known.clone();
        let near = schema::nearest(wanted, known.iter().copied());
        let hint = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", list(&known)),
        };
        self.diagnostics.complain(
            Severity::Warning,
            Code::UnknownField,
            span,
            format!("the result of {id} (`{server}:{name}`) {has} `{wanted}`"),
            Some(hint),
        );
        self.diagnostics.last_is_about(id);
    }

    pub(super) fn chain_expression(&mut self, it: &'a ChainExpression<'a>) -> Value<'a> {
        self.flow.chains.push(OptionalChain { end: it.span.end, decisions: Vec::new() });
        let mark = self.memory.state.mark();
        let value = match &it.expression {
            ChainElement::CallExpression(call) => self.call(call),
            ChainElement::TSNonNullExpression(inner) => self.evaluate_raw(&inner.expression),
            ChainElement::StaticMemberExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                self.read_member(object, &Step::Key(it.property.name.to_string()), it.property.span, it.span)
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
                self.read_member(object, &Step::Key(format!("#{}", it.field.name)), it.field.span, it.span)
            }
        };
        let decisions = self.flow.chains.pop().expect("pushed above").decisions;
        if decisions.is_empty() {
            return value;
        }
        // What the guarded part changed may not have happened.
        let done = self.flow.end_arm(&mut self.memory.state, mark);
        let frontier = decisions.iter().map(|(node, ends)| (*node, Some(self.graph.outcome(ends)))).collect();
        let skipped = FlowPath::unchanged(frontier);
        self.flow.rejoin(&mut self.memory.state, done.into_iter().chain([skipped]));
        one_of([value, Value::Undefined])
    }

    /// `object?.…`: the rest of the chain happens only when there is something.
    pub(super) fn optional_link(
        &mut self,
        optional: bool,
        span: Span,
        object_expression: &'a Expression<'a>,
        object: Value<'a>,
    ) -> Value<'a> {
        if !optional {
            return object;
        }
        if let Value::Parameter(path) = &object
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

/// Members every value of the language has.
fn is_method_of_values(key: &Step) -> bool {
    matches!(key, Step::Key(name) if matches!(name.as_str(), "length" | "toString" | "valueOf" | "constructor" | "hasOwnProperty" | "then"))
}
