//! Recorded results, for people: what there is, what is trusted, and how often it helped.

use std::collections::BTreeMap;

use pml_model::mocks::{MockCounts, MockId, MockStatus};
use pml_model::name::printable;
use pml_model::{Digest, Principal, ToolId};
use pml_store::{MockLookups, MockScope, StoredMock};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::{ErrorCode, Problem};

/// A recorded result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MockRecord {
    /// Id of the mock.
    #[schema(value_type = String)]
    pub id: MockId,
    /// The tool, as `server:tool`.
    #[schema(value_type = String)]
    pub tool: ToolId,
    /// Digest of the definition that it was recorded under.
    #[schema(value_type = String)]
    pub definition: Digest,
    /// Whether the tool still has that definition; otherwise the mock is not used.
    pub current: bool,
    /// How far it is trusted: `fresh`, `canonical`, `deprecated`, `stale` or `pinned`.
    #[schema(value_type = String)]
    pub status: MockStatus,
    /// Names, types and classes of the arguments.
    pub pattern: String,
    /// The arguments that it was recorded for.
    pub arguments: Value,
    /// The result; only of a single mock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Uses, successes and failures.
    #[serde(flatten)]
    #[schema(value_type = MockCountsShape)]
    pub counts: MockCounts,
    /// When it was recorded last, in milliseconds since the Unix epoch.
    pub recorded_at: i64,
    /// When it was used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_at: Option<i64>,
}

/// Uses, successes and failures.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct MockCountsShape {
    /// Uses.
    uses: u64,
    /// Uses after which nothing failed.
    successes: u64,
    /// Failures downstream, by class; absent if there were none.
    failures: Option<BTreeMap<String, u64>>,
    /// Later real results that its status was compared with.
    checked: u64,
    /// Those that agreed with its status.
    confirmed: u64,
}

/// What the recorded results of one tool were worth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MockStats {
    /// The tool, as `server:tool`.
    pub tool: String,
    /// Number of mocks, by status.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub mocks: BTreeMap<&'static str, u64>,
    /// Calls for which a mock with equal arguments was found.
    pub equal: u64,
    /// Calls for which a mock with similar arguments was found.
    pub similar: u64,
    /// Calls for which none was found.
    pub missing: u64,
    /// Share of the calls for which one was found; absent before the first call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// Later real results that the status of a mock was compared with.
    pub checked: u64,
    /// Share of them that agreed with the status; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curation_accuracy: Option<f64>,
}

/// The recorded results of a principal, by tool, the most recent first; of one tool, if one is named.
///
/// # Errors
/// The database cannot be read.
pub async fn mocks(app: &App, principal: &Principal, tool: Option<&str>) -> Result<Vec<MockRecord>, Problem> {
    app.knowledge.write_mocks().await;
    let all = app.store.mocks(principal).await?.into_iter();
    let wanted =
        all.filter(|mock| tool.is_none_or(|tool| mock.tool.to_string() == tool || mock.tool.tool == tool));
    Ok(wanted.map(|mock| MockRecord { result: None, ..record(app, mock) }).collect())
}

/// One recorded result.
///
/// # Errors
/// There is none with this id, or the database cannot be read.
pub async fn mock(app: &App, principal: &Principal, id: &str) -> Result<MockRecord, Problem> {
    app.knowledge.write_mocks().await;
    let found = app.store.mock(principal, &MockId::from_text(id)).await?;
    found.map(|mock| record(app, mock)).ok_or_else(|| unknown(id))
}

/// Pins a recorded result: it is preferred, never judged and never dropped.
///
/// # Errors
/// There is none with this id, or the change cannot be stored.
pub async fn pin_mock(app: &App, principal: &Principal, id: &str) -> Result<MockRecord, Problem> {
    if app.store.pin_mock(principal, &MockId::from_text(id)).await? {
        mock(app, principal, id).await
    } else {
        Err(unknown(id))
    }
}

/// Drops recorded results, and returns their number.
///
/// # Errors
/// There is none with this id, or the change cannot be stored.
pub async fn drop_mocks(app: &App, principal: &Principal, scope: MockScope) -> Result<usize, Problem> {
    // What is noted and not written yet would be back a moment later.
    app.knowledge.write_mocks().await;
    let one = if let MockScope::One(id) = &scope { Some(id.clone()) } else { None };
    let dropped = app.store.drop_mocks(principal, scope).await?;
    match one {
        Some(id) if dropped == 0 => Err(unknown(id.as_str())),
        _ => Ok(dropped),
    }
}

/// What the recorded results were worth, by tool.
///
/// # Errors
/// The database cannot be read.
pub async fn mock_stats(app: &App, principal: &Principal) -> Result<Vec<MockStats>, Problem> {
    app.knowledge.write_mocks().await;
    let mut by_tool: BTreeMap<String, (MockStats, u64)> = BTreeMap::new();
    for mock in app.store.mocks(principal).await? {
        let (stats, confirmed) = by_tool.entry(mock.tool.to_string()).or_default();
        *stats.mocks.entry(mock.status.as_str()).or_default() += 1;
        stats.checked += mock.counts.checked;
        *confirmed += mock.counts.confirmed;
    }
    for (tool, lookups) in app.store.mock_lookups(principal).await? {
        let MockLookups { equal, similar, missing } = lookups;
        let (stats, _) = by_tool.entry(tool).or_default();
        (stats.equal, stats.similar, stats.missing) = (equal, similar, missing);
    }
    let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
    let finished = by_tool.into_iter().map(|(tool, (stats, confirmed))| MockStats {
        tool,
        hit_rate: share(stats.equal + stats.similar, stats.equal + stats.similar + stats.missing),
        curation_accuracy: share(confirmed, stats.checked),
        ..stats
    });
    Ok(finished.collect())
}

fn record(app: &App, mock: StoredMock) -> MockRecord {
    let tools = app.tools.snapshot();
    let current = tools.tool(&mock.tool).is_ok_and(|tool| tool.definition.digest == mock.digest);
    MockRecord {
        id: mock.id,
        tool: mock.tool,
        definition: mock.digest,
        current,
        status: mock.status,
        pattern: mock.pattern,
        arguments: mock.arguments,
        result: Some(mock.result),
        counts: mock.counts,
        recorded_at: mock.recorded_at,
        used_at: mock.used_at,
    }
}

fn unknown(id: &str) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("there is no mock `{}`", printable(id)))
        .hint("`pml mocks list` shows the mocks there are")
}
