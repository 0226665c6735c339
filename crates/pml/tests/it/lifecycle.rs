//! How processes begin and end, what they inherit, and how a running gateway follows its files.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use serde_json::{Value, json};

use crate::faulty::{self, Ledger, code, signal};
use crate::harness::{Client, Home, eventually, lives, material, node, text};

// ---------------------------------------------------------------- nothing outlives pml

/// Three servers with offspring, each harder to end than the one before.
fn fertile() -> Home {
    let home = Home::new("");
    let script = material("fixture/faulty.mjs").display().to_string();
    let ledger = home.path("apart.ledger").display().to_string();
    let args = json!(["--wait", node(), script, "--ledger", ledger, "--offspring", "--stubborn"]);
    let apart = format!(
        "[servers.apart]\ncommand = \"setsid\"\nargs = {args}\n[permissions.apart]\napproval_mode = \"auto\"\n"
    );
    let plain = faulty::allowed(&home, "plain", &["--offspring"], "");
    home.configure(
        &(apart + &plain + &faulty::allowed(&home, "stubborn", &["--offspring", "--stubborn"], "")),
    );
    home
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Every process below `pml` that the servers of [`fertile`] brought about.
fn family(home: &Home, client: &mut Client) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for name in ["plain", "stubborn", "apart"] {
        assert_eq!(text(&client.call(&format!("{name}:ok"), &json!({}))), "ok");
        let ledger = Ledger::of(home, name);
        eventually("the offspring is born", || !ledger.events("offspring").is_empty());
        all.extend(ledger.pids());
        let born = &ledger.events("offspring")[0]["pids"];
        all.extend(born.as_array().unwrap().iter().map(|pid| u32::try_from(pid.as_u64().unwrap()).unwrap()));
    }
    // And whatever stands between them and us.
    for mut pid in all.clone() {
        while let Some(above) = parent(pid).filter(|above| *above != client.child.id() && *above > 1) {
            all.insert(above);
            pid = above;
        }
    }
    // Per server: itself, its guard, and a shell with three more.
    assert!(all.len() >= 3 * 6, "{all:?}");
    assert!(all.iter().all(|pid| lives(*pid)), "{all:?}");
    all
}

#[track_caller]
fn assert_all_gone(family: &BTreeSet<u32>) {
    eventually("every process is gone", || family.iter().all(|pid| !lives(*pid)));
}

#[test]
fn closing_the_input_of_pml_ends_every_process_below_it() {
    let home = fertile();
    let mut client = home.stdio(&[]);
    let family = family(&home, &mut client);
    assert_eq!(client.finish(), 0);
    // It returns only when they are gone.
    assert!(family.iter().all(|pid| !lives(*pid)), "{family:?}");
}

#[test]
fn asking_pml_to_end_ends_every_process_below_it() {
    let home = fertile();
    let mut client = home.stdio(&[]);
    let family = family(&home, &mut client);
    signal(client.child.id(), "-TERM");
    assert!(client.child.wait().unwrap().success());
    assert!(family.iter().all(|pid| !lives(*pid)), "{family:?}");
}

#[test]
fn killing_pml_ends_every_process_below_it() {
    let home = fertile();
    let mut client = home.stdio(&[]);
    let family = family(&home, &mut client);
    signal(client.child.id(), "-KILL");
    client.child.wait().unwrap();
    assert_all_gone(&family);
}

#[test]
fn a_server_that_crashes_takes_its_offspring_along() {
    let home = fertile();
    let mut client = home.stdio(&[]);
    let family = family(&home, &mut client);
    for name in ["plain", "stubborn", "apart"] {
        assert_eq!(code(&client.call(&format!("{name}:crash"), &json!({}))), "DOWNSTREAM_DIED");
    }
    assert_all_gone(&family);
}

#[test]
fn an_idle_server_is_stopped_and_started_again_when_needed() {
    let home = Home::new("");
    home.configure(&faulty::allowed(&home, "s", &["--offspring"], "idle_stop = \"200ms\""));
    let mut client = home.stdio(&[]);
    let ledger = Ledger::of(&home, "s");
    for life in 1..=3 {
        assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
        assert_eq!(ledger.pids().len(), life);
        eventually("it is stopped", || ledger.pids().into_iter().all(|pid| !lives(pid)));
    }
    assert_eq!(ledger.calls("ok"), 3);
}

// ---------------------------------------------------------------- what a server's process gets

fn surroundings(client: &mut Client, server: &str) -> Value {
    let result = client.call(&format!("{server}:surroundings"), &json!({}));
    serde_json::from_str(text(&result)).unwrap_or_else(|error| panic!("{error}: {result}"))
}

#[test]
fn a_server_sees_the_variables_declared_for_it_and_the_harmless_ones() {
    let home = Home::new("");
    let declared = "env = { DECLARED = \"yes\", FROM_OUTSIDE = \"${SECRET_TOKEN}\" }";
    home.configure(&faulty::allowed(&home, "s", &[], declared));
    let mut command = home.command(&["stdio"]);
    command.envs([
        ("SECRET_TOKEN", "hush"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C"),
        ("NODE_OPTIONS", "--no-warnings"),
    ]);
    command.envs([
        ("HTTPS_PROXY", "http://u:p@proxy"),
        ("LD_LIBRARY_PATH", "/nowhere"),
        ("RUST_LOG", "info"),
    ]);
    let mut client = Client::start(command);
    client.initialize();
    let env = surroundings(&mut client, "s")["env"].clone();
    let names: Vec<&str> = env.as_object().unwrap().keys().map(String::as_str).collect();
    let names = BTreeSet::from_iter(names);
    assert_eq!(names, BTreeSet::from(["DECLARED", "FROM_OUTSIDE", "HOME", "LANG", "LC_ALL", "PATH"]));
    assert_eq!((&env["DECLARED"], &env["FROM_OUTSIDE"]), (&json!("yes"), &json!("hush")));
}

#[test]
fn a_server_can_be_signalled() {
    let own = std::process::id().to_string();
    let shown = Command::new(env!("CARGO_BIN_EXE_pml"))
        .args(["__guard", &own, "grep", "SigBlk", "/proc/self/status"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "SigBlk:\t0000000000000000\n");
}

#[test]
fn a_server_inherits_no_descriptors() {
    let home = faulty::home(&["s", "other"]);
    let leaked = home.path("leaked");
    std::fs::write(&leaked, "not for servers").unwrap();
    // A client that is careless with its own descriptors.
    let pml = home.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" stdio 7<leaked 9<>leaked"]).arg(pml.get_program());
    command.current_dir(home.path("")).env_clear();
    command.envs(pml.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut client = Client::start(command);
    client.initialize();
    assert_eq!(text(&client.call("other:ok", &json!({}))), "ok");
    let descriptors = surroundings(&mut client, "s")["descriptors"].clone();
    let ours: BTreeSet<String> = std::fs::read_dir(format!("/proc/{}/fd", client.child.id()))
        .unwrap()
        .filter_map(|entry| Some(std::fs::read_link(entry.ok()?.path()).ok()?.display().to_string()))
        .filter(|target| !target.starts_with("anon_inode") && target != "/dev/null")
        .collect();
    assert!(ours.contains(&leaked.display().to_string()), "pml itself has it: {ours:?}");
    let descriptors: Vec<(u64, String)> = serde_json::from_value(descriptors).unwrap();
    let inherited: Vec<_> =
        descriptors.iter().filter(|(fd, target)| *fd > 2 && ours.contains(target)).collect();
    assert!(inherited.is_empty(), "{inherited:?}");
}

#[test]
fn arguments_arrive_exactly_as_configured_and_nothing_reads_them_as_a_command() {
    let home = Home::new("");
    let canary = home.path("canary");
    let touch = format!("touch {}", canary.display());
    let hostile = [
        format!("; {touch}"),
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("&& {touch}"),
        format!("| {touch}"),
        "two words  and more".to_owned(),
        "\"double\" 'single' \\back\\".to_owned(),
        "$HOME ~ * ? [a] {b,c} !d %PATH%".to_owned(),
        "naïve 東京 🚀 \u{202e}".to_owned(),
        "-c".to_owned(),
        "--eval".to_owned(),
        "--".to_owned(),
        String::new(),
        "\t".to_owned(),
    ];
    let options: Vec<&str> = hostile.iter().map(String::as_str).collect();
    home.configure(&faulty::allowed(&home, "s", &options, ""));
    let mut client = home.stdio(&[]);
    assert_eq!(surroundings(&mut client, "s")["argv"], json!(hostile));
    assert!(!canary.exists());
}

#[test]
fn a_server_with_an_argument_that_is_no_single_line_is_left_out_and_says_so() {
    for (argument, what) in [("a\u{0}b", "a NUL character"), ("a\nb", "a line break")] {
        let home = Home::new("");
        let bad = faulty::allowed(&home, "bad", &[argument], "");
        home.configure(&(bad + &faulty::allowed(&home, "s", &[], "")));
        let mut client = home.stdio(&[]);
        let result = client.call("bad:ok", &json!({}));
        assert_eq!(code(&result), "CONFIG", "{result}");
        assert!(text(&result).contains(what), "{result}");
        assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
        assert_eq!(Ledger::of(&home, "bad").pids(), Vec::<u32>::new());
    }
}

// ---------------------------------------------------------------- files that change meanwhile

/// Starts `pml stdio` with its log in the file `log`.
fn logged(home: &Home) -> Client {
    let pml = home.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" stdio --expose full 2>log"]).arg(pml.get_program());
    command.current_dir(home.path("")).env_clear();
    command.envs(pml.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut client = Client::start(command);
    client.initialize();
    client
}

#[test]
fn a_server_that_appears_meanwhile_waits_for_a_persons_word() {
    let home = faulty::home(&["first"]);
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("first:ok", &json!({}))), "ok");
    let both =
        faulty::allowed(&home, "first", &[], "") + &faulty::allowed(&home, "late", &[], "start = \"eager\"");
    home.configure(&both);
    eventually("the new server is held", || code(&client.call("late:ok", &json!({}))) == "NOT_ACCEPTED");
    let result = client.call("late:ok", &json!({}));
    assert!(text(&result).contains("`pml accept late`"), "{result}");
    assert_eq!(Ledger::of(&home, "late").pids(), Vec::<u32>::new());

    let accepted = home.run(&["accept", "late"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    eventually("it is used", || text(&client.call("late:ok", &json!({}))) == "ok");
    assert_eq!(Ledger::of(&home, "late").pids().len(), 1);
    assert_eq!(Ledger::of(&home, "first").pids().len(), 1, "the other one was not disturbed");

    // The same name with another command is another server.
    home.configure(&both.replace("\"--ledger\"", "\"--other\", \"--ledger\""));
    eventually("the changed server is held", || code(&client.call("late:ok", &json!({}))) == "NOT_ACCEPTED");
}

#[test]
fn a_broken_file_leaves_the_old_configuration_in_force_until_it_is_mended() {
    let home = faulty::home(&["s"]);
    let mut client = logged(&home);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    let good = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    let log = || std::fs::read_to_string(home.path("log")).unwrap();
    home.configure("[servers.s\ncommand = ");
    eventually("it is noticed", || log().contains("the old one stays in force"));
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1);
    let remote = "[servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    home.configure(&(good + remote));
    eventually("the mended file counts", || code(&client.call("far:ok", &json!({}))) == "SERVER_DOWN");
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1);
}

#[test]
fn a_server_taken_out_of_the_file_ends_and_its_tools_vanish() {
    let home = faulty::home(&["kept", "gone"]);
    let mut client = home.stdio(&["--expose", "full"]);
    assert_eq!(text(&client.call("kept:ok", &json!({}))), "ok");
    assert_eq!(text(&client.call("gone:ok", &json!({}))), "ok");
    let in_flight = faulty::begin(&mut client, "gone:hang", &json!({}));
    Ledger::of(&home, "gone").await_call("hang");
    let listed = |client: &mut Client| client.request("tools/list", &json!({})).to_string();
    assert!(listed(&mut client).contains("gone__ok"));
    client.aside.clear();
    home.configure(&faulty::allowed(&home, "kept", &[], ""));
    client.announced("notifications/tools/list_changed");
    let tools = listed(&mut client);
    assert!(!tools.contains("gone__ok") && tools.contains("kept__ok"), "{tools}");
    let result = client.call("gone:ok", &json!({}));
    assert!(code(&result).starts_with("UNKNOWN_"), "{result}");
    assert_eq!(code(&client.response_or_aside(in_flight)["result"]), "DOWNSTREAM_DIED");
    eventually("its process ends", || Ledger::of(&home, "gone").pids().into_iter().all(|pid| !lives(pid)));
    assert_eq!(Ledger::of(&home, "kept").pids().len(), 1);
}

#[test]
fn a_server_that_needs_an_unset_variable_is_left_out_by_name() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    let needy = faulty::allowed(&home, "needy", &["${NOBODY_SET_THIS}"], "");
    home.configure(&(faulty::allowed(&home, "s", &[], "") + &needy));
    eventually("it is told to be left out", || code(&client.call("needy:ok", &json!({}))) == "CONFIG");
    let result = client.call("needy:ok", &json!({}));
    assert!(text(&result).contains("the variable `NOBODY_SET_THIS` is not set"), "{result}");
    let listed = home.run(&["list"]);
    assert!(listed.stdout.contains("the variable `NOBODY_SET_THIS` is not set"), "{listed:?}");
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1);
}

// ---------------------------------------------------------------- many at once

#[test]
fn several_gateways_share_one_home() {
    let home = faulty::home(&["a", "b"]);
    let mut clients: Vec<Client> = (0..5).map(|_| home.stdio_unopened(&["--expose", "full"])).collect();
    for client in &mut clients {
        client.initialize();
    }
    for round in 0..3 {
        let calls: Vec<u64> = clients
            .iter_mut()
            .map(|client| faulty::begin(client, "a:echo", &json!({"round": round})))
            .collect();
        for (client, call) in clients.iter_mut().zip(calls) {
            assert_eq!(client.response(call)["result"]["structuredContent"]["round"], round);
        }
        let listed = home.run(&["list"]);
        assert_eq!(listed.code, 0, "{listed:?}");
    }
    // Each has a server of its own.
    assert_eq!(Ledger::of(&home, "a").pids().len(), 5);
    for client in clients {
        assert_eq!(client.finish(), 0);
    }
}

fn lists(client: &mut Client, tool: &str) -> bool {
    client.request("tools/list", &json!({})).to_string().contains(tool)
}

#[test]
fn what_one_gateway_learns_of_a_server_is_known_to_the_others() {
    let home = Home::new("");
    home.configure(&faulty::allowed(&home, "s", &[], "definitions = \"follow\""));
    let mut first = home.stdio(&["--expose", "full"]);
    assert!(lists(&mut first, "s__ok"));
    let mut second = home.stdio(&["--expose", "full"]);
    assert!(lists(&mut second, "s__ok"));
    assert_eq!(text(&first.call("s:redefine", &json!({"add": "fresh"}))), "redefined");
    eventually("the other learns of it", || lists(&mut second, "s__fresh"));
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1, "the second has not started a server");

    // A server of its own says more than what another one's told.
    assert_eq!(text(&second.call("s:ok", &json!({}))), "ok");
    eventually("the second sees what its own server has", || !lists(&mut second, "s__fresh"));
    assert!(lists(&mut first, "s__fresh"), "and the first what its own has");
}

#[test]
fn the_list_of_tools_does_not_wait_for_servers_that_take_long() {
    let home = Home::new("");
    let tables: Vec<String> =
        (0..20).map(|n| faulty::allowed(&home, &format!("s{n}"), &["--slow", "600000"], "")).collect();
    home.configure(&tables.join("\n"));
    let mut client = home.stdio(&[]);
    let listed = client.request("tools/list", &json!({}));
    assert!(
        listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "pml_discover"),
        "{listed}"
    );
    assert_eq!(client.finish(), 0);
}

#[test]
fn servers_that_are_known_are_listed_without_being_started() {
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let home = faulty::home(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut client = home.stdio(&[]);
    for name in &names {
        assert_eq!(text(&client.call(&format!("{name}:ok"), &json!({}))), "ok");
    }
    assert_eq!(client.finish(), 0);
    let started = || -> usize { names.iter().map(|name| Ledger::of(&home, name).pids().len()).sum() };
    let before = started();
    let mut client = home.stdio(&["--expose", "full"]);
    let listed = client.request("tools/list", &json!({})).to_string();
    assert!(names.iter().all(|name| listed.contains(&format!("\"{name}__ok\""))), "{listed}");
    assert_eq!(text(&client.call("s7:ok", &json!({}))), "ok");
    assert_eq!(started(), before + 1, "only the one that was called");
}

#[test]
fn starting_a_known_server_is_no_change_of_its_tools() {
    let home = faulty::home(&["s"]);
    let mut met = home.stdio(&["--expose", "full"]);
    assert!(lists(&mut met, "s__ok"));
    assert_eq!(met.finish(), 0);
    let mut client = home.stdio(&["--expose", "full"]);
    let before = client.request("tools/list", &json!({}));
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    assert_eq!(client.request("tools/list", &json!({})), before);
    let told = |message: &Value| message["method"] == "notifications/tools/list_changed";
    assert!(!client.aside.iter().any(told), "{:?}", client.aside);
}

// ---------------------------------------------------------------- nothing outlives a closed app

#[tokio::test]
async fn closing_leaves_no_task_behind() {
    for role in [ProcessRole::Gateway, ProcessRole::Command] {
        let home = Home::new("");
        let paths = Paths { config: home.path("pml.toml"), data: home.path("") };
        let app = App::open(paths, Env::default(), home.path(""), role).await.unwrap();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert!(tasks() > 2, "{role:?}: background tasks are not seen");
        app.close().await;
        assert_eq!(tasks(), 0, "{role:?}");
        assert_eq!(Arc::strong_count(&app), 1, "{role:?}");
    }
}
