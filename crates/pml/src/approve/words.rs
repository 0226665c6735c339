//! Questions as text, the same for clients, terminals and elicitation.
//!
//! Text from programs, tools and servers is shown complete, with hidden characters written out.

use pml_model::name::printable;
use pml_model::question::{
    ApprovalArguments, ApprovalQuestion, ArgumentOrigin, CallAwaitingSignIn, CallToApprove, LayerQuestion,
    Question,
};

/// The question of a run, phrased to follow the run's name.
pub fn question(question: &Question) -> String {
    match question {
        Question::InDoubt { calls, .. } => {
            let calls: Vec<String> = calls
                .iter()
                .map(|doubt| {
                    format!("call {} of `{}` with {}", doubt.call, doubt.tool, visible(&doubt.arguments))
                })
                .collect();
            format!("was interrupted; whether these acted is not known:\n{}", calls.join("\n"))
        }
        Question::SignIn { calls } => sign_in(calls),
        Question::Approval(asked) => approval(asked),
        Question::Layer(layer) => self::layer(layer),
    }
}

/// The sign-ins that calls wait for, by server.
fn sign_in(calls: &[CallAwaitingSignIn]) -> String {
    let mut text = "waits for a sign-in".to_owned();
    for server in servers_of(calls) {
        let own: Vec<&CallAwaitingSignIn> = calls.iter().filter(|call| call.server == server).collect();
        let tools: Vec<String> =
            own.iter().map(|call| format!("call {} of `{}`", call.call, call.tool)).collect();
        let because = own.first().map(|call| printable(&call.because)).unwrap_or_default();
        text.push_str(&format!(
            "\n{because}\n  run `pml login {server}`: {} follows then by itself",
            tools.join(", ")
        ));
    }
    text
}

/// The servers that calls wait for, each once.
pub fn servers_of(calls: &[CallAwaitingSignIn]) -> Vec<&str> {
    let mut servers: Vec<&str> = calls.iter().map(|call| call.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// The approval that a person is asked for.
pub fn approval(asked: &ApprovalQuestion) -> String {
    let mut text = if asked.begun {
        "waits for approval of calls it is making".to_owned()
    } else {
        "waits for approval before it begins".to_owned()
    };
    text.push_str(&format!("\nfor: {}", printable(&asked.intent)));
    for (index, call) in asked.calls.iter().enumerate() {
        text.push_str(&format!("\n{}. {}", index + 1, self::call(call)));
    }
    if !asked.opaque.is_empty() {
        text.push_str("\nwhat else it may call cannot be known beforehand:");
        asked.opaque.iter().for_each(|remark| text.push_str(&format!("\n  {}", printable(remark))));
    }
    text
}

fn call(asked: &CallToApprove) -> String {
    let mut text = format!("`{}`, which {}", asked.tool, describe_scope(&asked.scope));
    if let Some(line) = asked.line {
        text.push_str(&format!(", in line {line}"));
    }
    if let Some(code) = &asked.code {
        text.push_str(&format!(": {}", printable(code)));
    }
    if asked.repeats {
        text.push_str("\n   it may be called any number of times");
    }
    text.push_str(&format!("\n   asked because {}", printable(&asked.because)));
    match &asked.arguments {
        ApprovalArguments::Known { json, .. } => text.push_str(&format!("\n   with {}", visible(json))),
        ApprovalArguments::Unknown { source } => {
            text.push_str(&format!(
                "\n   with arguments that are known when it is called: {}",
                visible(source)
            ));
        }
    }
    asked.origins.iter().for_each(|origin| text.push_str(&format!("\n   {}", describe_origin(origin))));
    if !asked.differs.is_empty() {
        text.push_str("\n   different from the last time a person allowed it:");
        asked.differs.iter().for_each(|differs| text.push_str(&format!("\n     {}", visible(differs))));
    }
    text
}

/// A description of a kind of reach.
pub fn describe_scope(scope: &str) -> &'static str {
    match scope {
        "minimal" => "only computes",
        "readonly" => "reads",
        "filesystem" => "writes files",
        "network-api" => "reaches a network",
        _ => "may do anything its server can",
    }
}

/// A description of where part of the arguments comes from.
pub fn describe_origin(origin: &ArgumentOrigin) -> String {
    let node = origin.node.as_ref().map(|node| format!(" ({node})")).unwrap_or_default();
    let part = visible(&origin.part);
    match origin.characters {
        Some(characters) => format!("`{part}` contains {characters} characters from `{}`{node}", origin.from),
        None => format!("`{part}` comes from `{}`{node}", origin.from),
    }
}

/// The text on one line, with hidden characters written out.
pub fn visible(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// A duration as text: in milliseconds below 1 s, then in seconds, minutes or hours.
pub fn age(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{} ms", ms.max(0)),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

fn layer(layer: &LayerQuestion) -> String {
    let mut text = format!("has run layer {} of {}", layer.layer_index + 1, layer.total_layers);
    for result in &layer.results {
        let preview = result.result_preview.as_deref().map(visible).unwrap_or_default();
        text.push_str(&format!("\n{} {}: {preview}", visible(&result.task_id), result.status));
    }
    if !layer.next.is_empty() {
        let next: Vec<String> = layer.next.iter().map(|id| visible(id)).collect();
        text.push_str(&format!("\nnext: {}", next.join(", ")));
    }
    text
}
