//! Real servers that change each other's world: `mcp-server-git` changes the files that the built-in `fs` and
//! `server-filesystem` read.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::gateway::{self, Gateway};
use crate::harness::{Home, material, node, python};

fn git(root: &Path, arguments: &[&str]) {
    let done = Command::new("git").arg("-C").arg(root).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A repository whose file differs between its branches `main` and `other`.
fn place() -> (Home, Gateway) {
    let home = Home::new("");
    let root = home.path("root");
    std::fs::create_dir(&root).unwrap();
    git(&root, &["init", "-q", "-b", "main"]);
    for (branch, text) in [("main", "of main"), ("other", "of the other")] {
        git(&root, &["checkout", "-q", "-B", branch]);
        std::fs::write(root.join("file.txt"), text).unwrap();
        git(&root, &["add", "."]);
        git(&root, &["-c", "user.email=a@b.c", "-c", "user.name=a", "commit", "-q", "-m", branch]);
    }
    git(&root, &["checkout", "-q", "main"]);
    let filesystem = material("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    home.configure(&format!(
        "[builtin.fs]\nroot = \"root\"\n[speculation]\nsample = 0\n\
         [permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n\
         [servers.filesystem]\ntrust = \"annotations\"\ncommand = {:?}\nargs = [{:?}, {:?}]\n\
         [servers.git]\ntrust = \"annotations\"\ncommand = {:?}\nargs = [\"--repository\", {:?}]\nenv = {{ PATH = {:?} }}\n",
        node(),
        filesystem.display().to_string(),
        root.display().to_string(),
        python("mcp-server-git"),
        root.display().to_string(),
        std::env::var("PATH").unwrap(),
    ));
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 0, "{}", looked.stdout);
    let gateway = Gateway::start(home.command(&["stdio"]));
    (home, gateway)
}

/// Reads the file by both servers, checks the other branch out, and reads it twice again.
const CODE: &str = "const before = [(await mcp.fs.read({ path: 'file.txt' })).content, text(await mcp.filesystem.read_text_file({ path: args.file }))];\n\
    await mcp.git.git_checkout({ repo_path: args.root, branch_name: 'other' });\n\
    const after = [(await mcp.fs.read({ path: 'file.txt' })).content, text(await mcp.filesystem.read_text_file({ path: args.file }))];\n\
    const again = [(await mcp.fs.read({ path: 'file.txt' })).content, text(await mcp.filesystem.read_text_file({ path: args.file }))];\n\
    return [before, after, again];\n\
    function text(read) { return typeof read === 'string' ? read : read.content; }";

#[test]
fn what_a_checkout_changes_is_never_served_from_before_it() {
    let (home, mut gateway) = place();
    let root = home.path("root");
    let arguments = json!({ "root": root, "file": root.join("file.txt") });
    let mut run = |speculate: bool| -> Value {
        git(&root, &["checkout", "-q", "main"]);
        let options = json!({ "cache": false, "speculate": speculate });
        let request = gateway.begin("tools/call", &gateway::execution("a test", CODE, &arguments, &options));
        gateway.outcome(request)
    };
    let expected =
        json!([["of main", "of main"], ["of the other", "of the other"], ["of the other", "of the other"]]);
    for turn in 0..3 {
        let with = run(true);
        assert_eq!(with["result"], expected, "turn {turn}: {with}");
        assert!(
            with["speculated"]["calls"].as_u64() >= Some(1),
            "reads before or after it were served ahead: {with}"
        );
        assert_eq!(run(false)["result"], expected, "turn {turn}");
    }
}
