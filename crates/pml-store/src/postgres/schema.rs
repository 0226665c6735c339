//! The tables of the database, as far as statements have to be adapted to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A table.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The columns of the primary key, in order.
    pub(super) key: Vec<String>,
    /// The type of each column.
    pub(super) columns: BTreeMap<String, String>,
    /// The columns that the database computes.
    pub(super) generated: BTreeSet<String>,
    /// The key column, if the database gives numbers to new rows.
    pub(super) number: Option<String>,
}

/// All tables, by name.
#[derive(Debug, Default)]
pub(super) struct Schema {
    tables: HashMap<String, Table>,
    booleans: BTreeSet<String>,
}

/// Query for the columns of all tables: table, column, type, whether it is computed, whether it has a default, and its
/// place in the primary key.
pub(super) const COLUMNS: &str = "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL),
        a.attgenerated <> '', a.atthasdef, coalesce(array_position(i.indkey::int2[], a.attnum), -1)::bigint
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relkind = 'r' ORDER BY 1, 6";

/// A row of [`COLUMNS`].
pub(super) struct ColumnRow {
    pub(super) table: String,
    pub(super) column: String,
    pub(super) kind: String,
    pub(super) is_generated: bool,
    pub(super) has_default: bool,
    /// Place in the key; negative for other columns.
    pub(super) place: i64,
}

impl Schema {
    pub(super) fn of(tables: impl IntoIterator<Item = (String, Table)>) -> Schema {
        let tables: HashMap<String, Table> = tables.into_iter().collect();
        let columns = tables.values().flat_map(|table| &table.columns);
        let booleans = columns.filter(|(_, kind)| *kind == "boolean").map(|(name, _)| name.clone()).collect();
        Schema { tables, booleans }
    }

    pub(super) fn from_rows(rows: Vec<ColumnRow>) -> Schema {
        let mut tables: HashMap<String, Table> = HashMap::new();
        for row in rows {
            let table = tables.entry(row.table).or_default();
            if row.place >= 0 {
                table.key.push(row.column.clone());
                table.number = (row.has_default && table.key.len() == 1).then(|| row.column.clone());
            }
            if row.is_generated {
                table.generated.insert(row.column.clone());
            }
            table.columns.insert(row.column, row.kind);
        }
        Schema::of(tables)
    }

    pub(super) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// Whether a column of this name is a boolean. The same name never means a number elsewhere.
    pub(super) fn is_boolean(&self, column: &str) -> bool {
        self.booleans.contains(column)
    }
}
