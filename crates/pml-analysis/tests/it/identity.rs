//! Which programs are the same, apart from their wording.

use crate::{analysed, here};

#[test]
fn equal_and_different_where_the_meaning_is() {
    let text = std::fs::read_to_string(here("identity.txt")).expect("the pairs");
    let mut wrong = Vec::new();
    let mut count = 0;
    for block in text.split("\n=== ").skip(1) {
        count += 1;
        let (head, programs) = block.split_once('\n').expect("a title line");
        let (one, other) = programs.split_once("\n---\n").expect("two programs");
        let same = match head.split_once(':') {
            Some(("same", _)) => true,
            Some(("different", _)) => false,
            _ => panic!("`{head}` says neither same nor different"),
        };
        let (one, other) = (analysed(one), analysed(other));
        let (one, other) = match (one, other) {
            (Ok(one), Ok(other)) => (one, other),
            (one, other) => {
                wrong.push(format!("{head}: not understood: {:?} {:?}", one.err(), other.err()));
                continue;
            }
        };
        if (one.identity.identity == other.identity.identity) != same {
            wrong.push(head.to_owned());
        } else if same && ids(&one) != ids(&other) {
            wrong.push(format!("{head}: same identity, other structure"));
        }
    }
    assert!(count >= 30, "only {count} pairs");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

fn ids(analysis: &pml_analysis::Analysis) -> Vec<String> {
    let nodes = analysis.structure.nodes.iter().map(|node| node.id.to_string());
    let edges =
        analysis.structure.edges.iter().map(|edge| format!("{}-{:?}-{}", edge.from, edge.link, edge.to));
    nodes.chain(edges).collect()
}
