//! The tables whose rows carry marks, and the columns that each mark covers.

/// A table with row marks.
#[derive(Debug)]
pub(crate) struct MarkedTable {
    pub(crate) name: &'static str,
    /// Name of the column with the mark.
    pub(crate) mark: &'static str,
    /// The columns that identify a row.
    pub(crate) key: &'static [&'static str],
    /// The other columns that the mark covers.
    pub(crate) columns: &'static [&'static str],
    /// Whether the mark covers the key too. A key that SQLite assigns is not known before the row is inserted, so a
    /// statement that inserts many rows could not mark them in passing.
    pub(crate) marks_key: bool,
}

pub(crate) const TABLES: &[MarkedTable] = &[
    MarkedTable {
        name: "approval_rule",
        mark: "row_mark",
        key: &["number"],
        columns: &[
            "principal",
            "tool",
            "definition",
            "code_hash",
            "arguments",
            "expires_at",
            "given_by",
            "created_at",
            "revoked_at",
            "uses",
            "used_at",
            "maker",
            "mark",
        ],
        marks_key: true,
    },
    MarkedTable {
        name: "definition",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "content", "digest", "raw"],
        marks_key: true,
    },
    MarkedTable {
        name: "tool",
        mark: "mark",
        key: &["principal", "server", "tool"],
        columns: &["identifier", "offered", "definition", "defined_at", "first_seen_at"],
        marks_key: true,
    },
    MarkedTable {
        name: "accepted_definition",
        mark: "mark",
        key: &["principal", "server", "launch", "tool"],
        columns: &["definition", "digest", "accepted_at"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability",
        mark: "mark",
        key: &["number"],
        columns: &[
            "id",
            "principal",
            "name",
            "created_at",
            "promoted_at",
            "approved",
            "outside_because",
            "outside_seq",
            "usage_count",
            "success_count",
            "failure_count",
            "failures_in_a_row",
            "avg_duration_ms",
            "last_used",
            "failing",
            "worked_seq",
            "learning",
            "examples",
        ],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_procedure",
        mark: "mark",
        key: &["capability"],
        columns: &["tools", "procedure", "cache"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_intent",
        mark: "mark",
        key: &["capability", "text"],
        columns: &["count", "first_at", "last_at", "checked"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_alias",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "capability"],
        marks_key: true,
    },
    MarkedTable { name: "trace", mark: "mark", key: &["seq"], columns: &TRACE_COLUMNS, marks_key: false },
    // Learning reads nothing of the body but the lesson.
    MarkedTable { name: "trace_body", mark: "mark", key: &["seq"], columns: &["lesson"], marks_key: true },
    MarkedTable {
        name: "explored_path",
        mark: "mark",
        key: &["seq"],
        columns: &[
            "principal",
            "exploration",
            "path",
            "procedure",
            "definitions",
            "intent",
            "outcome",
            "weight",
            "cause",
            "message",
        ],
        marks_key: true,
    },
    MarkedTable {
        name: "package_signer",
        mark: "mark",
        key: &["principal", "name"],
        columns: &["signer", "at"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_release",
        mark: "mark",
        key: &["principal", "name", "number"],
        columns: &["capability", "created_at", "offered_because"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_publication",
        mark: "mark",
        key: &["capability"],
        columns: &["principal", "visibility", "org", "project", "published_by", "at"],
        marks_key: true,
    },
    MarkedTable {
        name: "membership",
        mark: "mark",
        key: &["principal"],
        columns: &["org", "project"],
        marks_key: true,
    },
    MarkedTable {
        name: "capability_golden",
        mark: "mark",
        key: &["capability", "run"],
        columns: &["principal", "at"],
        marks_key: true,
    },
    MarkedTable {
        name: "edge",
        mark: "mark",
        key: &["principal", "source", "kind", "target"],
        columns: &["count"],
        marks_key: true,
    },
    MarkedTable {
        name: "tool_use",
        mark: "mark",
        key: &["principal", "tool"],
        columns: &["calls", "failures"],
        marks_key: true,
    },
    MarkedTable {
        name: "observed",
        mark: "mark",
        key: &["principal", "tool", "digest"],
        columns: &["shape"],
        marks_key: true,
    },
    MarkedTable {
        name: "cached_result",
        mark: "mark",
        key: &["principal", "capability", "parameters"],
        columns: &["epoch", "result", "at", "expires_at", "intent", "stamps"],
        marks_key: true,
    },
    MarkedTable {
        name: "mock",
        mark: "mark",
        key: &["principal", "id"],
        columns: &[
            "tool",
            "digest",
            "pattern",
            "arguments_digest",
            "arguments",
            "result",
            "status",
            "counts",
        ],
        marks_key: true,
    },
];

impl MarkedTable {
    /// The table name and all covered columns, as arguments of an SQL function.
    pub(crate) fn mark_arguments(&self, row: &str) -> String {
        let columns = self.marked_columns().map(|column| format!(", {row}.{column}"));
        format!("'{}'{}", self.name, columns.collect::<String>())
    }

    pub(crate) fn marked_columns(&self) -> impl Iterator<Item = &'static str> {
        let key = if self.marks_key { self.key } else { &[] };
        key.iter().chain(self.columns).copied()
    }

    pub(crate) fn vouched_condition(&self, row: &str) -> String {
        format!("row_is_vouched({row}.{}, {})", self.mark, self.mark_arguments(row))
    }

    pub(crate) fn trigger_sql(&self) -> String {
        let MarkedTable { name, mark, key, .. } = self;
        let same = key.iter().map(|column| format!("{column} = new.{column}")).collect::<Vec<_>>();
        let same = same.join(" AND ");
        let counted = self.marked_columns().collect::<Vec<_>>().join(", ");
        let (old, new) = (self.vouched_condition("old"), self.mark_arguments("new"));
        format!(
            "CREATE TEMP TRIGGER {name}_is_sound BEFORE UPDATE OF {counted} ON main.{name} WHEN NOT {old}
             BEGIN SELECT raise(IGNORE); END;
             CREATE TEMP TRIGGER {name}_is_marked AFTER INSERT ON main.{name} WHEN new.{mark} IS NULL
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;
             CREATE TEMP TRIGGER {name}_is_marked_anew AFTER UPDATE OF {counted} ON main.{name}
             WHEN new.{mark} IS old.{mark}
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;"
        )
    }
}

/// The columns that a trace is inserted with; the mark of its row covers all of them.
pub(crate) const TRACE_COLUMNS: [&str; 19] = [
    "id",
    "run",
    "principal",
    "session",
    "capability",
    "own",
    "plan_hash",
    "intent",
    "status",
    "error",
    "duration_ms",
    "created_at",
    "parent",
    "cached",
    "exploratory",
    "approved",
    "first_tool",
    "last_tool",
    "tells",
];
