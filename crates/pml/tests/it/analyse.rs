//! `pml analyse`: what is shown of a program, and how it ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::harness::{Finished, Home, node};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The programs and documents of `examples/`.
fn all_examples() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ts" || extension == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 11, "{files:?}");
    files
}

fn analyse(home: &Home, source: &str, args: &[&str]) -> Finished {
    std::fs::write(home.path("plan.ts"), source).unwrap();
    home.run(&[&["analyse", "plan.ts"], args].concat())
}

#[track_caller]
fn check(source: &str, args: &[&str], expected: &Expect) {
    let done = analyse(&Home::new(""), source, args);
    let stderr = if done.stderr.is_empty() { String::new() } else { format!("--- stderr\n{}", done.stderr) };
    expected.assert_eq(&format!("{}{stderr}--- exit {}\n", done.stdout, done.code));
}

#[test]
fn a_table_shows_the_program_at_a_glance() {
    check(
        "const now = await mcp.time.now({});\nawait mcp.fs.write({ path: args.file, content: now.time });\n",
        &[],
        &expect![[r#"
            STRUCTURE
              1:19  n1 time:now
              2:7   n2 fs:write {path: args.file, content: n1.time}

            DATA FLOW
              n2 <- n1 (partial)

            PARAMETERS
              file  string  required

            PERMISSIONS
              calls         fs:write, time:now
            --- exit 0
        "#]],
    );
}

#[test]
fn an_unknown_tool_is_an_error_with_its_place() {
    check(
        "// What is the time?\nreturn await mcp.time.noww({});\n",
        &["--table"],
        &expect![[r#"
            STRUCTURE
              2:14  n1 time:noww

            PERMISSIONS
              calls         time:noww

            COMPLAINTS
            error: server `time` has no tool `noww`
             --> plan.ts:2:14
              |
            2 | return await mcp.time.noww({});
              |              ^^^^^^^^^^^^^^^^^
            hint: did you mean `mcp.time.now`?

            1 error
            --- exit 1
        "#]],
    );
    let done = analyse(&Home::new(""), "return await mcp.time.noww({});", &["--mermaid"]);
    assert_eq!(done.code, 1);
    assert!(done.stdout.starts_with("flowchart"), "{}", done.stdout);
    assert!(done.stderr.starts_with("error: "), "a picture stays a picture: {}", done.stderr);
}

#[test]
fn what_is_no_program_is_shown_like_a_compiler_does() {
    check(
        "const path = args.path;\nconst = 1;\n",
        &[],
        &expect![[r#"
            --- stderr
            error: unexpected `=`
             --> plan.ts:2:7
              |
            2 | const = 1;
              |       ^
            --- exit 1
        "#]],
    );
    let done = analyse(&Home::new(""), "const = 1;", &["--json"]);
    let printed: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&printed["schemaVersion"], &printed["error"]["at"]["line"]),
        (&1.into(), &1.into()),
        "{printed}"
    );
    assert!(printed["error"]["message"].is_string());
    assert_eq!(done.code, 1);
}

#[test]
fn json_has_everything() {
    let done = analyse(&Home::new(""), "return await mcp.time.now({});", &["--json"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let printed: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(printed["schemaVersion"], 1);
    assert_eq!(printed["structure"]["nodes"][0]["tool"], "time:now");
    assert_eq!(printed["permissions"]["declared"][0], "time:now");
    for member in ["parameters", "complaints", "identity", "program"] {
        assert!(!printed[member].is_null(), "{member} is missing");
    }
}

#[test]
fn a_program_comes_from_standard_input_too() {
    let home = Home::new("");
    let piped = |source: &str| {
        let mut command = home.command(&["analyse", "-"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, shown) = piped("return await mcp.time.now({});");
    assert!(code == Some(0) && shown.contains("n1 time:now"), "{shown}");
    let (code, shown) = piped(r#"{"tasks": [{"id": "a", "tool": "time:now", "arguments": {}}]}"#);
    assert!(code == Some(0) && shown.contains("n1 time:now"), "{shown}");
}

#[test]
fn a_wrong_command_line_ends_with_two() {
    let home = Home::new("");
    std::fs::write(home.path("latin.ts"), b"// caf\xe9\n").unwrap();
    std::fs::write(home.path("a.ts"), "return 1;").unwrap();
    for (args, says) in [
        (&["analyse"][..], "<FILE>"),
        (&["analyse", "missing.ts"], "cannot read `missing.ts`"),
        (&["analyse", "latin.ts"], "`latin.ts` is not UTF-8: byte 6 is wrong"),
        (&["analyse", "a.ts", "--dot", "--mermaid"], "cannot be used with"),
    ] {
        let done = home.run(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(says), "{args:?}: {}", done.stderr);
    }
    let done = home.run(&["analyse", "a.ts", "--dot", "--json"]);
    assert!(done.code == 2 && done.stdout.contains("two different outputs"), "{}", done.stdout);
}

#[test]
fn analysing_starts_no_server() {
    let home = Home::new("[servers.never]\ncommand = \"touch\"\nargs = [\"started\"]\n");
    let done = analyse(&home, "return await mcp.never.ever({});", &[]);
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(!home.path("started").exists());
}

#[test]
fn the_examples_check_without_complaint() {
    let home = Home::new("");
    for file in all_examples() {
        let done = home.run(&["analyse", &file.display().to_string(), "--json"]);
        let printed: Value = serde_json::from_str(&done.stdout).unwrap();
        let complaints = printed["complaints"].as_array().unwrap_or_else(|| panic!("{file:?}: {printed}"));
        if file.ends_with("nested-capability.ts") {
            let codes: Vec<&Value> = complaints.iter().map(|complaint| &complaint["code"]).collect();
            assert_eq!(codes, ["unknown_capability"], "{complaints:?}");
        } else {
            assert!(complaints.is_empty() && done.code == 0, "{file:?}: {complaints:#?}");
            assert!(!printed["structure"]["nodes"].as_array().unwrap().is_empty(), "{file:?}");
        }
    }
}

#[test]
fn mermaid_itself_reads_the_flowcharts() {
    let home = Home::new("");
    // Everything that means something to Mermaid, in every place that ends up in a label.
    let nasty = r##"
        const t = `"] end #quot; <b>&amp; $$x$$ \` | --> %%{ 1. 日本`;
        if (t === "`end` \"] --> [<br/>") {
            await mcp.fs.write({ path: '"); click n1 "javascript:x"', content: t });
        }
        switch (args["a\"b"]) { case "end": await mcp.time.now({}); break; case "#}{;": await mcp.time.now({}); }
        for (const subgraph of ["end", "|x|"]) { await mcp.fs.read({ path: subgraph }); }
    "##;
    std::fs::write(home.path("nasty.ts"), nasty).unwrap();
    let mut charts = Vec::new();
    for (number, file) in all_examples().into_iter().chain([home.path("nasty.ts")]).enumerate() {
        let done = home.run(&["analyse", &file.display().to_string(), "--mermaid"]);
        let chart = home.path(&format!("{number}.mmd"));
        std::fs::write(&chart, &done.stdout).unwrap();
        charts.push(chart);
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let parsed =
        Command::new(node()).arg("mermaid/parse.mjs").args(&charts).current_dir(tests).output().unwrap();
    let said = String::from_utf8(parsed.stdout).unwrap();
    assert!(parsed.status.success(), "{said}{}", String::from_utf8_lossy(&parsed.stderr));
    assert_eq!(said.matches("\"ok\":true").count(), charts.len(), "{said}");
}
