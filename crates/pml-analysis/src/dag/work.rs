//! The work of a task: resolves the tool or capability it names, analyses its code, and checks its arguments against
//! the schema of the callee.

use pml_model::structure::{Argument, NodeId, NodeKind, PathStep};
use serde_json::Value;

use super::reader::DocumentReader;
use super::text::{ByteSpan, JsonKind, JsonTree};
use super::written::{TaskMember, WrittenTask};
use super::{CodeSummary, DocumentWork, shorten_for_message};
use crate::schema::check_arguments;
use crate::{AnalysisCatalogue, AnalysisTool, Complaint, ComplaintCode, Remark, Severity, operations};

impl<'t, 'd> DocumentReader<'_, 't, 'd> {
    /// The work of the task; complains when it is unclear.
    pub(super) fn work(&mut self, id: &str, written: &WrittenTask<'t, 'd>) -> Option<DocumentWork> {
        let kind = self.text_of(written, TaskMember::Type, "type")?;
        let tool = self.text_of(written, TaskMember::Tool, "tool")?;
        let code = self.text_of(written, TaskMember::Code, "code")?;
        let capability = self.text_of(written, TaskMember::Capability, "capability")?;
        let (node, label) = (written.node, tool.filter(|(tool, _)| tool.starts_with("code:")));
        let kind_name = kind.map(|(kind, _)| kind);
        Some(match (kind_name, tool, code, capability) {
            (None | Some("code_execution"), None, Some((code, span)), None) => {
                self.code(id, node, code, span, None)
            }
            (None | Some("code_execution"), Some((label, _)), Some((code, span)), None)
                if label.starts_with("code:") =>
            {
                self.code(id, node, code, span, Some(label))
            }
            (None | Some("capability"), None, None, Some((name, span)))
            | (Some("capability"), Some((name, span)), None, None) => self.capability(node, name, span),
            (None | Some("mcp_tool"), Some((tool, span)), None, None) if label.is_none() => {
                self.tool(node, tool, span)
            }
            (_, tool, code, capability) => {
                let at = kind.map_or(written.span, |(_, span)| span);
                let things = [tool, code, capability].into_iter().flatten().count();
                let (message, hint) =
                    no_work(&shorten_for_message(id), kind_name, things, label.is_some() && code.is_none());
                self.bad(at, node, message, hint);
                return None;
            }
        })
    }

    /// Text of a member, if present; `None` when it holds something else.
    #[expect(clippy::option_option, reason = "`not there` and `complained of` go different ways")]
    fn text_of(
        &mut self,
        written: &WrittenTask<'t, 'd>,
        slot: TaskMember,
        name: &str,
    ) -> Option<Option<(&'t str, ByteSpan)>> {
        match written.get(slot) {
            None => Some(None),
            Some(JsonTree { kind: JsonKind::String(text), span }) if !text.trim().is_empty() => {
                Some(Some((text, *span)))
            }
            Some(tree) => {
                let message = format!("`{name}` is not a text, or it is empty");
                self.bad(tree.span, written.node, message, "put it in quotes");
                None
            }
        }
    }

    fn tool(&mut self, node: NodeId, wanted: &str, at: ByteSpan) -> DocumentWork {
        if let Some(tool) = find_tool(self.catalogue, wanted) {
            let tool = tool.id.to_string();
            self.permissions.declared.insert(tool.clone());
            return DocumentWork::Tool { tool };
        }
        if self.catalogue.capability(wanted).is_some() {
            return self.capability(node, wanted, at);
        }
        self.permissions.declared.insert(wanted.to_owned());
        let withheld =
            wanted.split_once(':').and_then(|(server, tool)| self.catalogue.withheld_tool(server, tool));
        if let Some(withheld) = withheld {
            let (message, hint) = (withheld.message.clone(), Some(withheld.hint.clone()));
            self.complain(ComplaintCode::HeldBack, at, node, message, hint);
            return DocumentWork::Tool { tool: wanted.to_owned() };
        }
        let unready = wanted.split_once(':').and_then(|(server, _)| self.catalogue.unready_server(server));
        if let Some(unready) = unready {
            let (message, hint) = (unready.message.clone(), unready.hint.clone());
            self.complain(ComplaintCode::of_unready(unready), at, node, message, hint);
            return DocumentWork::Tool { tool: wanted.to_owned() };
        }
        let tools = self.catalogue.tools();
        let names =
            self.tool_names.get_or_insert_with(|| tools.iter().map(|tool| tool.id.to_string()).collect());
        let hint = self.complaints.did_you_mean(wanted, names.iter().map(String::as_str));
        let message = format!("no connected server offers tool `{}`", shorten_for_message(wanted));
        let form = "tools are called `server:tool`";
        let hint = hint.or_else(|| (!wanted.contains(':')).then(|| form.to_owned()));
        self.complain(ComplaintCode::UnknownTool, at, node, message, hint);
        DocumentWork::Tool { tool: wanted.to_owned() }
    }

    fn capability(&mut self, node: NodeId, name: &str, at: ByteSpan) -> DocumentWork {
        if self.catalogue.capability(name).is_none() {
            let catalogue = self.catalogue;
            let hint = self.complaints.did_you_mean(name, catalogue.capability_names());
            let message = format!("there is no capability `{}`", shorten_for_message(name));
            self.complain(ComplaintCode::UnknownCapability, at, node, message, hint);
        }
        self.permissions.capabilities.insert(name.to_owned());
        DocumentWork::Capability { name: name.to_owned() }
    }

    /// Takes over what the analysis of a code task found.
    fn code(
        &mut self,
        id: &str,
        node: NodeId,
        code: &str,
        at: ByteSpan,
        label: Option<&str>,
    ) -> DocumentWork {
        let labelled_pure = label.is_some_and(operations::is_pure_tool);
        let mut pure = labelled_pure;
        match (self.look)(code) {
            Ok(inside) => {
                let may_call = &inside.permissions;
                pure &=
                    may_call.declared.is_empty() && may_call.capabilities.is_empty() && !may_call.is_opaque();
                if labelled_pure && !pure {
                    let message = format!(
                        "task `{}` is called `{}`, but its code makes calls, so it is not taken for pure",
                        shorten_for_message(id),
                        label.unwrap_or_default()
                    );
                    let hint = Some("leave out `tool`, or take the calls out of the code".to_owned());
                    self.complaints.add(
                        (Severity::Warning, ComplaintCode::BadTask),
                        (at, Some(node)),
                        message,
                        hint,
                    );
                }
                self.fold(id, node, at, inside);
            }
            Err(bad) => {
                let message = format!("the code of task `{}`: {}", shorten_for_message(id), bad.message);
                let excerpt = bad.excerpt.unwrap_or_else(|| self.complaints.text.excerpt(at.start));
                let kind = (Severity::Error, ComplaintCode::BadTask);
                self.complaints.add_with(kind, (at, Some(node)), message, bad.hint, excerpt);
                pure = false;
            }
        }
        DocumentWork::Code { code: code.to_owned(), tool: label.map(str::to_owned), pure }
    }

    fn fold(&mut self, id: &str, node: NodeId, at: ByteSpan, inside: CodeSummary) {
        let position = self.complaints.text.position(at);
        let moved = |remark: Remark| Remark {
            what: format!(
                "{} (task `{}`, line {} of its code)",
                remark.what,
                shorten_for_message(id),
                remark.at.line
            ),
            at: position,
        };
        self.permissions.declared.extend(inside.permissions.declared);
        self.permissions.capabilities.extend(inside.permissions.capabilities);
        self.permissions.opaque.extend(inside.permissions.opaque.into_iter().map(moved));
        self.permissions.ambient.extend(inside.permissions.ambient.into_iter().map(moved));
        for complaint in inside.complaints {
            let Complaint { severity, code, message, hint, at: place, excerpt, .. } = complaint;
            let message = format!(
                "the code of task `{}`, line {}, column {}: {message}",
                shorten_for_message(id),
                place.line,
                place.column
            );
            self.complaints.add_with((severity, code), (at, Some(node)), message, hint, excerpt);
        }
    }

    /// Checks the arguments against the schema of the callee. Returns that schema.
    pub(super) fn check(
        &mut self,
        id: &str,
        work: &DocumentWork,
        written: &WrittenTask<'t, 'd>,
        argument: &Argument,
    ) -> Option<&'t Value> {
        let catalogue = self.catalogue;
        let (called, input, inferred) = match work {
            DocumentWork::Tool { tool } => (tool, find_tool(catalogue, tool)?.input_schema(), false),
            DocumentWork::Capability { name } => (name, catalogue.capability(name)?.input_schema(), true),
            DocumentWork::Code { .. } => return None,
        };
        for finding in check_arguments(input, argument) {
            let at =
                written.get(TaskMember::Arguments).map_or(written.span, |tree| place(tree, &finding.path));
            let message = format!("task `{}`, `{called}`: {}", shorten_for_message(id), finding.message);
            let severity = if inferred { finding.inferred() } else { finding.severity };
            self.complaints.add((severity, finding.code), (at, Some(written.node)), message, finding.hint);
        }
        Some(input)
    }
}

/// Complains about a task without work, with a hint what to write.
fn no_work(
    id: &str,
    kind: Option<&str>,
    things: usize,
    operation_without_code: bool,
) -> (String, &'static str) {
    match kind {
        Some(kind) if !["mcp_tool", "code_execution", "capability"].contains(&kind) => (
            format!("`{}` is not a type of task", shorten_for_message(kind)),
            "use `mcp_tool`, `code_execution` or `capability`, or leave it out",
        ),
        _ if things == 0 => {
            (format!("task `{id}` does nothing"), "give it a `tool`, a `capability` or `code`")
        }
        _ if things == 1 && operation_without_code => (
            format!("task `{id}` names an operation and has no `code`"),
            "give the source of the operation in `code`; its input is `args`",
        ),
        Some(kind) => (
            format!("task `{id}` is not what its type `{kind}` says"),
            "`mcp_tool` goes with `tool`, `code_execution` with `code`, `capability` with `capability`",
        ),
        None => {
            (format!("task `{id}` does several things"), "give it one of `tool`, `capability` and `code`")
        }
    }
}

fn find_tool<'c>(catalogue: &'c AnalysisCatalogue, name: &str) -> Option<&'c AnalysisTool> {
    let (server, tool) = name.split_once(':')?;
    catalogue.tool(server, tool)
}

/// Kind of the task's node in the structure.
pub(super) fn kind(work: &DocumentWork, arguments: Argument) -> NodeKind {
    match work {
        DocumentWork::Tool { tool } => {
            NodeKind::Task { tool: tool.clone(), arguments, code: None, pure: false }
        }
        DocumentWork::Capability { name } => NodeKind::Capability { capability: name.clone(), arguments },
        DocumentWork::Code { code, tool, pure } => NodeKind::Task {
            tool: tool.clone().unwrap_or_else(|| "code:program".to_owned()),
            arguments,
            code: Some(code.clone()),
            pure: *pure,
        },
    }
}

/// Span of the part of an argument at `path`, or of its nearest enclosing part.
fn place(tree: &JsonTree<'_>, path: &[PathStep]) -> ByteSpan {
    let mut here = tree;
    for step in path {
        if let JsonKind::Object(members) = &here.kind
            && let Some(escaped) = members.iter().find(|member| member.key == "$literal")
        {
            here = &escaped.value;
        }
        let next = match (&here.kind, step) {
            (JsonKind::Object(members), PathStep::Key(key)) => {
                members.iter().find(|member| member.key == *key).map(|member| &member.value)
            }
            (JsonKind::Array(items), PathStep::Index(index)) => {
                usize::try_from(*index).ok().and_then(|i| items.get(i))
            }
            _ => None,
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    here.span
}
