//! What is checked of one generated program.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pml_analysis::{Analysis, AnalysisCatalogue, Complaint, ComplaintCode, ProbeSite, analyse};
use pml_model::structure::{NodeKind, NodeLetter};
use serde_json::Value;

use crate::engine::{self, At, Outcome, Run};
use crate::print::{Language, Look, NAME, SHORTHAND, compiled, print};
use crate::sound::sound;

/// What is wrong, and all there is to know about it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// In a few words, the same for failures of the same kind.
    pub(crate) kind: &'static str,
    /// Everything else.
    pub(crate) detail: String,
}

/// The generator made something that is not a program; leaving out lines of it makes no sense.
pub(crate) const INVALID: &str = "the generated program is not JavaScript";

/// What a program that passed was like.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    /// Tools called.
    pub(crate) calls: usize,
    /// Lines written to the console.
    pub(crate) logged: usize,
    /// Probe reports, those of calls apart.
    pub(crate) reports: usize,
    /// It ended with a value, not with an exception.
    pub(crate) ended: bool,
    /// The analysis knows all the tools it can call.
    pub(crate) known: bool,
}

fn fail<T>(kind: &'static str, detail: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { kind, detail: detail.into() })
}

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// Analysed once, run twice.
    RunOnly,
    /// Analysed again, and written in other ways, too.
    All,
}

/// Runs the program as written and as emitted, and compares; `text` is marked.
pub(crate) fn check(
    text: &str,
    thoroughness: Thoroughness,
    catalogue: &AnalysisCatalogue,
) -> Result<Seen, Failure> {
    let plain = print(text, Language::JavaScript, Look::Plain);
    let source = print(text, Language::TypeScript, Look::Plain);
    let written = match engine::run(&plain, "probe", &Value::Array(Vec::new())) {
        Ok(run) if run.outcome.end == "did not end" || run.outcome.end == "never settled" => {
            return fail("the generated program does not end", plain);
        }
        Ok(run) => run.outcome,
        Err(message) => return fail(INVALID, format!("{message}\n{plain}")),
    };
    let analysis = analysed(&source, catalogue)?;
    sound(&analysis, &source).or_else(|message| fail("unsound", format!("{message}\n{source}")))?;
    let emitted = emitted(&analysis, &source)?;
    compare(&written, &emitted.outcome, &source, &analysis.program.js)?;
    reported(&emitted, &analysis).or_else(|failure| {
        fail(failure.kind, format!("{}\n{source}\n---- emitted\n{}", failure.detail, analysis.program.js))
    })?;
    permitted(&written, &analysis, &source)?;
    if thoroughness == Thoroughness::All {
        same_again(text, &source, &analysis, catalogue)?;
    }
    Ok(Seen {
        calls: written.calls.len(),
        logged: written.log.len(),
        reports: emitted.reports.len(),
        ended: written.end.starts_with("value"),
        known: !analysis.permissions.is_opaque(),
    })
}

/// The analysis, which neither refuses nor panics.
fn analysed(source: &str, catalogue: &AnalysisCatalogue) -> Result<Analysis, Failure> {
    match catch_unwind(AssertUnwindSafe(|| analyse(source, catalogue))) {
        Ok(Ok(analysis)) => Ok(analysis),
        Ok(Err(error)) => fail("the analysis refuses", format!("{error:?}\n{source}")),
        Err(_) => fail("the analysis panics", source),
    }
}

fn emitted(analysis: &Analysis, source: &str) -> Result<Run, Failure> {
    let program = &analysis.program;
    let entries = serde_json::to_value(&program.entries).expect("entries are JSON");
    engine::run(&program.js, &program.probe, &entries).or_else(|message| {
        fail(
            "the emitted program is not JavaScript",
            format!("{message}\n{source}\n---- emitted\n{}", program.js),
        )
    })
}

fn compare(written: &Outcome, emitted: &Outcome, source: &str, js: &str) -> Result<(), Failure> {
    if written == emitted {
        return Ok(());
    }
    let first = |a: &[String], b: &[String]| {
        let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        format!(
            "from line {at}:\n  written {:?}\n  emitted {:?}",
            &a[at..a.len().min(at + 3)],
            &b[at..b.len().min(at + 3)]
        )
    };
    let calls = |outcome: &Outcome| -> Vec<String> {
        outcome.calls.iter().map(|call| format!("{} {} {}", call.tool, call.arguments, call.given)).collect()
    };
    let detail = format!(
        "end:\n  written {}\n  emitted {}\nconsole {}\ncalls {}\n---- source\n{source}\n---- emitted\n{js}",
        written.end,
        emitted.end,
        first(&written.log, &emitted.log),
        first(&calls(written), &calls(emitted)),
    );
    fail("the emitted program does something else", detail)
}

/// Every report means something, and what it means is what happened.
fn reported(run: &Run, analysis: &Analysis) -> Result<(), Failure> {
    let sites: HashMap<At, &ProbeSite> = analysis
        .program
        .sites
        .iter()
        .map(|site| (At { point: site.point, context: site.context }, site))
        .collect();
    for (call, at) in run.outcome.calls.iter().zip(&run.at) {
        called(&call.tool, *at, analysis)?;
    }
    for report in &run.reports {
        let at = At { point: report.point, context: report.context };
        let Some(site) = sites.get(&at) else {
            // A function that reaches tools in one context may only compute in another: nothing to see there.
            if analysis.program.sites.iter().any(|site| site.point == report.point) {
                continue;
            }
            return fail("a report means nothing", format!("{report:?}"));
        };
        let fits = match report.kind.as_str() {
            "is" | "has" | "case" => site.node.letter == NodeLetter::D,
            "loop" | "turn" => site.node.letter == NodeLetter::L,
            "caught" => site.node.letter == NodeLetter::T,
            "fork" => site.node.letter == NodeLetter::F,
            "did" => site.node.letter == NodeLetter::N,
            _ => false,
        };
        let case = report.kind != "case"
            || report.value.as_u64().is_some_and(|index| (index as usize) < site.outcomes.len());
        if !fits || !case {
            return fail("a report is of another kind than its node", format!("{report:?} {site:?}"));
        }
    }
    Ok(())
}

/// A call came from a site of that tool, or the tool was handed on as a value somewhere.
fn called(tool: &str, at: Option<At>, analysis: &Analysis) -> Result<(), Failure> {
    let same = |site: &ProbeSite| match tool.strip_prefix("capability:") {
        None => site.tool.as_deref() == Some(tool),
        Some(name) => analysis.structure.node(site.node).is_some_and(
            |node| matches!(&node.kind, NodeKind::Capability { capability, .. } if capability == name),
        ),
    };
    let here: Vec<&ProbeSite> = analysis
        .program
        .sites
        .iter()
        .filter(|site| at.is_some_and(|at| at.point == site.point && at.context == site.context))
        .collect();
    if here.iter().any(|site| same(site))
        || analysis.program.sites.iter().any(|site| site.value && same(site))
    {
        return Ok(());
    }
    // A tool that is not there throws when its place has been told: the next call that tells none seems to come from it.
    // Whoever reads the reports sees that it is another tool.
    let is_there = |site: &&&ProbeSite| {
        let is_unknown = |complaint: &Complaint| {
            matches!(complaint.code, ComplaintCode::UnknownTool | ComplaintCode::UnknownCapability)
                && complaint.at == site.at
        };
        !analysis.complaints.iter().any(is_unknown)
    };
    match here.iter().filter(|site| site.tool.is_some()).find(is_there) {
        Some(site) => fail("a call is taken for another tool", format!("`{tool}` reported as {site:?}")),
        None if analysis.permissions.is_opaque() => Ok(()),
        None => fail("a call comes from nowhere", format!("`{tool}` at {at:?}")),
    }
}

fn permitted(written: &Outcome, analysis: &Analysis, source: &str) -> Result<(), Failure> {
    let permissions = &analysis.permissions;
    if permissions.is_opaque() {
        return Ok(());
    }
    for call in &written.calls {
        let declared = match call.tool.strip_prefix("capability:") {
            None => permissions.declared.contains(&call.tool),
            Some(name) => permissions.capabilities.contains(name),
        };
        if !declared {
            return fail("a call was not declared", format!("`{}` in\n{source}", call.tool));
        }
    }
    Ok(())
}

/// Analysed again it is the same; written otherwise it is the same program.
fn same_again(
    text: &str,
    source: &str,
    analysis: &Analysis,
    catalogue: &AnalysisCatalogue,
) -> Result<(), Failure> {
    let json = |analysis: &Analysis| serde_json::to_value(analysis).expect("an analysis is JSON");
    if json(&analysed(source, catalogue)?) != json(analysis) {
        return fail("the analysis is not deterministic", source);
    }
    let other = print(text, Language::TypeScript, Look::Other(1));
    same_program("another look makes another program", &other, source, analysis, catalogue)?;
    if !compiled(text) {
        let untyped = print(text, Language::JavaScript, Look::Plain);
        same_program("without types it is another program", &untyped, source, analysis, catalogue)?;
    }
    // What is emitted is for the engine, not for the analysis; that must not matter to it.
    match catch_unwind(AssertUnwindSafe(|| analyse(&analysis.program.js, catalogue).is_ok())) {
        Ok(_) => Ok(()),
        Err(_) => fail("the analysis panics over what is emitted", analysis.program.js.as_str()),
    }
}

fn same_program(
    kind: &'static str,
    other: &str,
    source: &str,
    analysis: &Analysis,
    catalogue: &AnalysisCatalogue,
) -> Result<(), Failure> {
    let again = analysed(other, catalogue)?;
    if again.identity.identity != analysis.identity.identity {
        return fail(kind, format!("identity differs\n{source}\n---- other\n{other}"));
    }
    let (before, after) = (unworded(analysis), unworded(&again));
    if before != after {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("a value is JSON");
        let (before, after) = (pretty(&before), pretty(&after));
        let at = before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count();
        let some =
            |text: &str| text.lines().skip(at.saturating_sub(12)).take(24).collect::<Vec<_>>().join("\n");
        return fail(
            kind,
            format!(
                "structure differs:\n{}\n---- and\n{}\n---- source\n{source}\n---- other\n{other}",
                some(&before),
                some(&after)
            ),
        );
    }
    Ok(())
}

/// A structure without places and without texts as written.
fn unworded(analysis: &Analysis) -> Value {
    let mut value = serde_json::to_value(&analysis.structure).expect("a structure is JSON");
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for word in ["at", "condition", "over", "code", "source"] {
                members.remove(word);
            }
            // What an operation works on has no names but the texts.
            let operation =
                members.get("tool").and_then(Value::as_str).is_some_and(|tool| tool.starts_with("code:"));
            if operation && let Some(Value::Array(fields)) = members["arguments"].get_mut("fields") {
                fields
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(|field| drop(field.remove("name")));
            }
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The shortest text that fails in the same way, found by leaving out lines. A name whose declaration is left
/// out would be another name, so its first line stays as long as any other that has it.
pub(crate) fn shrink(text: &str, kind: &str, catalogue: &AnalysisCatalogue) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut declared: HashMap<&str, usize> = HashMap::new();
    for (index, line) in all.iter().enumerate() {
        for name in names(line) {
            declared.entry(name).or_insert(index);
        }
    }
    let fails = |kept: &[usize]| {
        let whole = kept.iter().all(|&line| names(all[line]).all(|name| kept.contains(&declared[name])));
        let fewer: Vec<&str> = kept.iter().map(|&line| all[line]).collect();
        whole
            && check(&fewer.join("\n"), Thoroughness::All, catalogue)
                .is_err_and(|failure| failure.kind == kind)
    };
    let mut kept: Vec<usize> = (0..all.len()).collect();
    let mut size = kept.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + size).min(kept.len()));
            if fails(&fewer) {
                kept = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    kept.into_iter().map(|line| all[line]).collect::<Vec<_>>().join("\n")
}

/// The marked names of a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split([NAME, SHORTHAND]).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        &rest[..end]
    })
}
