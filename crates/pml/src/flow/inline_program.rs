//! Tells a program that was given in place of an intent.

use pml_analysis::{Analysis, AnalysisCatalogue, ComplaintCode, Severity};

use super::lookup::CapabilitiesOf;
use crate::app::App;

/// The names that every call of a program begins with.
const CALLED: [&str; 2] = ["mcp", "capabilities"];

/// The program that `text` is, if it is one that calls something; `None` for an intent. The value of a program that is a
/// single expression is its result.
pub async fn read_program(app: &App, text: &str) -> Option<String> {
    if !CALLED.iter().any(|name| text.contains(name)) {
        return None;
    }
    app.tools.ensure_manifests_loaded().await;
    let catalogue = CapabilitiesOf::new(app, &app.principal).current_catalogue(text).await;
    let written = analyse(text, &catalogue).filter(calls_something)?;
    let returning = format!("return {text}");
    let same = analyse(&returning, &catalogue).is_some_and(|analysis| {
        let unreachable = |complaint: &pml_analysis::Complaint| complaint.code == ComplaintCode::Unreachable;
        analysis.structure.nodes.len() == written.structure.nodes.len()
            && !analysis.complaints.iter().any(unreachable)
    });
    Some(if same { returning } else { text.to_owned() })
}

fn analyse(text: &str, catalogue: &AnalysisCatalogue) -> Option<Analysis> {
    pml_analysis::analyse(text, catalogue).ok()
}

/// Whether a program calls a tool or a capability, or means to call one that is not there.
fn calls_something(analysis: &Analysis) -> bool {
    let means_to = analysis.complaints.iter().any(|complaint| {
        complaint.severity == Severity::Error
            && matches!(
                complaint.code,
                ComplaintCode::UnknownTool
                    | ComplaintCode::UnknownCapability
                    | ComplaintCode::HeldBack
                    | ComplaintCode::ServerStarting
                    | ComplaintCode::ServerUnavailable
            )
    });
    means_to || analysis.structure.nodes.iter().any(|node| node.kind.is_call())
}
