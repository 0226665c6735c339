//! Results that the caller of a dry run dictates.
//!
//! `{"tools": {"fs:read_file": …}, "args": {…}}`, or only the map of tools. A tool may be named without its server if
//! one tool alone has that name. In `args`, `config.env` is the member `env` of `config`. The value is the result of every call of the tool, except in these forms, which are
//! objects with a single member:
//!
//! | form | meaning |
//! |---|---|
//! | `{"$value": x}` | `x`, even if it looks like one of these forms |
//! | `{"$error": "message"}` | the call fails with this message |
//! | `{"$sequence": [a, b]}` | `a` for the first call of the tool, `b` for the second and all later ones |
//! | `{"$cases": [{"args": {…}, "result": a}, …]}` | the first case all of whose `args` the call has |

use std::collections::BTreeMap;

use pml_model::ToolId;
use pml_model::name::{nearest, printable};
use serde_json::{Map, Value};

use crate::valid;

/// Maximum size of one given mock in bytes: as much as a program is given as the result of a tool.
const MAX_MOCK_BYTES: usize = 4 * 1024 * 1024;
/// Maximum nesting of `$sequence` and `$cases` in each other.
const MAX_FORMS: usize = 4;

/// The mocks that a caller gave, by tool.
#[derive(Debug, Clone, Default)]
pub struct GivenMocks {
    tools: BTreeMap<ToolId, Given>,
    arguments: Map<String, Value>,
}

/// What a given mock makes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum GivenAnswer {
    /// The call has this result.
    Value(Value),
    /// The call fails with this message.
    Error(String),
}

#[derive(Debug, Clone)]
enum Given {
    Answer(GivenAnswer),
    Sequence(Vec<Given>),
    Cases(Vec<(Map<String, Value>, Given)>),
}

/// Why given mocks are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MockError {
    /// No tool has this name.
    #[error("there is no tool `{name}` to mock")]
    UnknownTool {
        /// The name, as given.
        name: String,
        /// The most similar tools, best first.
        nearest: Vec<String>,
    },
    /// Several tools have this name.
    #[error("`{name}` is the name of several tools: {}", quoted(.tools))]
    AmbiguousTool {
        /// The name, as given.
        name: String,
        /// The tools.
        tools: Vec<String>,
    },
    /// The value breaks the output schema of the tool.
    #[error("the mock of `{tool}` breaks its output schema at {}: {reason}", place(.path))]
    BreaksSchema {
        /// The tool.
        tool: ToolId,
        /// JSON pointer of the wrong value; empty for the whole.
        path: String,
        /// The broken rule.
        reason: String,
    },
    /// The value is too large.
    #[error("the mock of `{tool}` is {size_bytes} bytes; at most {MAX_MOCK_BYTES} are taken")]
    TooLarge {
        /// The tool.
        tool: ToolId,
        /// Size of the value in bytes.
        size_bytes: usize,
    },
    /// It does not have the form of mocks.
    #[error("{0}")]
    Malformed(String),
}

impl MockError {
    /// What the caller can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            MockError::UnknownTool { nearest, .. } if nearest.is_empty() => None,
            MockError::UnknownTool { nearest, .. } => Some(format!("did you mean {}?", quoted(nearest))),
            MockError::AmbiguousTool { .. } => Some("name the server too, as in `server:tool`".to_owned()),
            MockError::BreaksSchema { .. } => Some(
                "give a value that the tool could return, or `{\"$error\": \"…\"}` to make it fail"
                    .to_owned(),
            ),
            MockError::TooLarge { .. } => Some("give a smaller value: a few elements are enough".to_owned()),
            MockError::Malformed(_) => {
                Some("give `{\"tools\": {\"server:tool\": result}, \"args\": {…}}`".to_owned())
            }
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

fn place(path: &str) -> String {
    if path.is_empty() { "the top".to_owned() } else { format!("`{path}`") }
}

impl GivenMocks {
    /// Parses mocks as a caller gives them. `tools` are the tools there are, with their output schemas.
    ///
    /// # Errors
    /// A tool is unknown or ambiguous, a value breaks the output schema of its tool, or the form is wrong.
    pub fn parse(given: &Value, tools: &[(ToolId, Option<&Value>)]) -> Result<GivenMocks, MockError> {
        let Some(members) = given.as_object() else {
            return Err(MockError::Malformed("mocks are not a JSON object".to_owned()));
        };
        let (named, arguments) = sections(members, tools)?;
        let mut mocks = GivenMocks { tools: BTreeMap::new(), arguments };
        for (name, value) in named {
            let (tool, schema) = resolve(name, tools)?;
            let size_bytes = value.to_string().len();
            if size_bytes > MAX_MOCK_BYTES {
                return Err(MockError::TooLarge { tool: tool.clone(), size_bytes });
            }
            let parsed = Given::parse(tool, value, MAX_FORMS)?;
            parsed.check(tool, *schema)?;
            if mocks.tools.insert(tool.clone(), parsed).is_some() {
                return Err(MockError::Malformed(format!(
                    "`{tool}` has two mocks: with and without its server"
                )));
            }
        }
        Ok(mocks)
    }

    /// The answer to a call of `tool` with `arguments`, of which there were `earlier_calls` in this run; `None` if
    /// nothing is given for it.
    pub fn answer(&self, tool: &ToolId, arguments: &Value, earlier_calls: usize) -> Option<GivenAnswer> {
        self.tools.get(tool)?.answer(arguments, earlier_calls).cloned()
    }

    /// Arguments of the program that replace those of the request, as they are given.
    pub fn args(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The arguments of the program that change, where `current` gives those of the request. `config.env` is the member
    /// `env` of `config`, unless the request has an argument of this very name.
    ///
    /// # Errors
    /// What has to have a member is no object.
    pub fn changed_arguments(
        &self,
        current: impl Fn(&str) -> Option<Value>,
    ) -> Result<Map<String, Value>, MockError> {
        let path_of = |name: &str| {
            let is_path = name.contains('.') && name.split('.').all(|part| !part.is_empty());
            is_path && current(name).is_none()
        };
        let (paths, whole): (Vec<_>, Vec<_>) = self.arguments.iter().partition(|(name, _)| path_of(name));
        let whole = whole.into_iter().map(|(name, value)| (name.clone(), value.clone()));
        let mut changed: Map<String, Value> = whole.collect();
        for (name, value) in paths {
            let (top, path) = name.split_once('.').unwrap_or((name, ""));
            let known = changed.remove(top).or_else(|| current(top));
            let mut known =
                known.filter(|known| !known.is_null()).unwrap_or_else(|| Value::Object(Map::new()));
            let mut place = &mut known;
            let mut above = top.to_owned();
            for part in path.split('.') {
                let Value::Object(members) = place else {
                    let text = format!("`args` of the mocks sets `{name}`, but `{above}` is no object");
                    return Err(MockError::Malformed(text));
                };
                above = format!("{above}.{part}");
                let empty = || if *name == above { Value::Null } else { Value::Object(Map::new()) };
                place = members.entry(part).or_insert_with(empty);
            }
            *place = value.clone();
            changed.insert(top.to_owned(), known);
        }
        Ok(changed)
    }

    /// The tools that have a mock.
    pub fn tools(&self) -> impl Iterator<Item = &ToolId> {
        self.tools.keys()
    }
}

/// A JSON object.
type Members = Map<String, Value>;

/// The map of tools and the arguments. `{"tools": …, "args": …}` is told from a flat map by its members: a map that
/// has another member, or a tool of that bare name, is flat.
fn sections<'m>(
    members: &'m Members,
    tools: &[(ToolId, Option<&Value>)],
) -> Result<(&'m Members, Members), MockError> {
    let sectioned = members.keys().all(|key| matches!(key.as_str(), "tools" | "args"))
        && !tools.iter().any(|(tool, _)| members.contains_key(&tool.tool));
    if !sectioned {
        return Ok((members, Map::new()));
    }
    static NO_TOOLS: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let object = |key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(MockError::Malformed(format!("`{key}` of the mocks is not a JSON object"))),
    };
    Ok((object("tools")?.unwrap_or(&NO_TOOLS), object("args")?.cloned().unwrap_or_default()))
}

/// The tool that `name` means.
fn resolve<'t, 's>(
    name: &str,
    tools: &'t [(ToolId, Option<&'s Value>)],
) -> Result<&'t (ToolId, Option<&'s Value>), MockError> {
    if let Some(exact) = tools.iter().find(|(tool, _)| tool.to_string() == name) {
        return Ok(exact);
    }
    let bare: Vec<_> = tools.iter().filter(|(tool, _)| tool.tool == name).collect();
    match bare.as_slice() {
        [one] => Ok(one),
        [] => {
            let ids: Vec<String> = tools.iter().map(|(tool, _)| tool.to_string()).collect();
            let near = nearest(name, ids.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
            Err(MockError::UnknownTool { name: printable(name), nearest: near })
        }
        several => Err(MockError::AmbiguousTool {
            name: printable(name),
            tools: several.iter().map(|(tool, _)| tool.to_string()).collect(),
        }),
    }
}

impl Given {
    fn parse(tool: &ToolId, value: &Value, depth: usize) -> Result<Given, MockError> {
        let malformed = |what: &str| MockError::Malformed(format!("the mock of `{tool}`: {what}"));
        let Some((form, inner)) = form(value) else {
            return Ok(Given::Answer(GivenAnswer::Value(value.clone())));
        };
        if depth == 0 {
            return Err(malformed("`$sequence` and `$cases` are nested too deep"));
        }
        match (form, inner) {
            ("$value", inner) => Ok(Given::Answer(GivenAnswer::Value(inner.clone()))),
            ("$error", Value::String(message)) => Ok(Given::Answer(GivenAnswer::Error(message.clone()))),
            ("$error", _) => Err(malformed("`$error` is not a message")),
            ("$sequence", Value::Array(answers)) if !answers.is_empty() => {
                let answers = answers.iter().map(|answer| Given::parse(tool, answer, depth - 1));
                Ok(Given::Sequence(answers.collect::<Result<_, _>>()?))
            }
            ("$sequence", _) => Err(malformed("`$sequence` is not a list of at least one result")),
            (_, Value::Array(cases)) => {
                let parsed = cases.iter().map(|case| match (&case["args"], case.get("result")) {
                    (Value::Object(arguments), Some(result)) => {
                        Ok((arguments.clone(), Given::parse(tool, result, depth - 1)?))
                    }
                    _ => Err(malformed("a case of `$cases` is not `{\"args\": {…}, \"result\": …}`")),
                });
                Ok(Given::Cases(parsed.collect::<Result<_, _>>()?))
            }
            _ => Err(malformed("`$cases` is not a list")),
        }
    }

    fn check(&self, tool: &ToolId, schema: Option<&Value>) -> Result<(), MockError> {
        match self {
            Given::Answer(GivenAnswer::Error(_)) => Ok(()),
            Given::Answer(GivenAnswer::Value(value)) => {
                match schema.and_then(|schema| valid::violation(schema, value)) {
                    None => Ok(()),
                    Some(violation) => Err(MockError::BreaksSchema {
                        tool: tool.clone(),
                        path: violation.path,
                        reason: violation.reason,
                    }),
                }
            }
            Given::Sequence(answers) => answers.iter().try_for_each(|answer| answer.check(tool, schema)),
            Given::Cases(cases) => cases.iter().try_for_each(|(_, answer)| answer.check(tool, schema)),
        }
    }

    fn answer(&self, arguments: &Value, earlier_calls: usize) -> Option<&GivenAnswer> {
        match self {
            Given::Answer(answer) => Some(answer),
            Given::Sequence(answers) => {
                answers.get(earlier_calls).or(answers.last())?.answer(arguments, earlier_calls)
            }
            Given::Cases(cases) => cases
                .iter()
                .find(|(wanted, _)| wanted.iter().all(|(key, value)| arguments.get(key) == Some(value)))
                .and_then(|(_, answer)| answer.answer(arguments, earlier_calls)),
        }
    }
}

/// The form that an object with a single member is, with the value of that member.
fn form(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let (key, inner) = object.iter().next()?;
    matches!(key.as_str(), "$value" | "$error" | "$sequence" | "$cases").then_some((key.as_str(), inner))
}
