//! Survey of the syntax tree before the walk: which functions there are, which of them can reach a tool, and which
//! variables are written where.

use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, BindingIdentifier, BindingPattern, CallExpression, Class,
    Expression, Function, IdentifierReference, MethodDefinition, NewExpression, ObjectExpression, Super,
    ThisExpression, VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{ScopeFlags, ScopeId, Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::Cell;

use crate::operations;
use crate::roots::{self, ToolRoots};

/// Index of a function; 0 is the program itself.
pub(crate) type FunctionIndex = u32;

/// Facts about a function before it is followed.
#[derive(Debug, Default)]
pub(crate) struct FunctionInfo {
    pub(crate) span: Span,
    pub(crate) parent: FunctionIndex,
    pub(crate) name: Option<String>,
    /// Whether it, or a function it mentions, can reach a tool.
    pub(crate) effectful: bool,
    /// Whether it can call itself, directly or indirectly.
    pub(crate) recursive: bool,
    /// Number of its recursion cycle; functions with the same number call each other.
    pub(crate) cycle: Option<u32>,
    /// Variables of enclosing functions that it mentions.
    pub(crate) captures: Vec<SymbolId>,
    roots: bool,
    /// Whether it uses `this` or `super`.
    pub(crate) uses_this: bool,
    /// Whether it changes variables or objects of enclosing functions.
    pub(crate) changes_outside: bool,
    /// Whether it is a static member of a class.
    is_static: bool,
}

/// Result of the survey.
#[derive(Debug, Default)]
pub(crate) struct ProgramSurvey {
    pub(crate) functions: Vec<FunctionInfo>,
    pub(crate) by_span: FxHashMap<Span, FunctionIndex>,
    /// The function that declares each variable.
    pub(crate) home: Vec<FunctionIndex>,
    /// Variables written by another function than the one that declares them.
    pub(crate) shared: Vec<SymbolId>,
    /// Outer variables that a function writes, or whose objects it changes.
    pub(crate) changed: Vec<(SymbolId, FunctionIndex)>,
    writes: Vec<(u32, SymbolId)>,
    effects: Vec<u32>,
    mentions: Vec<(u32, SymbolMention)>,
}

/// A mention of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolMention {
    Variable(SymbolId),
    /// `args`
    Arguments,
    /// `mcp` and the other roots
    Root,
}

impl ProgramSurvey {
    /// Surveys `program`. `None` when the call graph is too large.
    pub(crate) fn of(
        program: &oxc_ast::ast::Program<'_>,
        scoping: &Scoping,
        roots: &ToolRoots,
    ) -> Option<ProgramSurvey> {
        let mut look = SurveyVisitor {
            scoping,
            survey: ProgramSurvey {
                functions: vec![FunctionInfo { span: program.span, ..FunctionInfo::default() }],
                home: vec![0; scoping.symbols_len()],
                mentions: Vec::with_capacity(scoping.references_len()),
                ..ProgramSurvey::default()
            },
            current: 0,
            scope_function: vec![0; scoping.scopes_len()],
            callables: FxHashMap::default(),
            writes_in: Vec::new(),
            changes_in: Vec::new(),
            groups: Vec::new(),
            reads_in: Vec::with_capacity(scoping.references_len()),
            made_in: Vec::new(),
            ways: 0,
        };
        for symbol in roots.aliases.keys() {
            look.callables.entry(*symbol).or_default().root = true;
        }
        look.visit_program(program);
        look.survey.writes.sort_unstable();
        look.survey.mentions.sort_unstable_by_key(|(at, _)| *at);
        if look.ways > MAX_WAYS {
            return None;
        }
        look.finish()
    }

    pub(crate) fn function(&self, function: FunctionIndex) -> &FunctionInfo {
        &self.functions[function as usize]
    }

    /// Variables written within `span`, with repetitions.
    pub(crate) fn writes_within(&self, span: Span) -> impl Iterator<Item = SymbolId> {
        let from = self.writes.partition_point(|(at, _)| *at < span.start);
        self.writes[from..].iter().take_while(move |(at, _)| *at < span.end).map(|(_, symbol)| *symbol)
    }

    /// Distinct names within the byte range, in order.
    pub(crate) fn distinct_mentions(&self, start: u32, end: u32) -> SmallVec<[SymbolMention; 8]> {
        let mut found: SmallVec<[SymbolMention; 8]> = SmallVec::new();
        for (_, mention) in self.mentions_between(start, end) {
            if !found.contains(mention) {
                found.push(*mention);
            }
        }
        found
    }

    /// All names within the byte range, each with its offset.
    pub(crate) fn mentions_between(&self, start: u32, end: u32) -> &[(u32, SymbolMention)] {
        let from = self.mentions.partition_point(|(at, _)| *at < start);
        let until = self.mentions.partition_point(|(at, _)| *at < end);
        &self.mentions[from..until.max(from)]
    }

    /// Whether something that can reach a tool is mentioned within the byte range.
    pub(crate) fn reaches_tool(&self, start: u32, end: u32) -> bool {
        let from = self.effects.partition_point(|at| *at < start);
        self.effects.get(from).is_some_and(|at| *at < end)
    }
}

/// Functions that a variable can hold.
#[derive(Debug, Default)]
struct Callable {
    functions: Vec<FunctionIndex>,
    of: Vec<SymbolId>,
    root: bool,
}

struct SurveyVisitor<'s> {
    scoping: &'s Scoping,
    survey: ProgramSurvey,
    current: FunctionIndex,
    scope_function: Vec<FunctionIndex>,
    callables: FxHashMap<SymbolId, Callable>,
    writes_in: Vec<(SymbolId, FunctionIndex)>,
    changes_in: Vec<(SymbolId, FunctionIndex)>,
    /// Functions of one class or object literal, and the variable of its base class.
    groups: Vec<(std::ops::Range<FunctionIndex>, Option<SymbolId>)>,
    /// Which function mentions which variable; without duplicates when the survey is complete.
    reads_in: Vec<(SymbolId, FunctionIndex)>,
    /// Which function instantiates which class; when the survey is complete, only those that mention it in no other
    /// way.
    made_in: Vec<(SymbolId, FunctionIndex)>,
    /// Number of possible callees of variables and functions so far.
    ways: usize,
}

/// Maximum number of possible callees; a program with more is refused: every name of a long pattern could be any of a
/// thousand functions.
const MAX_WAYS: usize = 1_000_000;

/// Free names through which tools are reached.
fn is_root(name: &str) -> bool {
    matches!(name, "mcp" | "capabilities" | "globalThis")
}

impl SurveyVisitor<'_> {
    fn function(&mut self, span: Span, name: Option<String>, inside: impl FnOnce(&mut Self)) {
        let index = self.survey.functions.len() as FunctionIndex;
        self.survey.functions.push(FunctionInfo {
            span,
            parent: self.current,
            name,
            ..FunctionInfo::default()
        });
        self.survey.by_span.insert(span, index);
        let outer = std::mem::replace(&mut self.current, index);
        inside(self);
        self.current = outer;
    }

    /// Marks the function that `this` belongs to, and the arrow functions on the way.
    fn this_used(&mut self) {
        self.survey.functions[self.current as usize].uses_this = true;
    }

    fn bind(&mut self, pattern: &BindingPattern<'_>, init: &Expression<'_>, from: FunctionIndex) {
        let until = self.survey.functions.len() as FunctionIndex;
        let (functions, of) = match init.without_parentheses() {
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_)
            | Expression::ObjectExpression(_)
            | Expression::ArrayExpression(_) => (from..until, None),
            Expression::NewExpression(new) => (0..0, self.symbol_of(&new.callee)),
            Expression::CallExpression(call) => (from..until, self.symbol_of(&call.callee)),
            other => (0..0, self.symbol_of(other)),
        };
        if functions.is_empty() && of.is_none() {
            return;
        }
        let mut symbols = Vec::new();
        bound(pattern, &mut symbols);
        for symbol in symbols {
            self.ways = self.ways.saturating_add(functions.len() + usize::from(of.is_some()));
            if self.ways > MAX_WAYS {
                return;
            }
            let callable = self.callables.entry(symbol).or_default();
            callable.functions.extend(functions.clone());
            callable.of.extend(of);
        }
    }

    /// The variable at the start of a member chain.
    fn symbol_of(&self, expression: &Expression<'_>) -> Option<SymbolId> {
        let mut at = expression;
        loop {
            at = match at {
                Expression::Identifier(name) => {
                    return roots::resolve_variable(self.scoping, name);
                }
                Expression::StaticMemberExpression(member) => &member.object,
                Expression::ComputedMemberExpression(member) => &member.object,
                Expression::TSNonNullExpression(inner) => &inner.expression,
                Expression::TSAsExpression(inner) => &inner.expression,
                _ => return None,
            };
        }
    }

    fn finish(mut self) -> Option<ProgramSurvey> {
        for symbol in self.scoping.symbol_ids() {
            let scope = self.scoping.symbol_scope_id(symbol);
            self.survey.home[symbol.index()] = self.scope_function[scope.index()];
        }
        let home = &self.survey.home;
        let mut shared: Vec<SymbolId> =
            self.writes_in.iter().filter(|(s, f)| home[s.index()] != *f).map(|(s, _)| *s).collect();
        shared.sort_unstable();
        shared.dedup();
        self.survey.shared = shared;
        let changes = self.writes_in.iter().chain(&self.changes_in).copied();
        self.survey.changed =
            changes.filter(|(symbol, function)| home[symbol.index()] != *function).collect();
        self.reads_in.sort_unstable();
        self.only_made();
        self.reads_in.dedup();
        self.changes();
        self.captures();
        let effectful = self.effectful_symbols();
        self.survey.effects = self
            .survey
            .mentions
            .iter()
            .filter(|(_, mention)| match mention {
                SymbolMention::Variable(symbol) => effectful.contains(symbol),
                SymbolMention::Root => true,
                SymbolMention::Arguments => false,
            })
            .map(|(at, _)| *at)
            .collect();
        self.recursion()?;
        Some(self.survey)
    }

    fn only_made(&mut self) {
        self.made_in.sort_unstable();
        let count = |pairs: &[_], pair| {
            pairs.partition_point(|other| *other <= pair) - pairs.partition_point(|other| *other < pair)
        };
        let (made, reads) = (std::mem::take(&mut self.made_in), &self.reads_in);
        self.made_in =
            made.iter().copied().filter(|pair| count(&made, *pair) == count(reads, *pair)).collect();
    }

    fn changes(&mut self) {
        for (symbol, function) in self.writes_in.iter().chain(&self.changes_in) {
            let home = self.survey.home[symbol.index()];
            let mut at = *function;
            while at != home && at != 0 {
                self.survey.functions[at as usize].changes_outside = true;
                at = self.survey.functions[at as usize].parent;
            }
        }
    }

    fn captures(&mut self) {
        for &(symbol, function) in &self.reads_in {
            let home = self.survey.home[symbol.index()];
            let mut at = function;
            while at != home && at != 0 {
                self.survey.functions[at as usize].captures.push(symbol);
                at = self.survey.functions[at as usize].parent;
            }
        }
        for function in &mut self.survey.functions {
            // A function and one inside it may mention the same variable.
            function.captures.sort_unstable();
            function.captures.dedup();
        }
    }

    /// Marks the functions that can reach a tool. Returns the variables that can.
    fn effectful_symbols(&mut self) -> FxHashSet<SymbolId> {
        let mentioned_by = PairIndex(std::mem::take(&mut self.reads_in));
        let callables = || self.callables.iter();
        let callable_as = PairIndex::new(
            callables().flat_map(|(symbol, it)| it.functions.iter().map(|function| (*function, *symbol))),
        );
        let follows =
            PairIndex::new(callables().flat_map(|(symbol, it)| it.of.iter().map(|of| (*of, *symbol))));
        let mut symbols: Vec<SymbolId> =
            callables().filter(|(_, it)| it.root).map(|(symbol, _)| *symbol).collect();
        let mut functions: Vec<FunctionIndex> = (0..self.survey.functions.len() as FunctionIndex)
            .filter(|index| self.survey.functions[*index as usize].roots)
            .collect();
        let mut found: FxHashSet<SymbolId> = FxHashSet::default();
        // Methods call each other through `this`: one that reaches a tool taints all that use `this`.
        let groups = || self.groups.iter().enumerate();
        let member_of = PairIndex::new(
            groups().flat_map(|(index, (members, _))| members.clone().map(move |member| (member, index))),
        );
        let child_of = PairIndex::new(groups().filter_map(|(index, (_, parent))| Some(((*parent)?, index))));
        let uses_this: Vec<Vec<FunctionIndex>> = self
            .groups
            .iter()
            .map(|(members, _)| {
                members.clone().filter(|member| self.survey.functions[*member as usize].uses_this).collect()
            })
            .collect();
        let mut spread = vec![false; self.groups.len()];
        loop {
            if let Some(function) = functions.pop() {
                let info = &mut self.survey.functions[function as usize];
                if std::mem::replace(&mut info.effectful, true) {
                    continue;
                }
                for group in member_of.get(function) {
                    if !std::mem::replace(&mut spread[group], true) {
                        functions.extend(&uses_this[group]);
                    }
                }
                let info = &self.survey.functions[function as usize];
                if function != 0 {
                    functions.push(info.parent);
                }
                symbols.extend(callable_as.get(function));
            } else if let Some(symbol) = symbols.pop() {
                if found.insert(symbol) {
                    for group in child_of.get(symbol) {
                        functions.extend(&uses_this[group]);
                    }
                    functions.extend(mentioned_by.get(symbol));
                    symbols.extend(follows.get(symbol));
                }
            } else {
                self.reads_in = mentioned_by.0;
                return found;
            }
        }
    }

    /// Marks recursive functions: those on a cycle of mentions.
    fn recursion(&mut self) -> Option<()> {
        let mentioned = self.reads_in.iter().filter_map(|(symbol, _)| self.callables.get(symbol));
        if mentioned.map(|it| it.functions.len()).sum::<usize>() > MAX_WAYS {
            return None;
        }
        let functions = &self.survey.functions;
        // A function that only instantiates a class does not call its static members.
        let pairs = self.reads_in.iter().flat_map(|pair| {
            let only_makes = self.made_in.binary_search(pair).is_ok();
            let called = self.callables.get(&pair.0).into_iter().flat_map(|it| &it.functions).copied();
            let called =
                called.filter(move |function| !only_makes || !functions[*function as usize].is_static);
            called.map(|function| (pair.1, function))
        });
        let calls = CallGraph::new(pairs.collect(), self.survey.functions.len());
        let functions = &mut self.survey.functions;
        let mut number = 0;
        components(&calls, |component| {
            if component.len() > 1 || calls.of(component[0]).any(|called| called == component[0]) {
                for function in component {
                    functions[*function as usize].recursive = true;
                    functions[*function as usize].cycle = Some(number);
                }
            }
            number += 1;
        });
        Some(())
    }
}

/// Multimap as one sorted list, because most keys have one or two values.
struct PairIndex<K, V>(Vec<(K, V)>);

impl<K: Ord + Copy, V: Ord + Copy> PairIndex<K, V> {
    fn new(pairs: impl Iterator<Item = (K, V)>) -> PairIndex<K, V> {
        let mut pairs: Vec<(K, V)> = pairs.collect();
        pairs.sort_unstable();
        PairIndex(pairs)
    }

    fn get(&self, key: K) -> impl Iterator<Item = V> {
        let from = self.0.partition_point(|(other, _)| *other < key);
        self.0[from..].iter().take_while(move |(other, _)| *other == key).map(|(_, value)| *value)
    }
}

/// Functions that each function may call.
struct CallGraph {
    pairs: Vec<(FunctionIndex, FunctionIndex)>,
    /// Start of each function's range, and the end of the last one.
    starts: Vec<usize>,
}

impl CallGraph {
    fn new(mut pairs: Vec<(FunctionIndex, FunctionIndex)>, functions: usize) -> CallGraph {
        pairs.sort_unstable();
        let mut starts = Vec::with_capacity(functions + 1);
        for (at, (by, _)) in pairs.iter().enumerate() {
            starts.resize(starts.len().max(*by as usize + 1), at);
        }
        starts.resize(functions + 1, pairs.len());
        CallGraph { pairs, starts }
    }

    fn of(&self, function: FunctionIndex) -> impl Iterator<Item = FunctionIndex> {
        let range = self.starts[function as usize]..self.starts[function as usize + 1];
        self.pairs[range].iter().map(|(_, called)| *called)
    }

    fn nth(&self, function: FunctionIndex, index: usize) -> Option<FunctionIndex> {
        let at = self.starts[function as usize] + index;
        (at < self.starts[function as usize + 1]).then(|| self.pairs[at].1)
    }
}

/// Strongly connected components, without recursion (Tarjan).
fn components(calls: &CallGraph, mut found: impl FnMut(&[FunctionIndex])) {
    let count = calls.starts.len() - 1;
    let mut order = vec![u32::MAX; count];
    let mut low = vec![0u32; count];
    let mut on_stack = vec![false; count];
    let (mut stack, mut work, mut next) = (Vec::new(), Vec::new(), 0u32);
    for root in 0..count as u32 {
        if order[root as usize] != u32::MAX {
            continue;
        }
        work.push((root, 0usize));
        while let Some((node, edge)) = work.pop() {
            let at = node as usize;
            if edge == 0 {
                (order[at], low[at]) = (next, next);
                next += 1;
                stack.push(node);
                on_stack[at] = true;
            }
            if let Some(to) = calls.nth(node, edge) {
                work.push((node, edge + 1));
                if order[to as usize] == u32::MAX {
                    work.push((to, 0));
                } else if on_stack[to as usize] {
                    low[at] = low[at].min(order[to as usize]);
                }
                continue;
            }
            if low[at] == order[at] {
                let from =
                    stack.iter().rposition(|member| *member == node).expect("pushed when it was come to");
                stack[from..].iter().for_each(|member: &u32| on_stack[*member as usize] = false);
                found(&stack[from..]);
                stack.truncate(from);
            }
            if let Some((parent, _)) = work.last() {
                low[*parent as usize] = low[*parent as usize].min(low[at]);
            }
        }
    }
}

fn bound(pattern: &BindingPattern<'_>, into: &mut Vec<SymbolId>) {
    match pattern {
        BindingPattern::BindingIdentifier(name) => into.extend(name.symbol_id.get()),
        BindingPattern::ObjectPattern(object) => {
            object.properties.iter().for_each(|property| bound(&property.value, into));
            object.rest.iter().for_each(|rest| bound(&rest.argument, into));
        }
        BindingPattern::ArrayPattern(array) => {
            array.elements.iter().flatten().for_each(|element| bound(element, into));
            array.rest.iter().for_each(|rest| bound(&rest.argument, into));
        }
        BindingPattern::AssignmentPattern(default) => bound(&default.left, into),
    }
}

impl<'a> Visit<'a> for SurveyVisitor<'_> {
    fn enter_scope(&mut self, _flags: ScopeFlags, scope: &Cell<Option<ScopeId>>) {
        if let Some(scope) = scope.get() {
            self.scope_function[scope.index()] = self.current;
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let index = self.survey.functions.len() as FunctionIndex;
        if let Some(symbol) = it.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.callables.entry(symbol).or_default().functions.push(index);
        }
        let name = it.id.as_ref().map(|id| id.name.as_str().to_owned());
        self.function(it.span, name, |look| walk::walk_function(look, it, flags));
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.function(it.span, None, |look| walk::walk_arrow_function_expression(look, it));
    }

    fn visit_this_expression(&mut self, _it: &ThisExpression) {
        self.this_used();
    }

    fn visit_super(&mut self, _it: &Super) {
        self.this_used();
    }

    fn visit_object_expression(&mut self, it: &ObjectExpression<'a>) {
        let from = self.survey.functions.len() as FunctionIndex;
        walk::walk_object_expression(self, it);
        let until = self.survey.functions.len() as FunctionIndex;
        if until > from + 1 {
            self.groups.push((from..until, None));
        }
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        if let Some(member) = it.left.as_member_expression() {
            let changed = self.symbol_of(member.object());
            self.changes_in.extend(changed.into_iter().map(|symbol| (symbol, self.current)));
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(member) = &it.callee
            && operations::method_operation(&member.property.name)
                .is_some_and(|operation| !operation.is_pure(false))
        {
            let changed = self.symbol_of(&member.object);
            self.changes_in.extend(changed.into_iter().map(|symbol| (symbol, self.current)));
        }
        walk::walk_call_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let from = self.survey.functions.len() as FunctionIndex;
        walk::walk_class(self, it);
        let until = self.survey.functions.len() as FunctionIndex;
        let parent = it.heritage.as_ref().and_then(|parent| self.symbol_of(&parent.expression));
        self.groups.push((from..until, parent));
        if let Some(symbol) = it.id.as_ref().and_then(|id| id.symbol_id.get()) {
            let until = self.survey.functions.len() as FunctionIndex;
            let callable = self.callables.entry(symbol).or_default();
            callable.functions.extend(from..until);
            callable.of.extend(parent);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let from = self.survey.functions.len();
        walk::walk_method_definition(self, it);
        if it.r#static {
            self.survey.functions[from..].iter_mut().for_each(|function| function.is_static = true);
        }
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        if let Expression::Identifier(name) = &it.callee {
            let made = roots::resolve_variable(self.scoping, name);
            self.made_in.extend(made.map(|symbol| (symbol, self.current)));
        }
        walk::walk_new_expression(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        walk::walk_variable_declaration(self, it);
        if it.kind == VariableDeclarationKind::Var && !it.declare {
            let mut symbols = Vec::new();
            it.declarations.iter().for_each(|declarator| bound(&declarator.id, &mut symbols));
            for symbol in symbols {
                self.survey.writes.push((it.span.start, symbol));
                self.writes_in.push((symbol, self.current));
            }
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        let from = self.survey.functions.len() as FunctionIndex;
        walk::walk_variable_declarator(self, it);
        if let Some(init) = &it.init {
            self.bind(&it.id, init, from);
        }
    }

    fn visit_binding_identifier(&mut self, _it: &BindingIdentifier<'a>) {}

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let Some(reference) = it.reference_id.get() else { return };
        let reference = self.scoping.get_reference(reference);
        let function = &mut self.survey.functions[self.current as usize];
        match roots::resolve_variable(self.scoping, it) {
            Some(symbol) => {
                self.survey.mentions.push((it.span().start, SymbolMention::Variable(symbol)));
                self.reads_in.push((symbol, self.current));
                if reference.is_write() {
                    self.survey.writes.push((it.span().start, symbol));
                    self.writes_in.push((symbol, self.current));
                }
            }
            None if is_root(&it.name) => {
                function.roots = true;
                self.survey.mentions.push((it.span().start, SymbolMention::Root));
            }
            None if it.name == "args" => {
                self.survey.mentions.push((it.span().start, SymbolMention::Arguments));
            }
            None => {}
        }
    }
}
