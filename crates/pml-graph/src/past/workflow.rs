//! Which of the learned workflows serves a request.
//!
//! A workflow is known by the intents it has served and by its tools. Five things are asked of it, none
//! of which is enough alone: intents may be worded alike and differ in a step, and tools may fit and be
//! too few. Each counts the same, measured in standard deviations over all workflows.

/// What is known of one workflow about a request; only differences between workflows matter.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Workflow {
    /// What it has served before.
    pub recall: super::Recall,
    /// The mean over its tools of what ranking says of them, in standard deviations over the catalogue.
    pub tools: f32,
    /// The lexical score of the request against the names and descriptions of its tools taken together.
    pub text: f32,
}

/// One score per workflow, the higher the better.
pub fn scores(workflows: &[Workflow]) -> Vec<f32> {
    let mut scores = vec![0.0; workflows.len()];
    let asked: [fn(&Workflow) -> f32; 5] = [
        |workflow| workflow.recall.nearest,
        |workflow| workflow.recall.words,
        |workflow| workflow.recall.length,
        |workflow| workflow.tools,
        |workflow| workflow.text,
    ];
    for of in asked {
        let values: Vec<f32> = workflows.iter().map(of).collect();
        scores.iter_mut().zip(standard(&values)).for_each(|(score, value)| *score += value);
    }
    scores
}

/// `values` in standard deviations from their mean; noughts where they are all the same.
pub(super) fn standard(values: &[f32]) -> Vec<f32> {
    let count = values.len().max(1) as f32;
    let mean = values.iter().sum::<f32>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / count).sqrt();
    let scale = if deviation > 1e-6 { 1.0 / deviation } else { 0.0 };
    values.iter().map(|value| (value - mean) * scale).collect()
}
