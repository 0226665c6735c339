//! What every built-in tool has in common: a definition, limits, and the shape of its result.
//!
//! A tool is a function from typed arguments to a typed answer or a [`Failure`]. Work that does not wait runs on
//! a blocking thread under a [`Stop`], so that neither a large file nor a costly pattern holds up the program.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pml_model::json::{self, raw};
use pml_model::{Annotations, Definition};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::stamp::Witness;

/// The largest arguments taken: four mebibytes of file in base64, with room to spare.
pub(super) const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;
/// The largest structured result given, for the same reason.
pub(super) const MAX_RESULT_BYTES: usize = 8 * 1024 * 1024;
/// How long work that does not wait for others may take.
const MAX_WORK: Duration = Duration::from_secs(10);

/// What a tool answers.
pub(super) type Answer = Result<Box<RawValue>, Failure>;

type Work = dyn Fn(&str, &Stop) -> Answer + Send + Sync;
type Wait = dyn Fn(Box<RawValue>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync;

enum Run {
    Work(Arc<Work>),
    Wait(Arc<Wait>),
}

/// Why a tool did not do its work: a sentence for whoever called it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Failure(pub(super) String);

/// A [`Failure`] from a format string.
macro_rules! failure {
    ($($part:tt)*) => { $crate::builtin::tool::Failure(format!($($part)*)) };
}
pub(super) use failure;

/// What a tool is called and what it promises.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: Cow<'static, str>,
    pub(super) effect: Annotations,
    pub(super) input: Value,
    pub(super) output: Value,
}

/// Looks or computes; changes nothing.
pub(super) const READS: Annotations = Annotations {
    read_only_hint: Some(true),
    destructive_hint: Some(false),
    idempotent_hint: Some(true),
    open_world_hint: Some(false),
};
/// Adds something that was not there, and cannot be repeated.
pub(super) const ADDS: Annotations =
    Annotations { read_only_hint: Some(false), idempotent_hint: Some(false), ..READS };
/// May replace what was there, and repeating it may change more.
pub(super) const REPLACES: Annotations = Annotations { destructive_hint: Some(true), ..ADDS };
/// Takes away or sets what was there; doing it twice changes no more.
pub(super) const REMOVES: Annotations = Annotations { idempotent_hint: Some(true), ..REPLACES };

/// A schema of an object with exactly these `properties`.
#[expect(clippy::needless_pass_by_value, reason = "callers hand over what `json!` has just made")]
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A tool of this program.
pub(super) struct Tool {
    pub(super) definition: Definition,
    run: Run,
}

impl Tool {
    /// A tool that computes or reads files.
    pub(super) fn work<A, R>(
        spec: Spec,
        run: impl Fn(&A, &Stop) -> Result<R, Failure> + Send + Sync + 'static,
    ) -> Tool
    where
        A: DeserializeOwned,
        R: Serialize,
    {
        let work = move |text: &str, stop: &Stop| Ok(raw(&run(&arguments(text)?, stop)?));
        Tool { definition: definition(spec), run: Run::Work(Arc::new(work)) }
    }

    /// A tool that waits for somebody else.
    pub(super) fn wait<A, R, F>(spec: Spec, run: impl Fn(A) -> F + Send + Sync + 'static) -> Tool
    where
        A: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let run = Arc::new(run);
        let wait = move |text: Box<RawValue>| -> Pin<Box<dyn Future<Output = Answer> + Send>> {
            let run = run.clone();
            Box::pin(async move {
                let future = run(arguments(text.get())?);
                future.await.map(|answer| raw(&answer))
            })
        };
        Tool { definition: definition(spec), run: Run::Wait(Arc::new(wait)) }
    }

    /// Calls the tool and renders what comes of it as an MCP result.
    pub(super) async fn call(&self, arguments: &RawValue, witness: Option<&Witness>) -> Box<RawValue> {
        match self.answer(arguments, witness).await {
            Ok(structured) => success(&structured),
            Err(failure) => failed(&failure),
        }
    }

    async fn answer(&self, arguments: &RawValue, witness: Option<&Witness>) -> Answer {
        if let Some(witness) = witness {
            witness.begin();
        }
        let (size_bytes, depth) = (arguments.get().len(), json::depth(arguments.get()));
        if size_bytes > MAX_ARGUMENT_BYTES {
            return Err(failure!(
                "the arguments are {size_bytes} bytes; at most {MAX_ARGUMENT_BYTES} are taken"
            ));
        }
        if depth > json::MAX_DEPTH {
            return Err(failure!(
                "the arguments nest {depth} levels deep; at most {} are taken",
                json::MAX_DEPTH
            ));
        }
        let answer = match &self.run {
            Run::Work(work) => {
                on_blocking_thread(work.clone(), arguments.to_owned(), witness.cloned()).await?
            }
            Run::Wait(wait) => wait(arguments.to_owned()).await?,
        };
        let size_bytes = answer.get().len();
        if size_bytes > MAX_RESULT_BYTES {
            return Err(failure!(
                "the result is {size_bytes} bytes; at most {MAX_RESULT_BYTES} are given, so ask for less at a time"
            ));
        }
        Ok(answer)
    }
}

fn arguments<A: DeserializeOwned>(text: &str) -> Result<A, Failure> {
    // Serde would also take a list of the fields in order, which no schema of ours allows.
    if !text.starts_with('{') {
        return Err(failure!("the arguments do not fit: expected a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| failure!("the arguments do not fit: {error}"))
}

async fn on_blocking_thread(work: Arc<Work>, arguments: Box<RawValue>, witness: Option<Witness>) -> Answer {
    let stop = Stop { witness, ..Stop::after(MAX_WORK) };
    let _stopped_on_drop = StopOnDrop(stop.given_up.clone());
    tokio::task::spawn_blocking(move || work(arguments.get(), &stop)).await.unwrap_or_else(|_| {
        Err(failure!("the tool broke down; this is a fault of the program, so please report the arguments"))
    })
}

/// Tells work on a blocking thread when to end: nobody waits any more, or its time is up.
pub(super) struct Stop {
    given_up: Arc<AtomicBool>,
    deadline: Instant,
    /// Notes which files are read, where somebody wants to know.
    pub(super) witness: Option<Witness>,
}

impl Stop {
    fn after(time: Duration) -> Stop {
        Stop { given_up: Arc::default(), deadline: Instant::now() + time, witness: None }
    }

    /// Whether to end now with what there is.
    pub(super) fn is_due(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Ends work of which a part is worth nothing.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_due() {
            return Err(failure!(
                "the work took longer than {} seconds; give less text or a simpler pattern",
                MAX_WORK.as_secs()
            ));
        }
        Ok(())
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a spec is made to be used up here")]
fn definition(spec: Spec) -> Definition {
    let text = raw(&json!({
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": spec.input,
        "outputSchema": spec.output,
        "annotations": spec.effect,
    }));
    Definition::parse(text)
        .expect("definitions of built-in tools are well formed, which a test checks for each")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult<'a> {
    content: [Block<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'static str,
    text: &'a str,
}

fn success(structured: &RawValue) -> Box<RawValue> {
    raw(&CallToolResult {
        content: [Block { r#type: "text", text: structured.get() }],
        structured_content: Some(structured),
        is_error: false,
    })
}

fn failed(failure: &Failure) -> Box<RawValue> {
    raw(&CallToolResult {
        content: [Block { r#type: "text", text: &failure.0 }],
        structured_content: None,
        is_error: true,
    })
}

/// A name out of the arguments, fit to stand in a sentence: short, and showing what it is.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        let start: String = characters.by_ref().take(200).collect();
        let dots = if characters.next().is_some() { "…" } else { "" };
        write!(f, "`{}{dots}`", pml_model::name::printable(&start))
    }
}

/// Reads a member that may be absent but, when it is there, may be `null` like any other value.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn spec() -> Spec {
        Spec {
            name: "test",
            title: "Test",
            description: "Tests.".into(),
            effect: READS,
            input: object(json!({}), &[]),
            output: object(json!({}), &[]),
        }
    }

    #[tokio::test]
    async fn a_tool_that_breaks_down_says_so() {
        let tool = Tool::work(spec(), |_: &Map, _| -> Result<(), Failure> { panic!("on purpose") });
        let result = tool.call(&json::empty_object(), None).await;
        assert_eq!(
            result.get(),
            r#"{"content":[{"type":"text","text":"the tool broke down; this is a fault of the program, so please report the arguments"}],"isError":true}"#
        );
    }

    #[tokio::test]
    async fn work_ends_when_nobody_waits_any_more() {
        let (started, has_started) = channel();
        let (ended, has_ended) = channel();
        let tool = Tool::work(spec(), move |_: &Map, stop| {
            started.send(()).unwrap();
            while !stop.given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            ended.send(stop.check().is_err()).unwrap();
            Ok(())
        });
        let arguments = json::empty_object();
        let mut call = Box::pin(tool.call(&arguments, None));
        // Polled once, which starts the work, and then dropped.
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
        has_started.recv().unwrap();
        drop(call);
        assert!(has_ended.recv().unwrap());
    }

    type Map = std::collections::BTreeMap<String, Value>;
}
