//! What is wrong with the program, as it is found.

use oxc_span::Span;
use pml_model::structure::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::{Code, Complaint, Remark, Severity};
use crate::lines::Lines;

/// The complaints so far, each once.
pub(crate) struct Diagnostics<'a, 's> {
    lines: &'s Lines<'s>,
    pub(crate) complaints: Vec<Complaint>,
    /// Which complaints stand at a place.
    by_place: FxHashMap<(u32, u32), Vec<u32>>,
    /// Names that were complained about.
    unknown_names: FxHashSet<&'a str>,
}

impl<'a, 's> Diagnostics<'a, 's> {
    pub(crate) fn new(lines: &'s Lines<'s>) -> Diagnostics<'a, 's> {
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
        code: Code,
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

    /// Complains of a call, whether or not somebody has said the same.
    pub(crate) fn complain_of_node(
        &mut self,
        node: NodeId,
        (severity, code): (Severity, Code),
        span: Span,
        message: String,
        hint: Option<String>,
    ) {
        let at = self.lines.position(span);
        let excerpt = self.lines.excerpt(at);
        self.complaints.push(Complaint { severity, code, message, hint, at, excerpt, node: Some(node) });
    }

    /// Whether nobody has complained yet that `name` is not defined. From now on somebody has.
    pub(crate) fn is_first_unknown(&mut self, name: &'a str) -> bool {
        self.unknown_names.insert(name)
    }

    /// The last complaint is about `node`.
    pub(crate) fn last_is_about(&mut self, node: NodeId) {
        if let Some(last) = self.complaints.last_mut() {
            last.node = Some(node);
        }
    }

    /// Complains of everything that keeps calls from being known.
    pub(crate) fn complain_of_opaque(&mut self, remarks: &[Remark]) {
        for remark in remarks {
            self.complaints.push(Complaint {
                severity: Severity::Warning,
                code: Code::Opaque,
                message: remark.what.clone(),
                hint: Some("name the tool: `mcp.server.tool({ … })`".to_owned()),
                at: remark.at,
                excerpt: self.lines.excerpt(remark.at),
                node: None,
            });
        }
    }
}
