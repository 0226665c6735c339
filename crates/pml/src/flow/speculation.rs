//! What came of speculation, for people.

use pml_model::Principal;
use pml_store::ConfidenceOutcomes;
use serde::Serialize;

use crate::app::App;
use crate::execute::speculation_threshold;
use crate::problem::Problem;

/// What came of the reads of one tool that were made ahead of programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpeculationStats {
    /// The tool, as `server:tool`, or the id of a capability.
    pub tool: String,
    /// The name of the capability; `None` for a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Results that programs asked for and got.
    pub hits: u64,
    /// Results that programs asked for and that could not be used.
    pub misses: u64,
    /// Results that no program asked for.
    pub wasted: u64,
    /// Results that differed from those of the same calls made later.
    pub differing: u64,
    /// Milliseconds that programs did not have to wait.
    pub saved_ms: u64,
    /// The confidence from 0 to 1 that a read of this tool needs now.
    pub threshold: f64,
    /// The results by the confidence with which they were read, lowest first. Older results are not in it.
    pub by_confidence: Vec<ConfidenceStats>,
}

/// What came of the reads that were made with one confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfidenceStats {
    /// The confidence from 0 to 1 that the program asks for the result, rounded to hundredths.
    pub confidence: f64,
    /// Results that programs asked for and got.
    pub hits: u64,
    /// Results that programs asked for and that could not be used.
    pub misses: u64,
    /// Results that no program asked for.
    pub wasted: u64,
}

impl SpeculationStats {
    /// The mean confidence of some of the results; `None` if there are none whose confidence is known.
    pub fn mean_confidence(&self, of: impl Fn(&ConfidenceStats) -> u64) -> Option<f64> {
        let results: u64 = self.by_confidence.iter().map(&of).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let sum: f64 = self.by_confidence.iter().map(|one| one.confidence * of(one) as f64).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        let mean = || sum / results as f64;
        (results > 0).then(mean)
    }
}

/// What came of the reads that were made ahead of a principal's programs, by tool.
///
/// # Errors
/// The database cannot be read.
pub async fn speculation_stats(app: &App, principal: &Principal) -> Result<Vec<SpeculationStats>, Problem> {
    app.knowledge.memory.refresh().await?;
    let capability = |id: &str| app.knowledge.memory.cached_by_name(principal, id);
    let preset = app.config().speculation.min_confidence();
    let stats = app.store.speculation(principal).await?.into_iter().map(|stored| SpeculationStats {
        name: capability(&stored.tool).map(|known| known.name.clone()),
        threshold: speculation_threshold(&stored.counts, preset),
        hits: stored.counts.hits,
        misses: stored.counts.misses,
        wasted: stored.counts.wasted,
        differing: stored.counts.differing,
        saved_ms: stored.counts.saved_us / 1_000,
        by_confidence: stored.by_confidence.into_iter().map(confidence_stats).collect(),
        tool: stored.tool,
    });
    Ok(stats.collect())
}

fn confidence_stats((percent, outcomes): (u8, ConfidenceOutcomes)) -> ConfidenceStats {
    let ConfidenceOutcomes { hits, misses, wasted } = outcomes;
    ConfidenceStats { confidence: f64::from(percent) / 100.0, hits, misses, wasted }
}
