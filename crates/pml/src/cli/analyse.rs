//! `pml analyse`: analyses a program or a DAG document without running it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pml_analysis::Severity;
use pml_analysis::render::{self, AnalysisView, ComplaintReport, NamedSource};
use pml_model::name::printable;
use pml_model::structure::Structure;
use serde::Serialize;
use serde_json::json;

use super::{CommandContext, out};
use crate::app::ProcessRole;
use crate::flow::{self, AnalysisOutcome};
use crate::problem::{ErrorCode, Problem};

/// 16 MiB: more than the analysis accepts, so that the analysis reports what is too large, with its limit.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The width of a table in columns where standard output is no terminal.
const USUAL_WIDTH: usize = 100;

/// Arguments of `pml analyse`.
#[derive(Debug, Args)]
pub(super) struct AnalyseArgs {
    /// A TypeScript program or a DAG document; - reads standard input
    file: PathBuf,
    #[command(flatten)]
    form: AnalyseOutputArgs,
}

/// How the result is printed; a table where nothing is said.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct AnalyseOutputArgs {
    /// Print a table (the default)
    #[arg(long)]
    table: bool,
    /// Print a Mermaid flowchart
    #[arg(long)]
    mermaid: bool,
    /// Print a graph for Graphviz
    #[arg(long)]
    dot: bool,
}

/// The output format.
#[derive(Debug, Clone, Copy)]
enum AnalyseOutput {
    Json,
    Table,
    Mermaid,
    Dot,
}

/// The kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnalysedKind {
    Program,
    Dag,
}

/// The document that `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnalysisDocument<'a, A> {
    schema_version: u32,
    #[serde(flatten)]
    analysis: &'a A,
}

pub(super) async fn run(here: &CommandContext, analyse: AnalyseArgs) -> Result<ExitCode, Problem> {
    let output = output(here, &analyse.form)?;
    let (name, source) = read_source(here, &analyse.file)?;
    let kind = kind(&analyse.file, &source);
    let app = here.open_app(ProcessRole::Command).await?;
    let analysed = match kind {
        AnalysedKind::Dag => flow::analyse_dag(&app, source.clone()).await,
        AnalysedKind::Program => flow::analyse(&app, source.clone()).await,
    };
    app.close().await;
    let file = NamedSource { name: &name, text: &source };
    Ok(match &analysed {
        AnalysisOutcome::Program(analysis) => print(&file, analysis, AnalysisView::from(&**analysis), output),
        AnalysisOutcome::Dag(analysis) => print(&file, analysis, AnalysisView::from(&**analysis), output),
        AnalysisOutcome::NotUnderstood(report) => not_understood(&file, report, output),
    })
}

fn output(here: &CommandContext, form: &AnalyseOutputArgs) -> Result<AnalyseOutput, Problem> {
    let asked = match form {
        AnalyseOutputArgs { table: true, .. } => Some((AnalyseOutput::Table, "table")),
        AnalyseOutputArgs { mermaid: true, .. } => Some((AnalyseOutput::Mermaid, "mermaid")),
        AnalyseOutputArgs { dot: true, .. } => Some((AnalyseOutput::Dot, "dot")),
        _ => None,
    };
    match (asked, here.json) {
        (Some((_, name)), true) => Err(Problem::new(
            ErrorCode::InvalidRequest,
            format!("`--json` and `--{name}` are two different outputs"),
        )
        .hint("give one of them")),
        (Some((output, _)), false) => Ok(output),
        (None, true) => Ok(AnalyseOutput::Json),
        (None, false) => Ok(AnalyseOutput::Table),
    }
}

/// The display name of a file, and its text.
pub(super) fn read_source(here: &CommandContext, file: &Path) -> Result<(String, String), Problem> {
    let bad = |text: String| Problem::new(ErrorCode::InvalidRequest, text);
    let shown = if file == Path::new("-") { "<stdin>".to_owned() } else { file.display().to_string() };
    let cannot = |error: std::io::Error| bad(format!("cannot read `{}`: {error}", printable(&shown)));
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    } else {
        let opened = std::fs::File::open(here.cwd.join(file)).map_err(cannot)?;
        opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(bad(format!("`{}` is larger than {MAX_BYTES} bytes", printable(&shown))));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((shown, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(bad(format!("`{}` is not UTF-8: byte {at} is wrong", printable(&shown)))
                .hint("save it as UTF-8"))
        }
    }
}

/// A DAG document is JSON. JSON with `tasks` is one, whatever the name of its file.
fn kind(file: &Path, source: &str) -> AnalysedKind {
    let inside = source.trim_start_matches('\u{feff}').trim_start().strip_prefix('{').map(str::trim_start);
    let has_tasks = inside.is_some_and(|inside| inside.starts_with('"') && inside.contains("\"tasks\""));
    match file.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("json") => AnalysedKind::Dag,
        _ if has_tasks => AnalysedKind::Dag,
        _ => AnalysedKind::Program,
    }
}

fn print(
    file: &NamedSource<'_>,
    analysis: &impl Serialize,
    shown: AnalysisView<'_>,
    output: AnalyseOutput,
) -> ExitCode {
    match output {
        AnalyseOutput::Json => out::json(&AnalysisDocument { schema_version: 1, analysis }),
        AnalyseOutput::Table => out::line(painted(&render::render_table(&shown, file, width()))),
        AnalyseOutput::Mermaid => picture(render::render_mermaid, file, shown),
        AnalyseOutput::Dot => picture(render::render_dot, file, shown),
    }
    let wrong = shown.complaints.iter().any(|complaint| complaint.severity == Severity::Error);
    if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints a picture to standard output, for another program, and complaints to standard error.
fn picture(draw: impl Fn(&Structure) -> String, file: &NamedSource<'_>, shown: AnalysisView<'_>) {
    out::line(draw(shown.structure).trim_end());
    let reports = shown.complaints.iter().map(ComplaintReport::from);
    reports.for_each(|report| out::note(painted(&report.render(file))));
}

fn not_understood(file: &NamedSource<'_>, report: &ComplaintReport, output: AnalyseOutput) -> ExitCode {
    match output {
        AnalyseOutput::Json => out::json(&json!({ "schemaVersion": 1, "error": report })),
        AnalyseOutput::Table | AnalyseOutput::Mermaid | AnalyseOutput::Dot => {
            out::note(painted(&report.render(file)));
        }
    }
    ExitCode::FAILURE
}

/// The width of the terminal in columns.
fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL_WIDTH, |(terminal_size::Width(columns), _)| columns.into())
}

/// Adds colours to a table or a report. Text from programs never begins a line there, so it cannot be mistaken for a
/// heading.
fn painted(text: &str) -> String {
    let kinds =
        [("error:", out::BOLD_RED), ("warning:", out::YELLOW), ("note:", out::CYAN), ("hint:", out::CYAN)];
    let paint = |line: &str| {
        if let Some((kind, colour)) = kinds.iter().find(|(kind, _)| line.starts_with(kind)) {
            let word = kind.trim_end_matches(':');
            return format!("{colour}{word}{}{}", out::RESET, &line[word.len()..]);
        }
        let heading = !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == ' ');
        if heading { format!("{}{line}{}", out::BOLD, out::RESET) } else { line.to_owned() }
    };
    text.lines().map(paint).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_told_from_a_program() {
        let dag = |file: &str, source: &str| kind(Path::new(file), source) == AnalysedKind::Dag;
        assert!(dag("a.json", "nonsense"));
        assert!(dag("-", " {\n \"tasks\": []}"));
        assert!(dag("plan.txt", "\u{feff}{\"name\": 1, \"tasks\": []}"));
        assert!(!dag("-", "{ const tasks = [\"tasks\"]; }"));
        assert!(!dag("a.ts", "return {\"tasks\": []}"));
    }

    #[test]
    fn only_our_own_words_are_painted() {
        assert_eq!(painted("error: x\n3 | error: y"), "\u{1b}[1;31merror\u{1b}[0m: x\n3 | error: y");
        assert_eq!(painted("DATA FLOW\n  n1"), "\u{1b}[1mDATA FLOW\u{1b}[0m\n  n1");
    }
}
