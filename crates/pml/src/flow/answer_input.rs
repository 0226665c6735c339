//! The answer to a question, in the one input format that clients, programs and pages share.

use pml_model::question::{
    Answer, ApprovalDecision, ApprovalScope, LayerDecision, Question, ResolvedDoubt, StandingApproval,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::problem::{ErrorCode, Problem};

/// Days: how long a remembered approval counts by default.
const USUAL_DAYS: u32 = 30;
/// Days: how long a remembered approval counts at most.
const MOST_DAYS: u32 = 365;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The answer to a question, as a client sends it.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerInput {
    /// Whether the call is approved.
    pub approved: Option<bool>,
    /// The reason, for the agent to read.
    pub reason: Option<String>,
    /// Approves the tools in question with any arguments in this run, each for at most this many calls.
    pub any_arguments: Option<u32>,
    /// Makes the approval a standing rule, so that the same question is not asked again.
    pub remember: Option<RememberRequest>,
    /// The outcome of each call in doubt; only for a question about such calls.
    #[schema(value_type = Option<Vec<Object>>)]
    pub calls: Option<Vec<ResolvedDoubt>>,
}

/// A request to make an approval count for later runs too.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RememberRequest {
    /// Whether the rule holds for this code only, or for the tools in any code.
    #[schema(value_type = String)]
    pub only: ApprovalScope,
    /// Whether the rule holds for any arguments, or only for these.
    #[serde(default)]
    pub any_arguments: bool,
    /// How many days the rule counts.
    pub days: Option<u32>,
}

const SHAPE: &str = "say `\"approved\": true`, or `false` with a `reason`; of calls in doubt \
                     `\"calls\": [{\"call\": 1, \"verdict\": \"again\"}]`";

impl AnswerInput {
    /// The answer to `question`. If that question is no longer open, an answer of any kind, whose delivery then finds
    /// that out.
    ///
    /// # Errors
    /// The input does not answer this question, or not completely.
    pub fn into_answer(self, question: Option<&Question>, now: i64) -> Result<Answer, Problem> {
        let wrong = |text: &str| Problem::new(ErrorCode::InvalidRequest, text).hint(SHAPE);
        if self.any_arguments == Some(0) {
            return Err(wrong("`anyArguments` is how many calls are allowed: 1 at least"));
        }
        match (question, self.calls, self.approved) {
            (Some(Question::InDoubt { .. }) | None, Some(calls), None) => Ok(Answer::Doubts { calls }),
            (Some(Question::InDoubt { .. }), _, _) => Err(wrong("say in `calls` what became of each call")),
            (_, Some(_), _) => Err(wrong("no call of this run is in doubt")),
            (_, None, None) => Err(wrong("`approved` is missing")),
            (Some(Question::Layer(_)), None, Some(true)) => Ok(Answer::Layer(LayerDecision::Continue)),
            (Some(Question::Layer(_)), None, Some(false)) => {
                Err(Problem::new(ErrorCode::InvalidRequest, "a layer that has run cannot be denied")
                    .hint("`pml_abort` or `pml runs abort` ends the run"))
            }
            (Some(Question::Approval(_) | Question::SignIn { .. }) | None, None, Some(approved)) => {
                Ok(Answer::Approval(ApprovalDecision {
                    approved,
                    reason: self.reason,
                    any_arguments: self.any_arguments,
                    remember: self.remember.map(|remembered| remembered.to_remember(now)).transpose()?,
                    // Set by the code that receives the answer.
                    by: String::new(),
                }))
            }
        }
    }
}

impl RememberRequest {
    /// The standing approval, counted from `now`.
    ///
    /// # Errors
    /// The number of days is zero or too large.
    pub fn to_remember(&self, now: i64) -> Result<StandingApproval, Problem> {
        let days = self.days.unwrap_or(USUAL_DAYS);
        if !(1..=MOST_DAYS).contains(&days) {
            let text = format!("`days` is {days}");
            return Err(
                Problem::new(ErrorCode::InvalidRequest, text).hint(format!("give 1 to {MOST_DAYS} days"))
            );
        }
        let expires_at = now + i64::from(days) * DAY_MS;
        Ok(StandingApproval { only: self.only, any_arguments: self.any_arguments, expires_at })
    }
}
