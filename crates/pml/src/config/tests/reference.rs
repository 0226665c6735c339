//! Tests that the reference lists exactly the keys of the parser and that `docs/configuration.md` is generated from
//! it.

use super::super::reference::{ReferenceTable, TABLES, markdown};
use super::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
const OPEN: &str =
    "<!-- settings: generated; `UPDATE_EXPECT=1 cargo test -p pml --lib config` writes them -->\n";
const CLOSE: &str = "\n<!-- /settings -->";

#[test]
fn the_page_has_every_setting() {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(OPEN).expect("the page has the mark");
    let (written, after) = rest.split_once(CLOSE).expect("the page has the second mark");
    let generated = markdown();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(PAGE, format!("{before}{OPEN}{}{CLOSE}{after}", generated.trim_end())).unwrap();
        return;
    }
    assert_eq!(
        written.trim_end(),
        generated.trim_end(),
        "write the page again: `UPDATE_EXPECT=1 cargo test -p pml --lib config`"
    );
}

/// The header of a table in a file, with example names where the user chooses one.
fn header(table: &ReferenceTable) -> String {
    match table.path {
        "" => String::new(),
        "servers.NAME" => "[servers.x]\n".to_owned(),
        "builtin.NAME" => "[builtin.math]\n".to_owned(),
        "clients.NAME" => "[clients.x]\n".to_owned(),
        "permissions.PATTERN" => "[permissions.\"fs:read\"]\n".to_owned(),
        path => format!("[{path}]\n"),
    }
}

#[test]
fn every_setting_is_read_by_the_parser() {
    for table in TABLES {
        for setting in table.settings {
            for key in [setting.key].iter().chain(setting.aliases) {
                // No setting takes a fraction, so every reader reports an error.
                let needed =
                    if table.path == "servers.NAME" && *key != "command" { "command = \"x\"\n" } else { "" };
                let text = format!("{}{needed}{key} = 1.5\n", header(table));
                let said = user(&text).load().expect_err(&text).to_string();
                assert!(said.contains(key), "{text}\n{said}");
                assert!(!said.contains("unknown key"), "{text}\n{said}");
            }
        }
    }
}

#[test]
fn the_defaults_of_the_settings_are_those_of_the_code() {
    let (mut plain, mut with_defaults) = (String::new(), String::new());
    for table in TABLES {
        let needed = if table.path == "servers.NAME" { "command = \"x\"\n" } else { "" };
        plain += &format!("{}{needed}", header(table));
        with_defaults += &format!("{}{needed}", header(table));
        for setting in table.settings.iter().filter(|setting| !setting.default.is_empty()) {
            with_defaults += &format!("{} = {}\n", setting.key, setting.default);
        }
    }
    let load = |text: &str| {
        let config = user(text).load().unwrap_or_else(|error| panic!("{text}\n{error}"));
        let files_aside =
            |rules: &mut Vec<PermissionRule>| rules.iter_mut().for_each(|rule| rule.place.clear());
        let Config { servers, expose, clients, builtin, serve, names, mut permissions, approvals, .. } =
            config.clone();
        files_aside(&mut permissions);
        let servers: Vec<_> =
            servers.into_iter().map(|server| ServerConfig { source: PathBuf::new(), ..server }).collect();
        let rest = (config.memory, config.embedding, config.limits, config.runs);
        ((servers, expose, clients, builtin), (serve, names, permissions, approvals), rest)
    };
    assert_eq!(load(&plain), load(&with_defaults));
}

#[test]
fn the_examples_of_the_page_are_true() {
    let page = fs::read_to_string(PAGE).unwrap();
    let example = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let home = user(&example("toml"));
    home.write("pml/mcp-permissions.yaml", &example("yaml"));
    home.write(".secrets/team", "blue");
    let config = home.load().unwrap();
    // The variables of the example are not set here.
    assert!(
        config.findings.problems.iter().all(|problem| problem.to_string().contains("_TOKEN")),
        "{}",
        problems(&config)
    );
    assert_eq!((config.limits, config.runs), (LimitSettings::default(), RunSettings::default()));
    assert_eq!(config.permissions.len(), 4 + 3);
}
