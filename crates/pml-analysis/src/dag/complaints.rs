//! Gathers what is wrong with a document; never more than a reader can use.

use pml_model::structure::NodeId;

use super::text::{ByteSpan, DocumentText};
use crate::schema::nearest;
use crate::{Code, Complaint, Severity};

/// More complaints than this are counted, not kept.
const MAX_COMPLAINTS: usize = 100;

/// How often similar names are looked for: each time costs as much as there are names.
const MAX_SUGGESTIONS: usize = 10;

pub(crate) struct Complaints<'t, 'd> {
    pub(crate) text: &'t DocumentText<'d>,
    kept: Vec<Complaint>,
    left_out: usize,
    /// The worst and first place of those left out.
    worst_left_out: Option<(Severity, Code, ByteSpan)>,
    suggestions: usize,
}

impl<'t, 'd> Complaints<'t, 'd> {
    pub(crate) fn new(text: &'t DocumentText<'d>) -> Complaints<'t, 'd> {
        Complaints { text, kept: Vec::new(), left_out: 0, worst_left_out: None, suggestions: 0 }
    }

    /// Keeps a complaint about the place `at`.
    pub(crate) fn add(
        &mut self,
        (severity, code): (Severity, Code),
        (at, node): (ByteSpan, Option<NodeId>),
        message: String,
        hint: Option<String>,
    ) {
        // Those left out are many; they are not worth the work.
        let kept = self.kept.len() < MAX_COMPLAINTS;
        let excerpt = if kept { self.text.excerpt(at.start) } else { String::new() };
        self.add_with((severity, code), (at, node), message, hint, excerpt);
    }

    /// Keeps a complaint that shows something else than its line.
    pub(crate) fn add_with(
        &mut self,
        (severity, code): (Severity, Code),
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
        // `Error` is the least of the severities.
        if self.worst_left_out.is_none_or(|(worst, ..)| severity < worst) {
            self.worst_left_out = Some((severity, code, at));
        }
    }

    /// `did you mean …?` for a name that means nothing.
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
            nearest(wanted, candidates).into_iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")))
    }

    /// All complaints, in the order of the document.
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
