//! Which tables are copied, and in which order.
//!
//! The list comes from the migrations themselves, so that no table can be forgotten. Both databases have the same tables
//! and columns, except for what only one of them needs to run.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::database::MIGRATIONS;

/// Tables that tell of the processes that use a database, and of the copy itself.
const LEFT_OUT: [&str; 3] = ["process", "server_state", "store_copy"];

/// A table whose rows triggers of the others write too. It comes last, and what the triggers wrote is replaced.
pub(super) const COUNTED: &str = "key_storage";

/// A table with one row from the beginning, which is replaced.
pub(super) const PREPARED: &str = "memory";

/// A table that is copied.
#[derive(Debug)]
pub(crate) struct CopiedTable {
    pub(crate) name: String,
    /// The columns that are stored, in order.
    pub(crate) columns: Vec<String>,
    /// The columns that identify a row, in order.
    pub(crate) key: Vec<String>,
    /// Whether the database gives numbers to new rows.
    pub(crate) is_numbered: bool,
}

impl CopiedTable {
    /// Quoted names, separated by commas.
    pub(crate) fn list(names: &[String]) -> String {
        names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    /// The key of a row.
    pub(super) fn key_of<V: Clone>(&self, row: &[V]) -> Vec<V> {
        let place = |key: &String| self.columns.iter().position(|column| column == key);
        self.key.iter().filter_map(place).filter_map(|place| row.get(place)).cloned().collect()
    }
}

/// All tables that are copied, each after those that it refers to.
pub(crate) fn copied_tables() -> rusqlite::Result<Vec<CopiedTable>> {
    let connection = Connection::open_in_memory()?;
    MIGRATIONS.iter().try_for_each(|migration| connection.execute_batch(migration))?;
    let mut names: Vec<String> = connection
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    names.retain(|name| !LEFT_OUT.contains(&name.as_str()) && name != COUNTED);
    let mut ordered: Vec<String> = Vec::new();
    while !names.is_empty() {
        let before: BTreeSet<&String> = ordered.iter().collect();
        let mut ready = Vec::new();
        for name in &names {
            let refers = references(&connection, name)?;
            if refers.iter().all(|other| before.contains(other) || other == name) {
                ready.push(name.clone());
            }
        }
        // References in a circle would be copied in any order, and the database would refuse them.
        let next = if ready.is_empty() { std::mem::take(&mut names) } else { ready };
        names.retain(|name| !next.contains(name));
        ordered.extend(next);
    }
    ordered.push(COUNTED.to_owned());
    ordered.into_iter().map(|name| table(&connection, name)).collect()
}

fn references(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT \"table\" FROM pragma_foreign_key_list(?1)")?
        .query_map([table], |row| row.get(0))?
        .collect()
}

fn table(connection: &Connection, name: String) -> rusqlite::Result<CopiedTable> {
    let mut columns = connection.prepare("SELECT name, pk, hidden, type FROM pragma_table_xinfo(?1)")?;
    let columns: Vec<(String, usize, i64, String)> = columns
        .query_map([&name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut key: Vec<(usize, &str, &str)> = columns
        .iter()
        .filter(|(_, place, _, _)| *place > 0)
        .map(|(name, place, _, kind)| (*place, name.as_str(), kind.as_str()))
        .collect();
    key.sort_unstable();
    let is_numbered = matches!(key.as_slice(), [(_, _, "INTEGER")]);
    Ok(CopiedTable {
        key: key.iter().map(|(_, name, _)| (*name).to_owned()).collect(),
        is_numbered,
        // Computed columns are computed again.
        columns: columns.iter().filter(|(_, _, hidden, _)| *hidden == 0).map(|row| row.0.clone()).collect(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_comes_after_those_that_it_refers_to() {
        let tables = copied_tables().unwrap();
        let place = |name: &str| tables.iter().position(|table| table.name == name).unwrap();
        for (table, other) in [
            ("run_key", "run"),
            ("trace_body", "trace"),
            ("trace", "capability"),
            ("explored_path", "trace"),
            ("tool", "definition"),
            ("key_use", "client_key"),
        ] {
            assert!(place(other) < place(table), "{table}");
        }
        assert_eq!(tables.last().unwrap().name, COUNTED);
        for table in &tables {
            assert!(!table.key.is_empty(), "{table:?}");
        }
        let intent = &tables[place("capability_intent")];
        assert_eq!(intent.key, ["capability", "text"]);
        let capability = &tables[place("capability")];
        assert!(!capability.columns.contains(&"state".to_owned()), "it is computed: {capability:?}");
        assert!(capability.is_numbered);
    }
}
