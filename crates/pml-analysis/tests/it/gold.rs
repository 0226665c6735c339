//! Programs whose data flow was labelled by hand, from the meaning of JavaScript alone.
//!
//! `gold/README.md` says how labels are written. Labels are never changed to please the analyser.

use std::collections::{BTreeMap, BTreeSet};

use pml_analysis::Analysis;
use pml_model::structure::{EdgeLink, NodeId};

use crate::{analysed, here};

type Pairs = BTreeSet<(String, String)>;

#[test]
fn the_flow_of_every_labelled_program_is_found_exactly() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(here("gold")).expect("gold programs").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files.iter().filter(|file| file.path().extension().is_some_and(|e| e == "ts")) {
        count += 1;
        let source = std::fs::read_to_string(file.path()).expect("readable");
        if let Err(difference) = compare(&source) {
            wrong.push(format!("{}: {difference}", file.file_name().display()));
        }
    }
    assert!(count >= 40, "only {count} programs");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn compare(source: &str) -> Result<(), String> {
    let analysis = analysed(source).map_err(|error| error.to_string())?;
    let labels = labels(source, &analysis);
    let expected = listed(source, "// edges:");
    let around = listed(source, "// around:");
    let found = flow(&analysis, &labels);
    let mut direct = analysis.clone();
    direct.structure.edges.retain(|edge| !matches!(edge.link, EdgeLink::Provides { around: Some(_), .. }));
    let found_around: Pairs = found.difference(&flow(&direct, &labels)).cloned().collect();
    if found == expected && found_around == around {
        return Ok(());
    }
    let show = |pairs: &Pairs| pairs.iter().map(|(a, b)| format!("{a}->{b}")).collect::<Vec<_>>().join(" ");
    let missing: Pairs = expected.difference(&found).cloned().collect();
    let extra: Pairs = found.difference(&expected).cloned().collect();
    Err(format!(
        "missing [{}] extra [{}] around is [{}], should be [{}]",
        show(&missing),
        show(&extra),
        show(&found_around),
        show(&around)
    ))
}

fn flow(analysis: &Analysis, labels: &BTreeMap<NodeId, String>) -> Pairs {
    let pairs = analysis.structure.data_flow().into_iter();
    pairs.filter_map(|(from, to)| Some((labels.get(&from)?.clone(), labels.get(&to)?.clone()))).collect()
}

fn listed(source: &str, prefix: &str) -> Pairs {
    let line = source.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default();
    line.split(',')
        .filter_map(|pair| pair.trim().split_once("->"))
        .map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()))
        .collect()
}

/// Which node each label means.
fn labels(source: &str, analysis: &Analysis) -> BTreeMap<NodeId, String> {
    let mut labels = BTreeMap::new();
    for (index, line) in source.lines().enumerate() {
        let number = index as u32 + 1;
        let Some((_, label)) = line.rsplit_once("// @") else { continue };
        let nodes: Vec<NodeId> = match label.split_once('(') {
            None => analysis
                .structure
                .nodes
                .iter()
                .filter(|node| node.at.line == number && node.kind.is_call())
                .map(|node| node.id)
                .collect(),
            Some(_) => {
                let entered: Vec<u32> = analysis
                    .program
                    .entries
                    .iter()
                    .filter(|entry| entry.at.line == number)
                    .map(|entry| entry.enters)
                    .collect();
                let sites = analysis.program.sites.iter();
                sites
                    .filter(|site| site.tool.is_some() && entered.contains(&site.context))
                    .map(|site| site.node)
                    .collect()
            }
        };
        assert!(!nodes.is_empty(), "line {number} has a label and no call: {line}");
        let name = label.split('(').next().unwrap_or_default().trim().to_owned();
        nodes.into_iter().for_each(|node| {
            labels.insert(node, name.clone());
        });
    }
    labels
}
