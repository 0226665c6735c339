//! The documentation is true: every command in it runs as pasted, and prints what the page shows.
//!
//! A page is played in order in a directory of its own, with a home directory of its own and a copy of `examples/`. In a
//! ```` ```console ```` block a line that begins with `$ ` is a command; the lines below it are output that it must print, in that
//! order, among other lines; `…` stands for anything. A command must succeed, unless it says `# exit code N` or the first
//! line shown begins with `error:`. `run_…` in a command is the run that was last printed. `pml serve` goes on in the
//! background on a free port, which takes the place of 7717 in what follows.
//!
//! Comments that readers do not see steer a page:
//!
//! | comment | meaning |
//! |---|---|
//! | `<!-- test: file PATH -->` | the next code block is the content of this file |
//! | `<!-- test: file PATH: TEXT -->` | this text is (`\n` is a line break) |
//! | `<!-- test: type: ANSWER, … -->` | the next block runs on a terminal, where these answers are typed |
//! | `<!-- test: passphrase -->` | the passphrase is set from here on |
//! | `<!-- test: skip: REASON -->` | the next block is not run |

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{Home, PASSPHRASE, Served};

/// Blocks that are not run. Each is a command that nobody checks, so the number may fall and not rise.
const SKIPPED_BLOCKS: usize = 9;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Pages with commands, as paths below the root.
fn pages() -> Vec<String> {
    let mut pages =
        vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "examples/README.md".to_owned()];
    let mut open = vec![root().join("docs")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path.strip_prefix(root()).unwrap().display().to_string());
            }
        }
    }
    pages.sort();
    pages
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// A fenced block with the comment in front of it.
#[derive(Debug)]
struct Block {
    line: usize,
    language: String,
    directive: Option<String>,
    lines: Vec<String>,
}

/// The blocks of a page and the comments that stand alone, in order.
fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut directive): (Vec<Block>, Option<String>) = (Vec::new(), None);
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(comment) =
            line.trim().strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->"))
        {
            if comment == "passphrase" || comment.starts_with("file ") && comment.contains(": ") {
                let alone = Some(comment.to_owned());
                blocks.push(Block {
                    line: number + 1,
                    language: String::new(),
                    directive: alone,
                    lines: Vec::new(),
                });
            } else {
                directive = Some(comment.to_owned());
            }
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            let inside =
                lines.by_ref().map(|(_, line)| line).take_while(|line| !line.trim_start().starts_with("```"));
            let lines = inside.map(str::to_owned).collect();
            let language = language.trim().to_owned();
            blocks.push(Block { line: number + 1, language, directive: directive.take(), lines });
        }
    }
    blocks
}

/// A command of a page with the output that the page shows.
struct Shown {
    command: String,
    output: Vec<String>,
}

fn commands(lines: &[String]) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), output: Vec::new() }),
            (None, Some(shown)) => shown.output.push(line.trim_end().to_owned()),
            (None, None) => panic!("a console block begins with a command: {line}"),
        }
    }
    all
}

/// Whether `line` is what `pattern` says, with `…` for anything.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The first line of `expected` that `printed` does not have after the ones before it.
fn missing<'e>(expected: &'e [String], printed: &str) -> Option<&'e str> {
    let mut lines = printed.lines().map(str::trim_end);
    expected
        .iter()
        .map(String::as_str)
        .filter(|line| !line.is_empty() && *line != "…")
        .find(|pattern| !lines.any(|line| fits(pattern, line)))
}

/// One page being played.
struct Place {
    home: Home,
    served: Option<Served>,
    last_run: String,
}

impl Place {
    fn new() -> Place {
        let home = Home::new("");
        std::fs::remove_file(home.path("pml.toml")).unwrap();
        for below in ["home", "work/examples"] {
            std::fs::create_dir_all(home.path(below)).unwrap();
        }
        let examples = std::fs::read_dir(root().join("examples")).unwrap().map(Result::unwrap);
        for example in examples.filter(|example| example.path().is_file()) {
            std::fs::copy(example.path(), home.path("work/examples").join(example.file_name())).unwrap();
        }
        Place { home, served: None, last_run: String::new() }
    }

    fn write(&self, below: &str, text: &str) {
        let file = self.home.path("work").join(below);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// A shell that runs `line` as a reader would, with `pml` on its path and files where they are by default.
    fn shell(&self, line: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_pml")).parent().unwrap().to_owned();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&others))).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.home.path("work")).env_clear();
        shell.env("PATH", path).env("HOME", self.home.path("home")).env("NO_COLOR", "1");
        shell
    }

    /// What the page writes, as it is in this place.
    fn here(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("run_") {
            let name = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            out.push_str(before);
            match name.strip_prefix('…') {
                Some(after) => {
                    out.push_str(&self.last_run);
                    rest = after;
                }
                None => {
                    out.push_str("run_");
                    rest = after;
                }
            }
        }
        out.push_str(rest);
        match &self.served {
            Some(served) => out.replace("127.0.0.1:7717", served.url.split('/').nth(2).unwrap()),
            None => out,
        }
    }

    /// Runs a command and says what is wrong with what it did.
    fn play(&mut self, shown: &Shown, typed: Option<&[&str]>) -> Result<(), String> {
        if shown.command.split_whitespace().take(2).eq(["pml", "serve"]) {
            let line = shown.command.split(" #").next().unwrap();
            let line = format!("exec {line} --listen 127.0.0.1:0");
            self.served =
                Some(self.home.serve_in(self.shell(&line), &self.home.path("home/.local/share/pml/token")));
            return Ok(());
        }
        let line = self.here(&shown.command);
        let (code, printed) = match typed {
            Some(answers) => {
                let finished = self.home.on_terminal(&self.shell(&line), answers);
                (finished.code, finished.stdout + &finished.stderr)
            }
            None => {
                let output = self.shell(&format!("exec 2>&1\n{line}")).stdin(Stdio::null()).output().unwrap();
                (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
            }
        };
        self.note_run(&printed);
        let wanted = expected_code(shown);
        if code != wanted {
            return Err(format!("ended with {code} instead of {wanted}\n{printed}"));
        }
        let output: Vec<String> = shown.output.iter().map(|line| self.here(line)).collect();
        match missing(&output, &printed) {
            Some(line) => Err(format!("does not print `{line}`\n{printed}")),
            None => Ok(()),
        }
    }

    fn note_run(&mut self, printed: &str) {
        let mut ids = printed.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if let Some(id) = ids.rfind(|word| word.starts_with("run_") && word.len() > 20) {
            id.clone_into(&mut self.last_run);
        }
    }
}

fn expected_code(shown: &Shown) -> i32 {
    let said = shown.command.split_once("# exit code ").map(|(_, code)| code);
    let said = said.and_then(|code| code.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    let fails = shown.output.first().is_some_and(|line| line.starts_with("error:"));
    said.unwrap_or(i32::from(fails))
}

/// What is wrong with the commands of a page.
fn play(page: &str) -> String {
    let (mut place, mut wrong) = (Place::new(), String::new());
    for block in blocks(&text_of(page)) {
        let directive = block.directive.as_deref().unwrap_or_default();
        match directive.split_once(' ').unwrap_or((directive, "")) {
            ("passphrase", _) => {
                place.home.set_passphrase_in(&place.home.path("home/.local/share/pml"), PASSPHRASE);
            }
            ("file", file) => match file.split_once(": ") {
                Some((file, text)) => place.write(file, &text.replace("\\n", "\n")),
                None => place.write(file, &format!("{}\n", block.lines.join("\n"))),
            },
            ("skip:", _) => {}
            ("type:", answers) => {
                let answers: Vec<&str> = answers.split(", ").collect();
                wrong += &play_block(&mut place, page, &block, Some(&answers));
            }
            ("", _) if block.language == "console" => {
                wrong += &play_block(&mut place, page, &block, None);
            }
            ("", _) => {}
            (other, _) => panic!("{page}:{}: there is no directive `{other}`", block.line),
        }
    }
    wrong
}

/// What is wrong with the commands of a block.
fn play_block(place: &mut Place, page: &str, block: &Block, typed: Option<&[&str]>) -> String {
    let mut wrong = String::new();
    for shown in commands(&block.lines) {
        if let Err(problem) = place.play(&shown, typed) {
            write!(wrong, "\n{page}:{}: `{}` {problem}", block.line, shown.command).unwrap();
        }
    }
    wrong
}

#[test]
fn every_command_of_the_documentation_runs_and_prints_what_is_shown() {
    let pages: Vec<String> =
        pages().into_iter().filter(|page| text_of(page).contains("```console")).collect();
    assert!(pages.len() > 5, "the pages are not found: {pages:?}");
    // Pages know nothing of each other; two at a time, because each starts programs of its own.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let worker = || {
        let mut wrong = String::new();
        while let Some(page) = pages.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            wrong += &play(page);
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn few_commands_are_not_run_and_each_says_why() {
    let mut skipped = Vec::new();
    for page in pages() {
        for block in blocks(&text_of(&page)) {
            if let Some(reason) = block.directive.as_deref().and_then(|text| text.strip_prefix("skip:")) {
                assert!(reason.trim().len() > 10, "{page}:{}: say why it cannot run in a test", block.line);
                skipped.push(format!("{page}:{}:{reason}", block.line));
            }
        }
    }
    assert_eq!(skipped.len(), SKIPPED_BLOCKS, "not run:\n{}", skipped.join("\n"));
}

#[test]
fn commands_stand_in_console_blocks_alone() {
    let mut elsewhere = Vec::new();
    for page in pages() {
        let text = text_of(&page);
        let found = blocks(&text).into_iter().filter(|block| {
            ["sh", "bash", "shell"].contains(&block.language.as_str())
                || block.language != "console" && block.lines.iter().any(|line| line.starts_with("$ "))
        });
        elsewhere.extend(found.map(|block| format!("{page}:{}", block.line)));
        let indented = |line: &str| line.starts_with("    pml ") || line.starts_with("    cargo ");
        let found = text.lines().enumerate().filter(|(_, line)| indented(line));
        elsewhere.extend(found.map(|(number, _)| format!("{page}:{}", number + 1)));
    }
    assert!(
        elsewhere.is_empty(),
        "write `$ command` in a ```console block, so that it is run:\n{}",
        elsewhere.join("\n")
    );
}

#[test]
fn the_numbers_of_the_readme_are_those_of_the_benchmarks() {
    let told = |page: &str| {
        let text = text_of(page);
        let (_, rest) = text.split_once("<!-- headline -->").expect("the page has the mark");
        rest.split_once("<!-- /headline -->").expect("the page has the second mark").0.to_owned()
    };
    let (short, full) = (told("README.md"), told("docs/benchmarks.md"));
    for line in short.lines().filter(|line| line.starts_with("| tokens") || line.starts_with("| model")) {
        let numbers = line.split_once(" | ").unwrap().1;
        assert!(
            full.lines().any(|row| row.ends_with(&format!("| {numbers}"))),
            "`{line}` is not in docs/benchmarks.md"
        );
    }
}
