//! Tests of the graph, with shared helpers: tools from short descriptions, and seeded random graphs.

mod algorithms;
mod edges;
mod feeds;
mod provides;

use serde_json::{Value, json};

use super::csr::CsrGraph;
use super::fields::{FieldsDefinition, ToolFields};

/// A tool from `name(parameter:type*, …) -> field:type, …`; a star means required.
fn tool(text: &str) -> ToolFields {
    let (name, rest) = text.split_once('(').expect("a parameter list");
    let (inputs, outputs) = rest.split_once(')').expect("the end of the parameter list");
    let outputs = outputs.trim().trim_start_matches("->").trim();
    let own = name.rsplit(':').next().unwrap_or(name);
    ToolFields::from_definition(&FieldsDefinition {
        id: name,
        name: own,
        description: "",
        input_schema: &schema(inputs),
        output_schema: (!outputs.is_empty()).then(|| schema(outputs)).as_ref(),
    })
}

fn schema(fields: &str) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for field in fields.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, kind) = field.split_once(':').expect("a name and a type");
        properties.insert(name.to_owned(), json!({ "type": kind.trim_end_matches('*') }));
        if kind.ends_with('*') {
            required.push(name.to_owned());
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Pseudorandom numbers (splitmix64), the same as those behind the reference values.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u32 {
        u32::try_from(self.next() % end).expect("small")
    }
}

/// A directed graph with weights from 0.1 to 0.9; of duplicate edges the later wins.
fn random_graph(seed: u64, nodes: u32, draws: usize) -> CsrGraph {
    let mut random = Random(seed);
    let mut edges = std::collections::BTreeMap::new();
    for _ in 0..draws {
        let (from, to) = (random.below(nodes.into()), random.below(nodes.into()));
        let weight = f64::from(random.below(9) + 1) / 10.0;
        if from != to {
            edges.insert((from, to), weight);
        }
    }
    CsrGraph::new(nodes as usize, edges.into_iter().map(|((from, to), weight)| (from, to, weight)))
}
