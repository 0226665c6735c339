//! What an index of a changed catalogue promises: to be the one that building it anew would give.

use pml_graph::lexical::{IndexEntry, LexicalIndex, ToolDocument};
use pml_graph::rank::{RankingEvidence, ScoredItem, rank};

/// A tool of which every word is made from its number, with a text that grows with it.
struct Tool {
    name: String,
    description: String,
}

fn tools(numbers: impl IntoIterator<Item = usize>) -> Vec<Tool> {
    let tool = |number: usize| Tool {
        name: format!("read_file{number}"),
        description: format!("Read file number {} {}", number % 7, "of many ".repeat(number % 5)),
    };
    numbers.into_iter().map(tool).collect()
}

fn document(tool: &Tool) -> ToolDocument<'_> {
    ToolDocument { server: "fs", name: &tool.name, description: &tool.description, ..ToolDocument::default() }
}

fn build(tools: &[Tool]) -> LexicalIndex {
    LexicalIndex::build(tools.iter().map(document))
}

fn ranked(index: &LexicalIndex) -> Vec<Vec<ScoredItem>> {
    let evidence = RankingEvidence { lexical: index, dense: None, advice: None };
    let requests = ["read file3", "file number 5. many file11", "fs", "file40 of many", "write a pixel"];
    requests.iter().map(|request| rank(request, &evidence)).collect()
}

/// Takes over what `kept` gives a number for, and reads the other tools anew.
#[track_caller]
fn check(before: &LexicalIndex, now: &[Tool], kept: impl Fn(usize) -> Option<usize>) -> LexicalIndex {
    let entries = now.iter().enumerate().map(|(item, tool)| match kept(item) {
        Some(before) => IndexEntry::Kept(before),
        None => IndexEntry::New(document(tool)),
    });
    let updated = before.with_entries(entries);
    assert_eq!(updated.len(), now.len());
    assert_eq!(ranked(&updated), ranked(&build(now)));
    updated
}

#[test]
fn one_tool_more_less_or_other_is_as_built_anew() {
    let before = build(&tools(0..30));
    check(&before, &tools(0..31), |item| (item < 30).then_some(item));
    check(&before, &tools(1..30), |item| Some(item + 1));
    check(&before, &tools((0..30).map(|n| if n == 17 { 40 } else { n })), |item| {
        (item != 17).then_some(item)
    });
}

#[test]
fn tools_may_change_places() {
    let before = build(&tools(0..30));
    check(&before, &tools((0..30).rev()), |item| Some(29 - item));
}

#[test]
fn an_index_stays_right_through_many_changes() {
    let mut index = build(&tools(0..10));
    for first in 1..200 {
        // Usual lengths change by more than a step on the way, and most words are forgotten.
        index = check(&index, &tools(first..first + 10), |item| (item < 9).then_some(item + 1));
    }
}

#[test]
fn everything_may_go_and_come_back() {
    let before = build(&tools(0..10));
    let empty = check(&before, &[], Some);
    check(&empty, &tools(0..10), |_| None);
}

#[test]
#[should_panic(expected = "an item is kept once")]
fn an_item_cannot_be_kept_twice() {
    build(&tools(0..2)).with_entries([IndexEntry::Kept(0), IndexEntry::Kept(0)]);
}
