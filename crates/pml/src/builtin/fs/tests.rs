//! Tests of `fs` on ordinary, hostile and changing trees.

use std::path::Path;

use expect_test::expect;

use crate::builtin::check::{answer, check, server_with};
use crate::builtin::{BuiltinServer, BuiltinSettings, servers};
use crate::config::OwnFiles;

/// A root with a few files, beside a secret that must stay untouched.
struct Tree {
    outer: tempfile::TempDir,
    server: BuiltinServer,
}

impl Tree {
    fn new() -> Tree {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("notes/old")).unwrap();
        std::fs::write(root.join("notes/a.md"), "# Title\nhello wörld\n").unwrap();
        std::fs::write(root.join("notes/old/b.md"), "Hello again\nand bye").unwrap();
        std::fs::write(root.join("blob.bin"), b"\xff\xfe\x00hello").unwrap();
        std::fs::write(outer.path().join("secret"), "canary").unwrap();
        let server = server_with("fs", Some(&root), &[]);
        Tree { outer, server }
    }

    fn root(&self) -> std::path::PathBuf {
        self.outer.path().join("root")
    }
}

#[test]
fn stat_tells_files_directories_and_nothing_apart() {
    let tree = Tree::new();
    let file = std::fs::File::open(tree.root().join("notes/a.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_250)).unwrap();
    check(
        &tree.server,
        "stat",
        r#"{"path":"notes/a.md"}"#,
        &expect![[
            r#"{"path":"notes/a.md","exists":true,"type":"file","size":21,"modified":"2023-11-14T22:13:20.25Z"}"#
        ]],
    );
    let absent = r#"{"path":"nowhere","exists":false,"type":null,"size":null,"modified":null}"#;
    for path in ["nowhere", "notes/a.md/below", "notes/nowhere/x"] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(answer(&tree.server, "stat", &format!(r#"{{"path":"{path}"}}"#)));
        assert_eq!(told.unwrap(), absent.replace("\"nowhere\"", &format!("{path:?}")));
    }
}

#[test]
fn read_gives_text_parts_and_bytes() {
    let tree = Tree::new();
    check(
        &tree.server,
        "read",
        r#"{"path":"./notes//a.md"}"#,
        &expect![[
            r##"{"content":"# Title\nhello wörld\n","size":21,"encoding":"utf8","truncated":false,"nextOffset":null}"##
        ]],
    );
    // Byte 16 is in the middle of the `ö`, so the part ends before it.
    check(
        &tree.server,
        "read",
        r#"{"path":"notes/a.md","offset":8,"limit":8}"#,
        &expect![[r#"{"content":"hello w","size":21,"encoding":"utf8","truncated":true,"nextOffset":15}"#]],
    );
    check(
        &tree.server,
        "read",
        r#"{"path":"blob.bin"}"#,
        &expect![[
            r#"error: `blob.bin` is not UTF-8 text from this offset on; read it with `encoding: "base64"`"#
        ]],
    );
    check(
        &tree.server,
        "read",
        r#"{"path":"blob.bin","encoding":"base64","limit":3}"#,
        &expect![[r#"{"content":"//4A","size":8,"encoding":"base64","truncated":true,"nextOffset":3}"#]],
    );
    check(
        &tree.server,
        "read",
        r#"{"path":"notes"}"#,
        &expect!["error: `notes` is a directory; use `list` to see what is in it"],
    );
    check(
        &tree.server,
        "read",
        r#"{"path":"nope"}"#,
        &expect!["error: `nope` does not exist; use `list` to see what does"],
    );
}

#[test]
fn list_is_in_order_and_bounded() {
    let tree = Tree::new();
    check(
        &tree.server,
        "list",
        "{}",
        &expect![[
            r#"{"entries":[{"path":"blob.bin","type":"file","size":8},{"path":"notes","type":"directory","size":null}],"truncated":false,"skipped":0}"#
        ]],
    );
    check(
        &tree.server,
        "list",
        r#"{"path":"notes","recursive":true}"#,
        &expect![[
            r#"{"entries":[{"path":"notes/a.md","type":"file","size":21},{"path":"notes/old","type":"directory","size":null},{"path":"notes/old/b.md","type":"file","size":19}],"truncated":false,"skipped":0}"#
        ]],
    );
    check(
        &tree.server,
        "list",
        r#"{"recursive":true,"limit":1}"#,
        &expect![[
            r#"{"entries":[{"path":"blob.bin","type":"file","size":8}],"truncated":true,"skipped":0}"#
        ]],
    );
    check(
        &tree.server,
        "list",
        r#"{"path":"blob.bin"}"#,
        &expect!["error: `blob.bin` is not a directory, or lies below a file"],
    );
}

#[test]
fn search_finds_by_name_and_by_text() {
    let tree = Tree::new();
    check(
        &tree.server,
        "search",
        r#"{"pattern":"*.md"}"#,
        &expect![[
            r#"{"matches":[{"path":"notes/a.md","line":null,"text":null},{"path":"notes/old/b.md","line":null,"text":null}],"truncated":false,"skipped":0}"#
        ]],
    );
    check(
        &tree.server,
        "search",
        r#"{"pattern":"notes/*.md","contains":"hello"}"#,
        &expect![[
            r#"{"matches":[{"path":"notes/a.md","line":2,"text":"hello wörld"}],"truncated":false,"skipped":0}"#
        ]],
    );
    check(
        &tree.server,
        "search",
        r#"{"contains":"HELLO","ignoreCase":true,"limit":1}"#,
        &expect![[
            r#"{"matches":[{"path":"notes/a.md","line":2,"text":"hello wörld"}],"truncated":true,"skipped":1}"#
        ]],
    );
    check(&tree.server, "search", "{}", &expect!["error: a search needs `pattern`, `contains` or both"]);
    check(
        &tree.server,
        "search",
        r#"{"pattern":"a[b"}"#,
        &expect!["error: `pattern` `a[b` is no glob: unclosed character class; missing ']'"],
    );
}

#[test]
fn create_write_and_delete_change_what_they_say() {
    let tree = Tree::new();
    let arguments = r#"{"path":"new/deep/c.txt","content":"one"}"#;
    check(&tree.server, "create", arguments, &expect![[r#"{"path":"new/deep/c.txt","size":3}"#]]);
    check(&tree.server, "create", r#"{"path":"empty.txt"}"#, &expect![[r#"{"path":"empty.txt","size":0}"#]]);
    check(
        &tree.server,
        "create",
        arguments,
        &expect!["error: `new/deep/c.txt` exists already; use `write` to replace it"],
    );
    check(
        &tree.server,
        "write",
        r#"{"path":"new/deep/c.txt","content":"IHR3bw==","encoding":"base64","append":true}"#,
        &expect![[r#"{"path":"new/deep/c.txt","size":7}"#]],
    );
    assert_eq!(std::fs::read_to_string(tree.root().join("new/deep/c.txt")).unwrap(), "one two");
    check(
        &tree.server,
        "write",
        r#"{"path":"new/deep/c.txt","content":"x"}"#,
        &expect![[r#"{"path":"new/deep/c.txt","size":1}"#]],
    );
    assert_eq!(std::fs::read_to_string(tree.root().join("new/deep/c.txt")).unwrap(), "x");
    check(
        &tree.server,
        "delete",
        r#"{"path":"new"}"#,
        &expect!["error: directory `new` is not empty; set `recursive` to delete what is in it too"],
    );
    check(&tree.server, "delete", r#"{"path":"new","recursive":true}"#, &expect![[r#"{"deleted":true}"#]]);
    check(&tree.server, "delete", r#"{"path":"new"}"#, &expect![[r#"{"deleted":false}"#]]);
    check(
        &tree.server,
        "write",
        r#"{"path":"x","content":"*","encoding":"base64"}"#,
        &expect!["error: `content` is not base64 with its padding"],
    );
}

#[tokio::test]
async fn content_over_the_limit_is_refused() {
    let tree = Tree::new();
    let arguments = format!(r#"{{"path":"x","content":"{}"}}"#, "x".repeat(super::MAX_CONTENT_BYTES + 1));
    let error = answer(&tree.server, "write", &arguments).await.unwrap_err();
    assert_eq!(
        error,
        "`content` is 4194305 bytes; at most 4194304 are written at a time, so append the rest"
    );
    assert!(!tree.root().join("x").exists());
}

/// Calls every tool on `path` and returns the results that are no errors.
async fn touch_with_every_tool(server: &BuiltinServer, path: &str) -> Vec<String> {
    let path = serde_json::to_string(path).unwrap();
    let mut successes = Vec::new();
    for (tool, arguments) in [
        ("stat", format!(r#"{{"path":{path}}}"#)),
        ("read", format!(r#"{{"path":{path}}}"#)),
        ("list", format!(r#"{{"path":{path}}}"#)),
        ("search", format!(r#"{{"path":{path},"contains":"canary"}}"#)),
        ("create", format!(r#"{{"path":{path},"content":"overwritten"}}"#)),
        ("write", format!(r#"{{"path":{path},"content":"overwritten"}}"#)),
        ("delete", format!(r#"{{"path":{path},"recursive":true}}"#)),
    ] {
        if let Ok(success) = answer(server, tool, &arguments).await {
            successes.push(format!("{tool} {success}"));
        }
    }
    successes
}

#[tokio::test]
async fn paths_that_do_not_start_at_the_root_are_refused() {
    let tree = Tree::new();
    let absolute = tree.outer.path().join("secret");
    for path in [
        "../secret",
        "notes/../../secret",
        "notes/../a",
        "..",
        "/",
        "/etc/passwd",
        "a\0b",
        absolute.to_str().unwrap(),
    ] {
        assert_eq!(touch_with_every_tool(&tree.server, path).await, Vec::<String>::new(), "{path}");
    }
    assert_eq!(std::fs::read_to_string(absolute).unwrap(), "canary");
    let error = answer(&tree.server, "delete", r#"{"path":"./."}"#).await.unwrap_err();
    assert_eq!(error, "the root itself cannot be deleted; name a path below it");
}

#[tokio::test]
async fn names_that_only_look_like_tricks_are_names() {
    let tree = Tree::new();
    for name in ["..%2fsecret", "%2e%2e", "~", "$HOME", "...", "a b", "-rf", "..\\\\secret"] {
        let arguments = format!(r#"{{"path":"{name}","content":"mine"}}"#);
        answer(&tree.server, "create", &arguments).await.unwrap();
        assert!(
            answer(&tree.server, "read", &format!(r#"{{"path":"{name}"}}"#)).await.unwrap().contains("mine")
        );
    }
    assert_eq!(std::fs::read_to_string(tree.outer.path().join("secret")).unwrap(), "canary");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn symbolic_links_that_leave_the_root_are_refused() {
        let tree = Tree::new();
        let outside = tree.outer.path();
        symlink(outside.join("secret"), tree.root().join("absolute")).unwrap();
        symlink("../secret", tree.root().join("relative")).unwrap();
        symlink("../new", tree.root().join("dangling")).unwrap();
        symlink("..", tree.root().join("up")).unwrap();
        symlink("/proc/self/cwd", tree.root().join("magic")).unwrap();
        for path in ["up/secret", "up/new", "magic/x"] {
            assert_eq!(touch_with_every_tool(&tree.server, path).await, Vec::<String>::new(), "{path}");
        }
        for path in ["absolute", "relative", "dangling", "magic", "up"] {
            for (tool, more) in
                [("read", ""), ("list", ""), ("write", r#","content":"x""#), ("create", r#","content":"x""#)]
            {
                let error = answer(&tree.server, tool, &format!(r#"{{"path":"{path}"{more}}}"#)).await;
                assert!(error.is_err(), "{tool} {path} {error:?}");
            }
        }
        assert_links_are_only_links(&tree).await;
        assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "canary");
        assert!(!outside.join("new").exists());
    }

    async fn assert_links_are_only_links(tree: &Tree) {
        let error = answer(&tree.server, "read", r#"{"path":"relative"}"#).await.unwrap_err();
        assert_eq!(error, "`relative` leads outside the root through a symbolic link, which is refused");
        let listed = answer(&tree.server, "search", r#"{"contains":"canary"}"#).await.unwrap();
        assert!(listed.starts_with(r#"{"matches":[],"#), "{listed}");
        // The link is removed; its target stays.
        let deleted = answer(&tree.server, "delete", r#"{"path":"up","recursive":true}"#).await.unwrap();
        assert_eq!(deleted, r#"{"deleted":true}"#);
    }

    #[test]
    fn symbolic_links_inside_are_followed() {
        let tree = Tree::new();
        symlink("notes/a.md", tree.root().join("link")).unwrap();
        check(
            &tree.server,
            "read",
            r#"{"path":"link","limit":7}"#,
            &expect![[
                r##"{"content":"# Title","size":21,"encoding":"utf8","truncated":true,"nextOffset":7}"##
            ]],
        );
    }

    #[tokio::test]
    async fn pipes_and_sockets_are_refused_and_not_waited_for() {
        let tree = Tree::new();
        let pipe = tree.root().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(tree.root().join("socket")).unwrap();
        for path in ["pipe", "socket"] {
            for (tool, more) in [("read", ""), ("write", r#","content":"x""#)] {
                let arguments = format!(r#"{{"path":"{path}"{more}}}"#);
                answer(&tree.server, tool, &arguments).await.unwrap_err();
            }
            let stat = answer(&tree.server, "stat", &format!(r#"{{"path":"{path}"}}"#)).await.unwrap();
            assert!(stat.contains(r#""type":"other""#), "{stat}");
        }
        let error = answer(&tree.server, "read", r#"{"path":"pipe"}"#).await.unwrap_err();
        assert_eq!(error, "`pipe` is not a regular file; pipes and devices are not touched");
    }

    #[test]
    fn a_link_swapped_during_the_call_never_leads_outside() {
        let tree = Tree::new();
        let (outside, root) = (tree.outer.path().join("outside"), tree.root());
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "canary").unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "inside").unwrap();
        std::fs::write(root.join("plain"), "inside").unwrap();
        // Before the first call: a write to a missing path would create a directory there.
        swap(&root, &outside);

        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut successes, mut refusals) = (0, 0);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| (0..5000).for_each(|_| swap(&root, &outside)));
            while !swapping.is_finished() {
                let (succeeded, refused) = runtime.block_on(use_moving_paths(&tree.server));
                successes += succeeded;
                refusals += refused;
            }
        });
        // Both sides of the race must have occurred, else the test proves nothing.
        assert!(successes > 0 && refusals > 0, "{successes} {refusals}");
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "canary");
        let left: Vec<_> =
            std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    }

    /// `moving` alternates between a directory inside and a link to the one outside; `moving-file` likewise.
    fn swap(root: &Path, outside: &Path) {
        for (name, good, bad) in [
            ("moving", Path::new("real"), outside.to_owned()),
            ("moving-file", Path::new("plain"), outside.join("file")),
        ] {
            for target in [good, bad.as_path()] {
                let fresh = root.join(format!("{name}.new"));
                symlink(target, &fresh).unwrap();
                std::fs::rename(&fresh, root.join(name)).unwrap();
            }
        }
    }

    /// The number of calls that succeeded and that were refused.
    async fn use_moving_paths(server: &BuiltinServer) -> (usize, usize) {
        let (mut succeeded, mut refused) = (0, 0);
        for (tool, arguments) in [
            ("read", r#"{"path":"moving/file"}"#),
            ("read", r#"{"path":"moving-file"}"#),
            ("write", r#"{"path":"moving/file","content":"inside"}"#),
            ("write", r#"{"path":"moving-file","content":"inside"}"#),
            ("write", r#"{"path":"moving/fresh","content":"inside"}"#),
            ("create", r#"{"path":"moving/made/deep","content":"inside"}"#),
            ("search", r#"{"path":"moving","contains":"canary"}"#),
            ("delete", r#"{"path":"moving/made","recursive":true}"#),
            ("delete", r#"{"path":"moving/file"}"#),
        ] {
            match answer(server, tool, arguments).await {
                Ok(answered) => {
                    assert!(!answered.contains("canary"), "{tool} {answered}");
                    succeeded += 1;
                }
                Err(_) => refused += 1,
            }
        }
        (succeeded, refused)
    }

    /// A root with a directory of PML's inside, beside one of somebody's.
    fn with_own(tree: &Tree) -> BuiltinServer {
        let own = tree.root().join("own");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("file"), "canary").unwrap();
        std::fs::create_dir(tree.root().join("real")).unwrap();
        std::fs::write(tree.root().join("real/file"), "inside").unwrap();
        std::fs::write(tree.root().join("plain"), "inside").unwrap();
        let own = OwnFiles { directories: vec![own], files: vec![tree.root().join("settings/later.toml")] };
        let settings = BuiltinSettings { fs_root: Some(tree.root()), own_files: own, http_hosts: Vec::new() };
        servers(&settings).unwrap().into_iter().find(|server| server.name() == "fs").unwrap()
    }

    #[test]
    fn a_link_swapped_during_the_call_never_leads_to_own_files() {
        let tree = Tree::new();
        let (server, root) = (with_own(&tree), tree.root());
        let own = root.join("own");
        swap(&root, Path::new("own"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut successes, mut refusals) = (0, 0);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| (0..3000).for_each(|_| swap(&root, Path::new("own"))));
            while !swapping.is_finished() {
                let (succeeded, refused) = runtime.block_on(use_moving_paths(&server));
                successes += succeeded;
                refusals += refused;
            }
        });
        assert!(successes > 0 && refusals > 0, "{successes} {refusals}");
        assert_eq!(std::fs::read_to_string(own.join("file")).unwrap(), "canary");
        let left: Vec<_> = std::fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"]);
    }

    #[tokio::test]
    async fn a_file_that_would_be_configuration_is_not_made() {
        let tree = Tree::new();
        let server = with_own(&tree);
        // Its directory is not there at first either.
        for path in ["settings/later.toml", "settings/LATER.toml"] {
            for tool in ["create", "write"] {
                let arguments = format!(r#"{{"path":"{path}","content":"x"}}"#);
                let error = answer(&server, tool, &arguments).await.unwrap_err();
                assert!(error.contains("PML's own files"), "{tool} {path}: {error}");
            }
        }
        assert!(!tree.root().join("settings/later.toml").exists());
        answer(&server, "create", r#"{"path":"settings/other.toml","content":"x"}"#).await.unwrap();
    }

    #[tokio::test]
    async fn a_link_by_which_own_files_are_found_is_not_removed() {
        let tree = Tree::new();
        std::fs::create_dir_all(tree.root().join("elsewhere/pml")).unwrap();
        symlink("elsewhere", tree.root().join("way")).unwrap();
        let own = OwnFiles { directories: vec![tree.root().join("way/pml")], files: Vec::new() };
        let settings = BuiltinSettings { fs_root: Some(tree.root()), own_files: own, http_hosts: Vec::new() };
        let server = servers(&settings).unwrap().into_iter().find(|server| server.name() == "fs").unwrap();
        for path in ["way", "way/pml", "elsewhere/pml", "elsewhere"] {
            let arguments = format!(r#"{{"path":"{path}","recursive":true}}"#);
            let error = answer(&server, "delete", &arguments).await.unwrap_err();
            assert!(error.contains("PML's own files"), "{path}: {error}");
        }
    }
}
