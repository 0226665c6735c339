//! Functions kept in a table: an object literal that nothing changes, of which one is called by a key.

use oxc_ast::ast::{
    BinaryExpression, BinaryOperator, CallExpression, ComputedMemberExpression, Expression, ForInStatement,
    IdentifierReference, Program, SimpleAssignmentTarget, StaticMemberExpression, TSType,
    TSTypeParameterInstantiation, UnaryExpression, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, Step};
use rustc_hash::FxHashSet;

use super::Walker;
use super::input::WalkInput;
use super::syntax::plain;
use crate::marks::{FunctionTable, ProbePlace};
use crate::roots;
use crate::value::{RecordKind, Value, one_of};

/// A longer table is no decision anybody would look at.
const MOST_KEYS: usize = 32;

impl<'a> Walker<'a, '_> {
    /// The functions that `table[key](…)` chooses from, each with its key, if they are certain to be those.
    pub(super) fn function_table(
        &mut self,
        it: &'a CallExpression<'a>,
        member: &'a ComputedMemberExpression<'a>,
        object: &Value<'a>,
    ) -> Option<Vec<(String, Value<'a>)>> {
        let Value::Object(index) = object else { return None };
        let arguments = Span::new(member.span.end, it.span.end);
        if self.recording.is_quiet()
            || member.optional
            || self.reaches_tool(arguments)
            || !self.is_fixed_table(&member.object)
        {
            return None;
        }
        let record = self.memory.state.object(*index);
        let is_plain =
            matches!(record.kind, RecordKind::Object) && record.written.is_some() && record.is_closed();
        if !is_plain || !(2..=MOST_KEYS).contains(&record.fields.len()) {
            return None;
        }
        let functions = record.fields.iter().map(|member| match (&member.key, &member.value) {
            // What an optional call does without such a key has that name.
            (Step::Key(key), _) if key == "default" && it.optional => None,
            (Step::Key(key), value) if key != "__proto__" && !member.getter && self.is_table_entry(value) => {
                Some((key.clone(), value.clone()))
            }
            _ => None,
        });
        functions.collect()
    }

    /// What can be one of a table: it cannot change the table through `this`.
    fn is_table_entry(&self, value: &Value<'a>) -> bool {
        match value {
            Value::Function(closure) => !self.facts.function(closure.function).uses_this,
            Value::Tool(..) | Value::Capability(_) => true,
            _ => false,
        }
    }

    /// Whether a name stands for the same object with the same members wherever it is used.
    fn is_fixed_table(&self, table: &Expression<'a>) -> bool {
        let Expression::Identifier(name) = plain(table) else { return false };
        let Some(symbol) = roots::resolve_variable(self.input.scoping, name) else { return false };
        let WalkInput { program, scoping, .. } = self.input;
        let loose = self.facts.loose.get_or_init(|| loose(program, scoping));
        scoping.symbol_flags(symbol).is_const_variable() && !loose.contains(&symbol)
    }

    /// One function of a table is called: a decision with an outcome for each key. Where the table has no such key,
    /// there is nothing to call; an optional call then ends the chain it stands in.
    pub(super) fn call_from_table(
        &mut self,
        it: &'a CallExpression<'a>,
        member: &'a ComputedMemberExpression<'a>,
        key: &Value<'a>,
        table: &[(String, Value<'a>)],
    ) -> Value<'a> {
        self.deciding.decide(key, self.memory.budget());
        self.uses.note_text(key);
        let keys: Vec<String> = table.iter().map(|(key, _)| key.clone()).collect();
        self.probes
            .marks
            .tables
            .insert(member.span, FunctionTable { keys: keys.clone(), optional: it.optional });
        let (place, condition) = (ProbePlace::Switch, member.expression.span());
        let decision = self.decision_with(place, member.span, condition, DecisionForm::Switch, keys, "");
        if let (true, Some(decision), Some(chain)) = (it.optional, decision, self.flow.chains.last_mut()) {
            chain.decisions.push((decision, "default"));
        }
        let given = self.evaluate_arguments(&it.arguments);
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        let (mut ways, mut results) = (Vec::new(), Vec::new());
        for (key, function) in table {
            self.flow.frontier = self.graph.arm(decision, key, &before);
            results.extend(self.call_alternative(function, &given, it.span, results.len() as u32));
            ways.extend(self.flow.end_arm(&mut self.memory.state, mark));
        }
        self.flow.rejoin(&mut self.memory.state, ways);
        one_of(results)
    }
}

/// The variables that are used otherwise than to read a member or the names of members: what they hold may be changed.
fn loose(program: &Program<'_>, scoping: &Scoping) -> FxHashSet<SymbolId> {
    let mut names = ChangeVisitor { scoping, found: FxHashSet::default() };
    names.visit_program(program);
    names.found
}

struct ChangeVisitor<'s> {
    scoping: &'s Scoping,
    found: FxHashSet<SymbolId>,
}

impl ChangeVisitor<'_> {
    /// Something is asked for the names of its members.
    fn asked(&mut self, object: &Expression<'_>) {
        if !matches!(plain(object), Expression::Identifier(_)) {
            self.visit_expression(object);
        }
    }

    /// Whether it is the `Object` of the language.
    fn is_object(&self, expression: &Expression<'_>) -> bool {
        matches!(expression, Expression::Identifier(name)
            if name.name == "Object" && roots::resolve_variable(self.scoping, name).is_none())
    }

    /// The object of a member that is changed.
    fn changed(&mut self, object: &Expression<'_>) {
        if let Expression::Identifier(name) = plain(object) {
            self.found.extend(roots::resolve_variable(self.scoping, name));
        }
    }
}

impl<'a> Visit<'a> for ChangeVisitor<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.found.extend(roots::resolve_variable(self.scoping, it));
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        if !matches!(plain(&it.object), Expression::Identifier(_)) {
            self.visit_expression(&it.object);
        }
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if !matches!(plain(&it.object), Expression::Identifier(_)) {
            self.visit_expression(&it.object);
        }
        self.visit_expression(&it.expression);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.visit_for_statement_left(&it.left);
        self.asked(&it.right);
        self.visit_statement(&it.body);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.visit_expression(&it.left);
        match it.operator {
            BinaryOperator::In => self.asked(&it.right),
            _ => self.visit_expression(&it.right),
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        match (&it.callee, it.arguments.as_slice()) {
            (Expression::StaticMemberExpression(callee), [table])
                if callee.property.name == "keys" && self.is_object(&callee.object) =>
            {
                if let Some(table) = table.as_expression() {
                    self.asked(table);
                }
            }
            _ => walk::walk_call_expression(self, it),
        }
    }

    fn visit_simple_assignment_target(&mut self, it: &SimpleAssignmentTarget<'a>) {
        if let Some(member) = it.as_member_expression() {
            self.changed(member.object());
        }
        walk::walk_simple_assignment_target(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if let (UnaryOperator::Delete, Some(member)) = (it.operator, it.argument.as_member_expression()) {
            self.changed(member.object());
        }
        walk::walk_unary_expression(self, it);
    }

    /// Types hold nothing.
    fn visit_ts_type(&mut self, _: &TSType<'a>) {}

    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
}
