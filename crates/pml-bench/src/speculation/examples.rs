//! All programs under `examples/`, with and without reading ahead, over the tools that they use, each of which takes
//! as long as a distant one.

use std::path::Path;
use std::time::Duration;

use pml::problem::Problem;
use pml_mcp::client::Connection;
use serde_json::{Value, json};

use super::{LATENCY_MS, Speculation};
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::gateway::{call, open};
use crate::programs::Programs;

/// The built-in servers whose tools the examples use.
const SERVERS: [&str; 6] = ["fs", "json", "text", "csv", "time", "math"];

/// An example, with the arguments it is run with.
struct Example {
    file: &'static str,
    source: &'static str,
    context: &'static str,
}

macro_rules! example {
    ($file:literal, $context:literal) => {
        Example {
            file: $file,
            source: include_str!(concat!("../../../../examples/", $file)),
            context: $context,
        }
    };
}

const EXAMPLES: [Example; 12] = [
    example!("by-file-type.ts", r#"{"dir": "files"}"#),
    example!("changelog-builder.ts", r#"{"version": "1.1"}"#),
    example!(
        "clean-customers.ts",
        r#"{"file": "customers/customers-1.csv", "out": "clean.csv", "minimum": 0}"#
    ),
    example!("config-with-fallback.ts", r#"{"setting": "$.name", "fallback": "none"}"#),
    example!("dag.json", "{}"),
    example!("log-errors.ts", r#"{"dir": "logs", "report": "errors.csv"}"#),
    example!(
        "meeting-times.ts",
        r#"{"people": [{"name": "Ann", "zone": "America/New_York"}, {"name": "Bo", "zone": "Asia/Tokyo"}],
            "start": "24.12.2030 10:00", "zone": "Europe/Paris", "minutes": 30}"#
    ),
    example!("nested-capability.ts", r#"{"dir": "customers", "minimum": 0}"#),
    example!("read-in-pages.ts", r#"{"path": "long.txt"}"#),
    example!("retry-with-backoff.ts", r#"{"path": "files/list.json"}"#),
    example!("triage-issues.ts", r#"{"issues": "issues.json"}"#),
    example!("weekly-report.ts", r#"{"timezone": "Europe/Paris"}"#),
];

/// The example that is learned as a capability, and the name by which another one calls it.
const CALLED: (&str, &str) = ("clean-customers.ts", "clean_customers");

/// The files that the examples read.
const FILES: [(&str, &str); 15] = [
    ("files/table.csv", "name,count\na,1\nb,2\n"),
    ("files/list.json", "[1, 2, 3]"),
    ("files/notes.md", "Some words in a file.\nAnd some more.\n"),
    ("changes/one.md", "adds a thing"),
    ("changes/fix-two.md", "mends another"),
    ("CHANGELOG.md", "## 1.0\n"),
    ("customers/customers-1.csv", "email;revenue;country\na@x.example;10;FR\nb@x.example;20;DE\n"),
    ("customers/customers-2.csv", "email;revenue;country\nc@x.example;30;FR\n"),
    ("config/default.json", r#"{"name": "default"}"#),
    ("data/orders.csv", "article,count\nx,2\ny,3\n"),
    ("data/prices.json", r#"{"x": 2, "y": 5}"#),
    ("data/sales.csv", "amount\n10.5\n20\n30\n"),
    ("data/tickets.json", r#"[{"title": "one", "state": "open"}, {"title": "two", "state": "closed"}]"#),
    ("logs/app.log", "12:00 INFO all is well\n12:01 ERROR disk 1 is full\n12:02 ERROR disk 2 is full\n"),
    (
        "issues.json",
        r#"[{"number": 1, "title": "it crashes", "body": "a crash", "labels": [{"name": "bug"}], "created_at": "2025-01-01T00:00:00Z"},
            {"number": 2, "title": "slow", "body": null, "labels": [], "created_at": "2025-02-01T00:00:00Z"},
            {"number": 3, "title": "a wish", "body": "please", "labels": [], "created_at": "2025-03-01T00:00:00Z"}]"#,
    ),
];

/// 200 KB: a file that is read in four pages.
const LONG_BYTES: usize = 200_000;

/// Measures every example, and gives the median and the worst speed-up.
pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    let root = home.path().join("files");
    prepare_files(&root)?;
    configure(home.path(), &root, programs)?;
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    learn_called(&gateway, programs, home.path(), &root).await?;
    let (mut figures, mut ratios) = (Vec::new(), Vec::new());
    for example in &EXAMPLES {
        let (mut on, mut off) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
        run(&gateway, example, &root, Speculation::On).await?;
        for _ in 0..rounds {
            on.push(run(&gateway, example, &root, Speculation::On).await?);
            off.push(run(&gateway, example, &root, Speculation::Off).await?);
        }
        let (on, off) = (quantile(&mut on, 0.5), quantile(&mut off, 0.5));
        let ratio = off.as_secs_f64() / on.as_secs_f64();
        ratios.push(ratio);
        figures.push(BenchFigure::of(
            format!("examples/{}, tools take {LATENCY_MS} ms, on / off", example.file),
            format!("{} / {} = × {ratio:.2}", milliseconds(on), milliseconds(off)),
        ));
    }
    gateway.close().await;
    ratios.sort_by(f64::total_cmp);
    let middle = (ratios[(ratios.len() - 1) / 2] + ratios[ratios.len() / 2]) / 2.0;
    figures.push(BenchFigure::of(
        format!("speed-up of all {} examples, median / worst", EXAMPLES.len()),
        format!("× {middle:.2} / × {:.2}", ratios[0]),
    ));
    Ok(figures)
}

fn configure(home: &Path, root: &Path, programs: &Programs) -> Result<(), Problem> {
    let mut text =
        "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n[runs]\ndurable = \"normal\"\n".to_owned();
    for name in SERVERS {
        let wait = LATENCY_MS.to_string();
        let root = root.display().to_string();
        let args = ["built-in-server", name, "--root", &root, "--wait-ms", &wait];
        text.push_str(&format!(
            "[builtin.{name}]\nenabled = false\n[servers.{name}]\ncommand = {}\nargs = {}\ntrust = \"annotations\"\n",
            quoted(&programs.bench),
            quoted(&args)
        ));
    }
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// A value as TOML and JSON both write it.
fn quoted(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Puts the files in place that examples read, change or delete.
fn prepare_files(root: &Path) -> Result<(), Problem> {
    let long = "Some words that fill a page, one line after the other.\n".repeat(LONG_BYTES / 55);
    for (path, content) in FILES.into_iter().chain([("long.txt", long.as_str())]) {
        let file = root.join(path);
        let parent = file.parent().unwrap_or(root);
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&file, content)).map_err(failed)?;
    }
    // Another example finds all files of this name.
    drop(std::fs::remove_file(root.join("customers/customers-1.clean.csv")));
    drop(std::fs::remove_file(root.join("customers/customers-2.clean.csv")));
    Ok(())
}

/// Learns the capability that one of the examples calls.
async fn learn_called(
    gateway: &Connection,
    programs: &Programs,
    home: &Path,
    root: &Path,
) -> Result<(), Problem> {
    let (file, name) = CALLED;
    let example = EXAMPLES.iter().find(|example| example.file == file).ok_or_else(|| failed(file))?;
    prepare_files(root)?;
    let mut request = example.request(Speculation::Off);
    request["options"]["learn"] = json!(true);
    let told = call(gateway, "pml_execute", &request).await?.1;
    let id = told["capabilityId"].as_str().ok_or_else(|| failed(&told))?.to_owned();
    let mut rename = tokio::process::Command::new(&programs.pml);
    rename.args(["capabilities", "rename", &id, name]).env("PML_HOME", home).current_dir(home);
    let renamed = rename.output().await.map_err(failed)?;
    match renamed.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&renamed.stderr))),
    }
}

impl Example {
    fn request(&self, speculation: Speculation) -> Value {
        let implementation = match self.file.ends_with(".json") {
            true => {
                let document: Value = serde_json::from_str(self.source).unwrap_or_default();
                json!({ "type": "dag", "dagStructure": document })
            }
            false => json!({ "type": "code", "code": self.source }),
        };
        let context: Value = serde_json::from_str(self.context).unwrap_or_default();
        let options = json!({ "speculate": speculation == Speculation::On, "learn": false, "cache": false });
        json!({ "intent": self.file, "implementation": implementation, "context": context, "options": options })
    }
}

/// Runs an example to its end, with approvals where it asks for them, and gives the time of the requests.
async fn run(
    gateway: &Connection,
    example: &Example,
    root: &Path,
    speculation: Speculation,
) -> Result<Duration, Problem> {
    prepare_files(root)?;
    let (mut time, mut told) = call(gateway, "pml_execute", &example.request(speculation)).await?;
    // Before it starts, and again where a task says that it changes something.
    for _ in 0..2 {
        if told["status"] != "approval_required" {
            break;
        }
        let answer = json!({ "workflow_id": told["workflowId"], "approved": true });
        let (more, over) = call(gateway, "pml_continue", &answer).await?;
        (time, told) = (time + more, over);
    }
    if told["status"] == "success" { Ok(time) } else { Err(failed(format!("{}: {told}", example.file))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_measured() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut files: Vec<String> =
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        files.retain(|name| name != "README.md");
        files.sort();
        assert_eq!(files, EXAMPLES.map(|example| example.file));
    }
}
