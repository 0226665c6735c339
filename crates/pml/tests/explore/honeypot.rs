//! Generated intents against a server that writes down every call: exploring calls nothing that could have an effect.

use serde_json::json;

use crate::dice::{Dice, number};
use crate::gateway::Gateway;
use crate::harness::{Home, python};
use crate::place::{Place, server};

/// Tools that change something, some of them named as if they did not, beside three that only read.
const TOOLS: &str = r#"
READS = ["find_customer", "list_orders", "get_invoice"]
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
        ledger.write(name + "\n")
    value = {"customer_id": "c1", "order_id": "o1", "invoice_id": "i1", "email": "ada@example.org"}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
"#;

const HARMLESS: [&str; 3] = ["find_customer", "list_orders", "get_invoice"];

fn place() -> Place {
    let home = Home::new("");
    std::fs::write(home.path("shop.py"), server(TOOLS)).unwrap();
    let (program, script, cwd) = (python("python"), home.path("shop.py"), home.path(""));
    let harmless =
        HARMLESS.map(|tool| format!("\"shop:{tool}\" = {{ approval_mode = \"auto\", read_only = true }}\n"));
    home.configure(&format!(
        "[servers.shop]\ncommand = {program:?}\nargs = [{script:?}]\ncwd = {cwd:?}\n[builtin.fs]\nroot = \".\"\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n{}",
        harmless.concat()
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

#[test]
fn generated_intents_cause_no_effect() {
    let explorations = number("PML_EXPLORATIONS", 30);
    let mut place = place();
    let mut dice = Dice(number("PML_SEED", 1));
    let verbs =
        ["find", "update", "delete", "cancel", "send", "pay", "list", "check", "archive", "get", "look up"];
    let things = [
        "customer c7",
        "order o9",
        "invoice i3",
        "email to bob@example.org",
        "inbox of ada@example.org",
        "orders of customer c7",
    ];
    let (mut paths, mut made_up) = (0, 0);
    for _ in 0..explorations {
        let pick = |dice: &mut Dice, of: &[&str]| of[dice.roll(of.len() as u64) as usize].to_owned();
        let mut intent = format!("{} the {}", pick(&mut dice, &verbs), pick(&mut dice, &things));
        for _ in 0..dice.roll(2) {
            intent += &format!(" and {} the {}", pick(&mut dice, &verbs), pick(&mut dice, &things));
        }
        let context =
            json!({ "customer_id": "c7", "order_id": "o9", "email": "bob@example.org", "key": "k" });
        let asked = json!({ "intent": intent, "context": context, "maxPaths": 5 });
        let told = place.gateway.call("pml_explore", &asked);
        for path in told["viablePaths"].as_array().into_iter().flatten() {
            paths += 1;
            made_up += path["mockedExecutions"].as_u64().unwrap();
        }
        let ledger = std::fs::read_to_string(place.home.path("ledger")).unwrap_or_default();
        let harmful: Vec<&str> = ledger.lines().filter(|tool| !HARMLESS.contains(tool)).collect();
        assert!(harmful.is_empty(), "{harmful:?} were called for “{intent}”: {told:#}");
    }
    println!("{explorations} explorations, {paths} viable paths, {made_up} calls made up, 0 unsafe calls");
    assert!(
        paths > explorations / 3 && made_up > 0,
        "{paths} paths, {made_up} made up: the intents reach something"
    );
}
