//! Synthetic programs, as the analysis would return them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::{Expect, expect};
use pml_model::ToolId;
use pml_model::structure::{ArgumentField, Coverage, DecisionForm, Edge, EdgeBasis, Node, Position};
use serde_json::value::to_raw_value;

use super::*;
use crate::dag::analyse_dag;
use crate::{
    AnalysisCapability, AnalysisTool, Complaint, InstrumentedProgram, Parameters, Permissions,
    ProgramIdentity, Remark,
};

/// A step of a synthetic program.
#[derive(Debug, Clone)]
enum Do {
    /// Calls a tool, or a capability when there is no colon.
    Call(&'static str, Argument),
    /// `Promise.all` over these branches.
    All(Vec<Vec<Do>>),
    /// Something else.
    Other(NodeKind),
}

fn catalogue() -> AnalysisCatalogue {
    let mut catalogue = AnalysisCatalogue::default();
    for (id, read_only) in [("db:read", true), ("db:write", false)] {
        let input = to_raw_value(&json!({})).unwrap();
        catalogue.add_tool(AnalysisTool::new(
            ToolId::parse(id).unwrap(),
            id[3..].to_owned(),
            input,
            None,
            read_only,
        ));
    }
    catalogue.add_capability(AnalysisCapability::new("tidy".to_owned(), to_raw_value(&json!({})).unwrap()));
    catalogue
}

/// Builds a structure with nodes in the order of the program.
#[derive(Default)]
struct Builder {
    structure: Structure,
    counts: [u32; 2],
    /// For each call, its enclosing branches: fork and branch number.
    places: Vec<(NodeId, Vec<(NodeId, usize)>)>,
    inside: Vec<(NodeId, usize)>,
}

impl Builder {
    fn node(&mut self, letter: NodeLetter, number: u32, kind: NodeKind, after: &[NodeId]) -> NodeId {
        let id = NodeId { letter, number };
        let line = u32::try_from(self.structure.nodes.len()).unwrap() + 1;
        self.structure.nodes.push(Node {
            id,
            kind,
            at: Position { line, column: 1, start: 0, end: 0 },
            branches: Vec::new(),
        });
        let edges = after.iter().map(|&from| Edge { from, to: id, link: EdgeLink::Sequence });
        self.structure.edges.extend(edges);
        id
    }

    /// Adds steps after `after`. Returns the last nodes.
    fn run(&mut self, steps: &[Do], mut after: Vec<NodeId>) -> Vec<NodeId> {
        for step in steps {
            after = match step {
                Do::Call(name, arguments) => {
                    let (name, arguments) = ((*name).to_owned(), arguments.clone());
                    let kind = if name.contains(':') {
                        NodeKind::Task { tool: name, arguments, code: None, pure: false }
                    } else {
                        NodeKind::Capability { capability: name, arguments }
                    };
                    self.counts[0] += 1;
                    let id = self.node(NodeLetter::N, self.counts[0], kind, &after);
                    self.places.push((id, self.inside.clone()));
                    vec![id]
                }
                Do::Other(kind) => {
                    self.counts[0] += 1;
                    vec![self.node(NodeLetter::N, self.counts[0], kind.clone(), &after)]
                }
                Do::All(branches) => {
                    self.counts[1] += 1;
                    let number = self.counts[1];
                    let fork =
                        self.node(NodeLetter::F, number, NodeKind::Fork { form: ForkForm::All }, &after);
                    let mut ends = Vec::new();
                    for (branch, steps) in branches.iter().enumerate() {
                        self.inside.push((fork, branch));
                        ends.extend(self.run(steps, vec![fork]));
                        self.inside.pop();
                    }
                    vec![self.node(NodeLetter::J, number, NodeKind::Join, &ends)]
                }
            };
        }
        after
    }
}

fn analysis(structure: Structure) -> Analysis {
    Analysis {
        structure,
        parameters: Parameters { schema: json!({}), literals: Vec::new() },
        permissions: Permissions::default(),
        complaints: Vec::new(),
        identity: ProgramIdentity { identity: String::new(), code_hash: String::new(), analysis_version: 0 },
        program: InstrumentedProgram {
            js: String::new(),
            probe: String::new(),
            sites: Vec::new(),
            entries: Vec::new(),
            lines: Vec::new(),
            breaks: Vec::new(),
            decided_by: Vec::new(),
            returns_from: Vec::new(),
            ends_after: Vec::new(),
        },
    }
}

fn program(steps: &[Do]) -> Analysis {
    let mut builder = Builder::default();
    builder.run(steps, Vec::new());
    analysis(builder.structure)
}

fn n(number: u32) -> NodeId {
    NodeId { letter: NodeLetter::N, number }
}

fn literal(value: Value) -> Argument {
    Argument::Literal { value }
}

fn result(number: u32, path: &[PathStep]) -> Argument {
    Argument::Reference { node: n(number), path: path.to_vec() }
}

fn key(name: &str) -> PathStep {
    PathStep::Key(name.to_owned())
}

fn object(fields: Vec<(&str, Argument)>) -> Argument {
    let fields =
        fields.into_iter().map(|(name, value)| ArgumentField { name: name.to_owned(), value }).collect();
    Argument::Object { fields, spreads: Vec::new() }
}

fn read() -> Do {
    Do::Call("db:read", Argument::empty_object())
}

fn write() -> Do {
    Do::Call("db:write", Argument::empty_object())
}

#[track_caller]
fn check(analysis: &Analysis, expected: &Expect) {
    let shown = match convert_to_dag(analysis, &catalogue()) {
        Ok(document) => {
            let analysed = analyse_dag(&document.to_string(), &catalogue()).unwrap();
            assert_eq!(analysed.complaints, [], "{document}");
            document["tasks"].as_array().unwrap().iter().fold(String::new(), |mut shown, task| {
                writeln!(shown, "{task}").unwrap();
                shown
            })
        }
        Err(why) => why.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn arguments_are_spelled_as_a_document_does() {
    let text = Argument::Template {
        parts: vec![
            literal(json!("row ")),
            result(1, &[key("odd key"), PathStep::Index(0)]),
            literal(json!("!")),
        ],
    };
    let parameter = Argument::Parameter { name: "city".to_owned(), path: vec![key("name")] };
    check(
        &program(&[
            Do::Call(
                "db:read",
                object(vec![("all", Argument::Parameter { name: String::new(), path: vec![] })]),
            ),
            Do::Call(
                "db:write",
                object(vec![("text", text), ("where", parameter), ("n", literal(json!(1.5)))]),
            ),
            Do::Call(
                "tidy",
                object(vec![
                    ("braces", literal(json!("{{n1.x}}"))),
                    ("keys", object(vec![("$ref", literal(json!("n1"))), ("$literal", literal(json!(2)))])),
                    ("list", Argument::Array { items: vec![result(2, &[]), literal(json!(null))] }),
                ]),
            ),
        ]),
        &expect![[r#"
            {"id":"n1","tool":"db:read","arguments":{"all":{"$ref":"args"}},"dependsOn":[]}
            {"id":"n2","tool":"db:write","arguments":{"text":"row {{n1[\"odd key\"][0]}}!","where":{"$ref":"args.city.name"},"n":1.5},"dependsOn":["n1"]}
            {"id":"n3","capability":"tidy","arguments":{"braces":{"$literal":"{{n1.x}}"},"keys":{"$literal":{"$ref":"n1","$literal":2}},"list":[{"$ref":"n2"},null]},"dependsOn":["n2"]}
        "#]],
    );
}

#[test]
fn writes_keep_their_order_and_reads_see_what_was_written() {
    check(
        &program(&[write(), read(), read(), write(), Do::Call("tidy", Argument::empty_object()), read()]),
        &expect![[r#"
        {"id":"n1","tool":"db:write","arguments":{},"dependsOn":[]}
        {"id":"n2","tool":"db:read","arguments":{},"dependsOn":["n1"]}
        {"id":"n3","tool":"db:read","arguments":{},"dependsOn":["n1"]}
        {"id":"n4","tool":"db:write","arguments":{},"dependsOn":["n2","n3"]}
        {"id":"n5","capability":"tidy","arguments":{},"dependsOn":["n4"]}
        {"id":"n6","tool":"db:read","arguments":{},"dependsOn":["n5"]}
    "#]],
    );
}

#[test]
fn members_of_a_fork_do_not_wait_for_each_other() {
    check(
        &program(&[
            write(),
            Do::All(vec![
                vec![write(), read()],
                vec![read()],
                vec![Do::All(vec![vec![write()], vec![write()]]), write()],
            ]),
            read(),
            write(),
        ]),
        &expect![[r#"
            {"id":"n1","tool":"db:write","arguments":{},"dependsOn":[]}
            {"id":"n2","tool":"db:write","arguments":{},"dependsOn":["n1"]}
            {"id":"n3","tool":"db:read","arguments":{},"dependsOn":["n2"]}
            {"id":"n4","tool":"db:read","arguments":{},"dependsOn":["n1"]}
            {"id":"n5","tool":"db:write","arguments":{},"dependsOn":["n1"]}
            {"id":"n6","tool":"db:write","arguments":{},"dependsOn":["n1"]}
            {"id":"n7","tool":"db:write","arguments":{},"dependsOn":["n5","n6"]}
            {"id":"n8","tool":"db:read","arguments":{},"dependsOn":["n2","n7"]}
            {"id":"n9","tool":"db:write","arguments":{},"dependsOn":["n3","n4","n8"]}
        "#]],
    );
}

#[test]
fn a_call_inside_the_arguments_of_another_comes_first() {
    // As in `mcp.db.write({x: await mcp.db.read({})})`, where the outer call has the lower number.
    let mut analysis = program(&[Do::Call("db:write", object(vec![("x", result(2, &[]))])), read()]);
    analysis.structure.edges = vec![
        Edge { from: n(2), to: n(1), link: EdgeLink::Sequence },
        Edge {
            from: n(2),
            to: n(1),
            link: EdgeLink::Provides { coverage: Coverage::Strict, basis: EdgeBasis::Data, around: None },
        },
    ];
    check(
        &analysis,
        &expect![[r#"
        {"id":"n2","tool":"db:read","arguments":{},"dependsOn":[]}
        {"id":"n1","tool":"db:write","arguments":{"x":{"$ref":"n2"}},"dependsOn":["n2"]}
    "#]],
    );
}

#[test]
fn everything_a_document_cannot_say_is_listed() {
    let other = |kind: NodeKind| Do::Other(kind);
    let text = |parts: Vec<Argument>| object(vec![("x", Argument::Template { parts })]);
    let mut analysis = program(&[
        Do::Call(
            "db:read",
            object(vec![("x", Argument::Expression { source: "a + 1".to_owned(), reads: vec![] })]),
        ),
        Do::Call("db:read", object(vec![("x", result(1, &[key("rows"), PathStep::Any]))])),
        other(NodeKind::Decision { condition: "r.ok".to_owned(), form: DecisionForm::If }),
        other(NodeKind::Fork { form: ForkForm::Race }),
        other(NodeKind::Fork { form: ForkForm::AllSettled }),
        other(NodeKind::Try),
        other(NodeKind::Task {
            tool: "code:filter".to_owned(),
            arguments: result(1, &[]),
            code: Some("r.filter(x => x)".to_owned()),
            pure: true,
        }),
        Do::Call("db:read", object(vec![("x", result(7, &[]))])),
        Do::Call("db:read", text(vec![literal(json!("{{ {")), result(1, &[])])),
        Do::Call("db:read", text(vec![result(1, &[])])),
        Do::Call("db:read", object(vec![("$ref", result(1, &[]))])),
        Do::Call("db:read", Argument::Object { fields: vec![], spreads: vec![result(1, &[])] }),
        Do::Call("db:read", literal(json!("text"))),
    ]);
    let at = Position { line: 9, column: 1, start: 0, end: 0 };
    analysis.permissions.opaque.push(Remark { what: "`mcp` is passed on".to_owned(), at });
    analysis.complaints.push(Complaint {
        severity: Severity::Warning,
        code: ComplaintCode::NotAwaited,
        message: "nobody waits for `db:write`".to_owned(),
        hint: None,
        at,
        excerpt: String::new(),
        node: None,
    });
    let why = convert_to_dag(&analysis, &catalogue()).unwrap_err();
    expect![[r#"
        the program cannot be written as a DAG document: line 9: not all calls are known: `mcp` is passed on
        line 9: nobody waits for `db:write`
        n1 on line 1: `a + 1` is computed
        n2 on line 2: which element is used is known only when it runs
        n3 on line 3: it chooses by `r.ok`
        n4 on line 4: it does not wait for all of them
        n5 on line 5: `Promise.allSettled` goes on after failures
        n6 on line 6: it handles failures itself
        n7 on line 7: `code:filter` computes something
        n8 on line 8: n7 is no call whose result a document could refer to
        n9 on line 9: the text `{{ {{{n1}}` would mean something else in a document
        n10 on line 10: the text `{{n1}}` would mean something else in a document
        n11 on line 11: `$ref` means something else in a document
        n12 on line 12: an argument is spread out of an object
        n13 on line 13: its arguments are no object"#]]
    .assert_eq(&why.to_string().replace("; ", "\n"));
    check(&program(&[]), &expect!["the program cannot be written as a DAG document: it calls nothing"]);
}

/// Seeded pseudorandom numbers for synthetic programs.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }
}

/// A synthetic program; `made` counts its calls, `seen` are those whose results it can use here.
fn made_up(dice: &mut Dice, depth: usize, made: &mut u32, seen: &mut Vec<u32>) -> Vec<Do> {
    let mut steps = Vec::new();
    for _ in 0..=dice.below(5) {
        if depth > 0 && dice.below(4) == 0 {
            let mut after = seen.clone();
            let branches = (0..=dice.below(3)).map(|_| {
                let mut inside = seen.clone();
                let branch = made_up(dice, depth - 1, made, &mut inside);
                after.extend(&inside[seen.len()..]);
                branch
            });
            steps.push(Do::All(branches.collect()));
            *seen = after;
            continue;
        }
        let arguments = match seen.len() {
            0 => Argument::empty_object(),
            known if dice.below(3) == 0 => object(vec![("x", result(seen[dice.below(known)], &[]))]),
            _ => Argument::empty_object(),
        };
        *made += 1;
        seen.push(*made);
        steps.push(Do::Call(
            ["db:read", "db:read", "db:write", "tidy", "other:unknown"][dice.below(5)],
            arguments,
        ));
    }
    steps
}

/// Transitive dependencies of each task.
fn before(document: &Value) -> HashMap<String, BTreeSet<String>> {
    let mut before: HashMap<String, BTreeSet<String>> = HashMap::new();
    for task in document["tasks"].as_array().unwrap() {
        let mut all = BTreeSet::new();
        for other in task["dependsOn"].as_array().unwrap() {
            let other = other.as_str().unwrap();
            all.extend(before[other].iter().cloned());
            all.insert(other.to_owned());
        }
        before.insert(task["id"].as_str().unwrap().to_owned(), all);
    }
    before
}

#[test]
fn no_order_that_matters_is_lost() {
    let catalogue = catalogue();
    for seed in 1..=500 {
        let mut dice = Dice(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15));
        let mut builder = Builder::default();
        builder.run(&made_up(&mut dice, 2, &mut 0, &mut Vec::new()), Vec::new());
        // Where the structure has no order edge, the order of the nodes still counts.
        let plain = |edge: &Edge| edge.from.letter == NodeLetter::N && edge.to.letter == NodeLetter::N;
        if dice.below(3) == 0 && builder.counts[1] == 0 {
            builder.structure.edges.retain(|edge| !plain(edge) || dice.below(2) == 0);
        }
        let kinds: HashMap<NodeId, NodeKind> =
            builder.structure.nodes.iter().map(|node| (node.id, node.kind.clone())).collect();
        let document = convert_to_dag(&analysis(builder.structure), &catalogue).unwrap();
        let before = before(&document);
        for (later, (b, b_in)) in builder.places.iter().enumerate() {
            for (a, a_in) in &builder.places[..later] {
                let together = a_in.iter().any(|(fork, branch)| {
                    b_in.iter().any(|(other_fork, other)| fork == other_fork && branch != other)
                });
                let reads =
                    |node: &NodeId| matches!(&kinds[node], NodeKind::Task { tool, .. } if tool == "db:read");
                let waits = before[&b.to_string()].contains(&a.to_string());
                if together {
                    assert!(!waits, "seed {seed}: {b} waits for {a} of the same fork\n{document}");
                } else if !(reads(a) && reads(b)) {
                    assert!(waits, "seed {seed}: {b} does not wait for {a}\n{document}");
                }
            }
        }
    }
}
