//! The tables whose rows carry marks, and the columns that count.

/// A table with marks.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The column with the mark.
    pub(crate) mark: &'static str,
    /// The columns that tell a row from the others.
    pub(crate) key: &'static [&'static str],
    /// The columns that count beside them.
    pub(crate) columns: &'static [&'static str],
    /// The key counts, too. Where it is given by SQLite it is not known before the row is there, and a statement that
    /// inserts many rows could not mark them in passing.
    pub(crate) key_counts: bool,
}

pub(crate) const TABLES: &[Table] = &[
    Table {
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
        key_counts: true,
    },
    Table {
        name: "definition",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "content", "digest", "raw"],
        key_counts: true,
    },
    Table {
        name: "tool",
        mark: "mark",
        key: &["principal", "server", "tool"],
        columns: &["identifier", "offered", "definition", "defined_at", "first_seen_at"],
        key_counts: true,
    },
    Table {
        name: "accepted_definition",
        mark: "mark",
        key: &["principal", "server", "launch", "tool"],
        columns: &["definition", "digest", "accepted_at"],
        key_counts: true,
    },
    Table {
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
        key_counts: true,
    },
    Table {
        name: "capability_procedure",
        mark: "mark",
        key: &["capability"],
        columns: &["tools", "procedure", "cache"],
        key_counts: true,
    },
    Table {
        name: "capability_intent",
        mark: "mark",
        key: &["capability", "text"],
        columns: &["count", "first_at", "last_at", "checked"],
        key_counts: true,
    },
    Table {
        name: "capability_alias",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "capability"],
        key_counts: true,
    },
    Table { name: "trace", mark: "mark", key: &["seq"], columns: &TRACE_COLUMNS, key_counts: false },
    // Of the body nothing is learned but the lesson.
    Table { name: "trace_body", mark: "mark", key: &["seq"], columns: &["lesson"], key_counts: true },
    Table {
        name: "edge",
        mark: "mark",
        key: &["principal", "source", "kind", "target"],
        columns: &["count"],
        key_counts: true,
    },
    Table {
        name: "tool_use",
        mark: "mark",
        key: &["principal", "tool"],
        columns: &["calls", "failures"],
        key_counts: true,
    },
    Table {
        name: "observed",
        mark: "mark",
        key: &["principal", "tool", "digest"],
        columns: &["shape"],
        key_counts: true,
    },
    Table {
        name: "cached_result",
        mark: "mark",
        key: &["principal", "capability", "parameters"],
        columns: &["epoch", "result", "at", "expires_at", "intent", "stamps"],
        key_counts: true,
    },
];

impl Table {
    /// The name and all columns that count, as arguments of a function.
    pub(crate) fn arguments(&self, row: &str) -> String {
        let columns = self.counted().map(|column| format!(", {row}.{column}"));
        format!("'{}'{}", self.name, columns.collect::<String>())
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &'static str> {
        let key = if self.key_counts { self.key } else { &[] };
        key.iter().chain(self.columns).copied()
    }

    pub(crate) fn vouched(&self, row: &str) -> String {
        format!("row_is_vouched({row}.{}, {})", self.mark, self.arguments(row))
    }

    pub(crate) fn triggers(&self) -> String {
        let Table { name, mark, key, .. } = self;
        let same = key.iter().map(|column| format!("{column} = new.{column}")).collect::<Vec<_>>();
        let same = same.join(" AND ");
        let counted = self.counted().collect::<Vec<_>>().join(", ");
        let (old, new) = (self.vouched("old"), self.arguments("new"));
        format!(
            "CREATE TEMP TRIGGER {name}_is_sound BEFORE UPDATE OF {counted} ON main.{name} WHEN NOT {old}
             BEGIN SELECT raise(IGNORE); END;
             CREATE TEMP TRIGGER {name}_is_marked AFTER INSERT ON main.{name} WHEN new.{mark} IS NULL
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;
             CREATE TEMP TRIGGER {name}_is_marked_anew AFTER UPDATE OF {counted} ON main.{name}
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;"
        )
    }
}

/// The columns a trace is stored with; the mark of its row is of all of them.
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
