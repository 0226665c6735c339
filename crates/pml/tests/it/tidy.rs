//! Rules about the source that no compiler knows: who may use what, and what must not be written.

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Text files of ours, as paths below the root with their text. What is installed, built or
/// written by package managers is not ours.
fn ours() -> Vec<(String, String)> {
    const FOREIGN: [&str; 7] =
        [".git", "target", "node_modules", ".venv", "__pycache__", "Cargo.lock", "package-lock.json"];
    let root = root();
    let (mut open, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if FOREIGN.contains(&entry.file_name().to_str().unwrap()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                files.push((path.strip_prefix(&root).unwrap().display().to_string(), text));
            }
        }
    }
    assert!(files.iter().any(|(path, _)| path == "crates/pml/src/main.rs"), "the walk misses what it is for");
    files.sort();
    files
}

fn ending(files: &[(String, String)], end: &str) -> Vec<(String, String)> {
    files.iter().filter(|(path, _)| path.ends_with(end)).cloned().collect()
}

/// Places, as `path:line`, at which one of `words` stands in a file that `may` not have it.
fn places(files: &[(String, String)], words: &[&str], may: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| !may(path)) {
        for (number, line) in text.lines().enumerate() {
            found.extend(
                words
                    .iter()
                    .filter(|word| line.contains(**word))
                    .map(|word| format!("{path}:{}: `{word}`", number + 1)),
            );
        }
    }
    found
}

/// Fails with the places and what to do about them.
#[track_caller]
fn none(found: &[String], what_to_do: &str) {
    assert!(found.is_empty(), "{what_to_do}\n{}", found.join("\n"));
}

#[test]
fn only_the_doors_use_the_flow() {
    let sources: Vec<_> = ours()
        .into_iter()
        .filter(|(path, _)| path.starts_with("crates/pml/src/") && path.ends_with(".rs"))
        .collect();
    let door = |path: &str| {
        ["crates/pml/src/cli/", "crates/pml/src/gateway/", "crates/pml/src/api"]
            .iter()
            .any(|door| path.starts_with(door))
    };
    none(
        &places(&sources, &["crate::flow", "super::flow", "use flow"], door),
        "`flow` decides what comes next and stages do not: give the stage the value it needs, and call it from `flow.rs`",
    );
}

#[test]
fn tools_are_called_in_one_place() {
    let sources: Vec<_> = ours()
        .into_iter()
        .filter(|(path, _)| path.starts_with("crates/pml/src/") && path.ends_with(".rs"))
        .collect();
    let calling = |path: &str| path == "crates/pml/src/tools/mod.rs";
    none(
        &places(&sources, &["method: \"tools/call\""], calling),
        "every call of a tool goes through `tools::call`, so that what it checks is checked for all: call that instead",
    );
    // Prompts, resources and completions are passed on there, under the method they came with.
    let passing = |path: &str| calling(path) || path == "crates/pml/src/gateway/passthrough.rs";
    none(
        &places(&sources, &["connection.request(", "Connection::request"], passing),
        "requests to servers are sent from `tools/mod.rs` and `gateway/passthrough.rs` only: call a function of theirs",
    );
}

#[test]
fn sql_stays_in_the_store() {
    let files = ours();
    let stored = |path: &str| path.starts_with("crates/pml-store/") || path == "crates/pml/tests/it/tidy.rs";
    let mut found = places(&ending(&files, ".rs"), &["rusqlite"], stored);
    found.extend(places(&ending(&files, "Cargo.toml"), &["rusqlite"], stored));
    none(
        &found,
        "only `pml-store` talks to the database: give it a function named after the question you have",
    );
}

#[test]
fn leaf_crates_know_the_model_alone() {
    let manifests = ending(&ours(), "Cargo.toml");
    let leaves: Vec<_> = manifests
        .into_iter()
        // Measurements are above `pml`: they use all of them, and nothing uses them.
        .filter(|(path, _)| {
            !["crates/pml/Cargo.toml", "crates/pml-bench/Cargo.toml"].contains(&path.as_str())
        })
        .filter(|(path, _)| path.starts_with("crates/"))
        .collect();
    assert!(leaves.len() >= 4, "{leaves:?}");
    // Sentences are read in one place, for the graph as for reuse and suggestions.
    let allowed = |own: &str| -> &[&str] {
        match own {
            "pml-graph" => &["pml-model", "pml-language"],
            _ => &["pml-model"],
        }
    };
    let mut found = Vec::new();
    for (path, text) in &leaves {
        let own = path.split('/').nth(1).unwrap();
        let named = text.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        let named =
            named.filter(|name| name.starts_with("pml") && !allowed(own).contains(name) && *name != own);
        found.extend(named.map(|name| format!("{path}: `{name}`")));
    }
    none(
        &found,
        "crates below `pml` share `pml-model`, `pml-graph` also reads sentences with `pml-language`, and nothing else: move what both need there, or the use of it to `pml`",
    );
}

/// Sources of the program without their tests, as paths with their text.
fn production() -> Vec<(String, String)> {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    ours()
        .into_iter()
        .filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs"))
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| {
            let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
            (path, text[..tests].to_owned())
        })
        .collect()
}

#[test]
fn every_queue_has_a_bound() {
    let words =
        [concat!("unbounded", "_channel"), "mpsc::channel()", "mpsc::channel::<", "flume::", "crossbeam"];
    let sources = production();
    let bounded = |line: &str| line.contains("mpsc::channel::<") && !line.contains(">()");
    let found = places(&sources, &words, |_| false);
    let unbounded: Vec<String> = found
        .into_iter()
        .filter(|place| {
            let (path, rest) = place.split_once(':').unwrap();
            let line: usize = rest.split(':').next().unwrap().parse().unwrap();
            let text = &sources.iter().find(|(known, _)| known == path).unwrap().1;
            !bounded(text.lines().nth(line - 1).unwrap())
        })
        .collect();
    none(
        &unbounded,
        "give the queue a bound, with its reason, and say what happens when it is full; a full queue must not be waited \
         for by whoever empties it",
    );
}

#[test]
fn every_task_has_an_owner() {
    // Each of these is joined by the function that starts it, or cannot be.
    const OWNED: [(&str, &str); 9] = [
        ("crates/pml/src/runtime.rs", "waited for where it is asked for"),
        (
            "crates/pml/src/builtin/tool.rs",
            "waited for where it is asked for, and told when nobody does any more",
        ),
        ("crates/pml-store/src/store.rs", "waited for where it is asked for"),
        ("crates/pml-store/src/store/changes.rs", "ended by `Store::end_change_feed`, or with the store"),
        ("crates/pml-store/src/postgres.rs", "drives a connection, and ends with its client"),
        ("crates/pml-store/src/postgres/presence.rs", "drives a connection; the session waits for its end"),
        ("crates/pml-sandbox/src/host/pool.rs", "waited for by `Pool::close`"),
        (
            "crates/pml-mcp/src/server/stdio.rs",
            "the writer is joined; a read of standard input cannot be ended",
        ),
        ("crates/pml-mcp/src/client/process.rs", "lives as long as the process, which is its purpose"),
    ];
    // Threads with a name are started by `thread::Builder`.
    let spawning = ["tokio::spawn(", "task::spawn(", "spawn_blocking(", "thread::spawn("];
    let owned = |path: &str| OWNED.iter().any(|(owned, _)| *owned == path);
    none(
        &places(&production(), &spawning, owned),
        "start it on the `TaskTracker` or `JoinSet` of whoever waits for it when it is closed; blocking work goes through \
         `runtime::blocking`",
    );
    const THREADS: [(&str, &str); 3] = [
        ("crates/pml-store/src/writer.rs", "joined when the store is dropped"),
        ("crates/pml-sandbox/src/host/processes.rs", "joined by `Processes::close`"),
        ("crates/pml-mcp/src/client/process.rs", "lives as long as the process, which is its purpose"),
    ];
    let owned = |path: &str| THREADS.iter().any(|(owned, _)| *owned == path);
    none(
        &places(&production(), &["thread::Builder"], owned),
        "name who joins the thread, and add it to this list",
    );
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let says = |text: &str| {
        let said: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        said.join(" ").trim_end().contains('.')
    };
    let silent: Vec<String> =
        ending(&ours(), ".rs").into_iter().filter(|(_, text)| !says(text)).map(|(path, _)| path).collect();
    none(&silent, "begin the file with `//!` and a sentence on what it is for, and what it never does");
}

#[test]
fn nothing_is_left_for_later() {
    let marks =
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("TO", "DO")];
    none(&places(&ours(), &marks, |_| false), "finish it or take it out: what is here works");
}

#[test]
fn nothing_depends_on_one_machine_or_one_registry() {
    let registries = [
        concat!("npm", "js.org"),
        concat!("py", "pi.org"),
        concat!("python", "hosted.org"),
        concat!("static.crates", ".io"),
    ];
    none(
        &places(&ours(), &registries, |_| false),
        "where packages come from is the business of whoever installs them: take the name of the host out",
    );
    let here = format!("{}/", root().display());
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| format!("{home}/"));
    let paths: Vec<&str> = [Some(here.as_str()), home.as_deref()].into_iter().flatten().collect();
    none(
        &places(&ours(), &paths, |_| false),
        "this path exists on this machine only: make it relative, or ask for it",
    );
}

/// A Markdown file without its code blocks, as numbered lines.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((number + 1, line))
    })
}

/// `line` apart at its backticks: what is no code, and what is.
fn spans(line: &str) -> (Vec<&str>, Vec<&str>) {
    let parts: Vec<&str> = line.split('`').collect();
    (parts.iter().copied().step_by(2).collect(), parts.iter().copied().skip(1).step_by(2).collect())
}

/// Where the links of a line lead.
fn links(line: &str) -> Vec<String> {
    let plain = spans(line).0.concat();
    let targets = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.trim().to_owned()).collect()
}

/// The anchors that a page has for its headings, as the places that show Markdown make them.
fn anchors(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for heading in prose(text).filter_map(|(_, line)| line.strip_prefix('#')) {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = all
            .iter()
            .filter(|other| other.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit()) == anchor);
        match same.count() {
            0 => all.push(anchor),
            others => all.push(format!("{anchor}-{others}")),
        }
    }
    all
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let pages = ending(&ours(), ".md");
    let (mut found, mut checked) = (Vec::new(), 0);
    for (page, text) in &pages {
        for (number, line) in prose(text) {
            for target in links(line).iter().filter(|target| !target.contains("://")) {
                checked += 1;
                if let Some(wrong) = dead(page, target) {
                    found.push(format!("{page}:{number}: `{target}`: {wrong}"));
                }
            }
        }
    }
    assert!(checked > 100, "links are not recognised: {checked}");
    none(&found, "the link is dead: write where the thing is now, or take the link out");
}

/// Why a link of `page` leads nowhere.
fn dead(page: &str, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let here = root().join(page);
    let file = if path.is_empty() { here } else { here.parent().unwrap().join(path) };
    if !file.exists() {
        return Some("there is no such file".to_owned());
    }
    let anchor = anchor?;
    let anchors = anchors(&std::fs::read_to_string(&file).unwrap_or_default());
    (!anchors.iter().any(|known| known == anchor))
        .then(|| format!("no heading of these: {}", anchors.join(", ")))
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let page = "docs/promises.md";
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (mut found, mut checked) = (Vec::new(), 0);
    for (number, line) in prose(&text).filter(|(_, line)| line.starts_with('|')) {
        let tests = line.trim_end_matches([' ', '|']).rsplit_once(" | ").map_or("", |(_, tests)| tests);
        // Names of tests follow the link to the file they stand in.
        for part in tests.split("](").skip(1) {
            let (path, names) = part.split_once(')').unwrap_or((part, ""));
            let file = root().join("docs").join(path);
            let source = std::fs::read_to_string(&file).unwrap_or_default();
            let is_name = |name: &&&str| name.contains('_') && !name.contains([' ', '.', '/', '-', ':', '=']);
            for name in spans(names).1.iter().filter(is_name) {
                checked += 1;
                if !source.contains(&format!("fn {name}(")) {
                    found.push(format!("{page}:{number}: `{name}` is no test of {path}"));
                }
            }
        }
    }
    assert!(checked > 50, "names of tests are not recognised: {checked}");
    none(&found, "a promise without its test is no promise: name the test that fails when it is broken");
}
