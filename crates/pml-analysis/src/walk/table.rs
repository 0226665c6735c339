//! Function tables: an object literal that nothing changes, of which one function is called by key.

use oxc_ast::ast::{
    BinaryExpression, BinaryOperator, CallExpression, ComputedMemberExpression, Expression, ForInStatement,
    IdentifierReference, Program, SimpleAssignmentTarget, StaticMemberExpression, TSType,
    TSTypeParameterInstantiation, UnaryExpression, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, PathStep};
use rustc_hash::FxHashSet;

use super::Walker;
use super::input::WalkInput;
use super::syntax::plain;
use crate::marks::{FunctionTable, ProbePlace};
use crate::roots;
use crate::value::{AbstractValue, RecordKind, one_of};

/// Maximum number of keys; a longer table would be an unreadable decision.
const MOST_KEYS: usize = 32;

impl<'a> Walker<'a, '_> {
    /// Functions that `table[key](…)` can call, each with its key; `None` unless the table is certain.
    pub(super) fn function_table(
        &mut self,
        it: &'a CallExpression<'a>,
        member: &'a ComputedMemberExpression<'a>,
        object: &AbstractValue<'a>,
    ) -> Option<Vec<(String, AbstractValue<'a>)>> {
        let AbstractValue::Object(index) = object else { return None };
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
            // `default` names the outcome of an optional call without a matching key.
            (PathStep::Key(key), _) if key == "default" && it.optional => None,
            (PathStep::Key(key), value)
                if key != "__proto__" && !member.getter && self.is_table_entry(value) =>
            {
                Some((key.clone(), value.clone()))
            }
            _ => None,
        });
        functions.collect()
    }

    /// Whether a value can be an entry of a table: it must not change the table through `this`.
    fn is_table_entry(&self, value: &AbstractValue<'a>) -> bool {
        match value {
            AbstractValue::Function(closure) => !self.facts.function(closure.function).uses_this,
            AbstractValue::Tool(..) | AbstractValue::Capability(_) => true,
            _ => false,
        }
    }

    /// Whether a name refers to the same object with the same members wherever it is used.
    fn is_fixed_table(&self, table: &Expression<'a>) -> bool {
        let Expression::Identifier(name) = plain(table) else { return false };
        let Some(symbol) = roots::resolve_variable(self.input.scoping, name) else { return false };
        let WalkInput { program, scoping, .. } = self.input;
        let loose = self.facts.loose.get_or_init(|| loose(program, scoping));
        scoping.symbol_flags(symbol).is_const_variable() && !loose.contains(&symbol)
    }

    /// Calls one function of a table: a decision with an outcome for each key. Without a matching key nothing is
    /// called; an optional call then ends its chain.
    pub(super) fn call_from_table(
        &mut self,
        it: &'a CallExpression<'a>,
        member: &'a ComputedMemberExpression<'a>,
        key: &AbstractValue<'a>,
        table: &[(String, AbstractValue<'a>)],
    ) -> AbstractValue<'a> {
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

/// Variables with a use other than reading a member or listing member names: their objects may be changed.
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
    /// The member names of an object are listed.
    fn asked(&mut self, object: &Expression<'_>) {
        if !matches!(plain(object), Expression::Identifier(_)) {
            self.visit_expression(object);
        }
    }

    /// Whether the expression is the global `Object`.
    fn is_object(&self, expression: &Expression<'_>) -> bool {
        matches!(expression, Expression::Identifier(name)
            if name.name == "Object" && roots::resolve_variable(self.scoping, name).is_none())
    }

    /// A member of an object is changed.
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

    /// Types hold no values.
    fn visit_ts_type(&mut self, _: &TSType<'a>) {}

    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
}
