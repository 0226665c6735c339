//! Learned edges of the tool graph: which item follows which.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::sql::{Connection, Row, params};
use pml_model::Principal;
use pml_model::trace::EdgeKind;

use crate::column::unexpected_value;
use crate::vouch::{changed_mark_sql, vouched_condition};
use crate::{BlockingStore, Error};

/// An edge between two items. Tools are `server:tool`; capabilities are given by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedEdge {
    /// The earlier item.
    pub from: String,
    /// The later item.
    pub to: String,
    /// The relation between them.
    pub kind: EdgeKind,
    /// Number of traces that show it.
    pub count: u64,
}

impl BlockingStore {
    /// The edges from `item`, most frequent first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned_edges_from(
        &self,
        principal: &Principal,
        item: &str,
        kind: Option<EdgeKind>,
        limit: u32,
    ) -> Result<Vec<LearnedEdge>, Error> {
        let of = if kind.is_some() { "kind = ?3" } else { "?3 IS NULL" };
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "{SELECT} WHERE principal = ?1 AND source = ?2 AND {of} AND {}
                     ORDER BY count DESC, target, kind LIMIT ?4",
                    vouched_condition("edge", "edge")
                ))?
                .query_map(params![principal.0, item, kind.map(EdgeKind::as_str), limit], edge)?
                .collect()
        })
    }

    /// All edges that the principal's traces show.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn learned_edges(&self, principal: &Principal) -> Result<Vec<LearnedEdge>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "{SELECT} WHERE principal = ?1 AND {} ORDER BY source, kind, target",
                    vouched_condition("edge", "edge")
                ))?
                .query_map([&principal.0], edge)?
                .collect()
        })
    }
}

/// The columns that [`edge`] reads.
const SELECT: &str = "SELECT source, target, kind, count FROM edge";

fn edge(row: &Row<'_>) -> rusqlite::Result<LearnedEdge> {
    let word = row.get_ref(2)?.as_str()?;
    let kind =
        EdgeKind::parse(word).ok_or_else(|| unexpected_value(2, format!("`{word}` is no kind of edge")))?;
    Ok(LearnedEdge { from: row.get(0)?, to: row.get(1)?, kind, count: row.get(3)? })
}

/// Adds to the counts of edges: principal, from, kind, to. They are sorted, so that rows on the same page are written
/// together.
pub(super) fn add_edges(
    connection: &Connection,
    edges: BTreeMap<(Principal, String, EdgeKind, String), u64>,
) -> rusqlite::Result<()> {
    for ((principal, from, kind, to), count) in edges {
        put(connection, &principal, (&from, &to, kind.as_str()), count)?;
    }
    Ok(())
}

fn put(
    connection: &Connection,
    principal: &Principal,
    (from, to, kind): (&str, &str, &str),
    count: u64,
) -> rusqlite::Result<()> {
    static ADD: LazyLock<String> = LazyLock::new(|| {
        // Most edges are known, so a mark for the insertion would mostly be made in vain; the trigger makes it.
        format!(
            "INSERT INTO edge (principal, source, kind, target, count) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET count = count + excluded.count, mark = {}",
            changed_mark_sql("edge", &[("count", "count + excluded.count")])
        )
    });
    connection.prepare_cached(&ADD)?.execute(params![principal.0, from, kind, to, count]).map(drop)
}

/// Removes all edges of `item`, or moves them to `other` if it is given.
pub(super) fn move_edges(
    connection: &Connection,
    principal: &Principal,
    item: &str,
    other: Option<&str>,
) -> rusqlite::Result<()> {
    let edges: Vec<LearnedEdge> = connection
        .prepare_cached(&format!(
            "{SELECT} WHERE principal = ?1 AND (source = ?2 OR target = ?2) AND {}",
            vouched_condition("edge", "edge")
        ))?
        .query_map([principal.0.as_str(), item], edge)?
        .collect::<rusqlite::Result<_>>()?;
    connection
        .prepare_cached("DELETE FROM edge WHERE principal = ?1 AND (source = ?2 OR target = ?2)")?
        .execute([principal.0.as_str(), item])?;
    let Some(other) = other else { return Ok(()) };
    let moved = |end: String| if end == item { other.to_owned() } else { end };
    for LearnedEdge { from, to, kind, count } in edges {
        put(connection, principal, (&moved(from), &moved(to), kind.as_str()), count)?;
    }
    Ok(())
}
