//! Tests: what is started, with which arguments and environment, and what of it is shown.

use super::*;

#[test]
fn no_secret_shows_in_debug_output() {
    let config = user(
        "[servers.a]\ncommand = \"x\"\nargs = [\"${TOKEN}\"]\nenv = { T = \"${TOKEN}\", L = \"l1teral\" }\n\
         [servers.b]\nurl = \"https://e.com/?k=${TOKEN}\"\nbearer = \"${TOKEN}\"\nheaders = { L = \"l1teral\" }\n",
    )
    .load()
    .unwrap();
    assert_eq!(config.servers.len(), 2);
    let shown = format!("{config:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("l1teral"), "{shown}");
}

#[test]
fn a_child_gets_declared_variables_and_a_small_base() {
    let home = user("[servers.x]\ncommand = \"x\"\nenv = { A = \"${TOKEN}\", PATH = \"/mine\" }\n");
    let config = home.load().unwrap();
    let env = child_env(&config.servers[0], &home.env);
    let shown: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let own = home.path("");
    let own = own.to_str().unwrap().trim_end_matches('/');
    assert_eq!(shown, [("A", "s3cret"), ("HOME", own), ("LC_TIME", "C"), ("PATH", "/mine")]);
}

#[test]
fn the_launch_digest_sees_what_is_started_and_no_secret() {
    let digest = |server: &str, token: &str| {
        let mut home = user(&format!("[servers.x]\n{server}\n"));
        let fixed = [("HOME", home.path("").display().to_string()), ("TOKEN", token.to_owned())];
        let paths = home.paths();
        home.env = Env::from_iter(fixed);
        let config = load(&paths, &home.path("work"), &home.env).unwrap();
        launch_digest(&config.servers[0])
    };
    let base = "command = \"x\"\nargs = [\"a\", \"${TOKEN}\"]\nenv = { T = \"${TOKEN}\" }\ncwd = \"/c\"";
    assert_eq!(digest(base, "one"), digest(base, "two"), "a new token is the same server");
    assert_eq!(digest(base, "one"), digest(&format!("{base}\ncall_timeout = 5"), "one"));
    assert_eq!(digest(base, "one"), digest(&base.replace("T = \"${TOKEN}\"", "T = \"literal\""), "one"));
    for (from, to) in
        [("x", "y"), ("\"a\"", "\"a\", \"b\""), ("\"a\", ", "\"a,\" , "), ("T =", "U ="), ("/c", "/d")]
    {
        assert_ne!(digest(base, "one"), digest(&base.replacen(from, to, 1), "one"), "{from} → {to}");
    }
    let program = "command = \"${TOKEN}\"";
    assert_ne!(digest(program, "one"), digest(program, "two"), "a variable cannot swap the program");
    assert_ne!(digest("url = \"https://a/\"", "t"), digest("url = \"https://b/\"", "t"));
}

/// Texts that would have an effect in a shell, in another parser, or on a terminal.
const PAYLOADS: [&str; 40] = [
    "; touch CANARY",
    "&& touch CANARY",
    "|| touch CANARY",
    "| touch CANARY",
    "& touch CANARY",
    "$(touch CANARY)",
    "`touch CANARY`",
    "${IFS}touch${IFS}CANARY",
    "> CANARY",
    ">> CANARY",
    "< /etc/passwd",
    "2>CANARY",
    "<(touch CANARY)",
    "'; touch CANARY; '",
    "\"; touch CANARY; \"",
    "\\'; touch CANARY",
    "\\\"; touch CANARY",
    "-c",
    "-e",
    "--eval",
    "--",
    "-",
    "",
    " ",
    "a b  c",
    "\ta\t",
    "*",
    "?",
    "[a-z]*",
    "~",
    "~root",
    "!!",
    "#comment",
    "{a,b}",
    "%PATH%",
    "$HOME",
    "$$",
    "é\u{202e}x\u{200b}",
    "\u{1b}[31mred",
    "a=b;c=d&e",
];

#[cfg(unix)]
#[test]
fn hostile_texts_stay_one_argument_each() {
    let home = user("");
    let written: Vec<String> = PAYLOADS.iter().map(|payload| payload.replace('$', "$$")).collect();
    let server = edit::NewServer {
        name: pml_model::ServerName::new("hostile").unwrap(),
        declared: DeclaredTransport::Stdio {
            command: "printf".to_owned(),
            args: ["%s\\0".to_owned()].into_iter().chain(written).collect(),
            env: BTreeMap::new(),
            cwd: Some("~/work".to_owned()),
        },
        description: None,
        enabled: true,
        call_timeout: None,
        start_timeout: None,
    };
    edit::add_server(&home.paths().config, &server, edit::ExistingServer::Keep).unwrap();
    let config = home.load().unwrap();
    let ServerTransport::Stdio { command, args, cwd: Some(cwd), .. } = &config.servers[0].transport else {
        panic!()
    };
    assert_eq!(args[1..], PAYLOADS);

    let mut child = std::process::Command::new(command);
    child.args(args).env_clear().envs(child_env(&config.servers[0], &home.env)).current_dir(cwd);
    let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
    assert_eq!(output.strip_suffix('\0').unwrap().split('\0').collect::<Vec<_>>(), PAYLOADS);
    assert_eq!(fs::read_dir(home.path("work")).unwrap().count(), 1, "only `sub` is there: no canary");
}

#[test]
fn a_hostile_command_is_the_name_of_one_program() {
    for payload in PAYLOADS.iter().filter(|payload| !payload.trim().is_empty() && !payload.contains('/')) {
        let home = user("");
        let declared = DeclaredTransport::Stdio {
            command: payload.replace('$', "$$"),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        };
        let name = pml_model::ServerName::new("hostile").unwrap();
        let server = edit::NewServer::new(name, declared);
        edit::add_server(&home.paths().config, &server, edit::ExistingServer::Keep).unwrap();
        let ServerTransport::Stdio { command, args, .. } = &home.load().unwrap().servers[0].transport.clone()
        else {
            panic!()
        };
        assert_eq!((command.as_str(), args.len()), (*payload, 0));
    }
}
