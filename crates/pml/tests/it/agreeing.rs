//! Suggested DAGs agree with the request, and what was learned does not lower what was found before, over the tools of real
//! servers.

use serde_json::{Value, json};

use crate::harness::{Client, Home, eventually, npm_server, python, text};

/// The built-in servers and five reference servers, known already. Nothing of theirs may be called unasked.
fn servers() -> Home {
    let home = Home::new("");
    std::fs::create_dir(home.path("files")).unwrap();
    let files = npm_server("server-filesystem").replace(']', &format!(", {:?}]", home.path("files")));
    home.configure(&format!(
        "[servers.everything]\n{}\n[servers.files]\n{files}\n[servers.memory]\n{}\nenv = {{ MEMORY_FILE_PATH = {:?} }}\n\
         [servers.clock]\ncommand = {:?}\n[servers.git]\ncommand = {:?}\n",
        npm_server("server-everything"),
        npm_server("server-memory"),
        home.path("memory.jsonl"),
        python("mcp-server-time"),
        python("mcp-server-git"),
    ));
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 0, "{}", looked.stdout);
    home
}

fn asked(client: &mut Client, intent: &str) -> Value {
    client.call("pml_execute", &json!({ "intent": intent, "options": { "cache": false } }))
}

/// The tasks that are suggested; none where nothing is, or where what is asked for was done at once.
fn tasks(told: &Value) -> Vec<Value> {
    let dag = &told["structuredContent"]["suggestions"]["suggestedDag"]["dagStructure"];
    dag["tasks"].as_array().cloned().unwrap_or_default()
}

const CHANGING: [&str; 17] = [
    "fs:write",
    "fs:create",
    "fs:delete",
    "files:write_file",
    "files:edit_file",
    "files:move_file",
    "files:create_directory",
    "git:git_commit",
    "git:git_add",
    "git:git_reset",
    "git:git_checkout",
    "git:git_create_branch",
    "memory:create_entities",
    "memory:create_relations",
    "memory:add_observations",
    "memory:delete_entities",
    "memory:delete_observations",
];

#[test]
fn a_request_that_reads_is_never_given_a_tool_that_changes_something() {
    let home = servers();
    let mut client = home.stdio(&[]);
    for intent in [
        "show the last 5 commits of /srv/app",
        "print there.txt",
        "list the commits of yesterday in /srv/app",
        "what is staged for commit in /srv/app",
        "which branches does /srv/app have",
        "display the entities of the knowledge graph",
        "look at what was added to the graph about Ann",
        "view the file written last",
        "in the repository /srv/app, show the commit message of v1.2.0",
        "affiche les 5 derniers commits de /srv/app",
        "montre le contenu du fichier créé hier",
        "quelles branches ont été créées dans /srv/app",
        "lis le fichier modifié ce matin",
    ] {
        let told = asked(&mut client, intent);
        for task in tasks(&told) {
            let tool = task["tool"].as_str().unwrap();
            assert!(!CHANGING.contains(&tool), "{intent}: {told}");
        }
    }
    // Until all tools are read they are found by their words alone, which say less.
    let mut log = Vec::new();
    eventually("the log is suggested", || {
        log = tasks(&asked(&mut client, "show the last 5 commits of /srv/app"));
        log.len() == 1 && log[0]["tool"] == "git:git_log"
    });
    assert_eq!(log[0]["arguments"], json!({ "repo_path": "/srv/app", "max_count": 5 }), "{log:?}");
    // What changes something is still suggested where it is asked for.
    let mut commit = Vec::new();
    eventually("a commit is suggested", || {
        commit = tasks(&asked(&mut client, "commit the changes in /srv/app with the message 'tidy up'"));
        commit.len() == 1 && commit[0]["tool"] == "git:git_commit"
    });
    assert_eq!(
        commit[0]["arguments"],
        json!({ "repo_path": "/srv/app", "message": "tidy up" }),
        "{commit:?}"
    );
    // What would take away what is there is not, however much it speaks of the same things.
    let staged = tasks(&asked(&mut client, "commit the staged changes"));
    assert!(staged.iter().all(|task| task["tool"] != "git:git_reset"), "{staged:?}");
}

#[test]
fn values_go_only_where_they_fit_and_deprecated_tools_come_last() {
    let home = servers();
    let mut client = home.stdio(&[]);
    for intent in [
        "what time is it in Europe/Paris",
        "convert the time to Asia/Tokyo",
        "quelle heure est-il en Asia/Tokyo",
        "convert 15:30 from Europe/Paris to Asia/Tokyo",
    ] {
        let told = asked(&mut client, intent);
        for task in tasks(&told) {
            let time = task["arguments"]["time"].as_str().unwrap_or_default();
            assert!(!time.contains('/'), "a time zone is no time: {intent}: {told}");
        }
    }
    for intent in
        ["read the text file /data/notes.txt", "read the complete contents of the file /data/notes.txt"]
    {
        for task in tasks(&asked(&mut client, intent)) {
            assert_ne!(task["tool"], "files:read_file", "{intent}");
        }
    }
}

#[test]
fn nothing_is_suggested_where_nothing_fits_and_nothing_is_said_of_it() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    for intent in ["sing me a lullaby", "book a table for two at the Italian place", "chante une chanson"] {
        let told = asked(&mut client, intent);
        assert_eq!(told["structuredContent"]["status"], "suggestions", "{told}");
        assert_eq!(told["structuredContent"]["suggestions"].get("suggestedDag"), None, "{intent}: {told}");
        assert!(!text(&told).contains("DAG"), "{intent}: {}", text(&told));
    }
}

/// The tools that are found, best first, with their scores.
fn found(client: &mut Client, intent: &str) -> Vec<(String, f64)> {
    let told = client.call("pml_discover", &json!({ "intent": intent, "filter": { "type": "tool" } }));
    let results = told["structuredContent"]["results"].as_array().cloned().unwrap_or_default();
    let one = |found: &Value| (found["id"].as_str().unwrap().to_owned(), found["score"].as_f64().unwrap());
    results.iter().map(one).collect()
}

#[test]
fn what_a_tool_served_for_other_intents_does_not_lower_it() {
    let home = Home::new("");
    std::fs::write(home.path("a.txt"), "once upon a time").unwrap();
    let mut client = home.stdio(&[]);
    let everyday = ["read a file", "write text to a file", "list the files in a folder", "lire un fichier"];
    let mut before = Vec::new();
    eventually("all tools are read", || {
        before = everyday.map(|intent| found(&mut client, intent)).to_vec();
        before[0].first().is_some_and(|(first, score)| first == "fs:read" && *score > 0.6)
    });
    for intent in ["show me the note", "open my diary", "load the poem"] {
        let code = "return (await mcp.fs.read({ path: \"a.txt\" })).content";
        let implementation = json!({ "type": "code", "code": format!("{code} // {intent}") });
        let done = client.call("pml_execute", &json!({ "intent": intent, "implementation": implementation }));
        assert_eq!(done["structuredContent"]["status"], "success", "{done}");
    }
    eventually("it was learned from", || {
        let told = client.call("pml_discover", &json!({ "intent": "show me the note" }));
        let results = told["structuredContent"]["results"].as_array().cloned().unwrap_or_default();
        results.iter().any(|one| one["reasons"].to_string().contains("served"))
    });
    for (intent, before) in everyday.iter().zip(before) {
        let after = found(&mut client, intent);
        assert_eq!(after.first().map(|one| &one.0), before.first().map(|one| &one.0), "{intent}");
        assert!(after[0].1 >= before[0].1 - 0.002, "{intent}: {:?} {:?}", before[0], after[0]);
    }
}
