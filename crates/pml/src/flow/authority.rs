//! Decides whose answer counts.
//!
//! The strictest of three settings applies: the one the run was started under, which is stored with its question; that
//! of the channel the answer comes through; and the configuration now. Only people make standing rules, under every
//! setting.

use pml_model::question::{Answerer, Question};
use pml_model::{Principal, Role};

use crate::app::App;
use crate::problem::{ErrorCode, Problem};

/// The channel an answer came through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerChannel {
    /// A signed-in session of the dashboard.
    Dashboard {
        /// Who is signed in.
        person: Principal,
    },
    /// The terminal, after the passphrase was given.
    Terminal,
    /// The terminal, without the passphrase.
    Shell,
    /// The HTTP API, authenticated with a token.
    Api,
    /// A client of the gateway.
    Client {
        /// The name the client gives itself.
        name: String,
        /// Whether it asked its user, and the configuration says that a person sits in front of it.
        person: bool,
        /// Whose answers count on its connection if the configuration does not say.
        door: Answerer,
        /// The role of its key.
        role: Role,
    },
}

impl AnswerChannel {
    /// Whose answers count through this channel if the configuration does not say.
    pub(super) fn default_answerer(&self) -> Answerer {
        match self {
            AnswerChannel::Dashboard { .. } | AnswerChannel::Terminal | AnswerChannel::Shell => {
                Answerer::Client
            }
            AnswerChannel::Api => Answerer::Human,
            AnswerChannel::Client { door, .. } => *door,
        }
    }

    /// The role of whoever answers. In front of the API, roles are checked for each route.
    fn role(&self) -> Role {
        match self {
            AnswerChannel::Dashboard { .. }
            | AnswerChannel::Terminal
            | AnswerChannel::Shell
            | AnswerChannel::Api => Role::Admin,
            AnswerChannel::Client { role, .. } => *role,
        }
    }

    /// Whether the answer certainly comes from a person.
    pub(super) fn is_person(&self) -> bool {
        match self {
            AnswerChannel::Dashboard { .. } | AnswerChannel::Terminal => true,
            AnswerChannel::Client { person, .. } => *person,
            AnswerChannel::Shell | AnswerChannel::Api => false,
        }
    }
}

impl std::fmt::Display for AnswerChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AnswerChannel::Dashboard { person } if *person == Principal::local() => {
                f.write_str("the dashboard")
            }
            AnswerChannel::Dashboard { person } => write!(f, "{person} at the dashboard"),
            AnswerChannel::Terminal => f.write_str("the terminal, with the passphrase"),
            AnswerChannel::Shell => f.write_str("the terminal"),
            AnswerChannel::Api => f.write_str("the API"),
            AnswerChannel::Client { name, person: true, .. } => write!(f, "the user of client `{name}`"),
            AnswerChannel::Client { name, person: false, .. } => write!(f, "client `{name}`"),
        }
    }
}

/// Whether only a person's answer to `question` counts through this channel.
pub fn needs_person(app: &App, question: &Question, by: &AnswerChannel) -> bool {
    started_under(question)
        .is_some_and(|run| who(run, by, app.config().approvals.answerer).0 == Answerer::Human)
}

/// Checks that an answer to `question` through this channel counts.
///
/// # Errors
/// It does not count; the error names the setting.
pub(super) fn may_answer(
    question: &Question,
    by: &AnswerChannel,
    config: Option<Answerer>,
) -> Result<(), Problem> {
    let Some(run) = started_under(question) else { return Ok(()) };
    if by.role() < Role::Approver {
        let text =
            format!("{by} has a key with the role `{}`, and answers need the role `approver`", by.role());
        return Err(Problem::new(ErrorCode::Denied, text)
            .hint("answer in the dashboard, or on a terminal with `pml runs approve`"));
    }
    let (counts, because) = who(run, by, config);
    if counts == Answerer::Client || by.is_person() {
        return Ok(());
    }
    let text = format!("only a person may answer this, because {because}; {by} is not known to be one");
    Err(Problem::new(ErrorCode::Denied, text)
        .hint("answer in the dashboard, or with `pml runs approve` and the passphrase on a terminal"))
}

/// Checks that an answer through this channel may make standing rules.
///
/// # Errors
/// The answer does not come from a person.
pub(super) fn may_make_rules(by: &AnswerChannel) -> Result<(), Problem> {
    if by.is_person() {
        return Ok(());
    }
    let text =
        format!("only a person can make a rule, and {by} is not known to be one; nothing was answered");
    Err(Problem::new(ErrorCode::Denied, text).hint(
        "answer without `remember`; a person makes rules in the dashboard, or with `pml runs approve RUN --remember` and \
         the passphrase on a terminal",
    ))
}

/// The setting for a channel: that of the configuration, else the channel's default.
pub(super) fn required_answerer(by: &AnswerChannel, config: Option<Answerer>) -> Answerer {
    config.unwrap_or_else(|| by.default_answerer())
}

/// The setting that a question was asked under; `None` if anybody may answer.
fn started_under(question: &Question) -> Option<Answerer> {
    match question {
        Question::Approval(asked) => Some(asked.by),
        Question::InDoubt { by, .. } => Some(*by),
        // The next layer was approved before, or its calls need approval when they are reached; so was a call that waits
        // for a sign-in.
        Question::Layer(_) | Question::SignIn { .. } => None,
    }
}

/// Whose answer counts, and which of the three settings decides that.
fn who(run: Answerer, by: &AnswerChannel, config: Option<Answerer>) -> (Answerer, &'static str) {
    let counts = run.stricter(required_answerer(by, config));
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
        let door =
            |door, person| AnswerChannel::Client { name: "c".to_owned(), person, door, role: Role::Approver };
        let dashboard = AnswerChannel::Dashboard { person: Principal::local() };
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
                    for person in [door(at, true), dashboard.clone(), AnswerChannel::Terminal] {
                        assert!(may_answer(&question(run), &person, config).is_ok(), "{person}");
                    }
                }
            }
        }
        assert_eq!(counted, 3);
        for role in [Role::Agent, Role::Member] {
            let by =
                AnswerChannel::Client { name: "c".to_owned(), person: true, door: Answerer::Client, role };
            assert!(may_answer(&question(Answerer::Client), &by, Some(Answerer::Client)).is_err(), "{role}");
        }
        assert!(may_answer(&question(Answerer::Client), &AnswerChannel::Api, None).is_err());
        assert!(may_answer(&question(Answerer::Client), &AnswerChannel::Shell, None).is_ok());
        assert!(may_make_rules(&door(Answerer::Client, false)).is_err());
        assert!(
            may_make_rules(&AnswerChannel::Shell).is_err() && may_make_rules(&AnswerChannel::Api).is_err()
        );
        assert!(may_make_rules(&dashboard).is_ok() && may_make_rules(&AnswerChannel::Terminal).is_ok());
    }
}
