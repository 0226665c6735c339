//! Analyses TypeScript programs and DAG documents. The result is structure, parameters, permissions, complaints,
//! identity and the program to run.
//!
//! Everything here is a pure function: no file, store, network or clock. The tree that is analysed is the tree that
//! runs. A program that was not understood is an error, never an empty structure.

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
mod sites;
mod surface;
mod survey;
mod uses;
mod value;
mod walk;
mod wrong;

pub use analysis::{
    Analysis, Complaint, ComplaintCode, ContextEntry, DecisionReads, FilledArgument, InstrumentedProgram,
    LineBreak, LiteralParameter, Parameters, Permissions, ProbeSite, ProgramIdentity, Remark, Severity,
};
pub use catalogue::{AnalysisCapability, AnalysisCatalogue, AnalysisTool, UnreadyServer, WithheldTool};
pub use constants::{Constant, find_constants};
pub use convert::{DagRefusal, DagRefusalReason, convert_to_dag};
pub use dag::{DagAnalysis, DagError, analyse_dag};
pub use error::Error;
pub use identity::ANALYSIS_VERSION;
pub use literals::is_code_like;
pub use operations::is_pure_tool;
pub use schema::closest_names;
pub use sites::{LiteralSite, SiteForm, SiteUsage, find_literal_sites};

/// Analyses a program.
///
/// # Errors
/// The program is too large, too deep, too complex, or not one that the sandbox can run.
pub fn analyse(source: &str, catalogue: &AnalysisCatalogue) -> Result<Analysis, Error> {
    if source.len() > parse::MAX_SOURCE_BYTES {
        return Err(Error::TooLarge { size_bytes: source.len(), limit: parse::MAX_SOURCE_BYTES });
    }
    parse::on_large_stack(source, |allocator| understand(allocator, source, catalogue))?
}

fn understand(
    allocator: &oxc_allocator::Allocator,
    source: &str,
    catalogue: &AnalysisCatalogue,
) -> Result<Analysis, Error> {
    let lines = lines::SourceLines::new(source);
    let (mut program, stats) = parse::parse_program(allocator, &lines)?;
    let (found, scoping, annotated) = {
        let (semantic, wrong) = parse::resolve_scopes(&lines, &program, stats)?;
        let scoping = semantic.into_scoping();
        let mut found = walk::walk_program(&program, source, &lines, &scoping, catalogue)
            .map_err(|walk::BudgetSpent(at)| too_complex(&lines, at))?;
        found.complaints.extend(wrong.iter().map(cannot_run));
        found.complaints.sort_by_key(|complaint| (complaint.at.start, complaint.severity, complaint.code));
        let annotated = annotations::canonical_annotations(&program, source);
        (found, scoping, annotated)
    };
    let emitted = emit::emit_program(allocator, source, &mut program, scoping, &found.marks)
        .map_err(|error| not_emitted(&lines, &error))?;
    Ok(Analysis {
        structure: found.structure,
        parameters: found.parameters,
        permissions: found.permissions,
        complaints: found.complaints,
        identity: identity::compute_identity(source, &(emitted.canonical + &annotated)),
        program: InstrumentedProgram {
            js: emitted.js,
            probe: emitted.probe,
            sites: found.sites,
            entries: found.entries,
            lines: emitted.lines,
            breaks: emitted.breaks,
            decided_by: found.decided_by,
            returns_from: found.returns_from,
            ends_after: found.ends_after,
        },
    })
}

/// Complaint about a program whose meaning is clear but which cannot run.
fn cannot_run(error: &Error) -> Complaint {
    Complaint {
        severity: Severity::Error,
        code: ComplaintCode::BadName,
        message: error.to_string(),
        hint: error.hint(),
        at: error.position().unwrap_or_default(),
        excerpt: error.excerpt().unwrap_or_default().to_owned(),
        node: None,
    }
}

/// Error of a program that exceeds the work budget.
fn too_complex(lines: &lines::SourceLines<'_>, at: oxc_span::Span) -> Error {
    let at = lines.position(at);
    Error::TooComplex { at, excerpt: lines.excerpt(at) }
}

/// Error of a program that was analysed but cannot be emitted.
fn not_emitted(lines: &lines::SourceLines<'_>, error: &emit::EmitError) -> Error {
    let (emit::EmitError::Unsupported { at, .. } | emit::EmitError::Types { at }) = error;
    refuse::unsupported_error(lines, *at, &error.to_string(), None)
}
