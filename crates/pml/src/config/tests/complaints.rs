//! Tests: errors have a position and a hint.

use super::*;

/// The errors of several configurations, in order.
pub(super) fn complaints(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{}\n", user(text).load().unwrap_err())).collect()
}

#[test]
fn unknown_keys_are_told_with_their_place_and_the_nearest_known_one() {
    expect![[r#"
        ~/pml/pml.toml:4:3: unknown key `comand`
        hint: did you mean `command`?
        ~/pml/pml.toml:1:6: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`
        hint: texts stand in quotes, and a table or key may appear once
        ~/pml/pml.toml:1:2: unknown key `server`
        hint: did you mean `servers`?
        ~/pml/pml.toml:2:1: unknown key `roots`
        hint: did you mean `root`?
        ~/pml/pml.toml:1:10: unknown key `shell`
        hint: known here: `fs`, `json`, `text`, `csv`, `http`, `time`, `math`
        ~/pml/pml.toml:2:1: unknown key `port`
        hint: known here: `listen`, `hosts`, `origins`
        ~/pml/pml.toml:2:1: unknown key `exposed`
        hint: did you mean `expose`?
        ~/pml/pml.toml:3:1: unknown key `type`
        hint: known here: `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearer`, `client_id`, `client_secret`, `client_metadata`, `scopes`, `issuer`, `redirect_port`, `enabled`, `start`, `idle_stop`, `call_timeout`, `longest_call`, `start_timeout`, `description`, `trust`, `definitions`, `routing`
    "#]].assert_eq(&complaints(&[
        "expose = \"meta\"\n\n[servers.github]\n  comand = \"npx\"\n",
        "exposé = 1",
        "[server.x]\ncommand = \"x\"",
        "[builtin.fs]\nroots = \"x\"",
        "[builtin.shell]\nenabled = true",
        "[serve]\nport = 1",
        "[clients.claude]\nexposed = \"full\"",
        "[servers.x]\ncommand = \"x\"\ntype = \"stdio\"",
    ]));
}

#[test]
fn wrong_values_are_told_with_what_is_wanted() {
    expect![[r#"
        ~/pml/pml.toml:1:11: `servers` must be a table, not a number
        hint: give it keys and values of its own
        ~/pml/pml.toml:1:13: `servers.x` must be a table, not a text
        hint: give it keys and values of its own
        ~/pml/pml.toml:2:11: `servers.x.command` must be a text, not a list
        hint: write it in quotes
        ~/pml/pml.toml:3:8: `servers.x.args` must be a list of texts, not a text
        hint: write it as ["one", "two"]
        ~/pml/pml.toml:3:15: `servers.x.args[]` must be a text, not a number
        hint: put it in quotes: "7"
        ~/pml/pml.toml:3:13: `servers.x.env.A` must be a text, not a number
        hint: put it in quotes: "1"
        ~/pml/pml.toml:3:11: `servers.x.enabled` must be true or false, not a text
        hint: write `true` or `false`, without quotes
        ~/pml/pml.toml:3:16: `servers.x.call_timeout` must be a number of seconds, or a text such as "30s" or "5m"
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:3:16: `servers.x.call_timeout` must be a number of seconds, or a text such as "30s" or "5m"
        hint: write it in that form, above 0, or leave it out for the default
        ~/pml/pml.toml:3:16: `servers.x.call_timeout` must be a number of seconds, or a text such as "30s" or "5m", not a number with a fraction
        hint: write it in that form, or leave it out for the default
        ~/pml/pml.toml:3:16: `servers.x.longest_call` is shorter than `call_timeout`
        hint: give it a longer time, or `call_timeout` a shorter one
        ~/pml/pml.toml:3:9: `servers.x.start` is `now`
        hint: write "lazy" or "eager"
        ~/pml/pml.toml:3:9: `servers.x.trust` is `all`
        hint: write "annotations" to believe what the server says of its tools, or leave it out
        ~/pml/pml.toml:3:15: `servers.x.definitions` is `loose`
        hint: write "pinned" (tools that appear or change wait for `pml accept`) or "follow"
        ~/pml/pml.toml:1:10: `expose` is `all`
        hint: write "meta", "full", or a list such as ["fs:read"]
        ~/pml/pml.toml:1:10: `expose` must be a text or a list of texts, not a date or time
        hint: write it in that form, or leave it out for the default
        ~/pml/pml.toml:1:10: `import` must be a list of texts, not a text
        hint: write it as ["one", "two"]
        ~/pml/pml.toml:2:10: `serve.listen` is `localhost`
        hint: give an IP address and a port, such as "127.0.0.1:7717"
        ~/pml/pml.toml:2:12: `*` in `serve.origins` is no origin
        hint: write scheme and host, such as "https://app.example.com"
        ~/pml/pml.toml:2:10: `https://x/` in `serve.hosts` is no host name
        hint: write it without scheme, path or `*`, such as "api.example.com"
        ~/pml/pml.toml:1:9: `names` is `short`
        hint: write "qualified" (`server__tool`) or "plain" (the tool's own name where it is the only one)
    "#]].assert_eq(&complaints(&[
        "servers = 1",
        "servers.x = \"npx\"",
        "[servers.x]\ncommand = [\"npx\"]",
        "[servers.x]\ncommand = \"x\"\nargs = \"-y\"",
        "[servers.x]\ncommand = \"x\"\nargs = [\"-y\", 7]",
        "[servers.x]\ncommand = \"x\"\nenv = { A = 1 }",
        "[servers.x]\ncommand = \"x\"\nenabled = \"yes\"",
        "[servers.x]\ncommand = \"x\"\ncall_timeout = \"soon\"",
        "[servers.x]\ncommand = \"x\"\ncall_timeout = 0",
        "[servers.x]\ncommand = \"x\"\ncall_timeout = 1.5",
        "[servers.x]\ncommand = \"x\"\nlongest_call = \"30s\"",
        "[servers.x]\ncommand = \"x\"\nstart = \"now\"",
        "[servers.x]\ncommand = \"x\"\ntrust = \"all\"",
        "[servers.x]\ncommand = \"x\"\ndefinitions = \"loose\"",
        "expose = \"all\"",
        "expose = 1979-05-27",
        "import = \"x.json\"",
        "[serve]\nlisten = \"localhost\"",
        "[serve]\norigins = [\"*\"]",
        "[serve]\nhosts = [\"https://x/\"]",
        "names = \"short\"",
    ]));
}

#[test]
fn a_server_is_either_started_or_reached() {
    expect![[r#"
        ~/pml/pml.toml:3:1: `servers.x` has both `command` and `url`
        hint: keep `command` for a program to start, or `url` for a server to reach
        ~/pml/pml.toml:1:1: `servers.x` has neither `command` nor `url`
        hint: give a `command` to start, or a `url` to reach
        ~/pml/pml.toml:3:1: `servers.x.args` needs `command`
        hint: remove `args`, or give `command`
        ~/pml/pml.toml:3:1: `servers.x.bearer` needs `url`
        hint: remove `bearer`, or give `url`
        ~/pml/pml.toml:3:1: `servers.x.bearer` repeats the `Authorization` header
        hint: keep one of them
    "#]]
    .assert_eq(&complaints(&[
        "[servers.x]\ncommand = \"x\"\nurl = \"https://x/\"",
        "[servers.x]\ndescription = \"x\"",
        "[servers.x]\nurl = \"https://x/\"\nargs = [\"x\"]",
        "[servers.x]\ncommand = \"x\"\nbearer = \"x\"",
        "[servers.x]\nurl = \"https://x/\"\nbearer = \"x\"\nheaders = { authorization = \"y\" }",
    ]));
}

#[test]
fn broken_toml_is_told_with_its_place() {
    expect![[r#"
        ~/pml/pml.toml:2:11: not TOML: invalid float, expected `nan`
        hint: texts stand in quotes, and a table or key may appear once
        ~/pml/pml.toml:1:11: not TOML: unclosed table, expected `]`
        hint: texts stand in quotes, and a table or key may appear once
        ~/pml/pml.toml:2:1: not TOML: duplicate key
        hint: texts stand in quotes, and a table or key may appear once
        ~/pml/pml.toml:2:12: not TOML: invalid basic string, expected non-double-quote visible characters, `\`
        hint: texts stand in quotes, and a table or key may appear once
        ~/pml/pml.toml:2:4: not TOML: key with no value, expected `=`
        hint: texts stand in quotes, and a table or key may appear once
    "#]]
    .assert_eq(&complaints(&[
        "[servers.x]\ncommand = npx",
        "[servers.x\n",
        "a = 1\na = 2",
        "# é\nexpose = \"é\u{1b}[31m\"",
        "expose = \"me\nta\"",
    ]));
}

#[test]
fn a_file_that_is_not_text_is_told() {
    let home = user("");
    fs::write(home.path("pml/pml.toml"), b"# ok\nexpose = \"\xff\"").unwrap();
    expect![[r#"
        ~/pml/pml.toml:2:11: the file is not UTF-8
        hint: save it as UTF-8"#]]
    .assert_eq(&home.load().unwrap_err().to_string());
}

#[test]
fn a_server_that_cannot_be_expanded_is_left_out_and_named() {
    let config = user(
        r#"
[servers.token]
command = "x"
env = { A = "${NOT_SET}" }
[servers.file]
url = "https://example.com"
bearer = "${file:~/none}"
[servers.keychain]
command = "x"
args = ["${keychain:github}"]
[servers.scheme]
url = "ftp://example.com"
[servers.password]
url = "https://me:${TOKEN}@example.com"
[servers.relative]
url = "/mcp"
[servers.newline]
command = "x"
args = ["a\nb"]
[servers.nul]
command = "x\u0000y"
[servers.empty]
command = " "
[servers.variable]
command = "x"
env = { "A=B" = "c" }
[servers.header]
url = "https://example.com"
headers = { "A" = "b\r\nC: d" }
[servers.fine]
command = "x"
"#,
    )
    .load()
    .unwrap();
    assert_eq!(names(&config), ["fine"]);
    let said = problems(&config);
    assert!(!said.contains("s3cret"));
    expect![[r#"
        ~/pml/pml.toml:2:10: server `token` is left out: the variable `NOT_SET` is not set
        hint: set `NOT_SET` in the environment PML is started in
        ~/pml/pml.toml:5:10: server `file` is left out: the file `~/none` does not exist
        hint: put the secret into it, with mode 600
        ~/pml/pml.toml:8:10: server `keychain` is left out: `${keychain:github}` is not a form of variable
        hint: the system keychain is not read; write `${VAR}`, or `${file:path}` with the secret in a file of mode 600
        ~/pml/pml.toml:11:10: server `scheme` is left out: `url` has the scheme `ftp`
        hint: write it as `https://host/path`
        ~/pml/pml.toml:13:10: server `password` is left out: `url` holds a user or password
        hint: send them with `headers` or `bearer`
        ~/pml/pml.toml:15:10: server `relative` is left out: `url` is no address: relative URL without a base
        hint: write it as `https://host/path`
        ~/pml/pml.toml:17:10: server `newline` is left out: an argument has a line break
        hint: put longer scripts into a file and name that
        ~/pml/pml.toml:20:10: server `nul` is left out: the command has a NUL character
        hint: put longer scripts into a file and name that
        ~/pml/pml.toml:22:10: server `empty` is left out: the command is empty
        hint: give a program to start
        ~/pml/pml.toml:24:10: server `variable` is left out: `A=B` cannot be the name of a variable
        hint: use letters, digits and `_`
        ~/pml/pml.toml:27:10: server `header` is left out: the header `A` has a control character
        hint: remove the character
    "#]]
    .assert_eq(&said);
}
