//! `pml capabilities export` and `import`: capabilities as files, for other people.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pml_model::name::{printable, truncate_text};
use serde_json::json;

use super::ask::read_confirmation;
use super::versions::print_code;
use super::{CommandContext, out, skill};
use crate::app::App;
use crate::flow::{self, ImportedCapability, PackageReview};
use crate::package::{MAX_PACKAGE_BYTES, PackageContent, PackagedCapability};
use crate::problem::{ErrorCode, Problem};
use crate::progress::ProgressBar;

/// Arguments of `pml capabilities export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Their names or ids; those that they call are exported too
    #[arg(required = true)]
    names: Vec<String>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "skill")]
    output: Option<PathBuf>,
    /// Tell how often they were used and worked
    #[arg(long, conflicts_with = "skill")]
    with_statistics: bool,
    /// Tell the intents and arguments of all runs, not only of the first
    #[arg(long)]
    with_examples: bool,
    /// Write a folder with SKILL.md and the program for each, for agents that read skills
    #[arg(long, value_name = "DIR")]
    skill: Option<PathBuf>,
}

/// Arguments of `pml capabilities import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The package; - reads standard input
    file: PathBuf,
    /// Import it without asking
    #[arg(long)]
    yes: bool,
    /// Take it although a capability of the same name was imported from another signer before
    #[arg(long)]
    accept_signer: bool,
}

pub(super) async fn export(
    here: &CommandContext,
    app: &Arc<App>,
    wanted: &ExportArgs,
) -> Result<ExitCode, Problem> {
    let options = flow::PackageOptions { statistics: wanted.with_statistics, examples: wanted.with_examples };
    let package = flow::export_package(app, &app.principal, &wanted.names, options).await?;
    if let Some(directory) = &wanted.skill {
        let written = skill::write(&here.cwd.join(directory), &package.content)?;
        let paths: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        match here.json {
            true => out::json(&json!({ "written": paths })),
            false => paths.iter().for_each(|path| out::line(format!("wrote {path}"))),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(output) = &wanted.output else {
        out::line(package.text.trim_end());
        return Ok(ExitCode::SUCCESS);
    };
    let path = here.cwd.join(output);
    std::fs::write(&path, &package.text).map_err(|error| cannot("write", &path, &error))?;
    if here.json {
        let names: Vec<&str> = package.content.capabilities.iter().map(|one| one.name.as_str()).collect();
        out::json(
            &json!({ "file": path.display().to_string(), "signer": package.signer, "capabilities": names }),
        );
    } else {
        out::line(format!("wrote {}, signed by {}", output.display(), package.signer));
        print_content(&package.content);
        out::note(match wanted.with_examples {
            true => "others read all of it: programs, intents, and the arguments of earlier runs",
            false => "others read all of it: programs, their first intents and defaults of parameters",
        });
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn import(
    here: &CommandContext,
    app: &Arc<App>,
    given: &ImportArgs,
) -> Result<ExitCode, Problem> {
    let text = read_package(&here.cwd, &given.file)?;
    let review = flow::review_package(app, &app.principal, &text).await?;
    if !here.json {
        print_review(&review);
    }
    if !given.yes && !is_wanted(&given.file).await? {
        out::note("nothing was imported");
        return Ok(ExitCode::FAILURE);
    }
    let bar = ProgressBar::new("importing capabilities");
    let progress = |done, all| bar.show(done, Some(all));
    let imported = flow::import_package(app, &app.principal, review, given.accept_signer, progress).await?;
    drop(bar);
    match here.json {
        true => out::json(&json!({ "imported": imported })),
        false => imported.iter().for_each(print_imported),
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the person at the terminal wants the package that was shown.
async fn is_wanted(file: &Path) -> Result<bool, Problem> {
    if !std::io::stdin().is_terminal() || file == Path::new("-") {
        return Err(Problem::new(ErrorCode::InvalidRequest, "there is nobody to ask whether to import it")
            .hint("look at what is printed, then give `--yes`"));
    }
    Ok(read_confirmation("import it?").await == Some(true))
}

fn read_package(cwd: &Path, file: &Path) -> Result<String, Problem> {
    let mut text = String::new();
    // One byte more than a package may have shows that it has more.
    let limit = MAX_PACKAGE_BYTES as u64 + 1;
    let read = match file == Path::new("-") {
        true => std::io::stdin().take(limit).read_to_string(&mut text),
        false => {
            std::fs::File::open(cwd.join(file)).and_then(|file| file.take(limit).read_to_string(&mut text))
        }
    };
    read.map_err(|error| cannot("read", file, &error))?;
    Ok(text)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    let path = printable(&path.display().to_string());
    Problem::new(ErrorCode::InvalidRequest, format!("cannot {what} `{path}`: {error}"))
}

fn print_review(review: &PackageReview) {
    out::line(format!("signed by {}", review.signer));
    print_content(&review.content);
    for tool in &review.changed_tools {
        out::note(format!("the definition of `{}` differs from the one it was made with", printable(tool)));
    }
    for update in &review.updates {
        out::line(format!("another version of `{}`, which is here:", printable(&update.name)));
        print_code(&update.code);
        for tool in &update.added_tools {
            out::line(format!("calls + {}", printable(tool)));
        }
    }
    for name in &review.other_signers {
        out::note(format!("`{name}` was imported from another signer before"));
    }
}

fn print_content(content: &PackageContent) {
    for one in &content.capabilities {
        let PackagedCapability { name, description, statistics, .. } = one;
        let used = statistics.as_ref().map(|used| {
            format!(" (worked {} of {} times)", used.success_count, used.success_count + used.failure_count)
        });
        let description = truncate_text(&printable(description), 200);
        out::line(format!("  {}  {description}{}", printable(name), used.unwrap_or_default()));
    }
    let tools: Vec<String> = content.tools.iter().map(|tool| printable(&tool.id)).collect();
    if !tools.is_empty() {
        out::line(format!("calls {}", tools.join(", ")));
    }
}

fn print_imported(imported: &ImportedCapability) {
    let ImportedCapability { name, was_there, .. } = imported;
    out::line(match was_there {
        true => format!("{name} was here already"),
        false => format!("imported {name}; it is suggested, and runs by its name until that has worked once"),
    });
}
