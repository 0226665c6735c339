//! Collects complaints about a document, up to a useful number.

use pml_model::structure::NodeId;

use super::text::{ByteSpan, DocumentText};
use crate::schema::closest_names;
use crate::{Complaint, ComplaintCode, Severity};

/// Maximum number of complaints kept; further ones are counted.
const MAX_COMPLAINTS: usize = 100;

/// Maximum number of searches for similar names: each costs as much as there are names.
const MAX_SUGGESTIONS: usize = 10;

pub(crate) struct DagComplaints<'t, 'd> {
    pub(crate) text: &'t DocumentText<'d>,
    kept: Vec<Complaint>,
    left_out: usize,
    /// Severity, code and span of the worst omitted complaint, the first of equals.
    worst_left_out: Option<(Severity, ComplaintCode, ByteSpan)>,
    suggestions: usize,
}

impl<'t, 'd> DagComplaints<'t, 'd> {
    pub(crate) fn new(text: &'t DocumentText<'d>) -> DagComplaints<'t, 'd> {
        DagComplaints { text, kept: Vec::new(), left_out: 0, worst_left_out: None, suggestions: 0 }
    }

    /// Adds a complaint about the span `at`.
    pub(crate) fn add(
        &mut self,
        (severity, code): (Severity, ComplaintCode),
        (at, node): (ByteSpan, Option<NodeId>),
        message: String,
        hint: Option<String>,
    ) {
        // There may be many omitted ones; making their excerpts is not worth the work.
        let kept = self.kept.len() < MAX_COMPLAINTS;
        let excerpt = if kept { self.text.excerpt(at.start) } else { String::new() };
        self.add_with((severity, code), (at, node), message, hint, excerpt);
    }

    /// Adds a complaint with another excerpt than its line.
    pub(crate) fn add_with(
        &mut self,
        (severity, code): (Severity, ComplaintCode),
        (at, node): (ByteSpan, Option<NodeId>),
        message: String,
        hint: Option<String>,
        excerpt: String,
    ) {
        if self.kept.len() < MAX_COMPLAINTS {
            let at = self.text.position(at);
            self.kept.push(Complaint { severity, code, message, hint, at, excerpt, node });
            return;
        }
        self.left_out += 1;
        // `Error` is the smallest severity.
        if self.worst_left_out.is_none_or(|(worst, ..)| severity < worst) {
            self.worst_left_out = Some((severity, code, at));
        }
    }

    /// `did you mean …?` for an unknown name.
    pub(crate) fn did_you_mean<'c>(
        &mut self,
        wanted: &str,
        candidates: impl Iterator<Item = &'c str>,
    ) -> Option<String> {
        if self.suggestions == MAX_SUGGESTIONS || wanted.len() > 200 {
            return None;
        }
        self.suggestions += 1;
        let names: Vec<String> =
            closest_names(wanted, candidates).into_iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
    }

    /// All complaints, in document order.
    pub(crate) fn finish(mut self) -> Vec<Complaint> {
        self.kept.sort_by_key(|complaint| complaint.at.start);
        if let Some((severity, code, at)) = self.worst_left_out {
            let message = format!("{} more complaints are not shown", self.left_out);
            let (at, excerpt) = (self.text.position(at), self.text.excerpt(at.start));
            self.kept.push(Complaint { severity, code, message, hint: None, at, excerpt, node: None });
        }
        self.kept
    }
}
