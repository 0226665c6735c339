//! Ranks learned workflows for a request.
//!
//! A workflow is known by the intents it has served and by its tools. Five features are computed, none of which is
//! enough alone: intents may be worded alike and differ in a step, and tools may fit and be too few. All features have
//! the same weight, in standard deviations over all workflows.

/// Features of one workflow for a request; only differences between workflows matter.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkflowFeatures {
    /// Similarity of the request to the intents it has served.
    pub recall: super::WorkflowRecall,
    /// Mean ranking score of its tools, in standard deviations over the catalogue.
    pub tool_score: f32,
    /// Lexical score of the request against the names and descriptions of all its tools together.
    pub text_score: f32,
}

/// One score per workflow; higher is better.
pub fn score_workflows(workflows: &[WorkflowFeatures]) -> Vec<f32> {
    let mut scores = vec![0.0; workflows.len()];
    let asked: [fn(&WorkflowFeatures) -> f32; 5] = [
        |workflow| workflow.recall.nearest_cosine,
        |workflow| workflow.recall.word_share,
        |workflow| workflow.recall.length_penalty,
        |workflow| workflow.tool_score,
        |workflow| workflow.text_score,
    ];
    for of in asked {
        let values: Vec<f32> = workflows.iter().map(of).collect();
        scores.iter_mut().zip(standardise(&values)).for_each(|(score, value)| *score += value);
    }
    scores
}

/// `values` in standard deviations from their mean; zeros when all are equal.
pub(super) fn standardise(values: &[f32]) -> Vec<f32> {
    let count = values.len().max(1) as f32;
    let mean = values.iter().sum::<f32>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / count).sqrt();
    let scale = if deviation > 1e-6 { 1.0 / deviation } else { 0.0 };
    values.iter().map(|value| (value - mean) * scale).collect()
}
