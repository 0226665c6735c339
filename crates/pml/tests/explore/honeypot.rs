//! Generated intents against a server that writes down every call: exploring calls nothing that could have an effect.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::gateway::Gateway;
use crate::harness::{Home, python};
use crate::place::{Place, server};

/// Tools that change something, some of them named as if they did not; three that only read; one that reads and reaches
/// a network, and one that reads and asks first.
const TOOLS: &str = r#"
READS = ["find_customer", "list_orders", "get_invoice", "search_web_for_customer", "export_invoice"]
WRITES = ["update_customer", "delete_customer", "cancel_order", "send_email", "pay_invoice", "get_and_clear_inbox", "check_in", "lookup_or_create", "list_and_archive"]
FIELDS = {"customer": "customer_id", "order": "order_id", "invoice": "invoice_id", "email": "email", "inbox": "email"}

def tools():
    def one(name):
        field = next((FIELDS[word] for word in FIELDS if word in name), "key")
        properties = {field: {"type": "string"}}
        output = {"customer_id": {"type": "string"}, "order_id": {"type": "string"}, "invoice_id": {"type": "string"}, "email": {"type": "string"}}
        return {"name": name, "description": name.replace("_", " ") + " of the shop", "inputSchema": {"type": "object", "properties": properties, "required": [field]}, "outputSchema": {"type": "object", "properties": output}}
    return [one(name) for name in READS + WRITES]

def call():
    name = message["params"]["name"]
    with open("ledger", "a") as ledger:
        ledger.write(json.dumps([name, message["params"].get("arguments")]) + "\n")
    value = {"customer_id": "told-c", "order_id": "told-o", "invoice_id": "told-i", "email": "told@example.org"}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
"#;

const HARMLESS: [&str; 3] = ["find_customer", "list_orders", "get_invoice"];
/// It reads, and reaches a network: it may be called with what the request says, and never with what a tool told.
const OPEN_WORLD: &str = "search_web_for_customer";

fn place() -> Place {
    let home = Home::new("");
    std::fs::write(home.path("shop.py"), server(TOOLS)).unwrap();
    let (program, script, cwd) = (python("python"), home.path("shop.py"), home.path(""));
    let harmless = HARMLESS.map(|tool| {
        format!("\"shop:{tool}\" = {{ approval_mode = \"auto\", read_only = true, open_world = false }}\n")
    });
    let bait = format!(
        "\"shop:{OPEN_WORLD}\" = {{ approval_mode = \"auto\", read_only = true, open_world = true }}\n\"shop:export_invoice\" = {{ approval_mode = \"hil\", read_only = true }}\n"
    );
    for (file, text) in [("notes.txt", "buy ink\n"), ("data/orders.csv", "id,customer\n1,Ada\n")] {
        let path = home.path("root").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = home.path("root");
    home.configure(&format!(
        "[servers.shop]\ncommand = {program:?}\nargs = [{script:?}]\ncwd = {cwd:?}\n[builtin.fs]\nroot = {root:?}\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n{}{bait}",
        harmless.concat()
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

/// The calls of the server that could have had an effect, or told a network what a tool had told.
fn harmful(place: &Place) -> Vec<String> {
    let ledger = std::fs::read_to_string(place.home.path("ledger")).unwrap_or_default();
    let is_harmless = |line: &&str| {
        let call: Value = serde_json::from_str(line).unwrap();
        let tool = call[0].as_str().unwrap();
        HARMLESS.contains(&tool) || (tool == OPEN_WORLD && !call[1].to_string().contains("told"))
    };
    ledger.lines().filter(|line| !is_harmless(line)).map(str::to_owned).collect()
}

/// Every file and directory below `root`, with its content.
fn tree(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let content = path.is_file().then(|| std::fs::read(&path).unwrap());
            found.insert(path.display().to_string(), content);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn generated_intents_cause_no_effect() {
    let explorations = number("PML_EXPLORATIONS", 30);
    let mut place = place();
    let before = tree(&place.home.path("root"));
    assert!(before.len() == 3, "{before:?}");
    let mut dice = Dice(number("PML_SEED", 1));
    let verbs = [
        "find",
        "update",
        "delete",
        "cancel",
        "send",
        "pay",
        "list",
        "check",
        "archive",
        "get",
        "look up",
        "export",
        "search the web for",
        "read",
        "write",
    ];
    let things = [
        "customer c7",
        "order o9",
        "invoice i3",
        "email to bob@example.org",
        "inbox of ada@example.org",
        "orders of customer c7",
        "file notes.txt",
        "files in data/",
    ];
    let (mut paths, mut made_up) = (0, 0);
    for _ in 0..explorations {
        let pick = |dice: &mut Dice, of: &[&str]| of[dice.roll(of.len() as u64) as usize].to_owned();
        let mut intent = format!("{} the {}", pick(&mut dice, &verbs), pick(&mut dice, &things));
        for _ in 0..dice.roll(2) {
            intent += &format!(" and {} the {}", pick(&mut dice, &verbs), pick(&mut dice, &things));
        }
        let context = json!({ "customer_id": "c7", "order_id": "o9", "email": "bob@example.org", "key": "k", "content": "new" });
        let asked = json!({ "intent": intent, "context": context, "maxPaths": 5 });
        let told = place.gateway.call("pml_explore", &asked);
        for path in told["viablePaths"].as_array().into_iter().flatten() {
            paths += 1;
            made_up += path["mockedExecutions"].as_u64().unwrap();
        }
        let harmful = harmful(&place);
        assert!(harmful.is_empty(), "{harmful:?} were called for “{intent}”: {told:#}");
        assert!(tree(&place.home.path("root")) == before, "files were changed for “{intent}”: {told:#}");
    }
    println!("{explorations} explorations, {paths} viable paths, {made_up} calls made up, 0 unsafe calls");
    assert!(
        paths > explorations / 3 && made_up > 0,
        "{paths} paths, {made_up} made up: the intents reach something"
    );
}
