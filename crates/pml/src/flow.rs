//! The spine: what happens to an intent, in order.
//!
//! An intent or a call reaches the stages only through here, from whichever door (MCP, HTTP, terminal) it
//! came: every choice about what comes next is made here, and the work is done in the stages.

use pml_analysis::render::Report;
use pml_model::ToolId;
use pml_model::json::Fields;
use serde_json::value::RawValue;

use crate::app::{App, blocking};
use crate::catalogue::Tool;
use crate::discover::{self, Page, Request};
use crate::plan;
use crate::problem::Problem;
use crate::tools::{self, Context, Outcome};

/// An intent comes in; what could serve it, and the asker may see, goes out.
///
/// # Errors
/// The request cannot be understood.
pub async fn discover(
    app: &App,
    request: &Request,
    visible: impl Fn(&Tool) -> bool,
) -> Result<Page, Problem> {
    app.get_acquainted().await;
    discover::find(&app.catalogue.snapshot(), request, visible)
}

/// What came of analysing a program or a DAG document.
pub enum Analysed {
    /// A program that was understood, complaints included.
    Program(Box<pml_analysis::Analysis>),
    /// A document that was understood, complaints included.
    Dag(Box<pml_analysis::DagAnalysis>),
    /// Something else.
    NotUnderstood(Report),
}

/// What a program would do with the tools there are now; nothing is run.
pub async fn analyse(app: &App, source: String) -> Analysed {
    let catalogue = known_tools(app);
    // It computes for as long as the program is large: not on a thread that serves others.
    blocking(move || match pml_analysis::analyse(&source, &catalogue) {
        Ok(analysis) => Analysed::Program(Box::new(analysis)),
        Err(error) => Analysed::NotUnderstood(Report::from(&error)),
    })
    .await
}

/// What a DAG document would do with the tools there are now; nothing is run.
pub async fn analyse_dag(app: &App, document: String) -> Analysed {
    let catalogue = known_tools(app);
    blocking(move || match pml_analysis::analyse_dag(&document, &catalogue) {
        Ok(analysis) => Analysed::Dag(Box::new(analysis)),
        Err(error) => Analysed::NotUnderstood(Report::from(&error)),
    })
    .await
}

fn known_tools(app: &App) -> pml_analysis::Catalogue {
    plan::catalogue(&app.catalogue.snapshot(), |server| app.builtin(server).is_some())
}

/// A tool is called by name: checked against its schema, sent, answered.
pub async fn call(
    app: &App,
    context: &Context,
    tool: &ToolId,
    arguments: &RawValue,
    passing: Fields<'_>,
) -> Outcome {
    tools::call(app, context, tool, arguments, passing).await
}
