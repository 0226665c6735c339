//! Whose answer counts.
//!
//! The strictest of three settings does: the one the run was started under, which is stored with its question; that of
//! the door the answer comes through; and the configuration now. Only people make rules, under whichever setting.

use pml_model::question::{Answerer, Question};

use super::approvals::By;
use crate::app::App;
use crate::problem::{Code, Problem};

/// Whether only a person's answer to `question` counts where it comes by this way.
pub fn needs_person(app: &App, question: &Question, by: &By) -> bool {
    started_under(question).is_some_and(|run| who(run, by, app.config().approvals.by).0 == Answerer::Human)
}

/// Whether an answer to `question` that comes by this way counts.
///
/// # Errors
/// It does not, for the setting that is named.
pub(super) fn may_answer(question: &Question, by: &By, config: Option<Answerer>) -> Result<(), Problem> {
    let Some(run) = started_under(question) else { return Ok(()) };
    let (counts, because) = who(run, by, config);
    if counts == Answerer::Client || by.is_person() {
        return Ok(());
    }
    let text = format!("only a person may answer this, because {because}; {by} is not known to be one");
    Err(Problem::new(Code::Denied, text)
        .hint("answer in the dashboard, or with `pml runs approve` and the passphrase on a terminal"))
}

/// Whether whoever answers by this way may make rules.
///
/// # Errors
/// It is not a person.
pub(super) fn may_make_rules(by: &By) -> Result<(), Problem> {
    if by.is_person() {
        return Ok(());
    }
    let text =
        format!("only a person can make a rule, and {by} is not known to be one; nothing was answered");
    Err(Problem::new(Code::Denied, text).hint(
        "answer without `remember`; a person makes rules in the dashboard, or with `pml runs approve RUN --remember` and \
         the passphrase on a terminal",
    ))
}

/// The setting for what comes through a door: the configuration says, or else the door.
pub(super) fn at_door(by: &By, config: Option<Answerer>) -> Answerer {
    config.unwrap_or_else(|| by.door())
}

/// The setting that a question was asked under; none where anybody may answer.
fn started_under(question: &Question) -> Option<Answerer> {
    match question {
        Question::Approval(asked) => Some(asked.by),
        Question::InDoubt { by, .. } => Some(*by),
        // What comes after a layer was allowed before, or is asked for when it is come to.
        Question::Layer(_) => None,
    }
}

/// Whose answer counts, and which of the three settings says so.
fn who(run: Answerer, by: &By, config: Option<Answerer>) -> (Answerer, &'static str) {
    let counts = run.stricter(at_door(by, config));
    let because = match (run, config) {
        (Answerer::Human, _) => "the run was started under `by = \"human\"`",
        (Answerer::Client, Some(_)) => "`approvals.by` is \"human\" in the configuration now",
        (Answerer::Client, None) => {
            "answers over HTTP count only from people unless `approvals.by` says otherwise"
        }
    };
    (counts, because)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of the three settings, with and without a person.
    #[test]
    fn the_strictest_of_three_settings_counts() {
        let question = |by| Question::InDoubt { calls: Vec::new(), by };
        let door = |door, person| By::Client { name: "c".to_owned(), person, door };
        let settings = [Answerer::Human, Answerer::Client];
        let mut counted = 0;
        for run in settings {
            for at in settings {
                for config in [None, Some(Answerer::Human), Some(Answerer::Client)] {
                    let strict = run == Answerer::Human
                        || config == Some(Answerer::Human)
                        || (config.is_none() && at == Answerer::Human);
                    let client = may_answer(&question(run), &door(at, false), config);
                    assert_eq!(client.is_err(), strict, "{run:?} {at:?} {config:?}");
                    counted += u32::from(client.is_ok());
                    for person in [door(at, true), By::Dashboard, By::Terminal] {
                        assert!(may_answer(&question(run), &person, config).is_ok(), "{person}");
                    }
                }
            }
        }
        assert_eq!(counted, 3);
        assert!(may_answer(&question(Answerer::Client), &By::Api, None).is_err());
        assert!(may_answer(&question(Answerer::Client), &By::Shell, None).is_ok());
        assert!(may_make_rules(&door(Answerer::Client, false)).is_err());
        assert!(may_make_rules(&By::Shell).is_err() && may_make_rules(&By::Api).is_err());
        assert!(may_make_rules(&By::Dashboard).is_ok() && may_make_rules(&By::Terminal).is_ok());
    }
}
