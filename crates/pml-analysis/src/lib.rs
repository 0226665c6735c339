//! TypeScript text or a DAG document in; structure, parameters, permissions, complaints, identity
//! and the program to run out.
//!
//! Everything here is a pure function: no file, store, network or clock. The tree that is analysed
//! is the tree that runs, and a program that was not understood is an error, never an empty structure.

mod analysis;
mod annotations;
mod budget;
mod catalogue;
mod constants;
mod convert;
pub mod dag;
mod emit;
mod error;
mod identity;
mod lines;
mod literals;
mod marks;
mod nesting;
mod operations;
mod parse;
mod refuse;
pub mod render;
mod roots;
mod schema;
mod surface;
mod survey;
mod uses;
mod value;
mod walk;
mod wrong;

pub use analysis::{
    Analysis, Break, Code, Complaint, Entry, Filled, Identity, LiteralParameter, Parameters, Permissions,
    Program, Remark, Severity, Site,
};
pub use catalogue::{Capability, Catalogue, Tool, Unready, Withheld};
pub use constants::{Constant, constants};
pub use convert::{Reason, WhyNot, to_dag};
pub use dag::{DagAnalysis, DagError, analyse_dag};
pub use error::Error;
pub use identity::ANALYSIS_VERSION;
pub use operations::is_pure_tool;
pub use schema::nearest;

/// Analyses a program.
///
/// # Errors
/// It is too large, too deep, too complex, or not a program this sandbox could run.
pub fn analyse(source: &str, catalogue: &Catalogue) -> Result<Analysis, Error> {
    if source.len() > parse::MAX_SOURCE_BYTES {
        return Err(Error::TooLarge { size_bytes: source.len(), limit: parse::MAX_SOURCE_BYTES });
    }
    parse::on_large_stack(source, |allocator| understand(allocator, source, catalogue))?
}

fn understand(
    allocator: &oxc_allocator::Allocator,
    source: &str,
    catalogue: &Catalogue,
) -> Result<Analysis, Error> {
    let lines = lines::Lines::new(source);
    let (mut program, stats) = parse::parse(allocator, &lines)?;
    let (found, scoping, annotated) = {
        let (semantic, wrong) = parse::scopes(&lines, &program, stats)?;
        let scoping = semantic.into_scoping();
        let mut found = walk::walk(&program, source, &lines, &scoping, catalogue)
            .map_err(|walk::BudgetSpent(at)| too_complex(&lines, at))?;
        found.complaints.extend(wrong.iter().map(cannot_run));
        found.complaints.sort_by_key(|complaint| (complaint.at.start, complaint.severity, complaint.code));
        let annotated = annotations::canonical(&program, source);
        (found, scoping, annotated)
    };
    let emitted = emit::emit(allocator, source, &mut program, scoping, &found.marks)
        .map_err(|error| not_emitted(&lines, &error))?;
    Ok(Analysis {
        structure: found.structure,
        parameters: found.parameters,
        permissions: found.permissions,
        complaints: found.complaints,
        identity: identity::identity(source, &(emitted.canonical + &annotated)),
        program: Program {
            js: emitted.js,
            probe: emitted.probe,
            sites: found.sites,
            entries: found.entries,
            lines: emitted.lines,
            breaks: emitted.breaks,
        },
    })
}

/// What is meant can be seen, but it would not run.
fn cannot_run(error: &Error) -> Complaint {
    Complaint {
        severity: Severity::Error,
        code: Code::BadName,
        message: error.to_string(),
        hint: error.hint(),
        at: error.position().unwrap_or_default(),
        excerpt: error.excerpt().unwrap_or_default().to_owned(),
        node: None,
    }
}

/// A program that could not be followed to its end.
fn too_complex(lines: &lines::Lines<'_>, at: oxc_span::Span) -> Error {
    let at = lines.position(at);
    Error::TooComplex { at, excerpt: lines.excerpt(at) }
}

/// A program that was understood and still cannot be run.
fn not_emitted(lines: &lines::Lines<'_>, error: &emit::Error) -> Error {
    let (emit::Error::Unsupported { at, .. } | emit::Error::Types { at }) = error;
    refuse::unsupported(lines, *at, &error.to_string(), None)
}
