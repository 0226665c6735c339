//! Tools and capabilities that the program can call, as far as they can be known.

use oxc_span::Span;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::super::target::CallTarget;
use super::diagnostics::Diagnostics;
use super::graph::USUAL_NODES;
use crate::analysis::{ComplaintCode, Permissions, Remark, Severity};
use crate::catalogue::{AnalysisCatalogue, AnalysisTool};
use crate::lines::SourceLines;
use crate::roots::ToolRoot;
use crate::schema;
use crate::value::AbstractValue;

/// Permissions the program needs, and their evidence.
pub(crate) struct PermissionLog<'a, 's> {
    catalogue: &'s AnalysisCatalogue,
    lines: &'s SourceLines<'s>,
    pub(crate) found: Permissions,
    /// Tools of the catalogue among the permissions.
    declared: FxHashSet<*const AnalysisTool>,
    /// Offsets of roots and aliases that the walk reached.
    touched: FxHashSet<u32>,
    /// Tools stored in variables, objects and lists, with the spans where they are written.
    tools_kept: Vec<(AbstractValue<'a>, Span)>,
}

impl<'a, 's> PermissionLog<'a, 's> {
    pub(crate) fn new(catalogue: &'s AnalysisCatalogue, lines: &'s SourceLines<'s>) -> PermissionLog<'a, 's> {
        PermissionLog {
            catalogue,
            lines,
            found: Permissions::default(),
            declared: FxHashSet::default(),
            touched: FxHashSet::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher),
            tools_kept: Vec::new(),
        }
    }

    /// Records that the walk reached the root or alias at `span`.
    pub(crate) fn touch(&mut self, span: Span) {
        self.touched.insert(span.start);
    }

    pub(crate) fn was_touched(&self, span: Span) -> bool {
        self.touched.contains(&span.start)
    }

    /// Whether a tool or capability that is written out is among the permissions; true for other roots.
    pub(crate) fn has(&self, root: &ToolRoot) -> bool {
        match root {
            ToolRoot::Tool(server, name) => match self.catalogue.tool(server, name) {
                Some(tool) if self.declared.contains(&std::ptr::from_ref(tool)) => true,
                tool => {
                    let id = tool.map_or_else(|| [server, ":", name].concat(), id_of);
                    self.found.declared.contains(&id) || self.found.capabilities.contains(&id)
                }
            },
            ToolRoot::Capability(name) => self.found.capabilities.contains(&**name),
            _ => true,
        }
    }

    /// Whether something within `span` makes calls unknowable.
    pub(crate) fn is_opaque_within(&self, span: Span) -> bool {
        self.found.opaque.iter().any(|remark| remark.at.start >= span.start && remark.at.end <= span.end)
    }

    pub(crate) fn note_opaque(&mut self, span: Span, what: impl Into<String>) {
        let remark = Remark { what: what.into(), at: self.lines.position(span) };
        if !self.found.opaque.contains(&remark) {
            self.found.opaque.push(remark);
        }
    }

    pub(crate) fn note_ambient(&mut self, span: Span, name: &str) {
        let remark = Remark { what: name.to_owned(), at: self.lines.position(span) };
        if !self.found.ambient.contains(&remark) {
            self.found.ambient.push(remark);
        }
    }

    /// Declares a tool that is stored: it can be called, so it counts.
    pub(crate) fn declare_value(
        &mut self,
        tool: &AbstractValue<'a>,
        span: Span,
        diagnostics: &mut Diagnostics<'a, 's>,
    ) {
        self.tools_kept.push((tool.clone(), span));
        if let Some(target) = CallTarget::of(tool) {
            self.declare(&target, span, diagnostics);
        }
    }

    /// Span where a stored tool is written.
    pub(crate) fn tool_span(&self, tool: &AbstractValue<'a>) -> Span {
        self.tools_kept.iter().find(|(kept, _)| kept.same(tool)).map_or(Span::default(), |(_, span)| *span)
    }

    /// Adds a tool or capability to the permissions, and complains when it does not exist.
    pub(crate) fn declare(&mut self, target: &CallTarget, span: Span, diagnostics: &mut Diagnostics<'a, 's>) {
        match target {
            CallTarget::Tool { server, name } => {
                if let Some(tool) = self.catalogue.tool(server, name) {
                    if self.declared.insert(std::ptr::from_ref(tool)) {
                        self.found.declared.insert(id_of(tool));
                    }
                    return;
                }
                let id = format!("{server}:{name}");
                if self.catalogue.capability(&id).is_some() {
                    self.found.capabilities.insert(id);
                    return;
                }
                self.found.declared.insert(id.clone());
                if let Some(withheld) = self.catalogue.withheld_tool(server, name) {
                    let (message, hint) = (withheld.message.clone(), Some(withheld.hint.clone()));
                    return diagnostics.complain(
                        Severity::Error,
                        ComplaintCode::HeldBack,
                        span,
                        message,
                        hint,
                    );
                }
                if let Some(unready) = self.catalogue.unready_server(server) {
                    let (message, hint) = (unready.message.clone(), unready.hint.clone());
                    return diagnostics.complain(
                        Severity::Error,
                        ComplaintCode::of_unready(unready),
                        span,
                        message,
                        hint,
                    );
                }
                let (message, hint) = no_such_tool(self.catalogue, server, name, &id);
                diagnostics.complain(Severity::Error, ComplaintCode::UnknownTool, span, message, hint);
            }
            CallTarget::Capability(name) => {
                self.found.capabilities.insert(name.to_string());
                if self.catalogue.capability(name).is_none() {
                    let near = schema::closest_names(name, self.catalogue.capability_names());
                    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
                    let message = format!("there is no capability `{name}`");
                    diagnostics.complain(
                        Severity::Error,
                        ComplaintCode::UnknownCapability,
                        span,
                        message,
                        hint,
                    );
                }
            }
        }
    }
}

/// `server:tool`.
pub(crate) fn id_of(tool: &AnalysisTool) -> String {
    [tool.id.server.as_str(), ":", &tool.id.tool].concat()
}

/// Message and hint for a tool that does not exist.
fn no_such_tool(
    catalogue: &AnalysisCatalogue,
    server: &str,
    name: &str,
    id: &str,
) -> (String, Option<String>) {
    let tools = catalogue.tools();
    if catalogue.has_server(server) {
        let own = tools.iter().filter(|tool| tool.id.server.as_str() == server);
        let near = schema::closest_names(name, own.map(|tool| tool.identifier.as_str()));
        let names: Vec<String> = near.iter().map(|near| format!("`mcp.{server}.{near}`")).collect();
        let hint = (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")));
        return (format!("server `{server}` has no tool `{name}`"), hint);
    }
    let ids: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
    let near = schema::closest_names(id, ids.iter().map(String::as_str));
    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
    let fallback = || Some("find a tool for it with `pml_discover`".to_owned());
    (format!("no connected server is called `{server}`"), hint.or_else(fallback))
}
