//! What a client's model has to read before it has done anything.

use crate::harness::{Home, material, node};
use serde_json::{Value, json};

/// Twenty servers of 250 tools each, all of them known.
fn five_thousand_tools() -> Home {
    let (node, script) = (node(), material("fixture/many.mjs"));
    let config: String = (0..20)
        .map(|n| {
            format!(
                "[servers.department{n}]\ncommand = {node:?}\nargs = [{script:?}, \"250\"]\n\
                 description = \"everything about department number {n}, its people, its papers and its money\"\n"
            )
        })
        .collect();
    let home = Home::new(&config);
    let checked = home.run(&["doctor"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    home
}

#[test]
fn five_thousand_tools_cost_a_client_less_than_two_thousand_tokens() {
    let home = five_thousand_tools();
    let mut client = home.stdio(&[]);
    let list = client.request("tools/list", &json!({}));
    let tokenizer = tiktoken_rs::cl100k_base().unwrap();
    let meta = tokenizer.encode_ordinary(&list.to_string()).len();
    println!("tools/list: {meta} tokens in exposure `meta`");
    assert!(meta <= 2_000, "{meta} tokens");

    let found = client.call("pml_discover", &json!({"intent": "give back a text"}));
    assert!(found["structuredContent"]["total"].as_u64().unwrap() >= 5_000, "{found}");

    let mut all = home.stdio(&["--expose", "full"]);
    let (mut tools, mut cursor, mut full) = (0, None, 0);
    loop {
        let page =
            all.request("tools/list", &cursor.map_or(json!({}), |cursor: Value| json!({"cursor": cursor})));
        tools += page["tools"].as_array().unwrap().len();
        full += page.to_string().len();
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    println!("exposure `full`: {tools} tools, {full} bytes");
    assert!(tools > 5_000);
}
