//! Rules and annotations in, verdicts out.

use std::fs;

use expect_test::{Expect, expect};

use super::*;
use crate::config::{Env, Paths, load};

fn policy(toml: &str) -> Policy {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { config: dir.path().join("pml.toml"), data: dir.path().to_owned() };
    fs::write(&paths.config, toml).unwrap();
    Policy::new(&load(&paths, dir.path(), &Env::default()).unwrap())
}

/// Annotations by their initials: `R` only reads, `r` does not, and so on for `d`estructive,
/// `i`dempotent and `o`pen world.
fn annotations(initials: &str) -> Annotations {
    let hint = |c: char| match (initials.contains(c.to_ascii_uppercase()), initials.contains(c)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    Annotations {
        read_only_hint: hint('r'),
        destructive_hint: hint('d'),
        idempotent_hint: hint('i'),
        open_world_hint: hint('o'),
    }
}

fn verdict(policy: &Policy, tool: &str) -> (ToolId, ToolVerdict) {
    let (id, initials) = tool.split_once(' ').unwrap_or((tool, ""));
    let id = ToolId::parse(id).unwrap();
    let verdict = policy.verdict(&id, &annotations(initials));
    (id, verdict)
}

/// The verdicts on `tools`, each an id and the initials of its annotations.
#[track_caller]
fn check(toml: &str, tools: &[&str], expected: &Expect) {
    let policy = policy(toml);
    let mut lines = String::new();
    for tool in tools {
        let (_, verdict) = verdict(&policy, tool);
        let attributes = [
            (verdict.read_only, "reads"),
            (verdict.idempotent, "idempotent"),
            (verdict.open_world, "open"),
            (verdict.isolated, "isolated"),
        ];
        let mut words = vec![format!("{:?}", verdict.mode).to_lowercase(), verdict.scope.as_str().to_owned()];
        words.extend(attributes.iter().filter(|(holds, _)| *holds).map(|(_, word)| (*word).to_owned()));
        lines.push_str(&format!("{tool}: {}\n    {}\n", words.join(" "), verdict.because));
    }
    expected.assert_eq(&lines);
}

#[test]
fn without_rules_only_what_is_ours_and_reads_goes_unasked() {
    check(
        "[builtin.math]\nenabled = false\n[servers.math]\ncommand = \"x\"",
        &[
            "json:parse RIdo",
            "fs:read RIdo",
            "fs:write rDio",
            "fs:remove rDIo",
            "http:get RIdO",
            "math:add RIdo",
            "github:get RIdo",
        ],
        &expect![[r#"
            json:parse RIdo: auto minimal reads idempotent
                it is built in and only reads
            fs:read RIdo: auto readonly reads idempotent
                it is built in and only reads
            fs:write rDio: ask filesystem
                it is built in and changes things
            fs:remove rDIo: ask filesystem idempotent
                it is built in and changes things
            http:get RIdO: auto network-api reads idempotent open
                it is built in and only reads
            math:add RIdo: ask mcp-standard open
                nothing in [permissions] allows it
            github:get RIdo: ask mcp-standard open
                nothing in [permissions] allows it
        "#]],
    );
}

#[test]
fn a_trusted_server_is_believed() {
    check(
        "[servers.git]\ncommand = \"x\"\ntrust = \"annotations\"",
        &[
            "git:log RO",
            "git:status R",
            "git:status Ro",
            "git:tag rI",
            "git:commit",
            "git:log RDi",
            "github:log R",
        ],
        &expect![[r#"
            git:log RO: auto network-api reads idempotent open
                its server `git` is trusted and says that it only reads
            git:status R: auto readonly reads idempotent open
                its server `git` is trusted and says that it only reads
            git:status Ro: auto readonly reads idempotent
                its server `git` is trusted and says that it only reads
            git:tag rI: ask mcp-standard idempotent open
                its server `git` does not say that it only reads
            git:commit: ask mcp-standard open
                its server `git` does not say that it only reads
            git:log RDi: auto readonly reads idempotent open
                its server `git` is trusted and says that it only reads
            github:log R: ask mcp-standard open
                nothing in [permissions] allows it
        "#]],
    );
}

#[test]
fn the_narrowest_rule_counts() {
    check(
        r#"
[permissions]
"*" = { approval_mode = "hil", scope = "minimal" }
"git*" = { approval_mode = "auto" }
github = { approval_mode = "hil" }
"*:get_*" = { approval_mode = "auto" }
"github:get_secret*" = { approval_mode = "hil" }
"github:get_secret_names" = { approval_mode = "auto" }
"#,
        &[
            "memory:read",
            "gitlab:push",
            "github:push",
            "github:get_issue",
            "github:get_secret",
            "github:get_secret_names",
        ],
        &expect![[r#"
            memory:read: ask minimal open
                `*` in [permissions] says so
            gitlab:push: auto minimal open
                `git*` in [permissions] says so
            github:push: ask minimal open
                `github` in [permissions] says so
            github:get_issue: auto minimal open
                `*:get_*` in [permissions] says so
            github:get_secret: ask minimal open
                `github:get_secret*` in [permissions] says so
            github:get_secret_names: auto minimal open
                `github:get_secret_names` in [permissions] says so
        "#]],
    );
}

#[test]
fn a_server_counts_after_any_pattern_with_part_of_a_tools_name() {
    check(
        "[permissions]\nfilesystem = { approval_mode = \"auto\" }\n\"*:rm*\" = { approval_mode = \"hil\" }",
        &["filesystem:rm_all", "filesystem:list"],
        &expect![[r#"
            filesystem:rm_all: ask mcp-standard open
                `*:rm*` in [permissions] says so
            filesystem:list: auto mcp-standard open
                `filesystem` in [permissions] says so
        "#]],
    );
}

#[test]
fn of_equally_narrow_rules_the_stricter_counts() {
    let rules = ["\"a:get*\" = { approval_mode = \"auto\" }", "\"a:*all\" = { approval_mode = \"hil\" }"];
    for order in [[0, 1], [1, 0]] {
        let toml = format!("[permissions]\n{}\n{}", rules[order[0]], rules[order[1]]);
        let (_, verdict) = verdict(&policy(&toml), "a:get_all");
        assert_eq!(
            (verdict.mode, verdict.because.as_str()),
            (CallPermission::Ask, "`a:*all` in [permissions] says so")
        );
    }
}

#[test]
fn deny_holds_from_anywhere() {
    check(
        r#"
[permissions]
"*:delete*" = { deny = true }
"fs:delete" = { approval_mode = "auto", deny = false, read_only = true }
"json:*" = { deny = true }
"#,
        &["fs:delete", "json:parse RIdo", "fs:read RIdo"],
        &expect![[r#"
            fs:delete: deny filesystem reads idempotent open
                `*:delete*` in [permissions] denies it
            json:parse RIdo: deny minimal reads idempotent
                `json:*` in [permissions] denies it
            fs:read RIdo: auto readonly reads idempotent
                it is built in and only reads
        "#]],
    );
}

#[test]
fn what_a_rule_leaves_out_comes_from_the_next_one() {
    check(
        r#"
[servers.mem]
command = "x"
trust = "annotations"
[permissions]
mem = { approval_mode = "auto", scope = "filesystem", idempotent = true }
"mem:get*" = { read_only = true, open_world = false }
"mem:get_now" = { idempotent = false, approval_mode = "hil" }
"#,
        &["mem:put", "mem:get_all", "mem:get_now", "mem:list Ro"],
        &expect![[r#"
            mem:put: auto filesystem idempotent open
                `mem` in [permissions] says so
            mem:get_all: auto filesystem reads idempotent
                `mem` in [permissions] says so
            mem:get_now: ask filesystem reads
                `mem:get_now` in [permissions] says so
            mem:list Ro: auto filesystem reads idempotent
                `mem` in [permissions] says so
        "#]],
    );
}

#[test]
fn a_rule_that_says_what_a_tool_does_says_whether_to_ask() {
    check(
        r#"
[permissions]
json = { scope = "minimal", read_only = true }
fs = { read_only = false }
notes = { idempotent = true }
"#,
        &["json:parse RIdo", "json:other", "fs:read RIdo", "notes:set"],
        &expect![[r#"
            json:parse RIdo: auto minimal reads idempotent
                `json` in [permissions] says that it only reads
            json:other: auto minimal reads idempotent open
                `json` in [permissions] says that it only reads
            fs:read RIdo: ask readonly idempotent
                `fs` in [permissions] says that it changes things
            notes:set: ask mcp-standard idempotent open
                nothing in [permissions] allows it
        "#]],
    );
}

#[test]
fn annotations_that_are_not_trusted_only_make_stricter() {
    check(
        r#"
[permissions]
web = { read_only = true, idempotent = true, open_world = false }
"web:touch" = { read_only = true, open_world = false }
free = { approval_mode = "auto" }
"#,
        &[
            "web:get",
            "web:get RIdo",
            "web:put r",
            "web:drop D",
            "web:append ri",
            "web:fetch RO",
            "web:touch rO",
            "free:get RIdo",
            "free:drop rDiO",
        ],
        &expect![[r#"
            web:get: auto mcp-standard reads idempotent
                `web` in [permissions] says that it only reads
            web:get RIdo: auto mcp-standard reads idempotent
                `web` in [permissions] says that it only reads
            web:put r: ask mcp-standard idempotent
                `web` in [permissions] says that it only reads, but the tool itself does not
            web:drop D: ask mcp-standard idempotent
                `web` in [permissions] says that it only reads, but the tool itself does not
            web:append ri: ask mcp-standard
                `web` in [permissions] says that it only reads, but the tool itself does not
            web:fetch RO: auto mcp-standard reads idempotent open
                `web` in [permissions] says that it only reads
            web:touch rO: auto mcp-standard reads idempotent
                `web:touch` in [permissions] says that it only reads
            free:get RIdo: auto mcp-standard open
                `free` in [permissions] says so
            free:drop rDiO: auto mcp-standard open
                `free` in [permissions] says so
        "#]],
    );
}

#[test]
fn only_what_a_rule_forbids_is_refused_whoever_would_allow_it() {
    let policy = policy("[permissions]\n\"*:delete*\" = { deny = true }");
    let tools =
        ["fs:read RIdo", "fs:write rDio", "fs:delete rDIo", "github:get"].map(|tool| verdict(&policy, tool));
    let refused: Vec<String> = tools
        .iter()
        .filter_map(|(id, verdict)| verdict.refusal(id))
        .map(|refusal| refusal.to_string())
        .collect();
    assert_eq!(refused, ["`fs:delete` may not be called, because `*:delete*` in [permissions] denies it"]);
}

#[test]
fn only_a_rule_isolates() {
    check(
        "[permissions]\nmemory = { isolated = true }\n\"memory:sync\" = { isolated = false }",
        &["memory:put", "memory:sync", "other:put", "math:evaluate RI"],
        &expect![[r#"
            memory:put: ask mcp-standard open isolated
                nothing in [permissions] allows it
            memory:sync: ask mcp-standard open
                nothing in [permissions] allows it
            other:put: ask mcp-standard open
                nothing in [permissions] allows it
            math:evaluate RI: auto minimal reads idempotent open
                it is built in and only reads
        "#]],
    );
}

/// Explains one tool, a line for each attribute.
#[track_caller]
fn check_explained(toml: &str, tool: &str, expected: &Expect) {
    let (id, initials) = tool.split_once(' ').unwrap_or((tool, ""));
    let policy = policy(toml);
    let explanation = policy.explain(&ToolId::parse(id).unwrap(), &annotations(initials));
    let mut lines = String::new();
    for it in &explanation.attributes {
        let line = it.place.as_deref().and_then(|place| place.rsplit(':').next()).unwrap_or("-");
        lines.push_str(&format!("{} {} [{line}] {}\n", it.name, it.value, it.because));
    }
    let rules: Vec<&str> = explanation.rules.iter().map(|(shown, _)| shown.as_str()).collect();
    lines.push_str(&format!("rules: {}\nbelieved: {:?}\n", rules.join(", "), explanation.believed));
    expected.assert_eq(&lines);
}

#[test]
fn every_attribute_is_explained_by_what_gives_it() {
    let rules = "[servers.git]\ncommand = \"x\"\ntrust = \"annotations\"\n[servers.hub]\ncommand = \"x\"\n[permissions]\n\
                 hub = { scope = \"network-api\", isolated = true }\n\
                 \"hub:get_*\" = { read_only = true, open_world = false }\n\
                 \"hub:get_all\" = { approval_mode = \"hil\", idempotent = true }\n\
                 \"*:drop\" = { deny = true }\n";
    check_explained(
        rules,
        "hub:get_all O",
        &expect![[r#"
            approval_mode hil [9] `hub:get_all` in [permissions] says so
            read_only yes [8] `hub:get_*` in [permissions] says so
            idempotent yes [9] `hub:get_all` in [permissions] says so
            open_world yes [8] `hub:get_*` in [permissions] says that it is not, but the tool itself says that it is
            scope network-api [7] `hub` in [permissions] says so
            isolated yes [7] `hub` in [permissions] says so
            closed no [-] no rule says that it is
            cache_ttl none [-] no rule gives one
            speculate no [-] it needs approval
            rules: `hub:get_all` in [permissions], `hub:get_*` in [permissions], `hub` in [permissions]
            believed: (false, "server `hub` has no `trust = \"annotations\"`, so they only make stricter")
        "#]],
    );
    check_explained(
        rules,
        "hub:get_rid r",
        &expect![[r#"
            approval_mode hil [8] `hub:get_*` in [permissions] says that it only reads, but the tool itself does not
            read_only no [8] `hub:get_*` in [permissions] says that it only reads, but the tool itself says that it does not
            idempotent no [-] no rule says otherwise, and what its server says of it is not believed
            open_world no [8] `hub:get_*` in [permissions] says so
            scope network-api [7] `hub` in [permissions] says so
            isolated yes [7] `hub` in [permissions] says so
            closed no [-] no rule says that it is
            cache_ttl none [-] no rule gives one
            speculate no [-] it needs approval
            rules: `hub:get_*` in [permissions], `hub` in [permissions]
            believed: (false, "server `hub` has no `trust = \"annotations\"`, so they only make stricter")
        "#]],
    );
    check_explained(
        rules,
        "hub:drop",
        &expect![[r#"
            approval_mode deny [10] `*:drop` in [permissions] denies it
            read_only no [-] no rule says otherwise, and what its server says of it is not believed
            idempotent no [-] no rule says otherwise, and what its server says of it is not believed
            open_world yes [-] no rule says otherwise, and what its server says of it is not believed
            scope network-api [7] `hub` in [permissions] says so
            isolated yes [7] `hub` in [permissions] says so
            closed no [-] no rule says that it is
            cache_ttl none [-] no rule gives one
            speculate no [-] it needs approval
            rules: `*:drop` in [permissions], `hub` in [permissions]
            believed: (false, "server `hub` has no `trust = \"annotations\"`, so they only make stricter")
        "#]],
    );
    check_explained(
        rules,
        "git:log Ro",
        &expect![[r#"
            approval_mode auto [-] its server `git` is trusted and says that it only reads
            read_only yes [-] no rule says otherwise, and its annotations say `readOnlyHint: true`
            idempotent yes [-] it only reads
            open_world no [-] no rule says otherwise, and its annotations say `openWorldHint: false`
            scope readonly [-] no rule says otherwise, and its annotations fit that
            isolated no [-] no rule says that it is
            closed no [-] no rule says that it is
            cache_ttl none [-] no rule gives one
            speculate yes [-] it only reads and needs no approval
            rules: 
            believed: (true, "server `git` has `trust = \"annotations\"`")
        "#]],
    );
    check_explained(
        rules,
        "math:evaluate RI",
        &expect![[r#"
            approval_mode auto [-] it is built in and only reads
            read_only yes [-] no rule says otherwise, and its annotations say `readOnlyHint: true`
            idempotent yes [-] it only reads
            open_world yes [-] no rule says otherwise, and its annotations do not say `openWorldHint`
            scope minimal [-] no rule says otherwise, and its annotations fit that
            isolated no [-] no rule says that it is
            closed yes [-] it is built in and computes from its arguments alone
            cache_ttl none [-] no rule gives one
            speculate yes [-] it only reads and needs no approval
            rules: 
            believed: (true, "it is built in")
        "#]],
    );
}

#[test]
fn tools_that_only_read_by_the_operators_word_may_be_called_ahead() {
    let policy = policy(
        r#"
[servers.git]
command = "git-server"
trust = "annotations"
[permissions]
"hub:get" = { approval_mode = "auto", read_only = true }
"hub:parse" = { approval_mode = "auto", scope = "minimal" }
"hub:list" = { approval_mode = "auto", scope = "readonly" }
"hub:list_all" = { approval_mode = "hil", scope = "readonly" }
"hub:read_file" = { approval_mode = "auto" }
"hub:push" = { approval_mode = "auto", read_only = false, scope = "minimal" }
"hub:off" = { approval_mode = "auto", read_only = true, speculate = false }
"#,
    );
    let ahead = |tool: &str| verdict(&policy, tool).1.can_speculate();
    for tool in ["hub:get", "hub:parse", "hub:list", "git:log R", "json:parse R", "time:diff R"] {
        assert!(ahead(tool), "{tool}");
    }
    // Names count for nothing, nor does what an untrusted server says of itself.
    for tool in [
        "hub:list_all",
        "hub:read_file",
        "hub:push",
        "hub:off",
        "hub:list r",
        "git:commit",
        "git:commit r",
        "other:read_file R",
        "fs:write",
    ] {
        assert!(!ahead(tool), "{tool}");
    }
    let scoped = verdict(&policy, "hub:parse").1;
    assert!(!scoped.idempotent && !scoped.read_only, "a scope makes no call repeatable");
}

#[test]
fn the_clock_is_read_when_a_program_asks_and_in_dry_runs() {
    for rules in ["", "[permissions]\n\"time:now\" = { speculate = true }\n"] {
        let policy = policy(rules);
        let now = verdict(&policy, "time:now R").1;
        assert_eq!(now.mode, CallPermission::Auto);
        assert!(!now.can_speculate() && now.can_dry_run(), "{rules}");
        let id = ToolId::parse("time:now").unwrap();
        let explained = policy.explain(&id, &annotations("R"));
        let speculate = explained.attributes.iter().find(|attribute| attribute.name == "speculate").unwrap();
        assert_eq!(speculate.value, "no");
        assert!(speculate.because.contains("changes by itself"), "{speculate:?}");
    }
}
