//! Questions of runs, and the answers to them.
//!
//! A question holds everything that a person has to see: an answer approves nothing beyond it. An answer counts for
//! the question it was given to and for no other.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A question that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Question {
    /// Calls in doubt: they were sent, and their outcome is unknown.
    InDoubt {
        /// The calls in doubt.
        calls: Vec<CallInDoubt>,
        /// Whose answer counts. For questions stored before this was recorded, only a person's.
        #[serde(default = "Answerer::strictest")]
        by: Answerer,
    },
    /// Calls that need a person's approval before they are made.
    Approval(ApprovalQuestion),
    /// Calls that cannot be sent before a person signs in to their servers. An approval sends them again, and nothing is
    /// allowed by it.
    SignIn {
        /// The calls that wait.
        calls: Vec<CallAwaitingSignIn>,
    },
    /// A layer of a DAG has run, and a person or client wants to see it before the next one starts.
    Layer(LayerQuestion),
}

/// A call that was sent and whose outcome was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallInDoubt {
    /// Number of the call within its run.
    pub call: u32,
    /// Id of the node of the structure, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `server:tool`.
    pub tool: String,
    /// The arguments, as they were sent.
    pub arguments: String,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub sent_at: i64,
}

/// A call that was not sent, because its server needs a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallAwaitingSignIn {
    /// Number of the call within its run.
    pub call: u32,
    /// Id of the node of the structure, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `server:tool`.
    pub tool: String,
    /// The server.
    pub server: String,
    /// Why it needs a sign-in.
    pub because: String,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// To calls in doubt: the outcome of each.
    Doubts {
        /// One verdict for each call of the question.
        calls: Vec<ResolvedDoubt>,
    },
    /// To calls that need approval, or a sign-in.
    Approval(ApprovalDecision),
    /// To a layer that has run.
    Layer(LayerDecision),
}

/// The verdict on one call in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedDoubt {
    /// Number of the call within its run.
    pub call: u32,
    /// What a person found out about it.
    #[serde(flatten)]
    pub verdict: DoubtVerdict,
}

/// What a person found out about a call in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum DoubtVerdict {
    /// The call had no effect and is sent again.
    Again,
    /// The program gets an error for this call.
    Failed,
    /// The call took effect; the program gets this result.
    Done {
        /// The result, as JSON.
        result: String,
    },
}

impl DoubtVerdict {
    /// The name of the verdict, as it is written.
    pub fn as_str(&self) -> &'static str {
        match self {
            DoubtVerdict::Again => "again",
            DoubtVerdict::Failed => "failed",
            DoubtVerdict::Done { .. } => "done",
        }
    }
}

/// The calls of one run that need approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalQuestion {
    /// The intent of the run, in the words of the client.
    pub intent: String,
    /// Hash of the code that would make the calls.
    pub code_hash: String,
    /// Whose answer counts.
    pub by: Answerer,
    /// Whether the run has begun. If so, it asks for calls it is making; if not, for calls it may make.
    pub begun: bool,
    /// The calls, or the places in the source that make calls.
    pub calls: Vec<CallToApprove>,
    /// Places where the program may call tools that cannot be known before it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
}

/// Whose answers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// Only a person's, given in a way that is not open to a program with a shell.
    Human,
    /// A person's or a client's.
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

    /// The name of the setting in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Answerer::Human => "human",
            Answerer::Client => "client",
        }
    }
}

/// A call that needs approval, or a place in the source that may make such calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallToApprove {
    /// `server:tool`.
    pub tool: String,
    /// Digest of the tool's definition; the approval does not cover any other definition.
    pub definition: Digest,
    /// The tool's description, in the words of its server and unverified.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The tool's reach, such as `filesystem`.
    pub scope: String,
    /// Why approval is needed: the part of a sentence after "because".
    pub because: String,
    /// Number of the call within its run, if it is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// Id of the node of the structure, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Line in the source, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The source text at that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The arguments, as far as they are known.
    pub arguments: ApprovalArguments,
    /// Whether the place is in a loop, so that the tool may be called any number of times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// Where parts of the arguments come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<ArgumentOrigin>,
    /// Differences from the arguments that a person last approved for this tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

/// Arguments of a call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ApprovalArguments {
    /// The exact arguments.
    Known {
        /// The complete JSON.
        json: String,
        /// Digest of its canonical form: equal values have equal digests.
        digest: Digest,
    },
    /// Arguments that are known only when the call is made. The run then asks again, unless any arguments were
    /// approved.
    Unknown {
        /// The expression as it is written in the program.
        source: String,
    },
}

/// A part of the arguments that comes from another call or from the parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentOrigin {
    /// Path of the part, such as `text` or `items[0].name`.
    pub part: String,
    /// The tool whose result it comes from, or `args`.
    pub from: String,
    /// Id of the node of that call, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Number of characters that come from there, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
}

/// A decision on calls that need approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecision {
    /// Whether the calls are approved.
    pub approved: bool,
    /// The reason, in the words of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Approves any arguments for the tools of the question in this run, each for at most this many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_arguments: Option<u32>,
    /// The approval rule to be made, if the same is not to be asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<StandingApproval>,
    /// Who decided, and through which channel.
    pub by: String,
}

/// An approval that covers later runs too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandingApproval {
    /// Whether it covers only this code or the tools in any code.
    pub only: ApprovalScope,
    /// Whether it covers any arguments, not just these.
    #[serde(default)]
    pub any_arguments: bool,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at: i64,
}

/// What a standing approval is bound to, beside the tool and its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// The code of the question.
    Code,
    /// Nothing further: it covers the tool in any code.
    Tool,
}

/// A layer of a DAG that has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerQuestion {
    /// Index of the layer, from 0.
    pub layer_index: u32,
    /// Number of layers of the current plan.
    pub total_layers: u32,
    /// The results of its tasks.
    pub results: Vec<LayerResult>,
    /// Ids of the tasks that would run next.
    pub next: Vec<String>,
}

/// Result of one task of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerResult {
    /// Id of the task in the DAG document.
    pub task_id: String,
    /// `success`, `error` or `skipped`.
    pub status: String,
    /// Duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<i64>,
    /// The beginning of the result, or the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// Size of the result in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_size: Option<usize>,
}

/// How a DAG continues after a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "onward", rename_all = "snake_case")]
pub enum LayerDecision {
    /// Continue as planned.
    Continue,
    /// Continue with other tasks in place of those that have not run.
    Replan {
        /// The plan from here on, as made from the new request.
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
                ResolvedDoubt { call: 3, verdict: DoubtVerdict::Again },
                ResolvedDoubt { call: 4, verdict: DoubtVerdict::Done { result: "1".to_owned() } },
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
        let question = Question::Approval(ApprovalQuestion {
            intent: "clean up".to_owned(),
            code_hash: "c0de".to_owned(),
            by: Answerer::Human,
            begun: true,
            calls: vec![CallToApprove {
                tool: "fs:delete".to_owned(),
                definition: Digest::of(b"definition"),
                description: String::new(),
                scope: "filesystem".to_owned(),
                because: "it changes things".to_owned(),
                call: Some(2),
                node: None,
                line: Some(3),
                code: None,
                arguments: ApprovalArguments::Known {
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
