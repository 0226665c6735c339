//! Real servers as the ground that is explored: files, a knowledge graph, a repository and an HTTP API; and workflows of
//! the kind that people build in n8n as what is asked for.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, material, node, npm_server, python};
use crate::place::{Place, server};
use crate::{explore, tools_of};

/// Tools over a small HTTP API of a shop, which runs beside them and writes down every request.
const API: &str = r#"
import http.server, threading, urllib.request, urllib.parse

class Shop(http.server.BaseHTTPRequestHandler):
    def answer(self, value):
        with open("requests", "a") as requests:
            requests.write(self.command + " " + self.path + "\n")
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer({"order_id": "o7", "total": 42, "email": "ada@example.org"})
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({"sent": True})
    def log_message(self, *_):
        pass

shop = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
threading.Thread(target=shop.serve_forever, daemon=True).start()
base = "http://127.0.0.1:%d" % shop.server_address[1]

def tools():
    text = {"type": "string"}
    def one(name, description, inputs, outputs):
        schema = lambda names: {"type": "object", "properties": {key: text for key in names}, "required": names}
        return {"name": name, "description": description, "inputSchema": schema(inputs), "outputSchema": {"type": "object", "properties": {key: text if key != "total" else {"type": "number"} for key in outputs}}}
    return [
        one("find_order", "Find the order of a customer by email", ["email"], ["order_id", "total", "email"]),
        one("send_invoice", "Send the invoice of an order", ["order_id"], ["sent"]),
    ]

def call():
    name, given = message["params"]["name"], message["params"]["arguments"]
    if name == "find_order":
        request = urllib.request.Request(base + "/orders?" + urllib.parse.urlencode(given))
    else:
        request = urllib.request.Request(base + "/invoices", data=json.dumps(given).encode(), method="POST")
    value = json.load(urllib.request.urlopen(request))
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
"#;

/// A place with all of them, and a repository with two commits.
fn place() -> Place {
    let home = Home::new("");
    let root = home.path("root");
    std::fs::create_dir(&root).unwrap();
    let git = |arguments: &[&str]| {
        assert!(Command::new("git").arg("-C").arg(&root).args(arguments).status().unwrap().success());
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "a@b.c"]);
    git(&["config", "user.name", "a"]);
    std::fs::write(root.join("notes.txt"), "buy ink\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "the first notes"]);
    std::fs::write(home.path("api.py"), server(API)).unwrap();
    let filesystem = material("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let (script, cwd) = (home.path("api.py"), home.path(""));
    let path = std::env::var("PATH").unwrap();
    home.configure(&format!(
        "[servers.filesystem]\ntrust = \"annotations\"\ncommand = {:?}\nargs = [{filesystem:?}, {root:?}]\n\
         [servers.memory]\n{}\nenv = {{ MEMORY_FILE_PATH = {:?} }}\n\
         [servers.git]\ntrust = \"annotations\"\ncommand = {:?}\nargs = [\"--repository\", {root:?}]\nenv = {{ PATH = {path:?} }}\n\
         [servers.shop]\ncommand = {:?}\nargs = [{script:?}]\ncwd = {cwd:?}\n\
         [permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n\
         \"memory:read_graph\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         \"memory:search_nodes\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         \"filesystem:read_text_file\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         \"git:git_log\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         \"git:git_status\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         \"shop:find_order\" = {{ approval_mode = \"auto\", read_only = true, open_world = false }}\n",
        node(),
        npm_server("server-memory"),
        home.path("memory.json").display().to_string(),
        python("mcp-server-git"),
        python("python"),
    ));
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 0, "{}", looked.stdout);
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

/// All that the servers could have changed.
fn state(place: &Place) -> Vec<String> {
    let root = place.home.path("root");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let requests = read(&place.home.path("requests"));
    let sent = requests.lines().filter(|line| line.starts_with("POST")).count();
    let mut files: Vec<String> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != ".git")
        .map(|entry| format!("{:?} {}", entry.file_name(), read(&entry.path())))
        .collect();
    files.sort();
    files.extend([
        git(&["log", "--format=%s"]),
        git(&["status", "--porcelain"]),
        git(&["branch"]),
        read(&place.home.path("memory.json")),
        format!("{sent} sent"),
    ]);
    files
}

/// What is asked for, with the tools that at least one path has to have called.
fn requests(root: &Path) -> Vec<(String, Value, Vec<&'static str>)> {
    let file = root.join("notes.txt").display().to_string();
    let repository = json!({ "repo_path": root });
    vec![
        // The kinds of workflows that people build in n8n: fetch and send, read and remember, look and report.
        (
            "find the order of ada@example.org and send its invoice".to_owned(),
            json!({}),
            vec!["shop:find_order", "shop:send_invoice"],
        ),
        (format!("read the text file {file}"), json!({}), vec!["filesystem:read_text_file"]),
        ("show the git log of the repository".to_owned(), repository.clone(), vec!["git:git_log"]),
        ("show the git status of the repository".to_owned(), repository, vec!["git:git_status"]),
        ("read the entire knowledge graph".to_owned(), json!({}), vec!["memory:read_graph"]),
        (
            format!("write the text hello to the file {file}"),
            json!({ "path": file, "content": "hello" }),
            vec!["filesystem:write_file"],
        ),
    ]
}

#[test]
fn real_servers_are_explored_without_a_change_and_the_chosen_path_has_its_effect() {
    let mut place = place();
    let root = place.home.path("root");
    let before = state(&place);
    let mut to_send = Value::Null;
    let mut to_write = Value::Null;
    for (intent, context, tools) in requests(&root) {
        let told = explore(&mut place, &json!({ "intent": intent, "context": context, "maxPaths": 5 }));
        let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("“{intent}”: {told:#}"));
        let path = viable.iter().find(|path| tools_of(path) == tools);
        let path = path.unwrap_or_else(|| panic!("“{intent}” is not served by {tools:?}: {told:#}"));
        assert_eq!(state(&place), before, "exploring “{intent}” changed something: {told:#}");
        match tools[..] {
            [.., "shop:send_invoice"] => {
                assert_eq!(
                    (&path["realExecutions"], &path["mockedExecutions"]),
                    (&json!(1), &json!(1)),
                    "{told:#}"
                );
                to_send = path["pathId"].clone();
            }
            ["filesystem:write_file"] => {
                assert_eq!(path["mockedExecutions"], 1, "{told:#}");
                to_write = path["pathId"].clone();
            }
            _ => assert_eq!(path["mockedExecutions"], 0, "all of it only reads: {told:#}"),
        }
    }
    for id in [&to_send, &to_write] {
        let ran = place.gateway.call("pml_execute", &json!({ "explorePath": id, "confirm": true }));
        assert_eq!(ran["status"], "success", "{ran:#}");
    }
    let after = state(&place);
    assert!(after.contains(&"1 sent".to_owned()), "{after:?}");
    assert_eq!(std::fs::read_to_string(root.join("notes.txt")).unwrap(), "hello");
}

#[test]
fn a_dry_run_over_real_servers_changes_nothing_and_tells_what_the_run_then_does() {
    let mut place = place();
    let root = place.home.path("root");
    let code = "const file = `${args.root}/notes.txt`;\n\
        const before = await mcp.filesystem.read_text_file({ path: file });\n\
        await mcp.filesystem.write_file({ path: file, content: 'sell ink' });\n\
        await mcp.memory.create_entities({ entities: [{ name: 'notes', entityType: 'file', observations: ['changed'] }] });\n\
        await mcp.git.git_add({ repo_path: args.root, files: ['notes.txt'] });\n\
        await mcp.git.git_commit({ repo_path: args.root, message: 'sell' });\n\
        const order = await mcp.shop.find_order({ email: 'ada@example.org' });\n\
        await mcp.shop.send_invoice({ order_id: order.order_id });\n\
        return typeof before === 'string' ? before : before.content;";
    let mut ask = |options: Value| {
        place.gateway.call(
            "pml_execute",
            &json!({ "intent": "a day of work", "implementation": { "type": "code", "code": code },
                     "context": { "root": root }, "options": options }),
        )
    };
    let told = ask(json!({ "dryRun": true }));
    assert_eq!(told["status"], "dry_run", "{told:#}");
    let report = told["report"].clone();
    let before = state(&place);
    assert!(before.contains(&"0 sent".to_owned()), "{before:?}");
    assert!(report["result"].to_string().contains("buy ink"), "the file is really read: {report:#}");
    let mut effects: Vec<&str> =
        report["effects"].as_array().unwrap().iter().map(|effect| effect["tool"].as_str().unwrap()).collect();
    effects.sort_unstable();
    assert_eq!(
        effects,
        [
            "filesystem:write_file",
            "git:git_add",
            "git:git_commit",
            "memory:create_entities",
            "shop:send_invoice"
        ],
        "{report:#}"
    );
    let ran = place.gateway.call("pml_execute", &json!({ "explorePath": report["id"], "confirm": true }));
    assert_eq!(ran["status"], "success", "{ran:#}");
    let after = state(&place);
    assert!(
        after.contains(&"1 sent".to_owned()) && after.contains(&"sell\nthe first notes\n".to_owned()),
        "{after:?}"
    );
    assert!(std::fs::read_to_string(place.home.path("memory.json")).unwrap().contains("changed"));
}
