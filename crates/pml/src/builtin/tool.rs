//! The common parts of built-in tools: definition, limits, and the shape of results.
//!
//! A tool is a function from typed arguments to a typed result or a [`BuiltinFailure`]. Work without waiting runs on
//! a blocking thread under a [`StopSignal`], so that neither a large file nor a costly pattern blocks the runtime.

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

use super::stamp::ReadRecorder;

/// 8 MiB: the largest arguments; 4 MiB of file in base64 fit, with room to spare.
pub(super) const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;
/// 8 MiB: the largest structured result, for the same reason.
pub(super) const MAX_RESULT_BYTES: usize = 8 * 1024 * 1024;
/// How long the work of a blocking tool may take.
const MAX_WORK: Duration = Duration::from_secs(10);

/// The result of a tool.
pub(super) type BuiltinAnswer = Result<Box<RawValue>, BuiltinFailure>;

type BlockingWork = dyn Fn(&str, &StopSignal) -> BuiltinAnswer + Send + Sync;
type AsyncWork = dyn Fn(Box<RawValue>) -> Pin<Box<dyn Future<Output = BuiltinAnswer> + Send>> + Send + Sync;

enum BuiltinWork {
    Blocking(Arc<BlockingWork>),
    Async(Arc<AsyncWork>),
}

/// Why a tool failed: a sentence for its caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BuiltinFailure(pub(super) String);

/// A [`BuiltinFailure`] from a format string.
macro_rules! failure {
    ($($part:tt)*) => { $crate::builtin::tool::BuiltinFailure(format!($($part)*)) };
}
pub(super) use failure;

/// The name, description, annotations and schemas of a tool.
pub(super) struct BuiltinSpec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: Cow<'static, str>,
    pub(super) effect: Annotations,
    pub(super) input: Value,
    pub(super) output: Value,
}

/// Read-only: changes nothing.
pub(super) const READS: Annotations = Annotations {
    read_only_hint: Some(true),
    destructive_hint: Some(false),
    idempotent_hint: Some(true),
    open_world_hint: Some(false),
};
/// Additive: creates something new; not idempotent.
pub(super) const ADDS: Annotations =
    Annotations { read_only_hint: Some(false), idempotent_hint: Some(false), ..READS };
/// Destructive: may replace something; not idempotent.
pub(super) const REPLACES: Annotations = Annotations { destructive_hint: Some(true), ..ADDS };
/// Destructive and idempotent: removes or sets something.
pub(super) const REMOVES: Annotations = Annotations { idempotent_hint: Some(true), ..REPLACES };

/// A schema of an object with exactly these `properties`.
#[expect(clippy::needless_pass_by_value, reason = "callers hand over what `json!` has just made")]
pub(super) fn object_schema(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A built-in tool.
pub(super) struct BuiltinTool {
    pub(super) definition: Definition,
    run: BuiltinWork,
}

impl BuiltinTool {
    /// A tool that computes or reads files, on a blocking thread.
    pub(super) fn blocking<A, R>(
        spec: BuiltinSpec,
        run: impl Fn(&A, &StopSignal) -> Result<R, BuiltinFailure> + Send + Sync + 'static,
    ) -> BuiltinTool
    where
        A: DeserializeOwned,
        R: Serialize,
    {
        let work = move |text: &str, stop: &StopSignal| Ok(raw(&run(&arguments(text)?, stop)?));
        BuiltinTool { definition: definition(spec), run: BuiltinWork::Blocking(Arc::new(work)) }
    }

    /// A tool that waits for I/O.
    pub(super) fn asynchronous<A, R, F>(
        spec: BuiltinSpec,
        run: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> BuiltinTool
    where
        A: DeserializeOwned + Send + 'static,
        R: Serialize,
        F: Future<Output = Result<R, BuiltinFailure>> + Send + 'static,
    {
        let run = Arc::new(run);
        let wait = move |text: Box<RawValue>| -> Pin<Box<dyn Future<Output = BuiltinAnswer> + Send>> {
            let run = run.clone();
            Box::pin(async move {
                let future = run(arguments(text.get())?);
                future.await.map(|answer| raw(&answer))
            })
        };
        BuiltinTool { definition: definition(spec), run: BuiltinWork::Async(Arc::new(wait)) }
    }

    /// Calls the tool and renders its result or failure as an MCP result.
    pub(super) async fn call(&self, arguments: &RawValue, witness: Option<&ReadRecorder>) -> Box<RawValue> {
        match self.answer(arguments, witness).await {
            Ok(structured) => success(&structured),
            Err(failure) => failed(&failure),
        }
    }

    async fn answer(&self, arguments: &RawValue, witness: Option<&ReadRecorder>) -> BuiltinAnswer {
        if let Some(witness) = witness {
            witness.begin_call();
        }
        let (size_bytes, depth) = (arguments.get().len(), json::nesting_depth(arguments.get()));
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
            BuiltinWork::Blocking(work) => {
                on_blocking_thread(work.clone(), arguments.to_owned(), witness.cloned()).await?
            }
            BuiltinWork::Async(wait) => wait(arguments.to_owned()).await?,
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

/// The arguments of a call.
pub(super) fn arguments<A: DeserializeOwned>(text: &str) -> Result<A, BuiltinFailure> {
    // Serde would also accept an array of the fields in order, which no schema of ours allows.
    if !text.starts_with('{') {
        return Err(failure!("the arguments do not fit: expected a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| failure!("the arguments do not fit: {error}"))
}

async fn on_blocking_thread(
    work: Arc<BlockingWork>,
    arguments: Box<RawValue>,
    witness: Option<ReadRecorder>,
) -> BuiltinAnswer {
    let stop = StopSignal { witness, ..StopSignal::after(MAX_WORK) };
    let _stopped_on_drop = SignalStopOnDrop(stop.given_up.clone());
    tokio::task::spawn_blocking(move || work(arguments.get(), &stop)).await.unwrap_or_else(|_| {
        Err(failure!("the tool broke down; this is a fault of the program, so please report the arguments"))
    })
}

/// Tells work on a blocking thread when to stop: its caller is gone, or its time is up.
pub(super) struct StopSignal {
    given_up: Arc<AtomicBool>,
    deadline: Instant,
    /// Records which files are read, where the caller asks for it.
    pub(super) witness: Option<ReadRecorder>,
}

impl StopSignal {
    /// Stops after the time that every call has.
    pub(super) fn default_limit() -> StopSignal {
        StopSignal::after(MAX_WORK)
    }

    fn after(time: Duration) -> StopSignal {
        StopSignal { given_up: Arc::default(), deadline: Instant::now() + time, witness: None }
    }

    /// Whether to stop now with a partial result.
    pub(super) fn should_stop(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Fails where the work has to stop, for work whose partial result is worthless.
    pub(super) fn check(&self) -> Result<(), BuiltinFailure> {
        if self.should_stop() {
            return Err(failure!(
                "the work took longer than {} seconds; give less text or a simpler pattern",
                MAX_WORK.as_secs()
            ));
        }
        Ok(())
    }
}

struct SignalStopOnDrop(Arc<AtomicBool>);

impl Drop for SignalStopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a spec is made to be used up here")]
fn definition(spec: BuiltinSpec) -> Definition {
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
struct BuiltinToolResult<'a> {
    content: [TextBlock<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// The MCP result of a call that succeeded.
pub(super) fn success(structured: &RawValue) -> Box<RawValue> {
    raw(&BuiltinToolResult {
        content: [TextBlock { r#type: "text", text: structured.get() }],
        structured_content: Some(structured),
        is_error: false,
    })
}

/// The MCP result of a call that failed.
pub(super) fn failed(failure: &BuiltinFailure) -> Box<RawValue> {
    raw(&BuiltinToolResult {
        content: [TextBlock { r#type: "text", text: &failure.0 }],
        structured_content: None,
        is_error: true,
    })
}

/// A name from the arguments for use in a message: shortened, with invisible characters shown.
pub(super) struct QuotedName<'a>(pub(super) &'a str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        let start: String = characters.by_ref().take(200).collect();
        let dots = if characters.next().is_some() { "…" } else { "" };
        write!(f, "`{}{dots}`", pml_model::name::printable(&start))
    }
}

/// Deserializes a member that may be absent; if present it may be `null` like any other value.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn spec() -> BuiltinSpec {
        BuiltinSpec {
            name: "test",
            title: "Test",
            description: "Tests.".into(),
            effect: READS,
            input: object_schema(json!({}), &[]),
            output: object_schema(json!({}), &[]),
        }
    }

    #[tokio::test]
    async fn a_tool_that_breaks_down_says_so() {
        let tool = BuiltinTool::blocking(spec(), |_: &Map, _| -> Result<(), BuiltinFailure> {
            panic!("on purpose")
        });
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
        let tool = BuiltinTool::blocking(spec(), move |_: &Map, stop| {
            started.send(()).unwrap();
            while !stop.given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            ended.send(stop.check().is_err()).unwrap();
            Ok(())
        });
        let arguments = json::empty_object();
        let mut call = Box::pin(tool.call(&arguments, None));
        // Polled once, which starts the work, then dropped.
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
        has_started.recv().unwrap();
        drop(call);
        assert!(has_ended.recv().unwrap());
    }

    type Map = std::collections::BTreeMap<String, Value>;
}
