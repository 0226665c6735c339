//! An analysis as text for people: a table for terminals, Mermaid and Graphviz for pictures,
//! complaints as compilers print them.
//!
//! Everything here only shows. Texts of programs and servers are shortened visibly, and what could
//! mislead a reader or drive a terminal is written as an escape. There are no colours: whoever has a
//! terminal adds them.

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

pub use dot::dot;
pub use mermaid::mermaid;
pub use report::{File, Report};
pub use table::table;

/// What a table shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What can happen.
    pub structure: &'a Structure,
    /// What is to be given.
    pub parameters: &'a Parameters,
    /// Which tools can be called.
    pub permissions: &'a Permissions,
    /// What is wrong, or looks so.
    pub complaints: &'a [Complaint],
}

impl<'a> From<&'a Analysis> for Shown<'a> {
    fn from(analysis: &'a Analysis) -> Shown<'a> {
        Shown {
            structure: &analysis.structure,
            parameters: &analysis.parameters,
            permissions: &analysis.permissions,
            complaints: &analysis.complaints,
        }
    }
}

impl<'a> From<&'a DagAnalysis> for Shown<'a> {
    fn from(analysis: &'a DagAnalysis) -> Shown<'a> {
        Shown {
            structure: &analysis.structure,
            parameters: &analysis.parameters,
            permissions: &analysis.permissions,
            complaints: &analysis.complaints,
        }
    }
}
