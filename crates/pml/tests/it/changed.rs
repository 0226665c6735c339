//! Tools that become other tools while programs may call them, where nobody has to accept what they become.

use serde_json::{Value, json};

use crate::faulty::{self, Ledger};
use crate::harness::{Client, Home};

/// A home with a server whose tools change on command and are followed, and that programs may use.
fn home(era: &str) -> Home {
    home_with(era, "definitions = \"follow\"")
}

fn home_with(era: &str, definitions: &str) -> Home {
    let home = Home::new("");
    let table = faulty::table(&home, "s", &["--era", era], definitions);
    home.configure(&format!("[permissions]\ns = {{ approval_mode = \"auto\" }}\n{table}"));
    home
}

fn run(client: &mut Client, code: &str) -> Value {
    let implementation = json!({"type": "code", "code": code});
    let reply = client.call("pml_execute", &json!({"intent": "try", "implementation": implementation}));
    reply["structuredContent"].clone()
}

/// Makes `s:ok` another tool and waits until that is known.
fn redefine(client: &mut Client) {
    // When its server is started its tools are announced as well.
    client.call("s:echo", &json!({}));
    client.aside.clear();
    let definition = json!({"description": "now it deletes files"});
    client.call("s:redefine", &json!({"change": {"tool": "ok", "definition": definition}}));
    client.announced("notifications/tools/list_changed");
}

/// Calls `s:ok` and gives the code of the error, or `ok`.
const TRY: &str = "const attempt = async () => { \
                   try { await mcp.s.ok({}); return 'ok'; } catch (error) { return error.code; } };\n";

#[test]
fn a_tool_that_changes_while_a_program_runs_is_not_called_as_long_as_it_is_another() {
    let pinned = [("legacy", ""), ("modern", "")];
    let followed = [("legacy", "definitions = \"follow\""), ("modern", "definitions = \"follow\"")];
    for (era, definitions) in [pinned, followed].concat() {
        let home = home_with(era, definitions);
        let mut client = home.stdio(&[]);
        let code = format!(
            "{TRY}
            const become = (description) => mcp.s.redefine({{ change: {{ tool: 'ok', definition: {{ description }} }} }});
            const seen = [await attempt()];
            for (const description of ['now it deletes files', 'now it pays bills']) {{
              await become(description);
              seen.push(await attempt());
            }}
            await become('the tool ok');
            while (await attempt() !== 'ok') await new Promise((wake) => setTimeout(wake, 10));
            await become('now it deletes files');
            return [...seen, await attempt()];"
        );
        let reply = run(&mut client, &code);
        let changed = "TOOL_CHANGED";
        assert_eq!(reply["result"], json!(["ok", changed, changed, changed]), "{era}: {reply}");
        // What was granted is known by its definition: where that is the same again, it is the same tool.
        assert_eq!(Ledger::of(&home, "s").calls("ok"), 2, "{era}");
    }
}

#[test]
fn a_tool_that_is_another_when_its_server_comes_back_is_not_called() {
    let home = home("legacy");
    let mut client = home.stdio(&[]);
    redefine(&mut client);
    let code = format!(
        "{TRY}
        const before = await attempt();
        try {{ await mcp.s.crash({{}}); }} catch {{}}
        return [before, await attempt(), await attempt()];"
    );
    // The process that is started next has never been told to change anything.
    let reply = run(&mut client, &code);
    assert_eq!(reply["result"], json!(["ok", "TOOL_CHANGED", "TOOL_CHANGED"]), "{reply}");
    let ledger = Ledger::of(&home, "s");
    assert_eq!((ledger.calls("ok"), ledger.pids().len()), (1, 2));
    let anew = run(&mut client, &format!("{TRY} return await attempt();"));
    assert_eq!(anew["result"], "ok", "a program that was planned since may call it: {anew}");
}

#[test]
fn a_tool_that_is_another_than_was_remembered_is_not_called() {
    let home = home("legacy");
    let mut client = home.stdio(&[]);
    redefine(&mut client);
    client.finish();

    // The program is planned with what the server told the last time; it is started for the call.
    let mut client = home.stdio(&[]);
    let ledger = Ledger::of(&home, "s");
    let starts = ledger.pids().len();
    let reply = run(&mut client, &format!("{TRY} return await attempt();"));
    assert_eq!(reply["result"], "TOOL_CHANGED", "{reply}");
    assert_eq!((ledger.calls("ok"), ledger.pids().len()), (0, starts + 1));
    let uncaught = run(&mut client, "await mcp.s.ok({}); return 1");
    assert_eq!(uncaught["result"], 1, "what is planned anew knows it as it is: {uncaught}");
}
