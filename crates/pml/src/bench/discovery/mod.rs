//! How well the right tools, procedures and next steps are found, on public data sets.
//!
//! Data is read from a directory that the caller names. Predictions can be written, one JSON line each, in the form that the
//! scorers of these sets read; the figures printed are the same.

mod arguments;
mod calibration;
mod dags;
mod data;
mod harm;
mod latency;
mod learning;
mod next;
mod priors;
mod provides;
mod reader;
mod retrieval;
mod score;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::{Figure, failed};
use crate::problem::Problem;
use reader::Reader;

/// Where the data is, and where predictions go.
#[derive(Debug, Args)]
pub struct Discovery {
    /// A directory with the data sets, one folder each
    #[arg(long)]
    data: PathBuf,
    /// Write predictions to this directory, one file for each data set
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep what the model read in this file, so that the next measurement is quick
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Retrieval,
    Learning,
    Dags,
    Next,
    Priors,
    Provides,
    Latency,
}

impl Part {
    pub(super) const ALL: [Part; 7] = [
        Part::Retrieval,
        Part::Learning,
        Part::Dags,
        Part::Next,
        Part::Priors,
        Part::Provides,
        Part::Latency,
    ];
}

/// Measures some of it.
pub(super) fn measure(settings: &Discovery, parts: &[Part]) -> Result<Vec<Figure>, Problem> {
    let mut bench = Bench::open(settings)?;
    let mut figures = Vec::new();
    for part in parts {
        figures.extend(match part {
            Part::Retrieval => retrieval::measure(&mut bench),
            Part::Learning => learning::measure(&mut bench),
            Part::Dags => dags::measure(&mut bench),
            Part::Next => next::measure(&mut bench),
            Part::Priors => priors::measure(&mut bench),
            Part::Provides => provides::measure(&mut bench).and_then(|mut figures| {
                figures.extend(arguments::measure(&mut bench)?);
                Ok(figures)
            }),
            Part::Latency => latency::measure(&mut bench),
        }?);
    }
    Ok(figures)
}

/// What all of it needs.
struct Bench<'s> {
    data: &'s Path,
    out: Option<&'s Path>,
    reader: Reader,
}

impl Bench<'_> {
    fn open(settings: &Discovery) -> Result<Bench<'_>, Problem> {
        if let Some(out) = &settings.out {
            std::fs::create_dir_all(out).map_err(|error| failed(format!("{}: {error}", out.display())))?;
        }
        Ok(Bench {
            data: &settings.data,
            out: settings.out.as_deref(),
            reader: Reader::open(settings.vectors.as_deref())?,
        })
    }

    /// Writes predictions, where they are wanted.
    fn write(&self, name: &str, predictions: &[Value]) -> Result<(), Problem> {
        let Some(out) = self.out else { return Ok(()) };
        let mut lines = String::new();
        for prediction in predictions {
            writeln!(lines, "{prediction}").map_err(failed)?;
        }
        let path = out.join(format!("{name}.jsonl"));
        std::fs::write(&path, lines).map_err(|error| failed(format!("{}: {error}", path.display())))
    }
}
