//! How made-up values get through what a dry run writes: what is read after a write that depends on them, or after one
//! of a file that was not made because of them.

use pml_model::structure::{Argument, NodeId, NodeKind};
use serde_json::Value;

use super::{PlacedRun, Taint, has_returned, is_made_up};
use crate::execute::dry_run::DryCallRecord;
use crate::report::ValueOrigin;

/// The tools of the built-in file server that only read.
const READS: &[&str] = &["fs:stat", "fs:read", "fs:list", "fs:search"];

/// A write of a file that was not made.
#[derive(Debug)]
pub(super) struct SkippedWrite {
    /// The file, if the program says it as it is.
    path: Option<String>,
}

impl SkippedWrite {
    /// The write that a node would make; `None` if it makes none.
    pub(super) fn of(run: &PlacedRun<'_>, node: NodeId) -> Option<SkippedWrite> {
        let kind = &run.code.structure.node(node)?.kind;
        let NodeKind::Task { tool, .. } = kind else { return None };
        if !tool.starts_with("fs:") || READS.contains(&tool.as_str()) {
            return None;
        }
        Some(SkippedWrite { path: kind.arguments().and_then(literal_path) })
    }

    fn concerns(&self, read: Option<&str>) -> bool {
        match (&self.path, read.map(normal)) {
            (Some(written), Some(read)) => is_within(written, &read) || is_within(&read, written),
            _ => true,
        }
    }
}

/// The reads whose results depend on made-up values, as far as `taint` shows what else does.
pub(super) fn affected_reads(calls: &[DryCallRecord], taint: &Taint) -> Vec<u32> {
    // A decision comes after the made-up value that it goes by.
    let first_source = calls.iter().filter(|call| is_made_up(call)).map(|call| call.call).min();
    let after_write = |read: &DryCallRecord| {
        read.origin == ValueOrigin::Overlay
            && calls.iter().take_while(|call| call.call < read.call).any(|call| {
                call.tool.server == read.tool.server
                    && taint.calls.contains(&call.call)
                    && !matches!(call.origin, ValueOrigin::Real)
                    && !is_file_read(call)
            })
    };
    let after_skipped = |read: &DryCallRecord| {
        is_file_read(read)
            && first_source.is_some_and(|source| read.call > source)
            && taint.skipped.iter().any(|skipped| skipped.concerns(path_of(read).as_deref()))
    };
    let affected =
        calls.iter().filter(|call| has_returned(call) && (after_write(call) || after_skipped(call)));
    affected.map(|call| call.call).collect()
}

fn is_file_read(call: &DryCallRecord) -> bool {
    READS.contains(&call.tool.to_string().as_str())
}

fn path_of(call: &DryCallRecord) -> Option<String> {
    let given: Value = serde_json::from_str(call.arguments.get()).ok()?;
    given["path"].as_str().map(str::to_owned)
}

fn literal_path(arguments: &Argument) -> Option<String> {
    let Argument::Object { fields, .. } = arguments else { return None };
    match &fields.iter().find(|field| field.name == "path")?.value {
        Argument::Literal { value } => value.as_str().map(normal),
        _ => None,
    }
}

fn normal(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

fn is_within(path: &str, outer: &str) -> bool {
    outer.is_empty() || path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
