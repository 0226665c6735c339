//! `pml analyse`: what a program or a DAG document would do, without doing any of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pml_analysis::Severity;
use pml_analysis::render::{self, File, Report, Shown};
use pml_model::name::printable;
use pml_model::structure::Structure;
use serde::Serialize;
use serde_json::json;

use super::{Here, out};
use crate::app::Role;
use crate::flow::{self, Analysed};
use crate::problem::{Code, Problem};

/// More than any analysis takes, so that what is too large is said by the analysis, which knows its limit.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The width of a table that nobody reads on a terminal.
const USUAL_WIDTH: usize = 100;

/// Arguments of `pml analyse`.
#[derive(Debug, Args)]
pub(super) struct Analyse {
    /// A TypeScript program or a DAG document; - reads standard input
    file: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// How the result is printed; a table where nothing is said.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Form {
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

/// What is printed.
#[derive(Debug, Clone, Copy)]
enum Output {
    Json,
    Table,
    Mermaid,
    Dot,
}

/// What is analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    Dag,
}

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, A> {
    schema_version: u32,
    #[serde(flatten)]
    analysis: &'a A,
}

pub(super) async fn run(here: &Here, analyse: Analyse) -> Result<ExitCode, Problem> {
    let output = output(here, &analyse.form)?;
    let (name, source) = read(here, &analyse.file)?;
    let kind = kind(&analyse.file, &source);
    let app = here.open(Role::Command).await?;
    let analysed = match kind {
        Kind::Dag => flow::analyse_dag(&app, source.clone()).await,
        Kind::Program => flow::analyse(&app, source.clone()).await,
    };
    app.close().await;
    let file = File { name: &name, text: &source };
    Ok(match &analysed {
        Analysed::Program(analysis) => print(&file, analysis, Shown::from(&**analysis), output),
        Analysed::Dag(analysis) => print(&file, analysis, Shown::from(&**analysis), output),
        Analysed::NotUnderstood(report) => not_understood(&file, report, output),
    })
}

fn output(here: &Here, form: &Form) -> Result<Output, Problem> {
    let asked = match form {
        Form { table: true, .. } => Some((Output::Table, "table")),
        Form { mermaid: true, .. } => Some((Output::Mermaid, "mermaid")),
        Form { dot: true, .. } => Some((Output::Dot, "dot")),
        _ => None,
    };
    match (asked, here.json) {
        (Some((_, name)), true) => Err(Problem::new(
            Code::InvalidRequest,
            format!("`--json` and `--{name}` are two different outputs"),
        )
        .hint("give one of them")),
        (Some((output, _)), false) => Ok(output),
        (None, true) => Ok(Output::Json),
        (None, false) => Ok(Output::Table),
    }
}

/// The name of a file as people are told, and its text.
pub(super) fn read(here: &Here, file: &Path) -> Result<(String, String), Problem> {
    let bad = |text: String| Problem::new(Code::InvalidRequest, text);
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

/// A DAG document is JSON, and JSON that has tasks is one whatever its file is called.
fn kind(file: &Path, source: &str) -> Kind {
    let inside = source.trim_start_matches('\u{feff}').trim_start().strip_prefix('{').map(str::trim_start);
    let has_tasks = inside.is_some_and(|inside| inside.starts_with('"') && inside.contains("\"tasks\""));
    match file.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("json") => Kind::Dag,
        _ if has_tasks => Kind::Dag,
        _ => Kind::Program,
    }
}

fn print(file: &File<'_>, analysis: &impl Serialize, shown: Shown<'_>, output: Output) -> ExitCode {
    match output {
        Output::Json => out::json(&Document { schema_version: 1, analysis }),
        Output::Table => out::line(painted(&render::table(&shown, file, width()))),
        Output::Mermaid => picture(render::mermaid, file, shown),
        Output::Dot => picture(render::dot, file, shown),
    }
    let wrong = shown.complaints.iter().any(|complaint| complaint.severity == Severity::Error);
    if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A picture goes to a program; what is wrong is told beside it.
fn picture(draw: impl Fn(&Structure) -> String, file: &File<'_>, shown: Shown<'_>) {
    out::line(draw(shown.structure).trim_end());
    let reports = shown.complaints.iter().map(Report::from);
    reports.for_each(|report| out::note(painted(&report.text(file))));
}

fn not_understood(file: &File<'_>, report: &Report, output: Output) -> ExitCode {
    match output {
        Output::Json => out::json(&json!({ "schemaVersion": 1, "error": report })),
        Output::Table | Output::Mermaid | Output::Dot => out::note(painted(&report.text(file))),
    }
    ExitCode::FAILURE
}

/// Columns of the terminal that the result is read on.
fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL_WIDTH, |(terminal_size::Width(columns), _)| columns.into())
}

/// The text of a table or a report with colours. What comes from programs is never at the beginning
/// of a line there.
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
        let dag = |file: &str, source: &str| kind(Path::new(file), source) == Kind::Dag;
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
