//! Statements: order, branches, and early exits.

use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression, IfStatement, LabeledStatement,
    Statement, SwitchStatement, TryStatement, VariableDeclaration,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::DecisionForm;

use super::Walker;
use super::memory::has_sources;
use super::memory::state::{StateChanges, StateMark};
use super::parts::flow::{FlowPath, JumpExit, JumpTargetKind};
use super::parts::graph::{DraftKind, Frontier};
use crate::analysis::{ComplaintCode, Severity};
use crate::marks::ProbePlace;
use crate::surface;
use crate::value::{AbstractValue, FunctionCode, one_of};

impl<'a> Walker<'a, '_> {
    pub(super) fn statements(&mut self, list: &'a [Statement<'a>]) {
        self.hoist(list);
        for statement in list {
            if !self.flow.live && !declares_only(statement) {
                self.complain_of_unreachable(statement.span());
                self.walk_unreachable(|walk| walk.statements_from(list, statement));
                return;
            }
            self.statement(statement);
        }
    }

    /// From `first` to the end of `list`.
    fn statements_from(&mut self, list: &'a [Statement<'a>], first: &'a Statement<'a>) {
        let from = list.iter().position(|statement| std::ptr::eq(statement, first)).unwrap_or(list.len());
        for statement in &list[from..] {
            self.statement(statement);
        }
    }

    /// Walks unreachable code, so that its calls are known; it changes nothing.
    fn walk_unreachable(&mut self, visit: impl FnOnce(&mut Self)) {
        let mark = self.memory.state.mark();
        let frontier: Frontier = std::mem::take(&mut self.flow.frontier);
        self.flow.live = true;
        visit(self);
        self.memory.state.undo(mark);
        self.flow.live = false;
        self.flow.frontier = frontier;
    }

    fn complain_of_unreachable(&mut self, span: Span) {
        let first_line = Span::new(span.start, span.start + first_line_length(self.input.text(span)));
        self.diagnostics.complain(
            Severity::Warning,
            ComplaintCode::Unreachable,
            first_line,
            "this code is never reached",
            Some("remove it: the code before it always returns, throws, breaks or continues".to_owned()),
        );
    }

    fn hoist(&mut self, list: &'a [Statement<'a>]) {
        for statement in list {
            if let Statement::FunctionDeclaration(function) = statement
                && function.body.is_some()
                && let Some(symbol) = function.id.as_ref().and_then(|id| id.symbol_id.get())
            {
                let closure = self.make_closure(FunctionCode::Function(function));
                self.write_symbol(symbol, closure);
            }
        }
    }

    pub(super) fn statement(&mut self, statement: &'a Statement<'a>) {
        if self.is_spent_at(statement.span()) {
            return;
        }
        match statement {
            Statement::BlockStatement(block) => self.block(&block.body),
            Statement::BreakStatement(it) => {
                let label = it.label.as_ref().map(|label| label.name.as_str());
                self.flow.jump(&self.memory.state, label, JumpExit::Break, self.calls.frames.len());
            }
            Statement::ContinueStatement(it) => {
                let label = it.label.as_ref().map(|label| label.name.as_str());
                self.flow.jump(&self.memory.state, label, JumpExit::Continue, self.calls.frames.len());
            }
            Statement::ExpressionStatement(it) => {
                self.evaluate(&it.expression);
            }
            Statement::IfStatement(it) => self.if_statement(it),
            Statement::LabeledStatement(it) => self.labeled(it),
            Statement::ReturnStatement(it) => {
                let value =
                    it.argument.as_ref().map_or(AbstractValue::Undefined, |argument| self.evaluate(argument));
                self.return_value(value);
            }
            Statement::SwitchStatement(it) => self.switch(it),
            Statement::ThrowStatement(it) => {
                let thrown = self.evaluate(&it.argument);
                let thrown = self.memory.freeze(&thrown);
                if let Some(caught) = self.flow.thrown.last_mut() {
                    self.memory.budget().spend(self.flow.frontier.len());
                    caught.push((thrown, self.flow.frontier.clone()));
                } else {
                    self.note_end();
                }
                self.flow.stop();
            }
            Statement::TryStatement(it) => self.try_statement(it),
            Statement::DoWhileStatement(it) => self.do_while(it),
            Statement::WhileStatement(it) => self.while_loop(it),
            Statement::ForStatement(it) => self.for_loop(it),
            Statement::ForInStatement(it) => self.for_in(it),
            Statement::ForOfStatement(it) => self.for_of(it),
            Statement::WithStatement(it) => {
                self.evaluate(&it.object);
                self.statement(&it.body);
            }
            Statement::DebuggerStatement(_) | Statement::EmptyStatement(_) => {}
            Statement::ExportDefaultDeclaration(it) => {
                if let ExportDefaultDeclarationKind::FunctionDeclaration(function) = &it.declaration {
                    self.make_closure(FunctionCode::Function(function));
                }
            }
            other => {
                if let Some(declaration) = other.as_declaration() {
                    self.declaration(declaration);
                }
            }
        }
    }

    fn block(&mut self, body: &'a [Statement<'a>]) {
        let labels = std::mem::take(&mut self.flow.labels);
        if labels.is_empty() {
            return self.statements(body);
        }
        let mark = self.memory.state.mark();
        self.flow.enter_jump(labels, JumpTargetKind::Block, mark, self.calls.frames.len());
        self.statements(body);
        self.leave_block(mark);
    }

    fn leave_block(&mut self, mark: StateMark) {
        let jump = self.flow.jumps.pop().expect("entered by the caller");
        if jump.breaks.is_empty() {
            return;
        }
        let end = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.rejoin(&mut self.memory.state, end.into_iter().chain(jump.breaks));
    }

    fn labeled(&mut self, it: &'a LabeledStatement<'a>) {
        self.flow.labels.push(it.label.name.as_str());
        let is_target = matches!(
            it.body,
            Statement::BlockStatement(_)
                | Statement::LabeledStatement(_)
                | Statement::SwitchStatement(_)
                | Statement::ForStatement(_)
                | Statement::ForInStatement(_)
                | Statement::ForOfStatement(_)
                | Statement::WhileStatement(_)
                | Statement::DoWhileStatement(_)
        );
        if is_target {
            return self.statement(&it.body);
        }
        let labels = std::mem::take(&mut self.flow.labels);
        let mark = self.memory.state.mark();
        self.flow.enter_jump(labels, JumpTargetKind::Block, mark, self.calls.frames.len());
        self.statement(&it.body);
        self.leave_block(mark);
    }

    fn return_value(&mut self, value: AbstractValue<'a>) {
        if let Some(frame) = self.calls.frames.last() {
            let way = if self.calls.frames.len() > 1 {
                self.flow.path_since(&self.memory.state, frame.mark)
            } else {
                // Nothing continues where the program itself returns.
                FlowPath { changes: StateChanges::default(), frontier: self.flow.frontier.clone() }
            };
            let value = self.settle_return(value);
            if self.calls.frames.len() == 1 {
                self.note_end();
                if has_sources(&value) {
                    let returned = self.memory.freeze(&value);
                    self.graph.returned.push(returned);
                }
            }
            if let Some(frame) = self.calls.frames.last_mut() {
                frame.returns.push((value, way));
            }
        }
        self.flow.stop();
    }

    fn if_statement(&mut self, it: &'a IfStatement<'a>) {
        self.evaluate_test(&it.test);
        self.note_optional_test(&it.test, always_leaves(&it.consequent));
        let decision = self.decision(ProbePlace::Test, it.span, it.test.span(), DecisionForm::If);
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        self.flow.frontier = self.graph.arm(decision, "true", &before);
        self.statement(&it.consequent);
        let yes = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.frontier = self.graph.arm(decision, "false", &before);
        if let Some(alternate) = &it.alternate {
            self.statement(alternate);
        }
        let no = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.rejoin(&mut self.memory.state, yes.into_iter().chain(no));
    }

    /// The value of a condition.
    pub(super) fn evaluate_test(&mut self, test: &'a Expression<'a>) -> AbstractValue<'a> {
        let value = match self.evaluate_raw(test) {
            AbstractValue::Mcp
            | AbstractValue::Server(_)
            | AbstractValue::Capabilities
            | AbstractValue::Tool(..)
            | AbstractValue::Capability(_) => AbstractValue::Unknown,
            value => value,
        };
        self.complain_if_unawaited(&value, test.span(), "is tested");
        self.deciding.decide(&value, self.memory.budget());
        self.note_tested(&value);
        value
    }

    /// Keeps a tested value for the decision that follows.
    pub(super) fn note_tested(&mut self, value: &AbstractValue<'a>) {
        self.graph.tested = has_sources(value).then(|| self.memory.freeze(value));
    }

    fn switch(&mut self, it: &'a SwitchStatement<'a>) {
        let labels = std::mem::take(&mut self.flow.labels);
        let discriminant = self.evaluate(&it.discriminant);
        self.deciding.decide(&discriminant, self.memory.budget());
        let mut outcomes = Vec::new();
        for (index, case) in it.cases.iter().enumerate() {
            let Some(test) = &case.test else {
                outcomes.push("default".to_owned());
                continue;
            };
            let value = if index == 0 { self.evaluate(test) } else { self.evaluate_maybe(test) };
            self.deciding.decide(&value, self.memory.budget());
            self.uses.note_comparison(&discriminant, &value);
            outcomes.push(outcome(&value, index));
        }
        self.note_tested(&discriminant);
        let decision = self.decision_with(
            ProbePlace::Switch,
            it.span,
            it.discriminant.span(),
            DecisionForm::Switch,
            outcomes.clone(),
            "",
        );
        let mark = self.memory.state.mark();
        self.flow.enter_jump(labels, JumpTargetKind::Switch, mark, self.calls.frames.len());
        let before = self.flow.frontier.clone();
        // Functions of all cases are hoisted into each of them; they stay when the changes of a case are undone.
        for case in &it.cases {
            self.hoist(&case.consequent);
        }
        let hoisted = self.memory.state.changes(mark);
        let mut fallen: Option<FlowPath<'a>> = None;
        for (case, outcome) in it.cases.iter().zip(&outcomes) {
            self.memory.budget().spend(hoisted.variables.len());
            let matched =
                FlowPath { changes: hoisted.clone(), frontier: self.graph.arm(decision, outcome, &before) };
            self.flow.rejoin(&mut self.memory.state, std::iter::once(matched).chain(fallen.take()));
            for (index, statement) in case.consequent.iter().enumerate() {
                if !self.flow.live && !declares_only(statement) {
                    self.complain_of_unreachable(statement.span());
                    self.walk_unreachable(|walk| {
                        case.consequent[index..].iter().for_each(|statement| walk.statement(statement));
                    });
                    break;
                }
                self.statement(statement);
            }
            fallen = self.flow.end_arm(&mut self.memory.state, mark);
        }
        let mut ways: Vec<FlowPath<'a>> = fallen.into_iter().collect();
        if it.cases.iter().all(|case| case.test.is_some()) {
            let frontier = self.graph.arm(decision, "default", &before);
            ways.push(FlowPath::unchanged(frontier));
        }
        let jump = self.flow.jumps.pop().expect("entered above");
        self.flow.rejoin(&mut self.memory.state, ways.into_iter().chain(jump.breaks));
    }

    fn try_statement(&mut self, it: &'a TryStatement<'a>) {
        let node =
            (!self.recording.is_quiet()).then(|| self.node(ProbePlace::Catch, it.span, DraftKind::Try));
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        let returns = self.calls.frames.last().map_or(0, |frame| frame.returns.len());
        self.flow.thrown.push(Vec::new());
        self.statements(&it.block.body);
        let mut uncaught = self.flow.thrown.pop().unwrap_or_default();
        let thrown = self.memory.state.all_values_since(mark);
        let tried = self.flow.end_arm(&mut self.memory.state, mark);
        let mut ways: Vec<FlowPath<'a>> = tried.into_iter().collect();
        if let Some(handler) = &it.handler {
            let (errors, from): (Vec<_>, Vec<_>) = std::mem::take(&mut uncaught).into_iter().unzip();
            let mut frontier = self.graph.arm(node, "error", &before);
            frontier
                .extend(from.into_iter().flatten().filter(|point| node.is_none_or(|node| point.0 != node)));
            self.flow.rejoin(&mut self.memory.state, [FlowPath { changes: thrown.clone(), frontier }]);
            if let Some(parameter) = &handler.param {
                self.bind(&parameter.pattern, one_of(errors));
            }
            // What the handler throws passes through the `finally` of its own statement.
            if it.finalizer.is_some() {
                self.flow.thrown.push(Vec::new());
            }
            self.statements(&handler.body.body);
            if it.finalizer.is_some() {
                uncaught = self.flow.thrown.pop().unwrap_or_default();
            }
            ways.extend(self.flow.end_arm(&mut self.memory.state, mark));
        }
        let Some(finalizer) = &it.finalizer else {
            return self.flow.rejoin(&mut self.memory.state, ways);
        };
        let goes_on = !ways.is_empty();
        let mut left: Frontier = self
            .calls
            .frames
            .last()
            .map(|frame| frame.returns[returns..].iter().flat_map(|(_, way)| way.frontier.clone()).collect())
            .unwrap_or_default();
        left.extend(uncaught.iter().flat_map(|(_, from)| from.clone()));
        self.memory.budget().spend(left.len());
        if !goes_on {
            let frontier = if left.is_empty() { before } else { Frontier::new() };
            ways.push(FlowPath { changes: thrown, frontier });
        }
        self.flow.rejoin(&mut self.memory.state, ways);
        for point in left {
            if !self.flow.frontier.contains(&point) {
                self.flow.frontier.push(point);
            }
        }
        self.statements(&finalizer.body);
        let end = self.flow.frontier.clone();
        if let Some(frame) = self.calls.frames.last_mut() {
            frame.returns[returns..].iter_mut().for_each(|(_, way)| way.frontier = end.clone());
        }
        if let Some(outer) = self.flow.thrown.last_mut() {
            outer.extend(uncaught.into_iter().map(|(error, _)| (error, end.clone())));
        }
        if !goes_on {
            self.flow.stop();
        }
    }

    /// An expression that is evaluated only on some paths.
    pub(super) fn evaluate_maybe(&mut self, expression: &'a Expression<'a>) -> AbstractValue<'a> {
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        let value = self.evaluate(expression);
        self.flow.end_optional_arm(&mut self.memory.state, mark, before);
        value
    }

    pub(super) fn declaration(&mut self, declaration: &'a Declaration<'a>) {
        match declaration {
            Declaration::VariableDeclaration(it) => self.variables(it),
            Declaration::ClassDeclaration(class) => {
                let value = self.define_class(class);
                if let Some(symbol) = class.id.as_ref().and_then(|id| id.symbol_id.get()) {
                    self.write_symbol(symbol, value);
                }
            }
            Declaration::TSEnumDeclaration(it) if !it.declare => {
                let value = self.enumeration(it);
                if let Some(symbol) = it.id.symbol_id.get() {
                    self.write_symbol(symbol, value);
                }
            }
            Declaration::TSNamespaceDeclaration(it) => self.namespace(it),
            _ => {}
        }
    }

    /// `declare const mcp: Tools` declares a free name; it creates no variable.
    fn ambient_declaration(&mut self, it: &'a VariableDeclaration<'a>) {
        for declarator in &it.declarations {
            if let BindingPattern::BindingIdentifier(name) = &declarator.id
                && let Some(symbol) = name.symbol_id.get()
            {
                let known = surface::is_global(&name.name);
                let value = if known {
                    self.read_free_name(name.name.as_str(), name.span)
                } else {
                    AbstractValue::Unknown
                };
                self.write_symbol(symbol, value);
            }
        }
    }

    pub(super) fn variables(&mut self, it: &'a VariableDeclaration<'a>) {
        if it.declare {
            return self.ambient_declaration(it);
        }
        for declarator in &it.declarations {
            match &declarator.init {
                Some(init) => {
                    let value = self.evaluate_raw(init);
                    if let Some(annotation) = &declarator.type_annotation {
                        self.note_optional_members(&value, &annotation.type_annotation);
                    }
                    self.bind_declared(&declarator.id, value, init.span());
                }
                None if it.kind.is_var() => {}
                None => self.bind(&declarator.id, AbstractValue::Undefined),
            }
        }
    }
}

/// Whether the statement only declares something, so that being unreachable is harmless.
fn declares_only(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::FunctionDeclaration(_)
        | Statement::EmptyStatement(_)
        | Statement::TSTypeAliasDeclaration(_)
        | Statement::TSInterfaceDeclaration(_) => true,
        Statement::VariableDeclaration(it) => {
            it.declarations.iter().all(|declarator| declarator.init.is_none())
        }
        // A `break` after `return` in a switch is habit, not a mistake.
        Statement::BreakStatement(_) => true,
        _ => false,
    }
}

/// `throw`, or a block that ends with one: only the other branch continues.
fn always_leaves(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ThrowStatement(_) => true,
        Statement::BlockStatement(block) => block.body.last().is_some_and(always_leaves),
        _ => false,
    }
}

fn first_line_length(text: &str) -> u32 {
    text.find(['\n', '\r']).unwrap_or(text.len()) as u32
}

/// Name of a case outcome: its value, or its position when the value is known only at run time. Never its source text,
/// which is not part of a program's identity.
fn outcome(test: &AbstractValue<'_>, index: usize) -> String {
    match test {
        AbstractValue::Literal(literal) => match &literal.value {
            serde_json::Value::String(text) => format!("case:{text}"),
            other => format!("case:{other}"),
        },
        _ => format!("case:#{}", index + 1),
    }
}
