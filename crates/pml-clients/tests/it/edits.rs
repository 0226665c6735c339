//! Single edits that fixtures do not show, and texts that cannot be read or edited.

use pml_clients::{Directories, Error, FileShape, LaunchCommand, Put, System, find, put, read, take_out};

fn shape(client: &str) -> FileShape {
    let directories = Directories::below("/home/ada", System::Linux);
    find(client).unwrap().0.resolve(&directories)[0].shape.clone()
}

fn launch() -> LaunchCommand {
    LaunchCommand { command: "pml".to_owned(), args: vec!["stdio".to_owned()], env: Vec::new() }
}

fn error(client: &str, text: &str) -> String {
    let shape = shape(client);
    let said = read(text, &shape).unwrap_err();
    assert_eq!(put(text, &shape, "pml", &launch()), Err(said.clone()), "{text}");
    assert_eq!(take_out(text, &shape, "pml", &Default::default()), Err(said.clone()), "{text}");
    said.to_string()
}

#[test]
fn broken_files_are_left_alone_and_named_with_their_place() {
    for (client, text, expected) in [
        (
            "cursor",
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"\n",
            "line 3, column 10: not JSON: ",
        ),
        ("cursor", "{\n  \"a\": 1\n  \"b\": 2\n}\n", "line 2, column 9: not JSON: "),
        ("cursor", "{\"mcpServers\": []}", "line 1, column 16: `mcpServers` must be a table, not a list"),
        ("cursor", "[]", "line 1, column 1: the file must be a table, not a list"),
        (
            "cursor",
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "line 1, column 20: `mcpServers` appears twice",
        ),
        ("codex", "model = \"x\"\n[mcp_servers.a\ncommand = 1\n", "line 2, column 15: not TOML: "),
        ("codex", "mcp_servers = 3\n", "line 1, column 15: `mcp_servers` must be a table, not a number"),
        ("goose", "extensions:\n  a:\n   b: [1\n", "line 4, column 1: not YAML: "),
        ("goose", "a: 1\n---\nb: 2\n", "line 2, column 1: a second document starts here"),
        ("goose", "extensions: 3\n", "line 1, column 13: `extensions` must be a table, not a number"),
        ("continue", "mcpServers:\n  a: 1\n", "line 2, column 3: `mcpServers` must be a list, not a table"),
    ] {
        let said = error(client, text);
        assert!(said.starts_with(expected), "{text:?}\n{said}\n{expected}");
    }
}

#[track_caller]
fn check_removed(client: &str, text: &str, name: &str, expected: &str) {
    let shape = shape(client);
    assert_eq!(take_out(text, &shape, name, &Default::default()), Ok(Some(expected.to_owned())), "{text}");
}

#[test]
fn entries_of_others_are_taken_out_without_touching_comments() {
    check_removed(
        "cursor",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}",
        "a",
        "{\"mcpServers\": {\"b\": {\"command\": \"y\"}}}",
    );
    check_removed(
        "cursor",
        "{\"mcpServers\": {\n  // first\n  \"a\": {} /* inside */, // behind\n  \"b\": {} // last\n}}",
        "b",
        "{\"mcpServers\": {\n  // first\n  \"a\": {} /* inside */ // behind\n   // last\n}}",
    );
    check_removed(
        "cursor",
        "{\"mcpServers\": {\n  \"a\": {}, // behind\n  \"b\": {} }}",
        "b",
        "{\"mcpServers\": {\n  \"a\": {} // behind\n   }}",
    );
    check_removed(
        "codex",
        "# top\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.a.env]\nA = \"1\"\n\n[mcp_servers.b]\ncommand = \"y\"\n",
        "a",
        "# top\n[mcp_servers.b]\ncommand = \"y\"\n",
    );
    check_removed(
        "codex",
        "[mcp_servers]\na.command = \"x\"\na.args = [\n  \"1\",\n]\nb = { command = \"y\" }\n",
        "a",
        "[mcp_servers]\nb = { command = \"y\" }\n",
    );
    check_removed(
        "goose",
        "extensions:\n  a:\n    cmd: x\n    note: |\n      long\n\n      text\n\n  # about b\n  b:\n    cmd: y\n",
        "a",
        "extensions:\n\n  # about b\n  b:\n    cmd: y\n",
    );
    check_removed(
        "goose",
        "extensions:\n  a:\n    cmd: x\n    bundled:\n\n# about the mode\nGOOSE_MODE: auto\n",
        "a",
        "extensions:\n\n# about the mode\nGOOSE_MODE: auto\n",
    );
    check_removed(
        "continue",
        "mcpServers:\n  -\n    name: a\n    command: x\n  - name: b # two\n    command: y\nx: 1\n",
        "a",
        "mcpServers:\n  - name: b # two\n    command: y\nx: 1\n",
    );
}

#[test]
fn what_cannot_be_edited_by_lines_is_refused() {
    let refused = |client: &str, text: &str| match put(text, &shape(client), "pml", &launch()) {
        Err(error) => error.to_string(),
        Ok(done) => panic!("{text} became {done:?}"),
    };
    assert!(refused("cursor", "{\"mcpServers\": null}").contains("`mcpServers` is null"));
    assert!(refused("goose", "extensions: ~\n").contains("`extensions` is null"));
    assert!(refused("goose", "extensions: !!map\n  ? a\n  : cmd: x\n").contains("holds more than one thing"));
    let dotted = "mcp_servers.pml.command = \"other\"\n";
    assert!(refused("codex", dotted).contains("dotted keys"));
    assert!(matches!(put(dotted, &shape("codex"), "pml", &launch()), Err(Error::Uneditable(_))));
}

#[test]
fn an_entry_that_was_edited_or_moved_since_is_still_taken_out() {
    let shape = shape("cursor");
    let before = "{}\n";
    let Ok(Put::Inserted { text, trace }) = put(before, &shape, "pml", &launch()) else { panic!() };
    let moved =
        text.replace("\"args\": [\"stdio\"]", "\"args\": [\"stdio\"],\n      \"env\": {\"A\": \"b\"}");
    assert_ne!(moved, text);
    assert_eq!(take_out(&moved, &shape, "pml", &trace), Ok(Some(before.to_owned())));
    let neighbour =
        text.replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": {\"command\": \"n\"},");
    let left = take_out(&neighbour, &shape, "pml", &trace).unwrap().unwrap();
    assert_eq!(left, "{\n  \"mcpServers\": {\n    \"new\": {\"command\": \"n\"}\n  }\n}\n");
}

#[test]
fn variables_of_the_command_are_written_where_the_client_reads_them() {
    let env = vec![("PML_HOME".to_owned(), "/data/my pml".to_owned())];
    let launch = LaunchCommand { env: env.clone(), ..launch() };
    for client in pml_clients::CLIENTS {
        let shape = shape(client.id);
        let Ok(Put::Inserted { text, .. }) = put("", &shape, "pml", &launch) else { panic!("{}", client.id) };
        let server = read(&text, &shape).unwrap().servers.remove(0);
        let pml_clients::ServerAddress::Stdio { env: read, .. } = server.address else { panic!() };
        assert_eq!(read, env, "{}\n{text}", client.id);
    }
}
