//! Statements as the store writes them, and what PostgreSQL is given.

use super::*;

fn schema() -> Schema {
    let table = |key: &[&str], columns: &[(&str, &str)], number: Option<&str>| Table {
        key: key.iter().map(|name| (*name).to_owned()).collect(),
        columns: columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect(),
        generated: Default::default(),
        number: number.map(str::to_owned),
    };
    let text = "text";
    Schema::of([
        (
            "run".to_owned(),
            table(
                &["number"],
                &[("number", "bigint"), ("id", text), ("answered", "boolean")],
                Some("number"),
            ),
        ),
        (
            "edge".to_owned(),
            table(
                &["principal", "source", "kind", "target"],
                &[
                    ("principal", text),
                    ("source", text),
                    ("kind", text),
                    ("target", text),
                    ("count", "bigint"),
                    ("mark", "bytea"),
                ],
                None,
            ),
        ),
        (
            "sign_in".to_owned(),
            table(&["door"], &[("door", text), ("wrong", "bigint"), ("hint", text)], None),
        ),
    ])
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    assert_eq!(translate(sql, &schema()).text, expected);
}

#[test]
fn what_only_sqlite_writes_is_written_otherwise() {
    check(
        "SELECT id FROM run INDEXED BY run_asks WHERE answered = 0",
        "SELECT id FROM run WHERE answered = FALSE",
    );
    check(
        "SELECT max(a, ?2), max(b) FROM run LIMIT -1 OFFSET ?1",
        "SELECT greatest (a, $1), max (b) FROM run LIMIT ALL OFFSET $2",
    );
    check(
        "SELECT 1 FROM run WHERE id IS ?1 AND a IS NOT b",
        "SELECT 1 FROM run WHERE id IS NOT DISTINCT FROM $1 AND a IS DISTINCT FROM b",
    );
    check(
        "SELECT 1 FROM run WHERE (?2 IS NULL OR id = ?2)",
        "SELECT 1 FROM run WHERE ($1::text IS NULL OR id = $1)",
    );
    check("SELECT 'it''s ?1', x'' FROM run", "SELECT 'it''s ?1', '\\x'::bytea FROM run");
    check(
        "INSERT OR REPLACE INTO sign_in (door, wrong) VALUES (?1, ?2)",
        "INSERT INTO sign_in (door, wrong) VALUES ($1::text, $2::bigint) ON CONFLICT (door) DO UPDATE SET hint = DEFAULT, wrong = excluded.wrong",
    );
    check(
        "INSERT INTO run (id, answered) VALUES (?1, 0)",
        "INSERT INTO run (id, answered) VALUES ($1::text, FALSE) RETURNING run.number",
    );
}

#[test]
fn marks_are_left_to_the_connection() {
    let sound = TABLES.iter().find(|table| table.name == "edge").map(|table| table.vouched_condition("edge"));
    let found = translate(
        &format!(
            "SELECT count FROM edge WHERE principal = ?1 AND {} LIMIT ?2",
            sound.clone().unwrap_or_default()
        ),
        &schema(),
    );
    assert_eq!(
        found.text,
        "SELECT count, edge.mark, edge.principal, edge.source, edge.kind, edge.target, edge.count FROM edge \
         WHERE principal = $1 AND TRUE LIMIT $2"
    );
    assert_eq!((found.hidden, found.checks[0].tells), (6, None));
    let told = translate(&format!("SELECT count, {}, kind FROM edge", sound.unwrap_or_default()), &schema());
    assert_eq!(told.checks[0].tells, Some(1));

    let added = translate(
        "INSERT INTO edge (principal, source, kind, target, count) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET count = count + excluded.count, mark = row_mark('edge', principal, count)",
        &schema(),
    );
    assert_eq!(
        added.text,
        "INSERT INTO edge (principal, source, kind, target, count) VALUES ($1::text, $2::text, $3::text, $4::text, \
         $5::bigint) ON CONFLICT (principal, source, kind, target) DO UPDATE SET count = edge.count + excluded.count \
         RETURNING edge.principal, edge.source, edge.kind, edge.target, edge.principal, edge.source, edge.kind, \
         edge.target, edge.count"
    );
    let marking = added.marking.unwrap();
    assert_eq!(
        marking.set_mark,
        "UPDATE edge SET mark = $1 WHERE principal = $2 AND source = $3 AND kind = $4 AND target = $5"
    );
    let (before, sources) = marking.before.unwrap();
    assert!(before.contains("IN (SELECT new_row.principal"), "{before}");
    assert_eq!(sources.len(), 5);
}
