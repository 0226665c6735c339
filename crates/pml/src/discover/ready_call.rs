//! The ready call: the request that runs a likely capability, for an agent to send back as it is.

use serde::Serialize;
use serde_json::{Map, Value};

/// Bytes: a longer call is shown shortened. With the words around it, a call of this size stays below 150 tokens.
const MAX_CALL_BYTES: usize = 360;
/// Bytes: a longer value is left out of a shortened call.
const MAX_VALUE_BYTES: usize = 80;
/// The number of open inputs that the text names.
const MAX_OPEN: usize = 4;

/// The call that runs a capability with the values that are known, and what is open.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyCall {
    /// The tool to call.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: ReadyArguments,
    /// What the agent should look at before it sends the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenInput>,
}

/// The arguments of a ready call.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyArguments {
    /// The intent of the request.
    pub intent: String,
    /// The capability.
    pub implementation: ReadyImplementation,
    /// The values of its parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub context: Map<String, Value>,
}

/// A capability as `pml_execute` takes it.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyImplementation {
    /// Always `capability`.
    pub r#type: &'static str,
    /// The name of the capability.
    pub id: String,
}

/// An input that the request leaves open.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OpenInput {
    /// A parameter whose value the request does not determine.
    Parameter {
        /// Its name.
        name: String,
        /// Its value in the first run.
        #[serde(skip_serializing_if = "Option::is_none")]
        was: Option<Value>,
    },
    /// A value of the request that no parameter takes.
    Value {
        /// The value as written.
        value: String,
    },
}

impl ReadyCall {
    /// The call of the capability `name` for `intent`. `None` where it would be refused: something is left over and no
    /// argument says that the caller has seen to it.
    pub fn new(
        intent: &str,
        name: &str,
        context: Map<String, Value>,
        open: Vec<OpenInput>,
    ) -> Option<ReadyCall> {
        let left_over = open.iter().any(|input| matches!(input, OpenInput::Value { .. }));
        if left_over && context.is_empty() {
            return None;
        }
        let implementation = ReadyImplementation { r#type: "capability", id: name.to_owned() };
        Some(ReadyCall {
            tool: "pml_execute",
            arguments: ReadyArguments { intent: intent.to_owned(), implementation, context },
            open,
        })
    }

    /// The call on one line, and what is open on another.
    pub fn text(&self) -> String {
        let mut text = self.call_line();
        if !self.open.is_empty() {
            let mut named: Vec<String> = self.open.iter().take(MAX_OPEN).map(OpenInput::text).collect();
            if self.open.len() > MAX_OPEN {
                named.push(format!("{} more", self.open.len() - MAX_OPEN));
            }
            text.push_str(&format!("\nopen: {}", named.join(", ")));
        }
        text
    }

    fn call_line(&self) -> String {
        let line = |arguments: &ReadyArguments| {
            format!("{} {}", self.tool, serde_json::to_string(arguments).unwrap_or_default())
        };
        let whole = line(&self.arguments);
        if whole.len() <= MAX_CALL_BYTES {
            return whole;
        }
        let mut short = self.arguments.clone();
        "…".clone_into(&mut short.intent);
        for value in short.context.values_mut().filter(|value| value.to_string().len() > MAX_VALUE_BYTES) {
            *value = Value::from("…");
        }
        let mut text = line(&short);
        if text.len() > MAX_CALL_BYTES {
            short.context.clear();
            text = line(&short);
        }
        format!("{text}\n(shortened: `readyCall` has the same intent and every value)")
    }
}

impl OpenInput {
    fn text(&self) -> String {
        match self {
            OpenInput::Parameter { name, was: Some(was) } => {
                format!("{name} (was {})", pml_model::name::truncate_text(&was.to_string(), MAX_VALUE_BYTES))
            }
            OpenInput::Parameter { name, was: None } => name.clone(),
            OpenInput::Value { value } => {
                let value = pml_model::name::truncate_text(value, MAX_VALUE_BYTES);
                format!("no parameter takes `{value}`, so send a program if it matters")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(intent: &str, context: &Value, open: Vec<OpenInput>) -> Option<ReadyCall> {
        ReadyCall::new(intent, "averageSalaryByDepartment", context.as_object().unwrap().clone(), open)
    }

    #[test]
    fn the_call_can_be_sent_as_it_is_and_says_what_is_open() {
        let was = Some(json!("Engineering"));
        let open = vec![OpenInput::Parameter { name: "department".to_owned(), was }];
        let call =
            call("average salary in data/staff.csv", &json!({"path": "data/staff.csv"}), open).unwrap();
        expect_test::expect![[r#"
            pml_execute {"intent":"average salary in data/staff.csv","implementation":{"type":"capability","id":"averageSalaryByDepartment"},"context":{"path":"data/staff.csv"}}
            open: department (was "Engineering")"#]]
        .assert_eq(&call.text());
    }

    #[test]
    fn a_long_call_is_shortened_in_the_text_and_whole_in_the_structure() {
        let long = "a long text ".repeat(100);
        let call = call(&long, &json!({"text": long, "path": "a.txt"}), Vec::new()).unwrap();
        assert!(call.text().len() < MAX_CALL_BYTES + 100, "{}", call.text());
        assert!(call.text().contains(r#""text":"…","path":"a.txt""#), "{}", call.text());
        assert_eq!(serde_json::to_value(&call).unwrap()["arguments"]["context"]["text"], json!(long));
    }

    #[test]
    fn there_is_no_call_that_would_be_refused() {
        let open = || vec![OpenInput::Value { value: "2018".to_owned() }];
        assert!(call("since 2018", &json!({}), open()).is_none());
        assert!(call("since 2018", &json!({"path": "a"}), open()).unwrap().text().contains("`2018`"));
    }
}
