//! The spine: what happens to an intent, in order.
//!
//! An intent or a call reaches the stages only through here, from whichever door (MCP, HTTP, terminal) it
//! came: every choice about what comes next is made here, and the work is done in the stages.

use pml_model::ToolId;
use pml_model::json::Fields;
use serde_json::value::RawValue;

use crate::app::App;
use crate::catalogue::Tool;
use crate::discover::{self, Page, Request};
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
