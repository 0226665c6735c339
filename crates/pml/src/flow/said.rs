//! What is said to a question, in the one shape that clients, programs and pages write it in.

use pml_model::question::{Answer, Decision, Only, Onward, Question, Remember, Resolved};
use serde::Deserialize;

use crate::problem::{Code, Problem};

/// How long a word that is remembered counts, where nothing is said, and at most.
const USUAL_DAYS: u32 = 30;
const MOST_DAYS: u32 = 365;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is said to a question.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Said {
    /// Yes or no.
    pub approved: Option<bool>,
    /// Why, for the agent.
    pub reason: Option<String>,
    /// The tools in question may be called with any arguments in this run, each at most this often.
    pub any_arguments: Option<u32>,
    /// The same is not to be asked again.
    pub remember: Option<Remembered>,
    /// To calls in doubt: what became of each.
    pub calls: Option<Vec<Resolved>>,
}

/// A word that is to count for later runs too.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Remembered {
    /// Whether it counts for this code only, or for the tools in whatever code.
    pub only: Only,
    /// With whatever arguments, not just with these.
    #[serde(default)]
    pub any_arguments: bool,
    /// For how long.
    pub days: Option<u32>,
}

const SHAPE: &str = "say `\"approved\": true`, or `false` with a `reason`; of calls in doubt \
                     `\"calls\": [{\"call\": 1, \"verdict\": \"again\"}]`";

impl Said {
    /// The answer to `question`; to one that is not asked any more an answer of any kind, which finds that out.
    ///
    /// # Errors
    /// It is no answer to that, or not a whole one.
    pub fn to(self, question: Option<&Question>, now: i64) -> Result<Answer, Problem> {
        let wrong = |text: &str| Problem::new(Code::InvalidRequest, text).hint(SHAPE);
        if self.any_arguments == Some(0) {
            return Err(wrong("`anyArguments` is how many calls are allowed: 1 at least"));
        }
        match (question, self.calls, self.approved) {
            (Some(Question::InDoubt { .. }) | None, Some(calls), None) => Ok(Answer::Doubts { calls }),
            (Some(Question::InDoubt { .. }), _, _) => Err(wrong("say in `calls` what became of each call")),
            (_, Some(_), _) => Err(wrong("no call of this run is in doubt")),
            (_, None, None) => Err(wrong("`approved` is missing")),
            (Some(Question::Layer(_)), None, Some(true)) => Ok(Answer::Layer(Onward::Continue)),
            (Some(Question::Layer(_)), None, Some(false)) => {
                Err(Problem::new(Code::InvalidRequest, "a layer that has run cannot be denied")
                    .hint("`pml_abort` or `pml runs abort` ends the run"))
            }
            (Some(Question::Approval(_)) | None, None, Some(approved)) => Ok(Answer::Approval(Decision {
                approved,
                reason: self.reason,
                any_arguments: self.any_arguments,
                remember: self.remember.map(|remembered| remembered.from(now)).transpose()?,
                // Said by whoever takes the answer in.
                by: String::new(),
            })),
        }
    }
}

impl Remembered {
    /// The same, from now on.
    ///
    /// # Errors
    /// That is too long, or no time at all.
    pub fn from(&self, now: i64) -> Result<Remember, Problem> {
        let days = self.days.unwrap_or(USUAL_DAYS);
        if !(1..=MOST_DAYS).contains(&days) {
            let text = format!("`days` is {days}");
            return Err(Problem::new(Code::InvalidRequest, text).hint(format!("give 1 to {MOST_DAYS} days")));
        }
        let expires_at = now + i64::from(days) * DAY_MS;
        Ok(Remember { only: self.only, any_arguments: self.any_arguments, expires_at })
    }
}
