//! Follows a program the way it would run and writes down what it can do.
//!
//! Every expression is visited once in the order it would be evaluated, with what is known of each
//! value carried along: where it came from, not what it is. Branches are followed one after the other
//! and joined; loops are gone through once, with a place for what comes around (`Phi`); local functions
//! are followed into from each of their calls. Nothing is executed and nothing is decided here.

#![expect(clippy::needless_pass_by_value, reason = "values are handles; taking them keeps calls readable")]

mod argument;
pub(crate) mod budget;
mod call;
mod class;
mod expression;
mod finish;
mod function;
mod held;
mod iterate;
mod member;
mod objects;
mod operation;
mod parallel;
mod pattern;
mod repeat;
mod state;
mod statement;
mod table;
mod types;
mod unsure;
pub(crate) mod value;

use std::borrow::Cow;
use std::rc::Rc;

use oxc_ast::ast::Program;
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::Span;
use pml_model::structure::{DecisionForm, ForkForm, Letter, Link, LoopForm, NodeId, Step, Structure};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use crate::analysis::{Code, Complaint, Entry, Parameters, Permissions, Remark, Severity, Site};
use crate::catalogue::{Catalogue, Tool};
use crate::lines::Lines;
use crate::marks::{Followed, Marks, Place};
use crate::roots::Roots;
use crate::survey::{FunctionIndex, Survey};
use crate::uses::Uses;

use budget::Seen;
use objects::Freezing;
use state::{Changes, Mark, State};
use types::Types;
use value::{Activation, Path, Value};

/// What following a program finds.
pub(crate) struct Found {
    pub(crate) structure: Structure,
    pub(crate) parameters: Parameters,
    pub(crate) permissions: Permissions,
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) marks: Marks,
    pub(crate) sites: Vec<Site>,
    pub(crate) entries: Vec<Entry>,
}

/// Following a program takes more than it may; where it was when it gave up.
pub(crate) struct TooMuch(pub(crate) Span);

/// Follows `program`.
///
/// # Errors
/// It would take too much time or memory.
pub(crate) fn walk<'a>(
    program: &'a Program<'a>,
    source: &'a str,
    lines: &Lines<'_>,
    scoping: &Scoping,
    catalogue: &Catalogue,
) -> Result<Found, TooMuch> {
    let roots = Roots::of(program, scoping);
    let survey = Survey::of(program, scoping, &roots).ok_or(TooMuch(Span::default()))?;
    let outside = Outside { program, source, lines, scoping, catalogue };
    let mut walk = Walk::new(&outside, types::named(program), survey, roots, FxHashSet::default());
    walk.program(program);
    let unsure = walk.changed_unseen();
    if !unsure.is_empty() && !walk.state.budget.is_spent() {
        // What was claimed of these variables may be wrong: once more, with that known.
        let Walk { types, survey, roots, .. } = walk;
        walk = Walk::new(&outside, types, survey, roots, unsure);
        walk.program(program);
    }
    walk.finish(program)
}

/// What a program is followed with.
struct Outside<'a, 's> {
    program: &'a Program<'a>,
    source: &'a str,
    lines: &'s Lines<'s>,
    scoping: &'s Scoping,
    catalogue: &'s Catalogue,
}

impl<'a, 's> Walk<'a, 's> {
    fn new(
        outside: &Outside<'a, 's>,
        types: Types<'a>,
        survey: Survey,
        roots: Roots,
        unsure: FxHashSet<SymbolId>,
    ) -> Walk<'a, 's> {
        let &Outside { program, source, lines, scoping, catalogue } = outside;
        let top = Rc::new(Activation {
            id: 0,
            function: 0,
            outer: None,
            this: Some(Value::Undefined),
            class: None,
        });
        let visited = vec![false; survey.functions.len()];
        Walk {
            program,
            source,
            lines,
            scoping,
            types,
            survey,
            roots,
            unsure,
            touched: FxHashSet::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher),
            unknown_names: FxHashSet::default(),
            catalogue,
            state: State::with_room_for(scoping.symbols_len()),
            nodes: Vec::with_capacity(USUAL_NODES),
            edges: Vec::with_capacity(2 * USUAL_NODES),
            edge_set: None,
            numbers: [0; 6],
            frontier: Frontier::new(),
            outcomes: Vec::new(),
            live: true,
            marks: Marks {
                points: FxHashMap::with_capacity_and_hasher(2 * USUAL_NODES, FxBuildHasher),
                ..Marks::default()
            },
            next_point: 1,
            node_at: FxHashMap::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher),
            variant: 0,
            contexts: FxHashMap::default(),
            next_context: 1,
            steps: 0,
            gave_up: std::cell::Cell::new(None),
            left_out: false,
            constructing: 0,
            freezing: Freezing::default(),
            entries: Vec::new(),
            entered: FxHashSet::default(),
            context: 0,
            activation: top,
            next_activation: 1,
            handed: FxHashMap::default(),
            frames: Vec::new(),
            loops: Vec::new(),
            parents: Rc::new([]),
            targets: Vec::new(),
            labels: Vec::new(),
            thrown: Vec::new(),
            chain: Vec::new(),
            quiet: 0,
            trial: None,
            phis: Vec::new(),
            pendings: Vec::new(),
            uses: Uses::default(),
            complaints: Vec::new(),
            complained: FxHashMap::default(),
            permissions: Permissions::default(),
            declared: FxHashSet::default(),
            visited,
            kept: Vec::new(),
            kept_seen: 0,
            tools_kept: Vec::new(),
            decided: FxHashSet::default(),
            inside_items: std::cell::Cell::new(0),
            tools: Vec::new(),
            loose: None,
            spare_keys: Vec::new(),
        }
    }
}

/// Where the next node can be reached from: a node and the outcome it then had.
type Frontier = SmallVec<[(u32, Option<Rc<str>>); 2]>;

/// One way by which a point of the program is reached.
struct Way<'a> {
    changes: Changes<'a>,
    frontier: Frontier,
}

/// A node before values are made into arguments.
struct Draft<'a> {
    id: NodeId,
    kind: DraftKind<'a>,
    span: Span,
    context: u32,
    point: u32,
    /// The loops it is in, outermost first.
    loops: Rc<[u32]>,
}

/// What an operation works on: how it is written, what it is and where it stands.
type Input<'a> = (Cow<'a, str>, Value<'a>, Span);

enum DraftKind<'a> {
    Call(Call<'a>),
    /// A pure operation and what it works on, by name.
    Operation {
        name: &'static str,
        pure: bool,
        inputs: Vec<Input<'a>>,
    },
    Decision {
        condition: Span,
        form: DecisionForm,
        outcomes: Vec<String>,
        suffix: &'static str,
    },
    Fork {
        form: ForkForm,
    },
    Join,
    Loop {
        over: Span,
        form: LoopForm,
    },
    Try,
}

/// A call of a tool or capability.
#[derive(Clone)]
struct Call<'a> {
    target: Target,
    arguments: Value<'a>,
    span: Span,
    /// The tool is handed on as a value; what calls it is not seen.
    as_value: bool,
}

#[derive(Clone)]
enum Target {
    Tool { server: Rc<str>, name: Rc<str> },
    Capability(Rc<str>),
}

/// Where `break` and `continue` lead.
struct Jump<'a> {
    labels: Vec<&'a str>,
    kind: JumpKind,
    mark: Mark,
    breaks: Vec<Way<'a>>,
    continues: Vec<Way<'a>>,
    /// How many functions were being followed.
    depth: usize,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum JumpKind {
    Loop,
    Switch,
    Block,
}

/// A call of a local function being followed.
struct Frame<'a> {
    function: FunctionIndex,
    context: u32,
    is_async: bool,
    mark: Mark,
    returns: SmallVec<[(Value<'a>, Way<'a>); 1]>,
    yields: Vec<Value<'a>>,
    /// What a call of itself gives and is given.
    result: Option<u32>,
    parameters: Vec<u32>,
    /// What `arguments` holds.
    given: value::Values<'a>,
}

/// An optional chain being evaluated.
struct Chain {
    /// Where it ends in the source.
    end: u32,
    /// Decisions that may end it early, each with the outcome that does.
    decisions: Vec<(u32, &'static str)>,
}

/// A loop being gone through.
struct LoopScope {
    node: Option<u32>,
    /// Objects with a smaller index are older than the loop.
    objects: u32,
    phis: FxHashMap<u32, u32>,
}

/// What a variable holds at the head of a loop.
struct Phi<'a> {
    node: Option<u32>,
    before: Value<'a>,
    around: Vec<Value<'a>>,
    consumed: bool,
}

/// A promise somebody should wait for.
struct Pending {
    span: Span,
    what: Promised,
    consumed: bool,
}

/// What makes a promise.
enum Promised {
    Call(Target),
    /// A call of a local function, as written.
    Function(Span),
    Callback,
    Fork,
    Reduce,
    /// `then`, `catch` or `finally`.
    Method(&'static str),
}

struct Walk<'a, 's> {
    program: &'a Program<'a>,
    source: &'a str,
    lines: &'s Lines<'s>,
    scoping: &'s Scoping,
    types: Types<'a>,
    survey: Survey,
    roots: Roots,
    /// Variables that functions change of which no call was seen.
    unsure: FxHashSet<SymbolId>,
    /// Where a root or an alias was come to.
    touched: FxHashSet<u32>,
    /// Names that were complained about.
    unknown_names: FxHashSet<&'a str>,
    catalogue: &'s Catalogue,
    state: State<'a>,
    nodes: Vec<Draft<'a>>,
    edges: Vec<(u32, u32, Link)>,
    /// The same once a node was met again; until then each is new.
    edge_set: Option<FxHashSet<(u32, u32, Link)>>,
    numbers: [u32; 6],
    frontier: Frontier,
    /// Names of outcomes that were needed.
    outcomes: Vec<Rc<str>>,
    /// Whether the program can get to where we are.
    live: bool,
    marks: Marks,
    next_point: u32,
    node_at: FxHashMap<(u32, u32, u32), u32>,
    /// Which of several tools that one place may call.
    variant: u32,
    contexts: FxHashMap<(u32, u32), u32>,
    next_context: u32,
    /// Expressions gone through so far, each as often as it was.
    steps: u32,
    /// Where the budget was found to be spent.
    gave_up: std::cell::Cell<Option<Span>>,
    /// Some call of a local function was not followed.
    left_out: bool,
    /// How many instances of the program's classes are being made, each for a field of the one before.
    constructing: usize,
    /// What freezing a value remembers, kept to be used again.
    freezing: Freezing<'a>,
    entries: Vec<Entry>,
    entered: FxHashSet<(u32, u32, FunctionIndex)>,
    context: u32,
    activation: Rc<Activation<'a>>,
    next_activation: u32,
    /// Where each function, of each context, was handed to an operation first.
    handed: FxHashMap<(FunctionIndex, u32), (Span, u32)>,
    frames: Vec<Frame<'a>>,
    loops: Vec<LoopScope>,
    /// The loops we are in, outermost first.
    parents: Rc<[u32]>,
    targets: Vec<Jump<'a>>,
    labels: Vec<&'a str>,
    /// What is thrown inside each `try` we are in.
    thrown: Vec<Vec<(Value<'a>, Frontier)>>,
    chain: Vec<Chain>,
    /// Inside a computation that reaches no tool: it is one operation, not a structure.
    quiet: u32,
    /// Whether a function was come to that reaches a tool, while something is followed only to see that.
    trial: Option<bool>,
    phis: Vec<Phi<'a>>,
    pendings: Vec<Pending>,
    uses: Uses,
    complaints: Vec<Complaint>,
    /// Which complaints stand at a place.
    complained: FxHashMap<(u32, u32), Vec<u32>>,
    permissions: Permissions,
    /// Tools of the catalogue that are among the permissions.
    declared: FxHashSet<*const Tool>,
    visited: Vec<bool>,
    /// Functions seen as values, to be followed at the end if nothing called them.
    kept: Vec<Rc<value::Closure<'a>>>,
    kept_seen: usize,
    /// Tools kept in variables, objects and lists, and where they are written.
    tools_kept: Vec<(Value<'a>, Span)>,
    /// Literals that reach a decision.
    decided: FxHashSet<Span>,
    /// How deep in items of items we are, when values are made into arguments.
    inside_items: std::cell::Cell<u32>,
    /// The tool that each node calls, once all nodes are there.
    tools: Vec<Option<&'s Tool>>,
    /// Variables whose objects may be changed, once somebody asks.
    loose: Option<FxHashSet<SymbolId>>,
    /// Names of members that were asked for, kept for their memory.
    spare_keys: Vec<String>,
}

/// So many nodes have a place without asking for more memory.
const USUAL_NODES: usize = 24;
/// How often functions may be followed into before they are no longer told apart by caller. Programs of
/// the largest size with a helper called on every line stay well below.
const MAX_FOLLOWED: u32 = 20_000;
/// How many expressions are gone through before calls of local functions are no longer followed: functions that call each
/// other twice would otherwise double the work with each of them. Longer programs have one more for each byte.
const MAX_STEPS: u32 = 50_000;
/// A node that is reached again and again in the same context: past so many alternatives, only what they are made from is
/// kept of its inputs.
const MAX_ALTERNATIVES: usize = 64;
/// How deep calls of local functions are followed.
const MAX_CALL_DEPTH: usize = 48;

impl<'a> Walk<'a, '_> {
    fn program(&mut self, program: &'a Program<'a>) {
        let mark = self.state.mark();
        self.frames.push(Frame {
            function: 0,
            context: 0,
            is_async: true,
            mark,
            returns: SmallVec::new(),
            yields: Vec::new(),
            result: None,
            parameters: Vec::new(),
            given: SmallVec::new(),
        });
        self.statements(&program.body);
    }

    /// Whether calls of local functions are still followed.
    fn follows_calls(&self) -> bool {
        self.steps < MAX_STEPS.saturating_add(self.source.len() as u32)
    }

    /// Whether the budget is spent. Whoever asks returns at once if it is.
    fn too_much(&self, at: Span) -> bool {
        let spent = self.state.budget.is_spent();
        if spent && self.gave_up.get().is_none() {
            self.gave_up.set(Some(at));
        }
        spent
    }

    fn text(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }

    /// The step to a member, to be given back with [`Walk::asked`]: every member of a program is asked for by one.
    fn step(&mut self, name: &str) -> Step {
        let mut key = self.spare_keys.pop().unwrap_or_default();
        key.push_str(name);
        Step::Key(key)
    }

    fn asked(&mut self, step: Step) {
        if let Step::Key(mut key) = step {
            key.clear();
            self.spare_keys.push(key);
        }
    }

    fn point(&mut self, place: Place, span: Span) -> u32 {
        *self.marks.points.entry((place, span)).or_insert_with(|| {
            self.next_point += 1;
            self.next_point - 1
        })
    }

    /// The node at a place in the current context, connected to what comes before it.
    fn node(&mut self, place: Place, span: Span, kind: DraftKind<'a>) -> u32 {
        let point = self.point(place, span);
        let node = match self.node_at.get(&(point, self.context, self.variant)).copied() {
            Some(node) => {
                self.edge_set.get_or_insert_with(|| self.edges.iter().cloned().collect());
                self.meet(node, kind);
                node
            }
            None => self.new_node(point, span, kind),
        };
        self.connect(node);
        node
    }

    fn new_node(&mut self, point: u32, span: Span, kind: DraftKind<'a>) -> u32 {
        let letter = match kind {
            DraftKind::Call(_) | DraftKind::Operation { .. } => Letter::N,
            DraftKind::Decision { .. } => Letter::D,
            DraftKind::Fork { .. } => Letter::F,
            DraftKind::Join => Letter::J,
            DraftKind::Loop { .. } => Letter::L,
            DraftKind::Try => Letter::T,
        };
        let number = &mut self.numbers[letter as usize];
        *number += 1;
        let id = NodeId { letter, number: *number };
        let node = self.nodes.len() as u32;
        let loops = Rc::clone(&self.parents);
        self.nodes.push(Draft { id, kind, span, context: self.context, point, loops });
        // A join has no probe of its own: it shares its fork's point and is not found by it.
        if letter != Letter::J {
            self.node_at.insert((point, self.context, self.variant), node);
        }
        if let Some(parent) = self.parents.last().copied() {
            self.edge(parent, node, Link::Contains);
        }
        node
    }

    /// A node that is reached a second time in the same context: its inputs may be either.
    fn meet(&mut self, node: u32, kind: DraftKind<'a>) {
        let span = self.nodes[node as usize].span;
        match kind {
            DraftKind::Call(new) => {
                let old = match &mut self.nodes[node as usize].kind {
                    DraftKind::Call(old) => std::mem::replace(&mut old.arguments, Value::Unknown),
                    _ => return,
                };
                let either = self.either(old, new.arguments, span);
                if let DraftKind::Call(call) = &mut self.nodes[node as usize].kind {
                    call.arguments = either;
                }
            }
            DraftKind::Operation { inputs: new, .. } => {
                let mut old = match &mut self.nodes[node as usize].kind {
                    DraftKind::Operation { inputs, .. } => std::mem::take(inputs),
                    _ => return,
                };
                for ((_, old, span), (_, new, _)) in old.iter_mut().zip(new) {
                    *old = self.either(std::mem::replace(old, Value::Unknown), new, *span);
                }
                if let DraftKind::Operation { inputs, .. } = &mut self.nodes[node as usize].kind {
                    *inputs = old;
                }
            }
            _ => {}
        }
    }

    fn either(&mut self, old: Value<'a>, new: Value<'a>, span: Span) -> Value<'a> {
        self.state.budget.spend(1 + old.width() + new.width());
        let either = value::one_of([old, new]);
        match &either {
            Value::OneOf(values) if values.len() > MAX_ALTERNATIVES => {
                let values = Rc::clone(values);
                self.computed(span, &values)
            }
            _ => either,
        }
    }

    fn connect(&mut self, node: u32) {
        let mut frontier = std::mem::take(&mut self.frontier);
        for (from, outcome) in frontier.drain(..) {
            let link = match outcome {
                None => Link::Sequence,
                Some(outcome) => Link::Conditional { outcome: String::from(&*outcome) },
            };
            self.edge(from, node, link);
        }
        frontier.push((node, None));
        self.frontier = frontier;
    }

    fn edge(&mut self, from: u32, to: u32, link: Link) {
        // A node met again keeps its place: order never leads backwards.
        let forward = from < to || matches!(link, Link::Provides { .. });
        let is_known = |set: &mut FxHashSet<_>| !set.insert((from, to, link.clone()));
        if forward && !self.edge_set.as_mut().is_some_and(is_known) {
            self.edges.push((from, to, link));
        }
    }

    fn decision(&mut self, place: Place, span: Span, condition: Span, form: DecisionForm) -> Option<u32> {
        self.decision_with(place, span, condition, form, Vec::new(), "")
    }

    fn decision_with(
        &mut self,
        place: Place,
        span: Span,
        condition: Span,
        form: DecisionForm,
        outcomes: Vec<String>,
        suffix: &'static str,
    ) -> Option<u32> {
        if self.quiet > 0 {
            return None;
        }
        Some(self.node(place, span, DraftKind::Decision { condition, form, outcomes, suffix }))
    }

    /// What an arm of a decision begins from.
    fn arm(&mut self, decision: Option<u32>, outcome: &str, before: &Frontier) -> Frontier {
        match decision {
            Some(node) => smallvec![(node, Some(self.outcome(outcome)))],
            None => before.clone(),
        }
    }

    /// The name of an outcome. The common ones are made once.
    fn outcome(&mut self, name: &str) -> Rc<str> {
        match self.outcomes.iter().find(|known| &***known == name) {
            Some(known) => Rc::clone(known),
            None => {
                let outcome: Rc<str> = name.into();
                if matches!(name, "true" | "false" | "error" | "default") {
                    self.outcomes.push(Rc::clone(&outcome));
                }
                outcome
            }
        }
    }

    /// Ends an arm: what it changed is taken out again.
    fn end_arm(&mut self, mark: Mark) -> Option<Way<'a>> {
        let way = self.live.then(|| self.way(mark));
        self.state.undo(mark);
        self.live = true;
        way
    }

    fn way(&self, mark: Mark) -> Way<'a> {
        Way { changes: self.state.changes(mark), frontier: self.frontier.clone() }
    }

    /// Goes on from all the ways that lead here.
    fn rejoin(&mut self, ways: impl IntoIterator<Item = Way<'a>>) {
        let mut frontier = Frontier::new();
        let mut changes: SmallVec<[Changes<'a>; 2]> = SmallVec::new();
        for way in ways {
            self.state.budget.spend(1 + 4 * way.frontier.len());
            add_points(&mut frontier, way.frontier);
            changes.push(way.changes);
        }
        self.live = !changes.is_empty();
        self.state.merge(&changes);
        self.frontier = frontier;
    }

    /// The variable a symbol means here.
    fn variable(&self, symbol: SymbolId) -> Option<state::Variable> {
        self.variable_from(&self.activation, symbol)
    }

    fn variable_from(&self, from: &Rc<Activation<'a>>, symbol: SymbolId) -> Option<state::Variable> {
        let home = self.survey.home[symbol.index()];
        let mut at = Some(from);
        while let Some(activation) = at {
            if activation.function == home {
                return Some((activation.id, symbol.index() as u32));
            }
            at = activation.outer.as_ref();
        }
        None
    }

    fn read_symbol(&self, symbol: SymbolId) -> Value<'a> {
        self.variable(symbol)
            .and_then(|variable| self.state.read(variable).cloned())
            .unwrap_or(Value::Unknown)
    }

    fn write_symbol(&mut self, symbol: SymbolId, value: Value<'a>) {
        let value = if self.unsure.contains(&symbol) { self.not_only(value) } else { value };
        if let Some(variable) = self.variable(symbol) {
            self.state.write(variable, value);
        }
    }

    fn new_phi(&mut self, before: Value<'a>, node: Option<u32>) -> u32 {
        let before = self.frozen(&before);
        self.phis.push(Phi { node, before, around: Vec::new(), consumed: false });
        (self.phis.len() - 1) as u32
    }

    fn feed(&mut self, phi: u32, value: &Value<'a>) {
        if let Value::Phi(same, path) = value
            && *same == phi
            && path.steps().is_empty()
        {
            return;
        }
        let value = self.frozen(value);
        if self.phis[phi as usize].consumed {
            self.consume(&value);
        }
        self.phis[phi as usize].around.push(value);
    }

    /// Somebody waits for the promises in `value`.
    fn consume(&mut self, value: &Value<'a>) {
        self.consume_new(value, &mut Seen::default());
    }

    fn consume_new(&mut self, value: &Value<'a>, seen: &mut Seen) {
        self.state.budget.spend(1);
        if self.state.budget.is_spent() {
            return;
        }
        match value {
            Value::Promise(inner, pending) => {
                if let Some(pending) = pending {
                    self.pendings[*pending as usize].consumed = true;
                }
                if seen.is_new(Rc::as_ptr(inner) as usize, 0) {
                    self.consume_new(&inner.clone(), seen);
                }
            }
            Value::OneOf(values) => values.iter().for_each(|value| self.consume_new(value, seen)),
            Value::Object(index) => {
                let record = Rc::clone(self.state.object(*index));
                if matches!(record.kind, value::Kind::Array | value::Kind::Holder)
                    && seen.is_new(*index as usize, 1)
                {
                    self.consume_record(&record, seen);
                }
            }
            Value::Record(record) if record.is_array() && seen.is_new(Rc::as_ptr(record) as usize, 0) => {
                self.consume_record(&record.clone(), seen);
            }
            Value::Phi(phi, _) => {
                let phi = &mut self.phis[*phi as usize];
                if !std::mem::replace(&mut phi.consumed, true) {
                    let values: Vec<Value<'a>> =
                        std::iter::once(phi.before.clone()).chain(phi.around.iter().cloned()).collect();
                    values.iter().for_each(|value| self.consume_new(value, seen));
                }
            }
            _ => {}
        }
    }

    fn consume_record(&mut self, record: &value::Record<'a>, seen: &mut Seen) {
        record.fields.iter().for_each(|member| self.consume_new(&member.value, seen));
        record.extra.iter().chain(&record.spreads).for_each(|value| self.consume_new(value, seen));
    }

    fn pending(&mut self, span: Span, what: Promised) -> u32 {
        self.pendings.push(Pending { span, what, consumed: false });
        (self.pendings.len() - 1) as u32
    }

    /// A promise in words.
    fn promised(&self, what: &Promised) -> String {
        match what {
            Promised::Call(Target::Tool { server, name }) => format!("`{server}:{name}`"),
            Promised::Call(Target::Capability(name)) => format!("`{name}`"),
            Promised::Function(call) => format!("`{}`", self.short(*call)),
            Promised::Callback => "an async callback".to_owned(),
            Promised::Fork => "the fork".to_owned(),
            Promised::Reduce => "`reduce`".to_owned(),
            Promised::Method(name) => format!("`{name}`"),
        }
    }

    fn complain(
        &mut self,
        severity: Severity,
        code: Code,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        let at = self.lines.position(span);
        let complaint = Complaint {
            severity,
            code,
            message: message.into(),
            hint: hint.into(),
            at,
            excerpt: self.lines.excerpt(at),
            node: None,
        };
        let said_here = self.complained.entry((at.start, at.end)).or_default();
        if !said_here.iter().any(|index| self.complaints[*index as usize] == complaint) {
            said_here.push(self.complaints.len() as u32);
            self.complaints.push(complaint);
        }
    }

    fn opaque(&mut self, span: Span, what: impl Into<String>) {
        let remark = Remark { what: what.into(), at: self.lines.position(span) };
        if !self.permissions.opaque.contains(&remark) {
            self.permissions.opaque.push(remark);
        }
    }

    fn ambient(&mut self, span: Span, name: &str) {
        let remark = Remark { what: name.to_owned(), at: self.lines.position(span) };
        if !self.permissions.ambient.contains(&remark) {
            self.permissions.ambient.push(remark);
        }
    }

    /// The literals in `value` decide something: another value there would be another program.
    fn decide(&mut self, value: &Value<'a>) {
        self.decide_new(value, &mut Seen::default());
    }

    fn decide_new(&mut self, value: &Value<'a>, seen: &mut Seen) {
        self.state.budget.spend(1);
        if self.state.budget.is_spent() {
            return;
        }
        match value {
            Value::Literal(literal) => {
                self.decided.insert(literal.span);
            }
            Value::Computed(_, values) | Value::OneOf(values) => {
                values.iter().for_each(|value| self.decide_new(value, seen));
            }
            Value::Template(parts) if seen.is_new(parts.as_ptr() as usize, 0) => {
                parts.iter().for_each(|(value, _)| self.decide_new(value, seen));
            }
            Value::Promise(inner, _) if seen.is_new(Rc::as_ptr(inner) as usize, 0) => {
                self.decide_new(inner, seen);
            }
            _ => {}
        }
    }

    fn follow_mark(&mut self, function: FunctionIndex) {
        let span = self.survey.functions[function as usize].span;
        self.marks.followed.insert(span, Followed { function });
    }

    fn result_of(&self, node: u32) -> Value<'a> {
        Value::Result(node, Path::default())
    }
}

/// Adds points that are not there yet.
fn add_points(frontier: &mut Frontier, points: Frontier) {
    if frontier.is_empty() && points.len() == 1 {
        *frontier = points;
        return;
    }
    if frontier.len() + points.len() <= 64 {
        for point in points {
            if !frontier.contains(&point) {
                frontier.push(point);
            }
        }
        return;
    }
    let mut known: FxHashSet<(u32, Option<Rc<str>>)> = frontier.iter().cloned().collect();
    frontier.extend(points.into_iter().filter(|point| known.insert(point.clone())));
}
