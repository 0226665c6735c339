//! The reply of `pml_execute` where nothing was run: a ready call, or what a program could be made of.

use pml_model::name::truncate_text;
use serde_json::value::RawValue;

use super::reply::tool_result;
use crate::approve::words;
use crate::flow::Suggestions;
use crate::suggest::SuggestedDag;

/// Bytes: the text of a usual reply stays within this; the structured content is complete.
const TEXT_BYTES: usize = 600;
/// Bytes of `TEXT_BYTES` that are left for the hint at the end.
const HINT_BYTES: usize = 60;
/// The number of characters of an earlier result in the text.
const EARLIER_CHARACTERS: usize = 20_000;
/// The longest description of a capability in the text, in characters.
const DESCRIPTION_CHARACTERS: usize = 120;

/// The tool result with candidates for `intent`, where nothing was run. `notes` say what is not known yet.
pub(super) fn suggestions_result(intent: &str, suggested: &Suggestions, notes: &[String]) -> Box<RawValue> {
    let notes: String = notes.iter().map(|note| format!("\nnote: {note}")).collect();
    let mut text = match suggested.ready_call(intent) {
        Some(call) => format!("not run: {}. If it is right, send:\n{}", suggested.because, call.text()),
        None => text_without_call(suggested, TEXT_BYTES.saturating_sub(notes.len())),
    };
    if let Some(earlier) = &suggested.earlier {
        text.push_str(&format!(
            "\nAn earlier result, {} old, for \"{}\" (similarity {:.2}): {}",
            words::age(earlier.age_ms),
            earlier.intent,
            earlier.similarity,
            truncate_text(earlier.result.get(), EARLIER_CHARACTERS)
        ));
    }
    text.push_str(&notes);
    tool_result(&text, &suggested.to_json(intent), &[], false)
}

fn text_without_call(suggested: &Suggestions, room: usize) -> String {
    let mut text = format!("not run: {}", suggested.because);
    let first = suggested.candidates.first();
    if let Some(program) = first.and_then(|first| first.program.as_ref()) {
        let block = format!("\nits program, to be sent with the other value in it:\n{program}");
        text.push_str(if text.len() + block.len() <= room { &block } else { "" });
        return text;
    }
    if let Some(first) = first.filter(|first| first.contradiction.is_none()) {
        let description = truncate_text(&first.description, DESCRIPTION_CHARACTERS);
        text.push_str(&format!("\nmaybe `{}` [{:.2}] {description}", first.name, first.confidence));
        // Only a value without a parameter keeps a likely capability from being offered as a call.
        let unplaced = first.missing.iter().filter(|missing| missing.unplaced.is_some());
        unplaced.take(1).for_each(|missing| text.push_str(&format!("\n  {}", missing.why)));
    }
    if let Some(dag) = &suggested.suggested_dag {
        push_dag(&mut text, dag, room);
    }
    push_tools(&mut text, suggested, room);
    text
}

/// Adds a suggested DAG and what it lacks, as far as it fits; all of it is in the structured content.
fn push_dag(text: &mut String, dag: &SuggestedDag, room: usize) {
    let whole = format!("\nsuggested DAG [{:.2}]: {}", dag.confidence, dag.dag_structure);
    let missing =
        dag.missing.iter().map(|missing| format!("\n  needed: `{}` of {}", missing.name, missing.task));
    let warning = dag.warning.iter().map(|warning| format!("\n  mind: {warning}"));
    if text.len() + whole.len() + HINT_BYTES > room {
        text.push_str("\nthe DAG is `suggestedDag` of the structured content");
        return;
    }
    text.push_str(&whole);
    for line in missing.chain(warning) {
        text.push_str(if text.len() + line.len() + HINT_BYTES <= room { &line } else { "" });
    }
}

/// Adds the tools before the scores fall off, as many as fit, the first in any case.
fn push_tools(text: &mut String, suggested: &Suggestions, room: usize) {
    let mut shown = 0;
    for tool in suggested.likely_tools() {
        // The type of the result is left out before the tool is.
        let fits = |line: &str| text.len() + line.len() + HINT_BYTES < room;
        let line = [&tool.signature, &tool.call].into_iter().find(|line| fits(line));
        let is_needed = shown == 0 && suggested.suggested_dag.is_none();
        let Some(line) = line.or(is_needed.then_some(&tool.call)) else { break };
        text.push_str(&format!("\n{line}"));
        shown += 1;
    }
    if shown < suggested.tools.len() {
        text.push_str("\n`pml_discover` shows more tools");
    }
}
