//! The rows of a SQL query, from its text.
//!
//! Only as much of the language is read as names the columns: the list after the last top-level `select`, equalities
//! of its `where`, and `limit`. Anything else gives rows with a few usual columns.

use serde_json::{Map, Value, json};

/// The schema keyword by which a connector asks for the rows of the query in this argument.
const ROWS_OF: &str = "x-rows-of";
/// Maximum number of bytes of a query that are read.
const MAX_QUERY_BYTES: usize = 64 * 1024;

/// The schema of the result of a query; `None` if `result` does not ask for one.
pub(super) fn result(result: &Value, arguments: &Value) -> Option<Value> {
    let argument = result.get(ROWS_OF)?.as_str()?;
    let text = arguments.get(argument)?.as_str().unwrap_or_default();
    let tokens = tokens(byte_prefix(text));
    match tokens.first().map(|token| token.to_lowercase()).as_deref() {
        Some("select" | "with" | "values" | "show" | "explain" | "pragma" | "table") => Some(rows(&tokens)),
        command => Some(changed(command.unwrap_or("query"))),
    }
}

fn byte_prefix(text: &str) -> &str {
    let end = (0..=MAX_QUERY_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Names, numbers, quoted texts and single characters, without comments.
fn tokens(query: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("--") {
            let end = rest.find('\n').unwrap_or(rest.len());
            rest = rest[end..].trim_start();
            continue;
        } else if let Some(within) = ["'", "\"", "`"].iter().find_map(|quote| rest.strip_prefix(*quote)) {
            within.find(first).map_or(rest.len(), |end| end + 2)
        } else if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

/// A change: what the driver of a database tells of it.
fn changed(command: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {"const": command.to_uppercase()},
            "rowCount": {"type": "integer", "minimum": 0, "maximum": 1, "default": 1},
            "rows": {"type": "array", "maxItems": 0}
        },
        "required": ["command", "rowCount", "rows"]
    })
}

/// The schema of a list of rows.
fn rows(tokens: &[String]) -> Value {
    let mut columns = Map::new();
    for item in selected(tokens) {
        match column(item) {
            Some((name, of)) => drop(columns.insert(name, of)),
            None => usual_columns().into_iter().for_each(|(name, of)| drop(columns.insert(name, of))),
        }
    }
    let aggregates = !columns.is_empty() && columns.values().all(|of| of.get("x-aggregate").is_some());
    for (name, value) in equalities(tokens) {
        if columns.contains_key(&name) {
            columns.insert(name, json!({"const": value}));
        }
    }
    if columns.is_empty() {
        columns = usual_columns();
    }
    let required: Vec<Value> = columns.keys().map(|name| Value::from(name.as_str())).collect();
    let row = json!({"type": "object", "properties": columns, "required": required});
    let grouped = tokens.iter().any(|token| token.eq_ignore_ascii_case("group"));
    match (aggregates && !grouped, limit(tokens)) {
        (true, _) => json!({"type": "array", "items": row, "minItems": 1, "maxItems": 1}),
        (false, Some(limit)) => json!({"type": "array", "items": row, "maxItems": limit}),
        (false, None) => json!({"type": "array", "items": row}),
    }
}

fn usual_columns() -> Map<String, Value> {
    ["id", "name", "created_at"].into_iter().map(|name| (name.to_owned(), of_name(name))).collect()
}

/// The items of the last select list that is not in parentheses: of a `with` query, that is the outer one.
fn selected(tokens: &[String]) -> Vec<&[String]> {
    let mut depth = 0_i32;
    let mut start = None;
    let mut end = tokens.len();
    for (index, token) in tokens.iter().enumerate() {
        match token.to_lowercase().as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            "select" if depth == 0 => (start, end) = (Some(index + 1), tokens.len()),
            "from" | ";" | "limit" | "where" if depth == 0 && end == tokens.len() => end = index,
            _ => {}
        }
    }
    let Some(start) = start else { return Vec::new() };
    let list = tokens.get(start..end).unwrap_or_default();
    let mut depth = 0_i32;
    let items = list.split(|token| {
        depth += i32::from(token == "(") - i32::from(token == ")");
        depth == 0 && token == ","
    });
    items.filter(|item| !item.is_empty()).collect()
}

/// The name and the schema of one selected item; `None` for `*`.
fn column(item: &[String]) -> Option<(String, Value)> {
    let last = item.last()?;
    if last == "*" {
        return None;
    }
    let function =
        item.get(1).filter(|token| *token == "(").and(item.first()).map(|name| name.to_lowercase());
    let name =
        if last == ")" { function.clone().unwrap_or_else(|| "column".to_owned()) } else { unquoted(last) };
    let of = match function.as_deref() {
        Some("count") => json!({"type": "integer", "minimum": 0, "x-aggregate": true}),
        Some("sum" | "avg" | "total") => json!({"type": "number", "x-aggregate": true}),
        Some("min" | "max") => {
            let mut of = of_name(&name);
            of["x-aggregate"] = Value::Bool(true);
            of
        }
        _ => of_name(&name),
    };
    Some((name, of))
}

/// The schema of a column, from its name.
fn of_name(name: &str) -> Value {
    const NUMBERS: &[&str] = &[
        "id", "count", "quantity", "qty", "age", "year", "number", "size", "rank", "position", "stock",
        "month", "day",
    ];
    const FRACTIONS: &[&str] =
        &["price", "amount", "total", "cost", "balance", "rate", "score", "avg", "sum", "revenue"];
    const FLAGS: &[&str] = &["is", "has", "active", "enabled", "deleted", "archived"];
    let words = crate::names::words(name);
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    if words.last().is_some_and(|word| ["at", "time", "timestamp"].contains(&word.as_str())) {
        json!({"type": "string", "format": "date-time"})
    } else if has(FLAGS) {
        json!({"type": "boolean"})
    } else if has(NUMBERS) {
        json!({"type": "integer", "minimum": 1})
    } else if has(FRACTIONS) {
        json!({"type": "number"})
    } else {
        json!({"type": "string"})
    }
}

/// `column = literal` of the outer query, each of which holds for every row.
fn equalities(tokens: &[String]) -> Vec<(String, Value)> {
    // With `or`, no single one holds for every row.
    if tokens.iter().any(|token| token.eq_ignore_ascii_case("or")) {
        return Vec::new();
    }
    let literal = |token: &String| match token.strip_prefix('\'') {
        Some(text) => Some(Value::from(text.trim_end_matches('\''))),
        None => token.parse::<i64>().ok().map(Value::from),
    };
    let triples = tokens.windows(4).filter(|four| four[1] == "=" && four[3] != ".");
    let last =
        tokens.get(tokens.len().saturating_sub(3)..).filter(|three| three.len() == 3 && three[1] == "=");
    triples
        .map(|four| &four[..3])
        .chain(last)
        .filter_map(|three| Some((unquoted(&three[0]), literal(&three[2])?)))
        .collect()
}

fn limit(tokens: &[String]) -> Option<u64> {
    let at = tokens.iter().rposition(|token| token.eq_ignore_ascii_case("limit"))?;
    tokens.get(at + 1)?.parse().ok()
}

fn unquoted(token: &str) -> String {
    token.trim_matches(['"', '`', '\'']).to_owned()
}
