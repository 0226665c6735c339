//! `pml self-check`: whether this installation works on this machine, in a temporary home and without any
//! configuration. It changes nothing and needs no network; [`super::doctor`] checks a configuration.

use std::process::{ExitCode, Stdio};

use super::doctor::{self, Finding, bad, good};
use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::config::Paths;
use crate::problem::{ErrorCode, Problem};

/// A program that calls a built-in tool, and its result.
const PROGRAM: &str =
    "const product = await mcp.math.evaluate({ expression: \"6 * 7\" });\nreturn product.value;\n";
const RESULT: i64 = 42;

pub(super) async fn run(here: &CommandContext) -> Result<ExitCode, Problem> {
    let cannot = |error: std::io::Error| {
        Problem::new(ErrorCode::Config, format!("there is no temporary directory to check in: {error}"))
            .hint("set `TMPDIR` to a directory that can be written")
    };
    let home = tempfile::tempdir().map_err(cannot)?;
    let paths = Paths { config: home.path().join("pml.toml"), data: home.path().to_owned() };
    let mut findings = vec![good(format!("pml {}", env!("PML_VERSION")))];
    match App::open(paths, here.env.clone(), home.path().to_owned(), ProcessRole::Command).await {
        Ok(app) => {
            findings.push(doctor::check_walls());
            findings.push(doctor::check_sandbox(&app).await);
            findings.extend(doctor::check_embeddings(&app).await);
            app.close().await;
        }
        Err(problem) => findings.push(bad(problem.message, problem.hint)),
    }
    findings.push(check_program(here, home.path()).await);
    if here.json {
        out::json(&findings);
    } else {
        findings.iter().for_each(doctor::show);
    }
    Ok(doctor::exit_code(&findings))
}

/// Runs a program the way a user does: by this executable, from the analysis to the report.
async fn check_program(here: &CommandContext, home: &std::path::Path) -> Finding {
    let ran = async {
        let program = home.join("program.ts");
        std::fs::write(&program, PROGRAM)?;
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command.arg("--json").arg("execute").arg("--code").arg(&program);
        command.env_clear().envs(here.env.iter()).env("PML_HOME", home);
        command.current_dir(home).stdin(Stdio::null()).kill_on_drop(true).output().await
    };
    let hint = || Some("run `pml -v doctor` to see more".to_owned());
    match ran.await {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let told: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            if told["result"] == RESULT {
                return good(format!("a program called a tool and returned {RESULT}"));
            }
            let why = told["error"]["message"].as_str().map_or(text.trim().to_owned(), str::to_owned);
            let why = format!("{why} {}", String::from_utf8_lossy(&output.stderr).trim());
            bad(format!("a program did not return {RESULT}: {}", pml_model::name::printable(&why)), hint())
        }
        Err(error) => bad(format!("a program could not be run: {error}"), hint()),
    }
}
