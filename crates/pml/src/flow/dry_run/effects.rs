//! The effects of a dry run, in words.

use std::collections::BTreeSet;

use pml_model::name::printable;

use super::answers::DryEffect;
use crate::builtin::FsChange;
use crate::report::DryRunEffect;

/// The effects, in the order of their first calls. `tainted` are the calls whose arguments depend on made-up values.
pub(super) fn effects(all: &[DryEffect], tainted: &BTreeSet<u32>) -> Vec<DryRunEffect> {
    let mut told: Vec<DryRunEffect> = Vec::new();
    for effect in all {
        let (call, one) = describe(effect);
        let is_tainted = tainted.contains(&call);
        let same = |known: &&mut DryRunEffect| {
            known.tool == one.tool && known.path == one.path && (one.path.is_some() || known.text == one.text)
        };
        match told.iter_mut().find(same) {
            Some(known) => {
                known.calls += 1;
                known.tainted |= is_tainted;
                // What a file has in the end is what its last writing left.
                known.text = one.text;
            }
            None => told.push(DryRunEffect { tainted: is_tainted, ..one }),
        }
    }
    for effect in told.iter_mut().filter(|effect| effect.calls > 1) {
        effect.text.push_str(&format!(" {} times", effect.calls));
    }
    told
}

fn describe(effect: &DryEffect) -> (u32, DryRunEffect) {
    let (call, tool, text, path) = match effect {
        DryEffect::File { call, tool, change: FsChange::Written { path, size, created } } => {
            let verb = if *created { "create" } else { "write" };
            let bytes = if *size == 1 { "byte" } else { "bytes" };
            (call, tool, format!("would {verb} `{}` ({size} {bytes})", printable(path)), Some(path.clone()))
        }
        DryEffect::File { call, tool, change: FsChange::Deleted { path } } => {
            (call, tool, format!("would delete `{}`", printable(path)), Some(path.clone()))
        }
        DryEffect::Call { call, tool } => (call, tool, format!("would call `{tool}`"), None),
    };
    (*call, DryRunEffect { text, tool: tool.clone(), path, calls: 1, tainted: false })
}
