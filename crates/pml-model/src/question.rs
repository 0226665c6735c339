//! What a run asks before it goes on, and what can be said to it.
//!
//! A question holds all that a person has to see: what is not in it was not asked. An answer counts for the
//! question it was given to and for no other.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Question {
    /// Calls were sent, and nobody knows what became of them.
    InDoubt {
        /// Each of them.
        calls: Vec<Doubt>,
        /// Whose answer counts. A question that was stored before this was recorded is a person's to answer.
        #[serde(default = "Answerer::strictest")]
        by: Answerer,
    },
    /// Tools that a person has to allow are about to be called.
    Approval(Approval),
    /// A layer of a DAG has run, and somebody wants to see it before the next one does.
    Layer(Layer),
}

/// A call that was sent and has no end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Doubt {
    /// Its number in the run.
    pub call: u32,
    /// The node of the structure it belongs to, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `server:tool`.
    pub tool: String,
    /// What it was called with, as it was sent.
    pub arguments: String,
    /// When it was sent, in milliseconds since 1970.
    pub sent_at: i64,
}

/// What is said to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// To calls in doubt: what became of each.
    Doubts {
        /// One for each call in question.
        calls: Vec<Resolved>,
    },
    /// To calls that need a person's word.
    Approval(Decision),
    /// To a layer that has run.
    Layer(Onward),
}

/// What became of a call that was in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    /// Its number in the run.
    pub call: u32,
    /// What a person found out.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a person found out about a call that was in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It had no effect: send it again.
    Again,
    /// The program is told that it failed.
    Failed,
    /// It was done, and this is what the program is given for its result.
    Done {
        /// JSON.
        result: String,
    },
}

impl Verdict {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verdict::Again => "again",
            Verdict::Failed => "failed",
            Verdict::Done { .. } => "done",
        }
    }
}

/// Calls that need a person's word, all of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What the run is for, in the words of whoever asked for it.
    pub intent: String,
    /// Of the code that would make the calls.
    pub code_hash: String,
    /// Whose answer counts.
    pub by: Answerer,
    /// Whether the run has begun: it asks for calls it is making, not for those it may come to make.
    pub begun: bool,
    /// Each call, or place of a call.
    pub calls: Vec<Asked>,
    /// Where the program may call tools that cannot be known before it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
}

/// Whose answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// A person's alone, in a way that a program with a shell does not have.
    Human,
    /// Also what a client says.
    Client,
}

impl Answerer {
    /// The setting under which the fewest answers count.
    pub fn strictest() -> Answerer {
        Answerer::Human
    }

    /// The stricter of two settings: an answer counts only if it counts under both.
    #[must_use]
    pub fn stricter(self, other: Answerer) -> Answerer {
        match (self, other) {
            (Answerer::Client, Answerer::Client) => Answerer::Client,
            (Answerer::Human, _) | (_, Answerer::Human) => Answerer::Human,
        }
    }

    /// The word for it in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Answerer::Human => "human",
            Answerer::Client => "client",
        }
    }
}

/// A call that needs a person's word, or a place of the program that may make such calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// `server:tool`.
    pub tool: String,
    /// The tool's definition; with another it is another tool.
    pub definition: Digest,
    /// What the tool says of itself: the words of its server, which nobody has checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What kind of reach it has, such as `filesystem`.
    pub scope: String,
    /// Why a person is asked: what follows the word "because".
    pub because: String,
    /// The number of the call, where it is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The node of the structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The line of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it is called with.
    pub arguments: Arguments,
    /// It may be called any number of times: the place is in a loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// Where parts of the arguments come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// What is different from the last time a person allowed a call of this tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// What a call that needs a person's word is made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Arguments {
    /// Exactly this.
    Known {
        /// JSON, whole.
        json: String,
        /// Of its canonical form: equal values have equal digests.
        digest: Digest,
    },
    /// What it will be is known when the call is made; then it is asked again, unless any arguments were allowed.
    Unknown {
        /// As the program writes it.
        source: String,
    },
}

/// A part of arguments that comes from somewhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Which part, such as `text` or `items[0].name`.
    pub part: String,
    /// The tool whose result it is from, or `args`.
    pub from: String,
    /// The node of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many characters of it are from there, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
}

/// A person's word on calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Yes or no.
    pub approved: bool,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tools in question may be called with any arguments in this run, each at most this often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_arguments: Option<u32>,
    /// The same is not to be asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// Who said it, and by what way.
    pub by: String,
}

/// A word that counts for later runs too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remember {
    /// Whether it counts for this code only, or for the tools in whatever code.
    pub only: Only,
    /// With whatever arguments, not just with these.
    #[serde(default)]
    pub any_arguments: bool,
    /// Until when, in milliseconds since 1970.
    pub expires_at: i64,
}

/// What a standing word is bound to, beside the tool and its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    /// The code that was asked for.
    Code,
    /// Nothing else.
    Tool,
}

/// A layer of a DAG that has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// Which, from 0.
    pub layer_index: u32,
    /// Of how many, as things stand.
    pub total_layers: u32,
    /// What came of its tasks.
    pub results: Vec<LayerResult>,
    /// The tasks that would run next.
    pub next: Vec<String>,
}

/// What came of one task of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerResult {
    /// Its name in the document.
    pub task_id: String,
    /// `success`, `error` or `skipped`.
    pub status: String,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<i64>,
    /// The beginning of its result, or its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// The size of its result in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_size: Option<usize>,
}

/// How a DAG goes on after a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "onward", rename_all = "snake_case")]
pub enum Onward {
    /// As planned.
    Continue,
    /// With other tasks in place of those that have not run.
    Replan {
        /// The plan from here on, as it was made of what was asked for.
        plan: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_plain_json() {
        let answer = Answer::Doubts {
            calls: vec![
                Resolved { call: 3, verdict: Verdict::Again },
                Resolved { call: 4, verdict: Verdict::Done { result: "1".to_owned() } },
            ],
        };
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(
            text,
            r#"{"type":"doubts","calls":[{"call":3,"verdict":"again"},{"call":4,"verdict":"done","result":"1"}]}"#
        );
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn a_question_is_plain_json() {
        let question = Question::Approval(Approval {
            intent: "clean up".to_owned(),
            code_hash: "c0de".to_owned(),
            by: Answerer::Human,
            begun: true,
            calls: vec![Asked {
                tool: "fs:delete".to_owned(),
                definition: Digest::of(b"definition"),
                description: String::new(),
                scope: "filesystem".to_owned(),
                because: "it changes things".to_owned(),
                call: Some(2),
                node: None,
                line: Some(3),
                code: None,
                arguments: Arguments::Known {
                    json: r#"{"path":"a"}"#.to_owned(),
                    digest: Digest::of(br#"{"path":"a"}"#),
                },
                repeats: false,
                origins: Vec::new(),
                differs: Vec::new(),
            }],
            opaque: Vec::new(),
        });
        let text = serde_json::to_string(&question).unwrap();
        assert!(
            text.starts_with(
                r#"{"type":"approval","intent":"clean up","codeHash":"c0de","by":"human","begun":true"#
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Question>(&text).unwrap(), question);
    }
}
