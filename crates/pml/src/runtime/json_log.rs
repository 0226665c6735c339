//! Lines of the log as JSON objects, for programs that collect logs.

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// One JSON object on a line for each event: `timestamp`, `level`, `target`, `message`, `fields` and, within spans, `spans`.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let mut line = json!({
            "timestamp": jiff::Timestamp::now().to_string(),
            "level": metadata.level().as_str(),
            "target": metadata.target(),
            "message": fields.0.remove("message").unwrap_or_default(),
        });
        if !fields.0.is_empty() {
            line["fields"] = Value::Object(fields.0);
        }
        if let Some(scope) = context.event_scope() {
            let spans = scope.from_root().map(|span| {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<N>>().map(|known| known.fields.as_str());
                json!({ "name": span.name(), "fields": fields.unwrap_or_default() })
            });
            line["spans"] = spans.collect();
        }
        writeln!(writer, "{line}")
    }
}

/// The fields of an event by their names.
#[derive(Default)]
struct EventFields(Map<String, Value>);

impl EventFields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}
