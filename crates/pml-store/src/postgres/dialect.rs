//! Turns a statement in SQLite's dialect into one for PostgreSQL.
//!
//! Rows are marked and checked with a key that never reaches the server. So `row_is_vouched` and `row_mark` are taken
//! out of the statement: it returns the columns that they need after its own, and the connection computes with them.

mod token;

use rusqlite::types::Value;

use super::schema::{Schema, Table};
use crate::table::{MarkedTable, TABLES};
use token::{Token, close_of, find, render, split, tokenise};

/// A statement for PostgreSQL and what is to be done around it.
#[derive(Debug, Default)]
pub(super) struct Translation {
    pub(super) text: String,
    /// What to bind to `$1`, `$2` ….
    pub(super) sources: Vec<Source>,
    /// The number of columns that were added after those of the statement.
    pub(super) hidden: usize,
    /// The marks to be checked, in the order of their hidden columns.
    pub(super) checks: Vec<MarkCheck>,
    /// The rows to be marked after the statement.
    pub(super) marking: Option<Marking>,
    /// Whether the last hidden column is the number that a new row got.
    pub(super) returns_number: bool,
    /// Whether the statement returns rows at all.
    pub(super) returns_rows: bool,
}

/// A value to be bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// The parameter with this number, from 1.
    Given(usize),
    /// The mark of a row of this table, over parameters and constants.
    Mark { table: &'static str, over: Vec<MarkedValue> },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum MarkedValue {
    Given(usize),
    Constant(Value),
}

/// A mark to be checked: the first of `columns` hidden columns is the mark, the others are what it covers.
#[derive(Debug)]
pub(super) struct MarkCheck {
    pub(super) table: &'static str,
    pub(super) columns: usize,
    /// The column that is false where the mark is wrong; without it such a row is left out.
    pub(super) tells: Option<usize>,
}

/// Rows to be marked: the hidden columns are the key and then what the mark covers.
#[derive(Debug)]
pub(super) struct Marking {
    pub(super) table: &'static MarkedTable,
    /// Finds the rows as they are before: key, mark, and what it covers. A row whose mark is wrong keeps a wrong one.
    pub(super) before: Option<(String, Vec<Source>)>,
    /// Sets the mark of a row: the mark, then the key.
    pub(super) set_mark: String,
}

/// Words that PostgreSQL reserves and the tables use as names.
const RESERVED: [&str; 1] = ["similar"];

/// Translates a statement.
pub(super) fn translate(sql: &str, schema: &Schema) -> Translation {
    let tokens = general(&tokenise(sql), schema);
    match tokens.first().and_then(Token::word) {
        Some("INSERT") => insert(&tokens, schema),
        Some("UPDATE") => update(tokens, schema),
        Some("SELECT" | "WITH") => select(tokens),
        _ => plain(&tokens),
    }
}

/// What differs in every kind of statement.
fn general(tokens: &[Token], schema: &Schema) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    let word_at = |at: usize| tokens.get(at).and_then(Token::word);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match token {
            Token::Word(word) if word == "INDEXED" && word_at(at + 1) == Some("BY") => {
                at += 3;
                continue;
            }
            Token::Word(word) if word == "x" && next == Some(&Token::Text("''".to_owned())) => {
                out.push(Token::Symbol("'\\x'::bytea".to_owned()));
                at += 2;
                continue;
            }
            Token::Word(word)
                if matches!(word.as_str(), "max" | "min") && has_many_arguments(tokens, at + 1) =>
            {
                out.push(Token::from_word(if word == "max" { "greatest" } else { "least" }));
            }
            Token::Word(word) if word == "LIMIT" && next.is_some_and(|next| next.is("-")) => {
                out.extend([Token::from_word("LIMIT"), Token::from_word("ALL")]);
                at += 3;
                continue;
            }
            Token::Word(word) if word == "IS" => {
                let negated = word_at(at + 1) == Some("NOT");
                let compared = tokens.get(at + 1 + usize::from(negated));
                let constant = compared.and_then(Token::word);
                if matches!(constant, Some("NULL" | "NOT" | "TRUE" | "FALSE" | "DISTINCT")) {
                    out.push(token.clone());
                } else {
                    let words: &[&str] = if negated {
                        &["IS", "DISTINCT", "FROM"]
                    } else {
                        &["IS", "NOT", "DISTINCT", "FROM"]
                    };
                    out.extend(words.iter().map(|word| Token::from_word(word)));
                    at += 1 + usize::from(negated);
                    continue;
                }
            }
            // A parameter that is only compared with NULL has no type of its own.
            Token::Param(_) if word_at(at + 1) == Some("IS") => {
                out.push(token.clone());
                let negated = word_at(at + 2) == Some("NOT");
                if word_at(at + 2 + usize::from(negated)) == Some("NULL") {
                    out.push(Token::Symbol("::text".to_owned()));
                }
            }
            // SQLite's does not tell upper case from lower case.
            Token::Word(word) if word == "LIKE" => out.push(Token::from_word("ILIKE")),
            Token::Word(word) if word == "INTEGER" => out.push(Token::from_word("BIGINT")),
            Token::Word(word) if schema.is_boolean(word) && next.is_some_and(|next| next.is("=")) => {
                out.extend([token.clone(), Token::symbol("=")]);
                at += 2;
                if let Some(Token::Number(number)) = tokens.get(at) {
                    out.push(Token::from_word(if number == "1" { "TRUE" } else { "FALSE" }));
                    at += 1;
                }
                continue;
            }
            Token::Word(word) if next.is_some_and(|next| next.is("->")) => {
                let Some(Token::Text(path)) = tokens.get(at + 2) else { break };
                let json = format!("({word}::json -> {})::text", path.replace("$.", ""));
                out.push(Token::Symbol(json));
                at += 3;
                continue;
            }
            Token::Word(word) if RESERVED.contains(&word.as_str()) => {
                out.push(Token::Word(format!("\"{word}\"")));
            }
            other => out.push(other.clone()),
        }
        at += 1;
    }
    out
}

fn has_many_arguments(tokens: &[Token], open: usize) -> bool {
    tokens.get(open).is_some_and(|token| token.is("("))
        && split(&tokens[open + 1..close_of(tokens, open)]).len() > 1
}

fn plain(tokens: &[Token]) -> Translation {
    let returns_rows = find(tokens, 0, "RETURNING").is_some();
    let (text, sources) = render(tokens);
    Translation { text, sources, returns_rows, ..Translation::default() }
}

fn select(mut tokens: Vec<Token>) -> Translation {
    let mut hidden: Vec<Vec<Token>> = Vec::new();
    let mut checks = Vec::new();
    while let Some(at) = tokens.iter().position(|token| token.word() == Some("row_is_vouched")) {
        let close = close_of(&tokens, at + 1);
        let mut arguments: Vec<Vec<Token>> =
            split(&tokens[at + 2..close]).into_iter().map(<[Token]>::to_vec).collect();
        let table = arguments.remove(1);
        let begin = find(&tokens, 0, "SELECT").unwrap_or(0);
        let from = find(&tokens, begin, "FROM").unwrap_or(tokens.len());
        let tells = (begin < at && at < from).then(|| split(&tokens[begin + 1..at]).len() - 1);
        checks.push(MarkCheck { table: marked_name(&table), columns: arguments.len(), tells });
        hidden.extend(arguments);
        tokens.splice(at..=close, [Token::from_word("TRUE")]);
    }
    let from = find(&tokens, find(&tokens, 0, "SELECT").unwrap_or(0), "FROM").unwrap_or(tokens.len());
    let count = hidden.len();
    let columns = hidden.into_iter().flat_map(|column| std::iter::once(Token::symbol(",")).chain(column));
    tokens.splice(from..from, columns.collect::<Vec<_>>());
    let (text, sources) = render(&tokens);
    Translation { text, sources, hidden: count, checks, returns_rows: true, ..Translation::default() }
}

/// The table that a quoted name names.
fn marked_name(name: &[Token]) -> &'static str {
    let text = match name.first() {
        Some(Token::Text(text)) => text.trim_matches('\''),
        _ => "",
    };
    marked(text).map_or("", |table| table.name)
}

fn marked(name: &str) -> Option<&'static MarkedTable> {
    TABLES.iter().find(|table| table.name == name)
}

fn insert(tokens: &[Token], schema: &Schema) -> Translation {
    let into = find(tokens, 0, "INTO").unwrap_or(0);
    let or = tokens.get(2).and_then(Token::word).filter(|_| into == 3);
    let name = tokens.get(into + 1).and_then(Token::word).unwrap_or_default().to_owned();
    let Some(table) = schema.table(&name) else { return plain(tokens) };
    let open = into + 2;
    let close = close_of(tokens, open);
    let columns: Vec<String> =
        split(&tokens[open + 1..close]).into_iter().map(|column| render(column).0.replace('"', "")).collect();
    let conflict = find(tokens, close + 1, "CONFLICT").map(|at| at - 1);
    let returning = find(tokens, close + 1, "RETURNING");
    let source_end = conflict.or(returning).unwrap_or(tokens.len());
    let source = typed_source(&tokens[close + 1..source_end], &columns, table);

    let mut rest: Vec<Token> = match (or, conflict) {
        (Some("IGNORE"), _) => words("ON CONFLICT DO NOTHING"),
        (Some("REPLACE"), _) => replacement(table, &columns),
        (_, Some(at)) => upsert(&tokens[at..returning.unwrap_or(tokens.len())], &name, table),
        _ => Vec::new(),
    };
    let updates = conflict.is_some() && rest.iter().any(|token| token.word() == Some("UPDATE"));
    let marking = marked(&name).filter(|marked| !columns.iter().any(|column| column == marked.mark));
    let mut out = words("INSERT INTO");
    out.extend(tokens[into + 1..=close].iter().cloned());
    out.extend(source.iter().cloned());
    out.append(&mut rest);
    let returns_rows = returning.is_some();
    if let Some(at) = returning {
        out.extend(tokens[at..].iter().cloned());
    }
    let mut hidden = marking.map(|table| hidden_columns(&name, table)).unwrap_or_default();
    let number = table.number.as_ref().filter(|number| !columns.contains(number));
    hidden.extend(number.map(|number| format!("{name}.{number}")));
    append_hidden(&mut out, returns_rows, &hidden);
    let (text, sources) = render(&out);
    let marking = marking.map(|marked| Marking {
        table: marked,
        before: updates.then(|| before_upsert(&name, marked, &source, &columns)),
        set_mark: set_mark(marked),
    });
    let returns_number = number.is_some();
    Translation {
        text,
        sources,
        hidden: hidden.len(),
        checks: Vec::new(),
        marking,
        returns_number,
        returns_rows,
    }
}

fn update(mut tokens: Vec<Token>, schema: &Schema) -> Translation {
    let name = tokens.get(1).and_then(Token::word).unwrap_or_default().to_owned();
    if schema.table(&name).is_none() {
        return plain(&tokens);
    }
    remove_computed_mark(&mut tokens);
    let set = find(&tokens, 0, "SET").unwrap_or(0);
    let end = tokens.len();
    let returning = find(&tokens, set, "RETURNING");
    let condition = find(&tokens, set, "WHERE");
    let from = find(&tokens, set, "FROM").filter(|from| condition.is_none_or(|condition| *from < condition));
    let assigned_to = from.or(condition).or(returning).unwrap_or(end);
    let assigned: Vec<&str> = split(&tokens[set + 1..assigned_to])
        .into_iter()
        .filter_map(|assignment| assignment.first().and_then(Token::word))
        .collect();
    let marking = marked(&name)
        .filter(|table| table.marked_columns().any(|column| assigned.contains(&column)))
        .map(|table| {
            let mut before = words(&format!("SELECT {} FROM {name}", before_columns(&name, table)));
            if let Some(from) = from {
                before.push(Token::symbol(","));
                before.extend(tokens[from + 1..condition.or(returning).unwrap_or(end)].iter().cloned());
            }
            if let Some(condition) = condition {
                before.extend(tokens[condition..returning.unwrap_or(end)].iter().cloned());
            }
            Marking { table, before: Some(render(&before)), set_mark: set_mark(table) }
        });
    let hidden = marking.as_ref().map(|marking| hidden_columns(&name, marking.table)).unwrap_or_default();
    let returns_rows = returning.is_some();
    append_hidden(&mut tokens, returns_rows, &hidden);
    let (text, sources) = render(&tokens);
    Translation { text, sources, hidden: hidden.len(), marking, returns_rows, ..Translation::default() }
}

/// The rows that are inserted, each value with the type of its column: PostgreSQL takes a parameter that stands alone
/// for a text.
fn typed_source(source: &[Token], columns: &[String], table: &Table) -> Vec<Token> {
    let values = source.first().and_then(Token::word) == Some("VALUES");
    let (head, list, tail) = if values {
        let close = close_of(source, 1);
        (&source[..2], &source[2..close], &source[close..])
    } else {
        let end = find(source, 1, "FROM").or_else(|| find(source, 1, "WHERE")).unwrap_or(source.len());
        (&source[..1], &source[1..end], &source[end..])
    };
    let mut out = head.to_vec();
    for (place, item) in split(list).into_iter().enumerate() {
        if place > 0 {
            out.push(Token::symbol(","));
        }
        let kind = columns.get(place).and_then(|column| table.columns.get(column));
        match (item, kind) {
            ([Token::Number(number)], Some(kind)) if kind == "boolean" => {
                out.push(Token::from_word(if number == "1" { "TRUE" } else { "FALSE" }));
            }
            ([Token::Word(function), ..], _) if function == "row_mark" => out.push(computed_mark(item)),
            ([only @ Token::Param(_)], Some(kind)) => {
                out.extend([only.clone(), Token::Symbol(format!("::{kind}"))]);
            }
            _ => out.extend(item.iter().cloned()),
        }
    }
    out.extend(tail.iter().cloned());
    out
}

/// The mark of a row that is inserted, computed before the statement is sent.
fn computed_mark(call: &[Token]) -> Token {
    let arguments = split(&call[2..call.len() - 1]);
    let over = arguments[1..].iter().map(|argument| match argument {
        [Token::Param(number)] => MarkedValue::Given(*number),
        [Token::Number(number)] => MarkedValue::Constant(Value::Integer(number.parse().unwrap_or_default())),
        _ => MarkedValue::Constant(Value::Null),
    });
    Token::Bound(Source::Mark { table: marked_name(arguments[0]), over: over.collect() })
}

/// `INSERT OR REPLACE`: what the statement does not name gets its default.
fn replacement(table: &Table, columns: &[String]) -> Vec<Token> {
    let quoted = |name: &str| if RESERVED.contains(&name) { format!("\"{name}\"") } else { name.to_owned() };
    let set: Vec<String> = table
        .columns
        .keys()
        .filter(|column| !table.key.contains(column) && !table.generated.contains(*column))
        .map(|column| match columns.contains(column) {
            true => format!("{0} = excluded.{0}", quoted(column)),
            false => format!("{} = DEFAULT", quoted(column)),
        })
        .collect();
    if set.is_empty() {
        return words("ON CONFLICT DO NOTHING");
    }
    tokenise(&format!("ON CONFLICT ({}) DO UPDATE SET {}", table.key.join(", "), set.join(", ")))
}

/// `ON CONFLICT … DO …`, with a target and with names that belong to the row there is.
fn upsert(clause: &[Token], name: &str, table: &Table) -> Vec<Token> {
    let mut clause = clause.to_vec();
    remove_computed_mark(&mut clause);
    let Some(set) = find(&clause, 0, "SET") else { return clause };
    let mut out = clause[..=set].to_vec();
    if clause.get(2).and_then(Token::word) == Some("DO") {
        out.splice(2..2, tokenise(&format!("({})", table.key.join(", "))));
    }
    for (place, assignment) in split(&clause[set + 1..]).into_iter().enumerate() {
        if place > 0 {
            out.push(Token::symbol(","));
        }
        for (at, token) in assignment.iter().enumerate() {
            let is_column =
                token.word().is_some_and(|word| table.columns.contains_key(word.trim_matches('"')));
            let is_qualified = at > 0 && assignment[at - 1].is(".");
            let is_qualifier = assignment.get(at + 1).is_some_and(|next| next.is(".") || next.is("("));
            if at > 0 && is_column && !is_qualified && !is_qualifier {
                out.extend([Token::from_word(name), Token::symbol(".")]);
            }
            out.push(token.clone());
        }
    }
    out
}

/// Removes `, mark = row_mark(…)`: the row is marked after the statement.
fn remove_computed_mark(tokens: &mut Vec<Token>) {
    let call = |at: usize| tokens.get(at + 1).is_some_and(|next| next.is("("));
    let found = (0..tokens.len()).find(|at| tokens[*at].word() == Some("row_mark") && call(*at));
    if let Some(at) = found {
        let close = close_of(tokens, at + 1);
        // The comma, the name of the column and the sign stand before it.
        tokens.drain(at - 3..=close);
    }
}

fn hidden_columns(name: &str, table: &MarkedTable) -> Vec<String> {
    table.key.iter().copied().chain(table.marked_columns()).map(|column| format!("{name}.{column}")).collect()
}

fn before_columns(name: &str, table: &MarkedTable) -> String {
    let columns = table.key.iter().copied().chain([table.mark]).chain(table.marked_columns());
    columns.map(|column| format!("{name}.{column}")).collect::<Vec<_>>().join(", ")
}

fn before_upsert(
    name: &str,
    table: &MarkedTable,
    source: &[Token],
    columns: &[String],
) -> (String, Vec<Source>) {
    let key =
        |row: &str| table.key.iter().map(|column| format!("{row}.{column}")).collect::<Vec<_>>().join(", ");
    let mut tokens = words(&format!(
        "SELECT {} FROM {name} WHERE ({}) IN (SELECT {} FROM (",
        before_columns(name, table),
        key(name),
        key("new_row")
    ));
    tokens.extend(source.iter().cloned());
    tokens.extend(words(&format!(") AS new_row ({}))", columns.join(", "))));
    render(&tokens)
}

fn set_mark(table: &MarkedTable) -> String {
    let MarkedTable { name, mark, key, .. } = table;
    let same: Vec<String> =
        key.iter().enumerate().map(|(place, column)| format!("{column} = ${}", place + 2)).collect();
    format!("UPDATE {name} SET {mark} = $1 WHERE {}", same.join(" AND "))
}

fn append_hidden(tokens: &mut Vec<Token>, returns_rows: bool, hidden: &[String]) {
    if hidden.is_empty() {
        return;
    }
    tokens.push(if returns_rows { Token::symbol(",") } else { Token::from_word("RETURNING") });
    tokens.extend(tokenise(&hidden.join(", ")));
}

fn words(text: &str) -> Vec<Token> {
    tokenise(text)
}

#[cfg(test)]
mod tests;
