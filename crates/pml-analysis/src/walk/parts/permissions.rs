//! Which tools and capabilities the program can call, as far as that can be known.

use oxc_span::Span;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::super::target::CallTarget;
use super::diagnostics::Diagnostics;
use super::graph::USUAL_NODES;
use crate::analysis::{Code, Permissions, Remark, Severity};
use crate::catalogue::{Catalogue, Tool};
use crate::lines::Lines;
use crate::roots::ToolRoot;
use crate::schema;
use crate::value::Value;

/// The permissions the program needs, and what they were read from.
pub(crate) struct PermissionLog<'a, 's> {
    catalogue: &'s Catalogue,
    lines: &'s Lines<'s>,
    pub(crate) found: Permissions,
    /// Tools of the catalogue that are among the permissions.
    declared: FxHashSet<*const Tool>,
    /// Where a root or an alias was come to.
    touched: FxHashSet<u32>,
    /// Tools kept in variables, objects and lists, and where they are written.
    tools_kept: Vec<(Value<'a>, Span)>,
}

impl<'a, 's> PermissionLog<'a, 's> {
    pub(crate) fn new(catalogue: &'s Catalogue, lines: &'s Lines<'s>) -> PermissionLog<'a, 's> {
        PermissionLog {
            catalogue,
            lines,
            found: Permissions::default(),
            declared: FxHashSet::default(),
            touched: FxHashSet::with_capacity_and_hasher(USUAL_NODES, FxBuildHasher),
            tools_kept: Vec::new(),
        }
    }

    /// A root or an alias that stands at `span` was come to.
    pub(crate) fn touch(&mut self, span: Span) {
        self.touched.insert(span.start);
    }

    pub(crate) fn was_touched(&self, span: Span) -> bool {
        self.touched.contains(&span.start)
    }

    /// Whether a tool or capability that is written out is among the permissions; other roots always are.
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

    /// Whether something between the bytes of `span` keeps calls from being known.
    pub(crate) fn is_opaque_within(&self, span: Span) -> bool {
        self.found.opaque.iter().any(|remark| remark.at.start >= span.start && remark.at.end <= span.end)
    }

    pub(crate) fn opaque(&mut self, span: Span, what: impl Into<String>) {
        let remark = Remark { what: what.into(), at: self.lines.position(span) };
        if !self.found.opaque.contains(&remark) {
            self.found.opaque.push(remark);
        }
    }

    pub(crate) fn ambient(&mut self, span: Span, name: &str) {
        let remark = Remark { what: name.to_owned(), at: self.lines.position(span) };
        if !self.found.ambient.contains(&remark) {
            self.found.ambient.push(remark);
        }
    }

    /// A tool that is kept: it can be called, so it counts.
    pub(crate) fn declare_value(
        &mut self,
        tool: &Value<'a>,
        span: Span,
        diagnostics: &mut Diagnostics<'a, 's>,
    ) {
        self.tools_kept.push((tool.clone(), span));
        if let Some(target) = CallTarget::of(tool) {
            self.declare(&target, span, diagnostics);
        }
    }

    /// Where a tool that was kept is written.
    pub(crate) fn tool_span(&self, tool: &Value<'a>) -> Span {
        self.tools_kept.iter().find(|(kept, _)| kept.same(tool)).map_or(Span::default(), |(_, span)| *span)
    }

    /// Notes which tool it is, and complains when there is none.
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
                if let Some(withheld) = self.catalogue.withheld(server, name) {
                    let (message, hint) = (withheld.message.clone(), Some(withheld.hint.clone()));
                    return diagnostics.complain(Severity::Error, Code::HeldBack, span, message, hint);
                }
                if let Some(unready) = self.catalogue.unready(server) {
                    let (message, hint) = (unready.message.clone(), unready.hint.clone());
                    return diagnostics.complain(
                        Severity::Error,
                        Code::of_unready(unready),
                        span,
                        message,
                        hint,
                    );
                }
                let (message, hint) = no_such_tool(self.catalogue, server, name, &id);
                diagnostics.complain(Severity::Error, Code::UnknownTool, span, message, hint);
            }
            CallTarget::Capability(name) => {
                self.found.capabilities.insert(name.to_string());
                if self.catalogue.capability(name).is_none() {
                    let near = schema::nearest(name, self.catalogue.capability_names());
                    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
                    let message = format!("there is no capability `{name}`");
                    diagnostics.complain(Severity::Error, Code::UnknownCapability, span, message, hint);
                }
            }
        }
    }
}

/// `server:tool`.
pub(crate) fn id_of(tool: &Tool) -> String {
    [tool.id.server.as_str(), ":", &tool.id.tool].concat()
}

/// Why there is no such tool, and what may have been meant.
fn no_such_tool(catalogue: &Catalogue, server: &str, name: &str, id: &str) -> (String, Option<String>) {
    let tools = catalogue.tools();
    if catalogue.has_server(server) {
        let own = tools.iter().filter(|tool| tool.id.server.as_str() == server);
        let near = schema::nearest(name, own.map(|tool| tool.identifier.as_str()));
        let names: Vec<String> = near.iter().map(|near| format!("`mcp.{server}.{near}`")).collect();
        let hint = (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")));
        return (format!("server `{server}` has no tool `{name}`"), hint);
    }
    let ids: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
    let near = schema::nearest(id, ids.iter().map(String::as_str));
    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
    let fallback = || Some("find a tool for it with `pml_discover`".to_owned());
    (format!("no connected server is called `{server}`"), hint.or_else(fallback))
}
