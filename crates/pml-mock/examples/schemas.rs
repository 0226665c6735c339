//! Makes values for the schemas of many tools and counts those for which none is found.
//!
//! `cargo run -p pml-mock --example schemas -- FILE` reads one JSON object a line; every member whose name ends in
//! `schema` is taken as the output schema of a tool.

use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use pml_mock::{MockOrigin, MockRequest, generate};
use pml_model::ToolId;
use serde_json::{Value, json};

/// Variants made of each schema.
const VARIANTS: u32 = 6;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a file with one JSON object a line")?;
    let tool = ToolId::parse("any:tool")?;
    let (mut made, mut missed) = (0_u32, 0_u32);
    let mut out = std::io::stdout();
    let start = Instant::now();
    for line in std::io::BufReader::new(std::fs::File::open(path)?).lines() {
        let tools: Value = serde_json::from_str(&line?)?;
        let schemas = tools
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| name.to_lowercase().ends_with("schema"));
        for (_, schema) in schemas {
            for variant in 0..VARIANTS {
                let request = MockRequest {
                    tool: &tool,
                    arguments: &json!({"name": "given", "id": 4}),
                    output_schema: Some(schema),
                    seed: 1,
                    variant,
                };
                made += 1;
                if generate(&request).origin == MockOrigin::Placeholder {
                    missed += 1;
                    writeln!(out, "no value (variant {variant}): {schema}")?;
                }
            }
        }
    }
    let each_us = start.elapsed().as_micros() / u128::from(made.max(1));
    writeln!(out, "{made} values, {missed} not found, {each_us} us each")?;
    Ok(())
}
