//! From what was followed to what is said: arguments, edges, parameters, complaints.

use std::borrow::Cow;
use std::rc::Rc;

use oxc_ast::ast::Program;
use oxc_span::Span;
use pml_model::structure::{
    Argument, Basis, Coverage, DecisionForm, Edge, Link, Node, NodeKind, Step, Structure,
};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use smallvec::{SmallVec, smallvec};

use super::budget::Seen;
use super::call::id_of;
use super::value::{Kind, Path, Value};
use super::{Call, DraftKind, Found, Promised, Target, TooMuch, Walk};
use crate::analysis::{Code, Complaint, Severity, Site};
use crate::catalogue::Tool;
use crate::literals::{Found as Lifted, Lifting, hide_secrets, secret};
use crate::roots::Root;
use crate::uses::Uses;
use crate::{annotations, schema};

/// How far ahead a provider is looked for a consumer whose input its output could fill.
const SCHEMA_REACH: usize = 64;

impl<'a, 's> Walk<'a, 's> {
    pub(super) fn finish(mut self, program: &'a Program<'a>) -> Result<Found, TooMuch> {
        self.uncalled();
        self.unwaited();
        self.written_out();
        self.tools = self.nodes.iter().map(|draft| self.tool_of(&draft.kind)).collect();
        let arguments: Vec<Option<Argument>> =
            (0..self.nodes.len()).map(|node| self.arguments_of(node as u32)).collect();
        if self.too_much(program.span) {
            return Err(TooMuch(self.gave_up.get().unwrap_or(program.span)));
        }
        self.data_edges();
        self.schema_edges();
        self.check_arguments(&arguments);
        self.uses.believe_types();
        let uses = std::mem::take(&mut self.uses);
        let lifting = self.lift(&uses);
        if self.too_much(program.span) {
            return Err(TooMuch(self.gave_up.get().unwrap_or(program.span)));
        }
        let Lifted { parameters, spans, secrets } =
            lifting.finish(uses.into_schema(), |span| self.lines.position(span));
        let mut nodes = self.drawn(arguments);
        hide_secrets(&mut nodes, &parameters);
        let edges = std::mem::take(&mut self.edges).into_iter().map(|(from, to, link)| Edge {
            from: self.nodes[from as usize].id,
            to: self.nodes[to as usize].id,
            link,
        });
        let mut structure = Structure { nodes, edges: edges.collect() };
        let found = annotations::apply(program, self.source, self.lines, &mut structure);
        self.complaints.extend(found);
        let sites = self.sites(&structure.nodes);
        self.marks.lifted = spans;
        self.complaints.extend(secrets.iter().map(|(name, span)| secret(name, *span, self.lines)));
        self.opaque_complaints();
        self.complaints.sort_by_key(|complaint| (complaint.at.start, complaint.severity, complaint.code));
        Ok(Found {
            structure,
            parameters,
            permissions: self.permissions,
            complaints: self.complaints,
            marks: self.marks,
            sites,
            entries: self.entries,
        })
    }

    /// Functions that nothing calls: their calls are known all the same.
    fn uncalled(&mut self) {
        // Following one may show others.
        while let Some(closure) = self.next_kept() {
            if self.visited[closure.function as usize] {
                continue;
            }
            self.frontier.clear();
            self.live = true;
            let info = &self.survey.functions[closure.function as usize];
            // What was not followed may call it.
            if let (Some(name), false) = (info.name.clone(), self.left_out) {
                let span = Span::new(info.span.start, info.span.start + 8.min(info.span.size()));
                self.complain(
                    Severity::Warning,
                    Code::Unreachable,
                    span,
                    format!("`{name}` is never called"),
                    Some("call it, or leave it out".to_owned()),
                );
            }
            let outer = std::mem::replace(&mut self.activation, Rc::clone(&closure.outer));
            let value = self.follow_alone(&closure);
            self.consume(&value);
            self.activation = outer;
        }
    }

    /// Tools that are written somewhere count, wherever it is; a server that was never come to could be anything.
    fn written_out(&mut self) {
        for (root, span) in std::mem::take(&mut self.roots.named) {
            let known = match &root {
                Root::Tool(server, name)
                    if self
                        .catalogue
                        .tool(server, name)
                        .is_some_and(|tool| self.declared.contains(&std::ptr::from_ref(tool))) =>
                {
                    true
                }
                Root::Tool(server, name) => {
                    let target = Target::Tool { server: Rc::clone(server), name: Rc::clone(name) };
                    let id = self.name_of(&target);
                    self.permissions.declared.contains(&id) || self.permissions.capabilities.contains(&id)
                }
                Root::Capability(name) => self.permissions.capabilities.contains(&**name),
                _ => true,
            };
            if !known {
                self.declare_value(&Value::from(&root), span);
            }
        }
        for span in std::mem::take(&mut self.roots.open) {
            if !self.touched.contains(&span.start) {
                let what = format!("`{}` stands where it cannot be followed", self.text(span));
                self.opaque(span, what);
            }
        }
    }

    fn next_kept(&mut self) -> Option<Rc<super::value::Closure<'a>>> {
        let closure = self.kept.get(self.kept_seen).cloned();
        self.kept_seen += 1;
        closure
    }

    /// Promises nobody waits for.
    fn unwaited(&mut self) {
        for pending in std::mem::take(&mut self.pendings) {
            // What was not followed may wait for it.
            if !pending.consumed && !self.left_out {
                let message = format!("nothing waits for {}", self.promised(&pending.what));
                let hint = match pending.what {
                    Promised::Reduce => "put `await` before it",
                    _ => "put `await` before it, or the program may end first",
                };
                self.complain(
                    Severity::Warning,
                    Code::NotAwaited,
                    pending.span,
                    message,
                    Some(hint.to_owned()),
                );
            }
        }
    }

    fn opaque_complaints(&mut self) {
        for remark in self.permissions.opaque.clone() {
            let complaint = Complaint {
                severity: Severity::Warning,
                code: Code::Opaque,
                message: remark.what,
                hint: Some("name the tool: `mcp.server.tool({ … })`".to_owned()),
                at: remark.at,
                excerpt: self.lines.excerpt(remark.at),
                node: None,
            };
            self.complaints.push(complaint);
        }
    }

    fn data_edges(&mut self) {
        let mut found = Vec::new();
        for to in 0..self.nodes.len() as u32 {
            let parts: Parts<'_, 'a> = match &self.nodes[to as usize].kind {
                DraftKind::Call(call) => parts_of(&call.arguments),
                DraftKind::Operation { inputs, .. } => {
                    inputs.iter().map(|(name, value, _)| (Some(Cow::Borrowed(&**name)), value)).collect()
                }
                _ => continue,
            };
            if self.too_much(self.nodes[to as usize].span) {
                break;
            }
            for (from, Feeding { direct, around, names }) in self.fed(to, &parts) {
                let around = if direct { None } else { around.map(|node| self.nodes[node as usize].id) };
                let coverage = self.coverage(to, &names, parts.len());
                found.push((from, to, Link::Provides { coverage, basis: Basis::Data, around }));
            }
        }
        for (from, to, link) in found {
            self.edge(from, to, link);
        }
    }

    /// The nodes that feed `to`, the first first.
    fn fed<'p>(&self, to: u32, parts: &'p Parts<'_, 'a>) -> SmallVec<[(u32, Feeding<'p>); 2]> {
        let mut fed: SmallVec<[(u32, Feeding<'p>); 2]> = SmallVec::new();
        for (name, value) in parts {
            let name = name.as_deref();
            for (from, around) in self.providers(value) {
                let around = around.filter(|l| self.nodes[to as usize].loops.contains(l));
                if from == to && around.is_none() {
                    continue;
                }
                let place = match fed.binary_search_by_key(&from, |(from, _)| *from) {
                    Ok(place) => place,
                    Err(place) => {
                        fed.insert(place, (from, Feeding::default()));
                        place
                    }
                };
                let feeding = &mut fed[place].1;
                match around {
                    None => feeding.direct = true,
                    Some(_) => feeding.around = feeding.around.or(around),
                }
                if !feeding.names.contains(&name) {
                    feeding.names.push(name);
                }
            }
        }
        fed
    }

    /// How much of what `to` requires the named members are.
    fn coverage(&self, to: u32, names: &[Option<&str>], inputs: usize) -> Coverage {
        let required: Vec<&str> = match &self.nodes[to as usize].kind {
            DraftKind::Call(call) => match self.input_schema(to, call) {
                Some(input) => schema::required(input, input),
                None => return Coverage::Partial,
            },
            DraftKind::Operation { .. } => {
                return if names.len() == inputs { Coverage::Strict } else { Coverage::Partial };
            }
            _ => return Coverage::Partial,
        };
        if names.contains(&None) {
            return Coverage::Partial;
        }
        let given = |wanted: &&&str| names.iter().flatten().any(|name| name == *wanted);
        match required.iter().filter(given).count() {
            0 => Coverage::Optional,
            count if count == required.len() => Coverage::Strict,
            _ => Coverage::Partial,
        }
    }

    /// The tool of the catalogue that a node calls.
    fn tool_of(&self, kind: &DraftKind<'a>) -> Option<&'s Tool> {
        match kind {
            DraftKind::Call(Call { target: Target::Tool { server, name }, .. }) => {
                self.catalogue.tool(server, name)
            }
            _ => None,
        }
    }

    fn input_schema(&self, node: u32, call: &Call<'a>) -> Option<&'s Json> {
        if let Some(tool) = self.tools[node as usize] {
            return Some(tool.input());
        }
        match &call.target {
            Target::Tool { server, name } => {
                self.catalogue.capability(&[server, ":", name].concat()).map(crate::Capability::input)
            }
            Target::Capability(name) => self.catalogue.capability(name).map(crate::Capability::input),
        }
    }

    /// The nearest later call that a declared output could feed.
    fn schema_edges(&mut self) {
        let outputs = self.tools.iter().zip(0..).filter_map(|(tool, node)| Some((node, (*tool)?.output()?)));
        let providers: Vec<(u32, &Json)> = outputs.collect();
        if providers.is_empty() {
            return;
        }
        let mut after: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut fed: rustc_hash::FxHashSet<(u32, u32)> = rustc_hash::FxHashSet::default();
        for (from, to, link) in &self.edges {
            match link {
                Link::Provides { .. } => {
                    fed.insert((*from, *to));
                }
                _ => after.entry(*from).or_default().push(*to),
            }
        }
        let mut found = Vec::new();
        for (from, output) in providers {
            // What a loop leads to can follow what is in it.
            let mut starts: Vec<u32> = self.nodes[from as usize].loops.to_vec();
            starts.push(from);
            for to in reached(&starts, &after).into_iter().filter(|to| *to > from) {
                let DraftKind::Call(consumer) = &self.nodes[to as usize].kind else { continue };
                let Some(input) = self.input_schema(to, consumer) else { continue };
                if let Some(coverage) = schema::provides(output, input) {
                    if !fed.contains(&(from, to)) {
                        found.push((from, to, coverage));
                    }
                    break;
                }
            }
        }
        for (from, to, coverage) in found {
            self.edge(from, to, Link::Provides { coverage, basis: Basis::Schema, around: None });
        }
    }

    fn check_arguments(&mut self, arguments: &[Option<Argument>]) {
        for (node, argument) in arguments.iter().enumerate() {
            let DraftKind::Call(call) = &self.nodes[node].kind else { continue };
            let (Some(argument), false) = (argument, call.as_value) else { continue };
            let call = call.clone();
            let Some(input) = self.input_schema(node as u32, &call) else { continue };
            self.use_parameters(&call, input);
            let findings = schema::check_arguments(input, argument);
            // A tool wins over a capability of its name.
            let inferred = self.tools[node].is_none() && self.as_capability(&call.target).is_some();
            let id = self.nodes[node].id;
            for finding in findings {
                let span = span_of(&call.arguments, &finding.path).unwrap_or(call.span);
                let message = format!("`{}`: {}", self.name_of(&call.target), finding.message);
                if matches!(finding.code, Code::WrongType | Code::UnknownArgument) {
                    // What the tool refuses is no example of what it takes.
                    self.decided.insert(span);
                }
                let at = self.lines.position(span);
                self.complaints.push(Complaint {
                    severity: if inferred { finding.inferred() } else { finding.severity },
                    code: finding.code,
                    message,
                    hint: finding.hint,
                    at,
                    excerpt: self.lines.excerpt(at),
                    node: Some(id),
                });
            }
        }
    }

    /// Arguments of the program that become inputs of this call are what the call wants.
    fn use_parameters(&mut self, call: &Call<'a>, input: &Json) {
        let mut wanted = Vec::new();
        self.parameters_in(input, input, &call.arguments, &mut wanted, &mut Seen::default());
        for Wanted { path, schema, required } in wanted {
            self.uses.declared(path.steps(), (input, schema), required);
        }
    }

    /// The parameters in the arguments of a call and what the tool says of their place.
    fn parameters_in<'j>(
        &self,
        root: &'j Json,
        schema: &'j Json,
        value: &Value<'a>,
        found: &mut Vec<Wanted<'j>>,
        seen: &mut Seen,
    ) {
        self.state.budget.spend(1);
        if self.state.budget.is_spent() {
            return;
        }
        match value {
            Value::Parameter(path) if path.steps().is_empty() => {
                let required = schema::required(root, schema);
                for property in schema::properties(root, schema) {
                    if let schema::Lookup::Found(inner) = schema::property(root, schema, property) {
                        found.push(Wanted {
                            path: vec![Step::Key(property.to_owned())].into(),
                            schema: inner,
                            required: required.contains(&property),
                        });
                    }
                }
            }
            Value::Parameter(path) => found.push(Wanted { path: path.clone(), schema, required: true }),
            Value::Item(of, _, path) => {
                if let Value::Parameter(of) = &**of {
                    let mut whole = of.steps().to_vec();
                    whole.push(Step::Any);
                    whole.extend(path.steps().iter().cloned());
                    found.push(Wanted { path: whole.into(), schema, required: true });
                }
            }
            Value::OneOf(values) => {
                values.iter().for_each(|value| self.parameters_in(root, schema, value, found, seen));
            }
            Value::Phi(..) => {
                for source in self.sources_of(value) {
                    if !matches!(source, Value::Phi(..)) {
                        self.parameters_in(root, schema, &source, found, seen);
                    }
                }
            }
            // What is wanted of a record at a place is wanted of it once.
            Value::Record(record)
                if seen.is_new(Rc::as_ptr(record) as usize, std::ptr::from_ref(schema) as usize) =>
            {
                for member in &record.fields {
                    if let schema::Lookup::Found(inner) = schema::step_into(root, schema, &member.key) {
                        self.parameters_in(root, inner, &member.value, found, seen);
                    }
                }
                if record.is_array()
                    && let schema::Lookup::Found(inner) = schema::step_into(root, schema, &Step::Any)
                {
                    record.extra.iter().for_each(|value| self.parameters_in(root, inner, value, found, seen));
                }
                if matches!(record.kind, Kind::Object) {
                    record
                        .spreads
                        .iter()
                        .for_each(|spread| self.parameters_in(root, schema, spread, found, seen));
                }
            }
            _ => {}
        }
    }

    fn name_of(&self, target: &Target) -> String {
        match target {
            Target::Tool { server, name } => match self.catalogue.tool(server, name) {
                Some(tool) => id_of(tool),
                None => [server, ":", name].concat(),
            },
            Target::Capability(name) => name.to_string(),
        }
    }

    /// Literals handed to tools become parameters.
    fn lift(&self, uses: &Uses) -> Lifting<'_> {
        let mut lifting = Lifting::new(uses.names(), &self.decided, &self.state.budget, self.most_parts());
        for (draft, node) in self.nodes.iter().zip(0..) {
            if let DraftKind::Call(call) = &draft.kind
                && !call.as_value
            {
                lifting.call(draft.id, &call.arguments, self.input_schema(node, call));
            }
        }
        lifting
    }

    fn drawn(&self, arguments: Vec<Option<Argument>>) -> Vec<Node> {
        let nodes = self.nodes.iter().zip(&self.tools).zip(arguments).map(|((draft, tool), arguments)| {
            let arguments = arguments.unwrap_or_else(Argument::nothing);
            let task = |tool: String, arguments| NodeKind::Task { tool, arguments, code: None, pure: false };
            let kind = match &draft.kind {
                // A tool always wins over a capability of the same name.
                DraftKind::Call(call) => match tool {
                    Some(tool) => task(id_of(tool), arguments),
                    None => match self.as_capability(&call.target) {
                        Some(capability) => NodeKind::Capability { capability, arguments },
                        None => task(self.name_of(&call.target), arguments),
                    },
                },
                DraftKind::Operation { name, pure, .. } => NodeKind::Task {
                    tool: ["code:", *name].concat(),
                    arguments,
                    code: Some(self.text(draft.span).to_owned()),
                    pure: *pure,
                },
                DraftKind::Decision { condition, form, suffix, .. } => {
                    NodeKind::Decision { condition: [self.text(*condition), *suffix].concat(), form: *form }
                }
                DraftKind::Fork { form } => NodeKind::Fork { form: *form },
                DraftKind::Join => NodeKind::Join,
                DraftKind::Loop { over, form } => {
                    NodeKind::Loop { over: self.text(*over).to_owned(), form: *form }
                }
                DraftKind::Try => NodeKind::Try,
            };
            Node { id: draft.id, kind, at: self.lines.position(draft.span), branches: Vec::new() }
        });
        nodes.collect()
    }

    /// The capability that is called by the name of a tool that is not there.
    fn as_capability(&self, target: &Target) -> Option<String> {
        match target {
            Target::Capability(name) => Some(name.to_string()),
            Target::Tool { server, name } => {
                let id = [server, ":", name].concat();
                self.catalogue.capability(&id).is_some().then_some(id)
            }
        }
    }

    fn sites(&self, nodes: &[Node]) -> Vec<Site> {
        let mut sites = Vec::with_capacity(self.nodes.len());
        for ((draft, node), tool) in self.nodes.iter().zip(nodes).zip(&self.tools) {
            let (tool, value) = match &draft.kind {
                DraftKind::Join => continue,
                DraftKind::Call(call) => {
                    let name = tool.map_or_else(|| self.name_of(&call.target), id_of);
                    (Some(name), call.as_value)
                }
                _ => (None, false),
            };
            let outcomes = match &draft.kind {
                DraftKind::Decision { outcomes, form: DecisionForm::Switch, .. } => {
                    let mut outcomes = outcomes.clone();
                    outcomes.push("default".to_owned());
                    outcomes
                }
                _ => Vec::new(),
            };
            sites.push(Site {
                point: draft.point,
                context: draft.context,
                node: draft.id,
                tool,
                at: node.at,
                value,
                outcomes,
            });
        }
        sites
    }
}

/// The members of the arguments of a call, each with its name.
fn parts_of<'v, 'a>(arguments: &'v Value<'a>) -> Parts<'v, 'a> {
    match arguments {
        Value::Record(record) if matches!(record.kind, Kind::Object) => {
            let named = record.fields.iter().map(|member| (Some(key_name(&member.key)), &member.value));
            let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
            named.chain(rest.map(|value| (None, value))).collect()
        }
        other => smallvec![(None, other)],
    }
}

pub(super) fn key_name(key: &Step) -> Cow<'_, str> {
    match key {
        Step::Key(name) => name.as_str().into(),
        Step::Index(index) => index.to_string().into(),
        Step::Any => "*".into(),
    }
}

/// Where the member at `path` is written.
fn span_of(value: &Value<'_>, path: &[Step]) -> Option<Span> {
    let mut at = value;
    let mut span = None;
    for step in path {
        let Value::Record(record) = at else { break };
        let Some(member) = record.field(step) else { break };
        span = Some(member.span);
        at = &member.value;
    }
    span
}

/// The nodes that can follow `from`, nearest places in the program first.
fn reached(from: &[u32], after: &FxHashMap<u32, Vec<u32>>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut waiting = from.to_vec();
    while let Some(node) = waiting.pop() {
        for next in after.get(&node).into_iter().flatten() {
            if found.len() < SCHEMA_REACH && !found.contains(next) {
                found.push(*next);
                waiting.push(*next);
            }
        }
    }
    found.sort_unstable();
    found
}

/// What a node is given, each part with its name.
type Parts<'v, 'a> = SmallVec<[(Option<Cow<'v, str>>, &'v Value<'a>); 4]>;

/// How one node feeds another.
#[derive(Default)]
struct Feeding<'p> {
    /// Without going around a loop.
    direct: bool,
    around: Option<u32>,
    /// The members of the arguments it goes into.
    names: SmallVec<[Option<&'p str>; 2]>,
}

/// What a tool wants where an argument of the program goes.
struct Wanted<'s> {
    path: Path,
    schema: &'s Json,
    required: bool,
}
