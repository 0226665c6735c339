//! Secrets that pass through are found nowhere afterwards: not in the database, its log, our log, or what is told.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use crate::gateway::Gateway;
use crate::harness::{Home, eventually};
use crate::place::{ALL, Place, api};

/// Each is planted in a place of its own.
fn canaries() -> Vec<(&'static str, String)> {
    let name = |number: usize| format!("canary{number:02}x9QzK7wPtL3vB8mR");
    let places = [
        "argument named password",
        "argument named api_key",
        "argument named Authorization",
        "nested credential",
        "known value in an argument",
        "known value in a result",
        "known value in an error",
        "known value in a url",
        "bearer in text",
        "basic in text",
        "github token",
        "slack token",
        "openai key",
        "aws secret",
        "jwt",
        "private key",
        "url userinfo",
        "query parameter",
        "connection string",
        "json in a string",
        "known value in base64",
        "known value in hex",
        "known value percent-encoded",
        "literal in the program",
        "in the intent",
        "argument of one tool",
        "written argument of one tool",
    ];
    places.iter().enumerate().map(|(number, place)| (*place, name(number))).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Every way in which a secret could be written.
fn spellings(secret: &str) -> Vec<String> {
    let inner = |shift: usize| {
        // Whole groups of it, wherever in a longer text it stands.
        let padded = format!("{}{secret}{}", "A".repeat(shift), "A".repeat(3));
        let text = STANDARD.encode(padded);
        text[4 * usize::from(shift > 0)..text.len() - 8].to_owned()
    };
    vec![
        secret.to_owned(),
        secret.chars().rev().collect(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(secret),
        inner(0),
        inner(1),
        inner(2),
        hex(secret),
        hex(secret).to_uppercase(),
        secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        secret.bytes().map(|byte| format!("\\u00{byte:02x}")).collect(),
    ]
}

fn files(home: &Home) -> Vec<(String, Vec<u8>)> {
    fn walk(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if !path.ends_with("pml.toml") {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&home.path(""), &mut found);
    found
}

#[test]
fn no_secret_is_found_again_in_any_spelling() {
    let all = canaries();
    let of = |place: &str| all.iter().find(|(name, _)| *name == place).unwrap().1.clone();
    let known =
        ["an argument", "a result", "an error", "a url"].map(|place| of(&format!("known value in {place}")));
    let encoded = ["base64", "hex"].map(|how| of(&format!("known value in {how}")));
    let variables: Vec<String> = known
        .iter()
        .chain(&encoded)
        .chain([&of("known value percent-encoded")])
        .enumerate()
        .map(|(number, secret)| format!("SECRET_{number}_TOKEN = \"{secret}\""))
        .collect();
    let config = format!(
        "{ALL}[servers.off]\ncommand = \"true\"\nenabled = false\nenv = {{ {} }}\n",
        variables.join(", ")
    );
    let home = Home::new(&config);
    let log = std::fs::File::create(home.path("stderr.log")).unwrap();
    let mut command = home.command(&["stdio", "-vv"]);
    command.env("PML_LOG", "trace");
    let gateway = Gateway::start_with(command, log.into());
    let mut place = Place { home, gateway };

    let echo = "return mcp.json.parse({ json: JSON.stringify(args) })";
    let jwt = format!(
        "eyJhbGciOiJIUzI1NiJ9.{}.c2lnbmF0dXJlc2lnbmF0dXJl",
        URL_SAFE_NO_PAD.encode(json!({ "sub": of("jwt") }).to_string())
    );
    let context = json!({
        "password": of("argument named password"),
        "api_key": of("argument named api_key"),
        "headers": { "Authorization": of("argument named Authorization") },
        "account": { "credentials": { "user": "bob", "pin": of("nested credential") } },
        "note": of("known value in an argument"),
        "url": format!("https://example.org/{}/x", of("known value in a url")),
        "bearer": format!("send Authorization: Bearer {}", of("bearer in text")),
        "basic": format!("Authorization: Basic {}", STANDARD.encode(format!("bob:{}", of("basic in text")))),
        "github": format!("ghp_{}{}", of("github token"), "a1B2c3D4e5F6"),
        "slack": format!("xoxb-1234567890-{}", of("slack token")),
        "openai": format!("sk-proj-{}", of("openai key")),
        "aws": format!("AWS_SECRET_ACCESS_KEY={}/abcdEFGHijklMNOP", of("aws secret")),
        "jwt": jwt,
        "pem": format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", of("private key")),
        "userinfo": format!("https://bob:{}@example.org/", of("url userinfo")),
        "query": format!("https://example.org/?access_token={}&x=1", of("query parameter")),
        "dsn": format!("postgres://app:{}@db/main", of("connection string")),
        "inner": json!({ "client_secret": of("json in a string") }).to_string(),
        "base64": STANDARD.encode(format!("user:{}", of("known value in base64"))),
        "hex": hex(&of("known value in hex")),
        "percent": of("known value percent-encoded").bytes().map(|byte| format!("%{byte:02x}")).collect::<String>(),
    });
    let told = place.run("show me what I gave", echo, &context);
    assert_eq!(told["status"], "success", "{told}");
    let result = of("known value in a result");
    std::fs::write(place.home.path("note.txt"), &result).unwrap();
    place.run("read the note", "return mcp.fs.read({ path: 'note.txt' })", &json!({}));
    std::fs::remove_file(place.home.path("note.txt")).unwrap();
    let failing = format!("return mcp.fs.read({{ path: 'nowhere/{}' }})", of("known value in an error"));
    let told = place.run("read what is not there", &failing, &json!({}));
    assert_eq!(told["status"], "failed", "{told}");
    let literal =
        format!("return mcp.json.stringify({{ data: {{ password: '{}' }} }})", of("literal in the program"));
    let told = place.run(&format!("log in with password: {}", of("in the intent")), &literal, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    let login = |place: &str| json!({ "data": { "password": of(place) } });
    for (intent, written, context) in [
        ("spell a login", json!({}), login("argument of one tool")),
        ("spell another login", login("written argument of one tool"), json!({})),
    ] {
        let tool = json!({ "type": "tool", "toolId": "json:stringify", "defaultArgs": written });
        let asked = json!({ "intent": intent, "implementation": tool, "context": context });
        let told = place.gateway.call("pml_execute", &asked);
        assert_eq!(told["status"], "success", "{told}");
    }

    let known = place.capabilities();
    assert!(known.len() >= 3, "there is something to look through");
    // With its log still beside the database, and once more when all of it is in there.
    let mut looked = files(&place.home);
    assert!(looked.iter().any(|(name, _)| name.ends_with("pml.db-wal")));
    let runs = place.home.run(&["runs", "list", "--json"]).stdout;
    looked.push(("`pml runs list`".to_owned(), runs.into_bytes()));
    let served = place.home.serve(&[]);
    let traces = known.iter().map(|known| format!("/api/traces/{}", known.procedure.id));
    for path in traces.chain(["/api/capabilities".to_owned()]) {
        let (status, told) = api(&served, "GET", &path, None);
        assert_eq!(status, 200, "{path}: {told}");
        looked.push((path, told.to_string().into_bytes()));
    }
    drop(served);
    place.gateway.hang_up();
    eventually("the gateway has ended", || place.gateway.has_ended());
    looked.extend(files(&place.home));
    let mut found: Vec<String> = Vec::new();
    for (what, secret) in &all {
        for spelling in spellings(secret) {
            for (name, content) in &looked {
                if content.windows(spelling.len()).any(|window| window == spelling.as_bytes()) {
                    found.push(format!("{what} as {spelling} in {name}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    let database = looked.iter().rfind(|(name, _)| name.ends_with("pml.db")).unwrap();
    let redacted = b"[REDACTED]";
    let times = database.1.windows(redacted.len()).filter(|window| window == redacted).count();
    assert!(times >= 15, "what was taken out is marked: {times}");
}

/// Settings of servers, with what must be hidden of them and what must not.
struct Configured {
    home: Home,
    hidden: Vec<(&'static str, &'static str)>,
    shown: Vec<(&'static str, &'static str)>,
}

fn configured() -> Configured {
    let home = Home::new(&format!(
        r#"{ALL}
        [servers.program]
        command = "true"
        enabled = false
        args = ["--key", "${{file:key.txt}}", "--api-key", "Zk82hhQ1", "--dir", "${{WORK}}"]
        env = {{ DATABASE_URL = "postgres://reporting:Kq7vvZ2x@db.internal/sales", OPAQUE = "${{OPAQUE}}", REGION = "${{REGION}}", STAGE = "${{STAGE}}", ACCOUNT = "${{ACCOUNT}}", SHORT = "${{SHORT}}", BUILD = "${{BUILD}}", MY_SECRET = "open sesame" }}
        [servers.remote]
        url = "https://api.example.com/mcp?view=overview&ticket=x9mK2pQ7rT4vW1&api_key=abc9"
        enabled = false
        headers = {{ X-Tenant = "acme-tenant", Accept-Language = "fr-CH-wallis" }}
        "#
    ));
    std::fs::write(home.path("key.txt"), "swordfishes\n").unwrap();
    let hidden = vec![
        ("a file", "swordfishes"),
        ("an argument behind an option", "Zk82hhQ1"),
        ("the password of an address", "Kq7vvZ2x"),
        ("a long variable", "a9Kq2mN9pL4wZt"),
        ("a variable named secret", "open sesame"),
        ("a header", "acme-tenant"),
        ("a query value", "x9mK2pQ7rT4vW1"),
        ("a query value named secret", "abc9"),
        ("a variable of the process", "Q1w2e3"),
    ];
    let shown = vec![
        ("the user of an address", "reporting"),
        ("the host of an address", "db.internal/sales"),
        ("a path", "/srv/projects/atlas"),
        ("a region", "eu-west-3-paris"),
        ("a word", "productionlike"),
        ("a number", "123456789012"),
        ("what is short", "b7c8d9e0"),
        ("a host", "build.example.internal"),
        ("a query word", "overview"),
        ("a header that says how to talk", "fr-CH-wallis"),
    ];
    Configured { home, hidden, shown }
}

/// The command with the variables that the configuration names.
fn with_variables(mut command: std::process::Command) -> std::process::Command {
    command.envs([
        ("OPAQUE", "a9Kq2mN9pL4wZt"),
        ("WORK", "/srv/projects/atlas"),
        ("REGION", "eu-west-3-paris"),
        ("STAGE", "productionlike"),
        ("ACCOUNT", "123456789012"),
        ("SHORT", "b7c8d9e0"),
        ("BUILD", "build.example.internal"),
        ("PROCESS_TOKEN", "Q1w2e3"),
    ]);
    command
}

#[test]
fn settings_are_hidden_by_where_they_come_from_and_others_are_not() {
    let Configured { home, hidden, shown } = configured();
    let gateway = Gateway::start(with_variables(home.command(&["stdio"])));
    let mut place = Place { home, gateway };
    let echo = "return mcp.json.parse({ json: JSON.stringify({ said: args.text }) })";
    for (what, secret) in &hidden {
        let context = json!({ "text": format!("it is {secret} now") });
        let told = place.run("say it again", echo, &context);
        assert_eq!(told["status"], "success", "{told}");
        let trace = serde_json::to_string(&place.trace(&told)).unwrap();
        assert!(!trace.contains(secret), "{what}: {trace}");
        assert!(trace.contains("it is [REDACTED] now"), "{what}: {trace}");
    }
    for (what, setting) in &shown {
        let context = json!({ "text": format!("it is {setting} now") });
        let told = place.run("say it again", echo, &context);
        let trace = place.trace(&told);
        assert!(serde_json::to_string(&trace).unwrap().contains(setting), "{what}: {trace:?}");
        assert!(trace.body.task_results.iter().all(|task| !task.altered), "{what}: {trace:?}");
    }
    let listed = with_variables(place.home.command(&["list"])).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("--api-key [REDACTED]") && listed.contains("view=overview"), "{listed}");
    for (what, secret) in &hidden {
        assert!(!listed.contains(secret), "{what}: {listed}");
    }
}

#[test]
fn what_is_secret_at_one_place_of_a_trace_is_secret_at_all() {
    let mut place = Place::start(ALL);
    let code = r"
        const said = await mcp.json.parse({ json: JSON.stringify({ said: args.note, user: args.login.password.length }) });
        if (args.note === 'the word is Tr0ub4dor') { await mcp.json.stringify({ data: ['Tr0ub4dor', 'dor'] }) }
        return mcp.fs.read({ path: 'nowhere/' + args.note + '/' + args.pin });
    ";
    let context = json!({ "login": { "password": "Tr0ub4dor" }, "note": "the word is Tr0ub4dor", "pin": 47_112, "order": "147112" });
    let told = place.run("sign in as ada with Tr0ub4dor and 47112", code, &context);
    assert_eq!(told["status"], "failed", "{told}");
    let trace = place.trace(&told);
    let text = serde_json::to_string(&trace).unwrap();
    // `JSON.stringify` is one of them: what operations gave is kept like what tools gave.
    assert!(
        trace.error.is_some() && !trace.body.decisions.is_empty() && trace.body.task_results.len() == 4,
        "{text}"
    );
    for secret in ["Tr0ub4dor", "\"47112\"", "/47112", "and 47112"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    // A result that gives a secret back is not kept either.
    let echo = "return (await mcp.json.parse({ json: JSON.stringify([args.login.password]) }))";
    for _ in 0..2 {
        let told = place.run_with("give it back", echo, &context, &json!({}));
        assert_eq!((told["status"].as_str(), told.get("cacheHit")), (Some("success"), None), "{told}");
    }
    for stays in
        ["the word is [REDACTED]", "sign in as ada with [REDACTED] and [REDACTED]", "147112", "\"dor\""]
    {
        assert!(text.contains(stays), "{stays}: {text}");
    }
}

#[test]
fn what_a_server_says_when_it_ends_is_told_without_its_secrets() {
    let home = Home::new(
        "[servers.dies]\ncommand = \"sh\"\nargs = [\"-c\", \"echo cannot sign in with $API_KEY at $PLACE >&2; exit 3\"]\n\
         env = { API_KEY = \"Zk82hhQ1\", PLACE = \"somewhere\" }\n",
    );
    for args in [&["doctor"][..], &["call", "dies:anything"], &["list"]] {
        let done = home.run(args);
        let told = done.stdout + &done.stderr;
        assert!(!told.contains("Zk82hhQ1"), "{args:?}: {told}");
    }
    let told = home.run(&["doctor"]);
    assert!(told.stdout.contains("cannot sign in with [REDACTED] at somewhere"), "{told:?}");
}
