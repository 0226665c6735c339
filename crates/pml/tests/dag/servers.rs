//! Documents over real servers: files, a knowledge graph and a repository.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, material, node, npm_server, python};
use crate::place::execution;

fn start() -> (Home, Gateway) {
    let home = Home::new("");
    let root = home.path("root");
    std::fs::create_dir(&root).unwrap();
    for arguments in [&["init", "-q"][..], &["config", "user.email", "a@b.c"], &["config", "user.name", "a"]]
    {
        assert!(Command::new("git").arg("-C").arg(&root).args(arguments).status().unwrap().success());
    }
    let filesystem = material("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    home.configure(&format!(
        "[servers.filesystem]\ncommand = {:?}\nargs = [{:?}, {:?}]\n\
         [servers.memory]\n{}\nenv = {{ MEMORY_FILE_PATH = {:?} }}\n\
         [servers.git]\ncommand = {:?}\nargs = [\"--repository\", {:?}]\nenv = {{ PATH = {:?} }}\n\
         [permissions]\nfilesystem = {{ approval_mode = \"auto\" }}\nmemory = {{ approval_mode = \"auto\" }}\n\
         git = {{ approval_mode = \"auto\" }}\n",
        node(),
        filesystem.display().to_string(),
        root.display().to_string(),
        npm_server("server-memory"),
        home.path("memory.json").display().to_string(),
        python("mcp-server-git"),
        root.display().to_string(),
        std::env::var("PATH").unwrap(),
    ));
    // All servers are known before the first document comes.
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 0, "{}", looked.stdout);
    let gateway = Gateway::start(home.command(&["stdio"]));
    (home, gateway)
}

fn run(gateway: &mut Gateway, tasks: &Value, arguments: &Value) -> Value {
    let request = gateway.begin("tools/call", &execution(tasks, arguments, &json!({})));
    gateway.outcome(request)
}

#[test]
fn files_knowledge_and_a_repository_in_one_document() {
    let (home, mut gateway) = start();
    let root = home.path("root");
    let file = |name: &str| root.join(name).display().to_string();
    let repository = root.display().to_string();
    let said = run(
        &mut gateway,
        &json!([
            { "id": "a", "tool": "filesystem:write_file", "arguments": { "path": file("a.txt"), "content": "{{args.greeting}} there" } },
            { "id": "b", "tool": "filesystem:write_file", "arguments": { "path": file("b.txt"), "content": "second" } },
            { "id": "read_a", "tool": "filesystem:read_text_file", "arguments": { "path": file("a.txt") }, "dependsOn": ["a"] },
            { "id": "read_b", "tool": "filesystem:read_text_file", "arguments": { "path": file("b.txt") }, "dependsOn": ["b"] },
            { "id": "both", "tool": "code:map", "dependsOn": ["read_a", "read_b"],
              "code": "const text = (one) => one.content ?? one; return [args.a, args.b].map((one) => text(one).trim().toUpperCase())",
              "arguments": { "a": { "$ref": "read_a" }, "b": "{{read_b}}" } },
            { "id": "remember", "tool": "memory:create_entities",
              "arguments": { "entities": [{ "name": "files", "entityType": "note", "observations": { "$ref": "both" } }] } },
            { "id": "recall", "dependsOn": ["remember"], "arguments": { "name": "files" },
              "code": "const found = await mcp.memory.open_nodes({ names: [args.name] });\n\
                       const graph = typeof found === 'string' ? JSON.parse(found) : found;\n\
                       return graph.entities[0].observations" },
            { "id": "stage", "tool": "git:git_add", "dependsOn": ["a", "b"],
              "arguments": { "repo_path": repository, "files": ["a.txt", "b.txt"] } },
            { "id": "commit", "tool": "git:git_commit", "dependsOn": ["stage", "recall"],
              "arguments": { "repo_path": repository, "message": "{{recall[0]}} and {{recall[1]}}" } },
        ]),
        &json!({ "greeting": "hello" }),
    );
    assert_eq!(said["status"], "success", "{said}");
    let log = Command::new("git").arg("-C").arg(&root).args(["log", "--format=%s"]).output().unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "HELLO THERE and SECOND\n");
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), "hello there");
    let result = said["result"].as_object().unwrap();
    assert_eq!(result.keys().collect::<Vec<_>>(), ["commit"], "what others wait for is not the result");

    let page = gateway.call(
        "pml_get_task_result",
        &json!({ "workflow_id": said["workflowId"], "task_id": "both", "limit": 12 }),
    );
    assert_eq!(page["content"], r#"["HELLO THER"#);
    let rest = json!({ "workflow_id": said["workflowId"], "task_id": "both", "offset": page["nextOffset"] });
    assert_eq!(gateway.call("pml_get_task_result", &rest)["content"], r#"E","SECOND"]"#);
}

#[test]
fn what_is_written_is_there_when_the_next_task_reads_it() {
    let (home, mut gateway) = start();
    let path = home.path("root/counted.txt").display().to_string();
    let mut tasks = Vec::new();
    for n in 0..10 {
        let before = if n == 0 { vec![] } else { vec![format!("read{}", n - 1)] };
        tasks.push(json!({ "id": format!("write{n}"), "tool": "filesystem:write_file", "dependsOn": before,
                           "arguments": { "path": path, "content": format!("state {n}") } }));
        tasks.push(json!({ "id": format!("read{n}"), "tool": "filesystem:read_text_file",
                           "dependsOn": [format!("write{n}")], "arguments": { "path": path } }));
    }
    let said = run(&mut gateway, &json!(tasks), &json!({}));
    assert_eq!(said["status"], "success", "{said}");
    for n in 0..10 {
        let wanted = json!({ "workflow_id": said["workflowId"], "task_id": format!("read{n}") });
        let page = gateway.call("pml_get_task_result", &wanted);
        assert!(page["content"].as_str().unwrap().contains(&format!("state {n}")), "{page}");
    }
    assert_eq!(said["calls"]["total"], 20, "no task runs twice: {said}");
    assert!(Path::new(&path).exists());
}
