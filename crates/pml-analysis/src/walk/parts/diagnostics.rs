//! Collects complaints during a walk.

use oxc_span::Span;
use pml_model::structure::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::{Complaint, ComplaintCode, Remark, Severity};
use crate::lines::SourceLines;

/// Complaints so far, without duplicates.
pub(crate) struct Diagnostics<'a, 's> {
    lines: &'s SourceLines<'s>,
    pub(crate) complaints: Vec<Complaint>,
    /// Indices of the complaints at each span.
    by_place: FxHashMap<(u32, u32), Vec<u32>>,
    /// Undefined names that were reported already.
    unknown_names: FxHashSet<&'a str>,
}

impl<'a, 's> Diagnostics<'a, 's> {
    pub(crate) fn new(lines: &'s SourceLines<'s>) -> Diagnostics<'a, 's> {
        Diagnostics {
            lines,
            complaints: Vec::new(),
            by_place: FxHashMap::default(),
            unknown_names: FxHashSet::default(),
        }
    }

    pub(crate) fn complain(
        &mut self,
        severity: Severity,
        code: ComplaintCode,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        let at = self.lines.position(span);
        let complaint = Complaint {
            severity,
            code,
            message: message.into(),
            hint: hint.into(),
            at,
            excerpt: self.lines.excerpt(at),
            node: None,
        };
        let said_here = self.by_place.entry((at.start, at.end)).or_default();
        if !said_here.iter().any(|index| self.complaints[*index as usize] == complaint) {
            said_here.push(self.complaints.len() as u32);
            self.complaints.push(complaint);
        }
    }

    /// Adds a complaint about a call, even when it repeats another.
    pub(crate) fn complain_of_node(
        &mut self,
        node: NodeId,
        (severity, code): (Severity, ComplaintCode),
        span: Span,
        message: String,
        hint: Option<String>,
    ) {
        let at = self.lines.position(span);
        let excerpt = self.lines.excerpt(at);
        self.complaints.push(Complaint { severity, code, message, hint, at, excerpt, node: Some(node) });
    }

    /// Whether `name` is reported as undefined for the first time; records it.
    pub(crate) fn is_first_unknown(&mut self, name: &'a str) -> bool {
        self.unknown_names.insert(name)
    }

    /// Attaches `node` to the last complaint.
    pub(crate) fn last_is_about(&mut self, node: NodeId) {
        if let Some(last) = self.complaints.last_mut() {
            last.node = Some(node);
        }
    }

    /// Adds a complaint for everything that makes calls unknowable.
    pub(crate) fn complain_of_opaque(&mut self, remarks: &[Remark]) {
        for remark in remarks {
            self.complaints.push(Complaint {
                severity: Severity::Warning,
                code: ComplaintCode::Opaque,
                message: remark.what.clone(),
                hint: Some("name the tool: `mcp.server.tool({ … })`".to_owned()),
                at: remark.at,
                excerpt: self.lines.excerpt(remark.at),
                node: None,
            });
        }
    }
}
