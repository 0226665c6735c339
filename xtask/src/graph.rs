//! Draws the module imports, and checks that sibling modules have no import cycles.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::modules::{Modules, Siblings};

/// Path of the drawing, relative to the root.
const PICTURE: &str = "docs/modules.md";

/// Name and source directory of every crate.
fn crates(root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let folder = root.join("crates");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut all: Vec<(String, PathBuf)> = entries
        .filter_map(Result::ok)
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().join("src")))
        .filter(|(_, src)| src.is_dir())
        .collect();
    all.sort();
    Ok(all)
}

/// Writes the drawing. Fails with the import cycles among siblings.
pub(crate) fn draw(root: &Path) -> Result<(), String> {
    let file = root.join(PICTURE);
    std::fs::write(&file, picture(root)?).map_err(|error| format!("{}: {error}", file.display()))?;
    match cycles(root)? {
        found if found.is_empty() => Ok(()),
        found => Err(found.join("\n")),
    }
}

/// The import cycles among sibling modules of all crates.
fn cycles(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (name, src) in crates(root)? {
        let cycles = Modules::read(&src)?.cycles();
        found.extend(cycles.into_iter().map(|cycle| format!("{name}, {cycle}")));
    }
    Ok(found)
}

fn picture(root: &Path) -> Result<String, String> {
    let mut text = "# Which module imports which\n\nDrawn by `cargo xtask graph` from the sources; a test compares it. Arrows \
        point at what is used.\n"
        .to_owned();
    for (name, src) in crates(root)? {
        let siblings = Modules::read(&src)?.siblings();
        if let Some(siblings) = siblings.get(&Vec::new()) {
            write!(text, "\n## {name}\n\n```mermaid\n{}```\n", mermaid(siblings)).expect("a text takes all");
        }
    }
    Ok(text)
}

/// Mermaid diagram of the imports among siblings. Edges implied by two others are left out.
fn mermaid(siblings: &Siblings) -> String {
    let mut text = "flowchart TD\n".to_owned();
    for (from, all) in siblings {
        let shown: Vec<&String> = all
            .iter()
            .filter(|to| !all.iter().any(|through| through != *to && reaches(siblings, through, to)))
            .collect();
        if shown.is_empty() && !siblings.values().any(|to| to.contains(from)) {
            writeln!(text, "  {from}").expect("a text takes all");
        }
        for to in shown {
            writeln!(text, "  {from} --> {to}").expect("a text takes all");
        }
    }
    text
}

fn reaches(siblings: &Siblings, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (std::collections::BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for next in siblings.get(at).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn no_sibling_modules_import_each_other_in_a_circle() {
        let found = cycles(&root()).unwrap();
        assert!(
            found.is_empty(),
            "move what both sides need into a module below them, or pass a value; then draw them again with `cargo xtask graph`:\n{}",
            found.join("\n")
        );
    }

    #[test]
    fn the_picture_is_that_of_the_sources() {
        let written = std::fs::read_to_string(root().join(PICTURE)).unwrap_or_default();
        assert!(written == picture(&root()).unwrap(), "draw it again: `cargo xtask graph`");
    }

    #[test]
    fn a_program_without_a_library_is_read_too() {
        let dir = std::env::temp_dir().join(format!("pml-program-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let write = |file: &str, text: &str| std::fs::write(dir.join(file), text).unwrap();
        write("main.rs", "mod a; mod b; fn main() {}");
        write("a.rs", "use crate::b::Other; pub struct Mine;");
        write("b.rs", "use crate::a::Mine; pub struct Other;");
        assert_eq!(Modules::read(&dir).unwrap().cycles(), ["in the crate: a → b; b → a"]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(picture(&root()).unwrap().contains("## pml-bench\n"));
    }

    #[test]
    fn a_circle_is_found_and_parents_and_children_are_none() {
        let dir = std::env::temp_dir().join(format!("pml-modules-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("a")).unwrap();
        let write = |file: &str, text: &str| std::fs::write(dir.join(file), text).unwrap();
        write("lib.rs", "mod a; mod b; mod c; pub use b::Thing;");
        write("a.rs", "mod child; use crate::Thing; pub struct Mine(child::Own);");
        write("a/child.rs", "use super::Mine; pub struct Own;");
        write("b.rs", "pub struct Thing; #[cfg(test)] mod tests { use crate::c::Other; }");
        write("c.rs", "use crate::a::Mine; pub struct Other;");
        let modules = Modules::read(&dir).unwrap();
        assert_eq!(modules.cycles(), Vec::<String>::new());
        write("b.rs", "pub struct Thing(Option<Box<crate::c::Other>>);");
        let modules = Modules::read(&dir).unwrap();
        assert_eq!(modules.cycles(), ["in the crate: a → b; b → c; c → a"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
