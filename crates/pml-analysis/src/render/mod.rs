//! Renders an analysis as text for people: a table for terminals, Mermaid and Graphviz for drawings, complaints in the
//! style of compilers.
//!
//! Texts of programs and servers are shortened visibly, and characters that could mislead a reader or control a
//! terminal are escaped. There are no colours: the terminal front end adds them.

mod dot;
mod mermaid;
mod report;
mod table;
mod tree;
mod words;

#[cfg(test)]
mod tests;

use pml_model::structure::Structure;

use crate::{Analysis, Complaint, DagAnalysis, Parameters, Permissions};

pub use dot::render_dot;
pub use mermaid::render_mermaid;
pub use report::{ComplaintReport, NamedSource};
pub use table::render_table;

/// Parts of an analysis that a table shows.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisView<'a> {
    /// Nodes and edges.
    pub structure: &'a Structure,
    /// Arguments of the program.
    pub parameters: &'a Parameters,
    /// Tools it can call.
    pub permissions: &'a Permissions,
    /// Errors, warnings and notes.
    pub complaints: &'a [Complaint],
}

impl<'a> From<&'a Analysis> for AnalysisView<'a> {
    fn from(analysis: &'a Analysis) -> AnalysisView<'a> {
        AnalysisView {
            structure: &analysis.structure,
            parameters: &analysis.parameters,
            permissions: &analysis.permissions,
            complaints: &analysis.complaints,
        }
    }
}

impl<'a> From<&'a DagAnalysis> for AnalysisView<'a> {
    fn from(analysis: &'a DagAnalysis) -> AnalysisView<'a> {
        AnalysisView {
            structure: &analysis.structure,
            parameters: &analysis.parameters,
            permissions: &analysis.permissions,
            complaints: &analysis.complaints,
        }
    }
}
