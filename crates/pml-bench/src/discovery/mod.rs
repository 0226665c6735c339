//! Measures how well the right tools, procedures and next steps are found, on public data sets.
//!
//! The data is read from a directory that the caller names. Predictions can be written, one JSON line each, in the
//! format that the scorers of these sets read; they yield the printed figures.

mod ablation;
mod arguments;
mod calibration;
mod dags;
mod data;
mod harm;
mod latency;
mod learning;
mod mocked;
mod next;
mod priors;
mod provides;
mod read_set;
mod reader;
mod retrieval;
mod score;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use pml::problem::Problem;
use serde_json::Value;

use crate::figure::{BenchFigure, failed};
pub(crate) use data::{BenchRequest, BenchTool, definitions_of_server, read_tools};
use reader::BenchEmbedder;
pub(crate) use score::{f1, mean};

/// Where the data is, and where predictions go.
#[derive(Debug, Args)]
pub(crate) struct DiscoveryBenchArgs {
    /// A directory with the data sets, one folder each
    #[arg(long)]
    data: PathBuf,
    /// Write predictions to this directory, one file for each data set
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep what the model read in this file, so that the next measurement is quick
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// Measure with this embedding model instead of the built-in one: a model directory, or a file of packed weights
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    /// Try at most this many requests of each set, spread evenly over it: for a quick look, since targets are for all
    #[arg(long, value_name = "NUMBER")]
    most: Option<usize>,
}

/// The parts of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryBenchPart {
    Retrieval,
    Learning,
    Dags,
    Next,
    Priors,
    Provides,
    Latency,
    /// No part of the whole: it decides about learning and says nothing of what is found.
    Mocked,
    /// Another, which decides about the weights.
    Ablation,
}

impl DiscoveryBenchPart {
    pub(super) const ALL: [DiscoveryBenchPart; 7] = [
        DiscoveryBenchPart::Retrieval,
        DiscoveryBenchPart::Learning,
        DiscoveryBenchPart::Dags,
        DiscoveryBenchPart::Next,
        DiscoveryBenchPart::Priors,
        DiscoveryBenchPart::Provides,
        DiscoveryBenchPart::Latency,
    ];
}

/// Runs some parts of the measurement.
pub(super) fn measure(
    settings: &DiscoveryBenchArgs,
    parts: &[DiscoveryBenchPart],
) -> Result<Vec<BenchFigure>, Problem> {
    let mut bench = DiscoveryBench::open(settings)?;
    let mut figures = Vec::new();
    for part in parts {
        figures.extend(match part {
            DiscoveryBenchPart::Retrieval => retrieval::measure(&mut bench),
            DiscoveryBenchPart::Learning => learning::measure(&mut bench),
            DiscoveryBenchPart::Dags => dags::measure(&mut bench),
            DiscoveryBenchPart::Next => next::measure(&mut bench),
            DiscoveryBenchPart::Priors => priors::measure(&mut bench),
            DiscoveryBenchPart::Provides => provides::measure(&mut bench).and_then(|mut figures| {
                figures.extend(arguments::measure(&mut bench)?);
                Ok(figures)
            }),
            DiscoveryBenchPart::Latency => latency::measure(&mut bench),
            DiscoveryBenchPart::Mocked => mocked::measure(&mut bench),
            DiscoveryBenchPart::Ablation => ablation::measure(&mut bench),
        }?);
    }
    Ok(figures)
}

/// The state that all parts share.
struct DiscoveryBench<'s> {
    data: &'s Path,
    out: Option<&'s Path>,
    reader: BenchEmbedder,
    most: Option<usize>,
}

impl DiscoveryBench<'_> {
    fn open(settings: &DiscoveryBenchArgs) -> Result<DiscoveryBench<'_>, Problem> {
        if let Some(out) = &settings.out {
            create_directory(out)?;
        }
        Ok(DiscoveryBench {
            data: &settings.data,
            out: settings.out.as_deref(),
            reader: BenchEmbedder::open(settings.vectors.as_deref(), settings.model.as_deref())?,
            most: settings.most,
        })
    }

    /// Writes predictions, where an output directory was given.
    fn write(&self, name: &str, predictions: &[Value]) -> Result<(), Problem> {
        self.out.map_or(Ok(()), |out| write_predictions(out, name, predictions))
    }
}

/// Creates the directory for predictions.
pub(crate) fn create_directory(out: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(out).map_err(|error| failed(format!("{}: {error}", out.display())))
}

/// Writes predictions to a directory that is there.
pub(crate) fn write_predictions(out: &Path, name: &str, predictions: &[Value]) -> Result<(), Problem> {
    let mut lines = String::new();
    for prediction in predictions {
        writeln!(lines, "{prediction}").map_err(failed)?;
    }
    let path = out.join(format!("{name}.jsonl"));
    std::fs::write(&path, lines).map_err(|error| failed(format!("{}: {error}", path.display())))
}
