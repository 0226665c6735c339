//! Lowers values to arguments: what a call is given, and where each part comes from.
//!
//! A value shares its parts; an argument is a tree that contains each part as often as it occurs. A tree that would be
//! too large is cut: below that, a part is represented by its source text and its sources.

use std::cell::Cell;
use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{Argument, ArgumentField, PathStep};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::super::memory::{Phi, ProgramMemory};
use super::super::parts::graph::{DraftGraph, DraftKind, NodeDraft};
use crate::budget::{VisitedParts, WorkBudget};
use crate::value::{
    AbstractValue, DistinctValues, MemberPath, ObjectRecord, RecordKind, ValueList, key_name,
};

/// Maximum nesting of loop items that is followed.
const MAX_ITEMS_IN_ITEMS: u32 = 2;
/// Maximum number of parts of an argument, plus one for each byte of the program.
const MAX_PARTS: usize = 2_000;

/// Remaining size for an argument.
#[derive(Clone, Copy)]
enum PartRoom {
    /// The value is known to fit.
    Enough,
    /// This many parts are left.
    Parts(usize),
}

/// State of the search for the sources of a value.
#[derive(Default)]
struct SourceTrace<'a> {
    phis: FxHashSet<(u32, bool)>,
    seen: VisitedParts,
    /// Parts created during the search; kept alive, so that their addresses are not reused.
    made: Vec<AbstractValue<'a>>,
}

/// Maximum number of parts of a call's argument: anything written out once always fits.
pub(crate) fn max_parts(source: &str) -> usize {
    MAX_PARTS + source.len()
}

/// Context for lowering values to arguments.
pub(crate) struct Lowering<'w, 'a> {
    source: &'a str,
    nodes: &'w [NodeDraft<'a>],
    phis: &'w [Phi<'a>],
    pub(crate) budget: &'w WorkBudget,
    max_parts: usize,
    /// Current nesting depth of items of items.
    inside_items: Cell<u32>,
}

impl<'w, 'a> Lowering<'w, 'a> {
    pub(crate) fn new(
        source: &'a str,
        graph: &'w DraftGraph<'a>,
        memory: &'w ProgramMemory<'a, '_>,
    ) -> Lowering<'w, 'a> {
        Lowering {
            source,
            nodes: &graph.nodes,
            phis: &memory.phis,
            budget: memory.budget(),
            max_parts: max_parts(source),
            inside_items: Cell::new(0),
        }
    }

    fn text(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }

    pub(crate) fn arguments_of(&self, node: u32) -> Option<Argument> {
        if self.budget.is_spent_at(self.nodes[node as usize].span) {
            return None;
        }
        match &self.nodes[node as usize].kind {
            DraftKind::Call(call) => Some(match &call.arguments {
                AbstractValue::Undefined => Argument::empty_object(),
                value => self.lower(value, call.span),
            }),
            DraftKind::Operation { inputs, .. } => Some(Argument::Object {
                fields: inputs
                    .iter()
                    .map(|(name, value, span)| ArgumentField {
                        name: name.clone().into_owned(),
                        value: self.lower(value, *span),
                    })
                    .collect(),
                spreads: Vec::new(),
            }),
            _ => None,
        }
    }

    /// Lowers a value; `span` is where it was read.
    fn lower(&self, value: &AbstractValue<'a>, span: Span) -> Argument {
        self.lower_into(value, span, PartRoom::Parts(self.max_parts))
    }

    fn lower_into(&self, value: &AbstractValue<'a>, span: Span, room: PartRoom) -> Argument {
        self.budget.spend(4);
        if self.budget.is_spent() {
            return Argument::empty_object();
        }
        match value {
            AbstractValue::Literal(literal) => {
                self.budget.spend(value.text().map_or(0, str::len) / 16);
                Argument::Literal { value: literal.value.clone() }
            }
            AbstractValue::Result(..) | AbstractValue::Parameter(_) | AbstractValue::Item(..) => {
                self.leaf(value)
            }
            AbstractValue::Record(record) => {
                match self.room_inside(value, room, record.fields.len() + record.spreads.len()) {
                    Some(room) => self.lower_record(record, span, room),
                    None => self.expression(value, span),
                }
            }
            AbstractValue::Template(parts) => match self.room_inside(value, room, parts.len()) {
                Some(room) => {
                    let parts = parts.iter().map(|(part, at)| self.lower_into(part, *at, room));
                    Argument::Template { parts: parts.collect() }
                }
                None => self.expression(value, span),
            },
            AbstractValue::Computed(at, _) => {
                let at = if at.size() == 0 { span } else { *at };
                self.expression(value, at)
            }
            AbstractValue::Promise(inner, _) => self.lower_into(inner, span, room),
            AbstractValue::Phi(..) => {
                let sources = self.sources_of(value);
                match sources.as_slice() {
                    [one] if !self.may_be_literal(value) => self.leaf(one),
                    _ => self.expression(value, span),
                }
            }
            _ => self.expression(value, span),
        }
    }

    /// Remaining size for each part of `value`; `None` when there is not enough for all of them.
    fn room_inside(&self, value: &AbstractValue<'a>, room: PartRoom, parts: usize) -> Option<PartRoom> {
        let PartRoom::Parts(most) = room else { return Some(PartRoom::Enough) };
        let mut left = most;
        let fits = fits(value, &mut left);
        self.budget.spend(most - left);
        match most / parts.max(1) {
            _ if fits => Some(PartRoom::Enough),
            0 => None,
            each => Some(PartRoom::Parts(each)),
        }
    }

    fn leaf(&self, value: &AbstractValue<'a>) -> Argument {
        match value {
            AbstractValue::Result(node, path) => {
                Argument::Reference { node: self.nodes[*node as usize].id, path: path.steps().to_vec() }
            }
            AbstractValue::Parameter(path) => match path.steps().split_first() {
                Some((PathStep::Key(name), rest)) => {
                    Argument::Parameter { name: name.clone(), path: rest.to_vec() }
                }
                _ => Argument::Parameter { name: String::new(), path: path.steps().to_vec() },
            },
            AbstractValue::Item(of, node, path) => Argument::Item {
                of: Box::new(self.lower_inside(of, self.loop_over(*node))),
                r#loop: self.nodes[*node as usize].id,
                path: path.steps().to_vec(),
            },
            other => self.expression(other, Span::default()),
        }
    }

    /// Lowers the collection a loop iterates over. It may itself be made from items of that loop, endlessly: below the
    /// limit only the source text is kept.
    fn lower_inside(&self, of: &AbstractValue<'a>, over: Span) -> Argument {
        if self.inside_items.get() >= MAX_ITEMS_IN_ITEMS {
            let source = self.text(over).to_owned();
            self.budget.spend(source.len() / 16);
            return Argument::Expression { source, reads: Vec::new() };
        }
        self.inside_items.set(self.inside_items.get() + 1);
        let argument = self.lower(of, over);
        self.inside_items.set(self.inside_items.get() - 1);
        argument
    }

    fn loop_over(&self, node: u32) -> Span {
        match &self.nodes[node as usize].kind {
            DraftKind::Loop { over, .. } => *over,
            _ => self.nodes[node as usize].span,
        }
    }

    fn expression(&self, value: &AbstractValue<'a>, span: Span) -> Argument {
        let reads: Vec<Argument> = self
            .sources_of(value)
            .iter()
            .map(|source| {
                self.budget.spend(4);
                self.leaf(source)
            })
            .collect();
        let source = self.text(span).to_owned();
        self.budget.spend(source.len() / 16);
        Argument::Expression { source, reads }
    }

    fn lower_record(&self, record: &ObjectRecord<'a>, span: Span, room: PartRoom) -> Argument {
        let more: Vec<AbstractValue<'a>> = record
            .extra
            .iter()
            .chain(&record.names)
            .filter(|value| !matches!(value, AbstractValue::Phi(..)) || !self.sources_of(value).is_empty())
            .cloned()
            .collect();
        match record.kind {
            RecordKind::Array if more.is_empty() && record.spreads.is_empty() => {
                let items =
                    record.fields.iter().map(|member| self.lower_into(&member.value, member.span, room));
                Argument::Array { items: items.collect() }
            }
            RecordKind::Object => {
                let fields = record.fields.iter().map(|member| ArgumentField {
                    name: key_name(&member.key).into_owned(),
                    value: self.lower_into(&member.value, member.span, room),
                });
                let fields = fields.collect();
                let mut spreads: Vec<Argument> =
                    record.spreads.iter().map(|value| self.lower_into(value, span, room)).collect();
                if !more.is_empty() {
                    spreads.push(self.expression(&AbstractValue::OneOf(more.into()), span));
                }
                Argument::Object { fields, spreads }
            }
            _ => self.expression(&AbstractValue::Record(Rc::new(record.clone())), span),
        }
    }

    /// The results, parameters and items a value is made from.
    pub(crate) fn sources_of(&self, value: &AbstractValue<'a>) -> ValueList<'a> {
        let mut found = DistinctValues::default();
        self.each_source(value, None, &mut SourceTrace::default(), &mut |source, _| found.add(source));
        found.into_values()
    }

    /// Whether a variable may hold a literal of the program.
    fn may_be_literal(&self, value: &AbstractValue<'a>) -> bool {
        let AbstractValue::Phi(phi, _) = value else { return false };
        let phi = &self.phis[*phi as usize];
        let plain = |value: &AbstractValue<'a>| {
            matches!(
                value,
                AbstractValue::Literal(_)
                    | AbstractValue::Undefined
                    | AbstractValue::OneOf(_)
                    | AbstractValue::Phi(..)
                    | AbstractValue::Computed(..)
            )
        };
        plain(&phi.before) || phi.around.iter().any(plain)
    }

    /// Calls `visit` with every source and the loop through whose back edge it comes.
    fn each_source(
        &self,
        value: &AbstractValue<'a>,
        around: Option<u32>,
        tracing: &mut SourceTrace<'a>,
        visit: &mut dyn FnMut(&AbstractValue<'a>, Option<u32>),
    ) {
        self.budget.spend(1);
        if self.budget.is_spent() {
            return;
        }
        let how = around.map_or(0, |node| node as usize + 1);
        match value {
            AbstractValue::Result(..) | AbstractValue::Parameter(_) | AbstractValue::Item(..) => {
                visit(value, around);
            }
            AbstractValue::Record(record)
                if tracing.seen.is_first_visit(Rc::as_ptr(record) as usize, how) =>
            {
                let fields = record.fields.iter().map(|member| &member.value);
                let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
                fields.chain(rest).for_each(|value| self.each_source(value, around, tracing, visit));
            }
            AbstractValue::Template(parts) if tracing.seen.is_first_visit(parts.as_ptr() as usize, how) => {
                parts.iter().for_each(|(value, _)| self.each_source(value, around, tracing, visit));
            }
            AbstractValue::Computed(_, values) | AbstractValue::OneOf(values)
                if tracing.seen.is_first_visit(values.as_ptr() as usize, how) =>
            {
                values.iter().for_each(|value| self.each_source(value, around, tracing, visit));
            }
            AbstractValue::Promise(inner, _)
                if tracing.seen.is_first_visit(Rc::as_ptr(inner) as usize, how) =>
            {
                self.each_source(inner, around, tracing, visit);
            }
            AbstractValue::Phi(index, path) if tracing.phis.insert((*index, around.is_some())) => {
                let phi = &self.phis[*index as usize];
                let before = self.part_of(&phi.before, path.steps());
                self.each_source(&before, around, tracing, visit);
                tracing.made.push(before);
                for value in &phi.around {
                    let value = self.part_of(value, path.steps());
                    self.each_source(&value, around.or(phi.node), tracing, visit);
                    tracing.made.push(value);
                }
            }
            _ => {}
        }
    }

    /// Nodes whose results a value is made from, each with the loop through whose back edge it comes.
    pub(crate) fn providers(&self, value: &AbstractValue<'a>) -> SmallVec<[(u32, Option<u32>); 4]> {
        let mut found: SmallVec<[(u32, Option<u32>); 4]> = SmallVec::new();
        let mut waiting: SmallVec<[(AbstractValue<'a>, Option<u32>); 2]> = SmallVec::new();
        // The collection of items may be made from such items again.
        let mut gone_through: FxHashSet<(*const AbstractValue<'a>, bool)> = FxHashSet::default();
        let mut next = Some((value.clone(), None));
        while let Some((value, outer)) = next {
            self.each_source(
                &value,
                outer,
                &mut SourceTrace::default(),
                &mut |source, around| match source {
                    AbstractValue::Result(node, _) => {
                        self.budget.spend(found.len() / 32);
                        if !found.contains(&(*node, around)) {
                            found.push((*node, around));
                        }
                    }
                    AbstractValue::Item(of, _, _)
                        if gone_through.insert((Rc::as_ptr(of), around.is_some())) =>
                    {
                        waiting.push(((**of).clone(), around));
                    }
                    _ => {}
                },
            );
            next = waiting.pop();
        }
        found
    }

    /// The part of a frozen value at `path`.
    fn part_of(&self, value: &AbstractValue<'a>, path: &[PathStep]) -> AbstractValue<'a> {
        let Some((step, rest)) = path.split_first() else { return value.clone() };
        self.budget.spend(1);
        if self.budget.is_spent() {
            return AbstractValue::Unknown;
        }
        match value {
            AbstractValue::Result(node, at) => AbstractValue::Result(*node, extended(at, path)),
            AbstractValue::Parameter(at) => AbstractValue::Parameter(extended(at, path)),
            AbstractValue::Item(of, node, at) => {
                AbstractValue::Item(Rc::clone(of), *node, extended(at, path))
            }
            AbstractValue::Phi(phi, at) => AbstractValue::Phi(*phi, extended(at, path)),
            AbstractValue::Promise(inner, _) => self.part_of(inner, path),
            AbstractValue::OneOf(values) => {
                AbstractValue::OneOf(values.iter().map(|value| self.part_of(value, path)).collect())
            }
            AbstractValue::Record(record) => match record.field(step) {
                Some(member) => self.part_of(&member.value, rest),
                None => {
                    let mut found: Vec<AbstractValue<'a>> = Vec::new();
                    if matches!(step, PathStep::Any) {
                        found.extend(record.fields.iter().map(|member| self.part_of(&member.value, rest)));
                    }
                    found.extend(record.extra.iter().map(|value| self.part_of(value, rest)));
                    found.extend(record.spreads.iter().map(|value| self.part_of(value, path)));
                    AbstractValue::OneOf(found.into())
                }
            },
            other => other.clone(),
        }
    }
}

fn extended(at: &MemberPath, path: &[PathStep]) -> MemberPath {
    if at.steps().len() + path.len() > 64 {
        return at.clone();
    }
    path.iter().fold(at.clone(), |at, step| at.then(step.clone()))
}

/// Whether an argument made from `value` has at most `left` parts; subtracts those it has.
fn fits(value: &AbstractValue<'_>, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match value {
        AbstractValue::Record(record) => {
            record.fields.iter().all(|member| fits(&member.value, left))
                && record.spreads.iter().all(|value| fits(value, left))
        }
        AbstractValue::Template(parts) => parts.iter().all(|(part, _)| fits(part, left)),
        AbstractValue::Promise(inner, _) => fits(inner, left),
        _ => true,
    }
}
