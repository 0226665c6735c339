//! Comma-separated values.
//!
//! Cells are text in both directions; a number keeps its spelling.

use std::collections::HashSet;

use pml_model::json::Fields;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json::compact;
use super::tool::{
    BuiltinFailure, BuiltinSpec, BuiltinTool, QuotedName, READS, StopSignal, failure, object_schema,
};

/// The largest number of rows in arguments or result.
const MAX_ROWS: usize = 100_000;
/// The largest number of cells in arguments or result.
const MAX_CELLS: usize = 1_000_000;

/// The tools of the server.
pub(super) fn tools() -> Vec<BuiltinTool> {
    vec![BuiltinTool::blocking(parse_spec(), parse), BuiltinTool::blocking(stringify_spec(), stringify)]
}

fn delimiter_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 1,
        "description": "The one ASCII character between cells; `,` unless told."
    })
}

fn rows_schema(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": ["object", "array"] }, "description": description })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvParseArguments {
    csv: String,
    #[serde(default = "yes")]
    header: bool,
    delimiter: Option<char>,
}

fn yes() -> bool {
    true
}

#[derive(Serialize)]
struct CsvParseAnswer {
    columns: Vec<String>,
    rows: Vec<Value>,
}

fn parse_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "parse",
        title: "Parse CSV",
        description:
            "Turns CSV into rows: objects by column name when the first row is a header, lists of cells \
                      when not. Every row must have as many cells as the first. At most 100,000 rows."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "csv": { "type": "string", "description": "The CSV text." },
                "header": { "type": "boolean", "description": "Whether the first row names the columns; true unless told." },
                "delimiter": delimiter_schema(),
            }),
            &["csv"],
        ),
        output: object_schema(
            json!({
                "columns": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The names of the columns; empty without a header."
                },
                "rows": rows_schema("The rows in order; cells are strings."),
            }),
            &["columns", "rows"],
        ),
    }
}

fn parse(arguments: &CsvParseArguments, stop: &StopSignal) -> Result<CsvParseAnswer, BuiltinFailure> {
    let text = arguments.csv.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(arguments.header)
        .delimiter(delimiter(arguments.delimiter)?)
        .from_reader(text.as_bytes());
    let columns = if arguments.header { columns(&mut reader)? } else { Vec::new() };
    let (mut rows, mut cells) = (Vec::new(), 0);
    for record in reader.records() {
        let record = record.map_err(|error| failure!("the text is not CSV: {error}"))?;
        cells += record.len();
        bounded(rows.len() + 1, cells)?;
        if rows.len() % 1024 == 0 {
            stop.check()?;
        }
        rows.push(row(&columns, &record));
    }
    Ok(CsvParseAnswer { columns, rows })
}

fn columns(reader: &mut csv::Reader<&[u8]>) -> Result<Vec<String>, BuiltinFailure> {
    let header = reader.headers().map_err(|error| failure!("the text is not CSV: {error}"))?;
    let mut seen = HashSet::new();
    for name in header {
        if !seen.insert(name) {
            return Err(failure!(
                "column {} appears twice, so rows cannot be objects; parse with `header: false`",
                QuotedName(name)
            ));
        }
    }
    Ok(header.iter().map(ToOwned::to_owned).collect())
}

fn row(columns: &[String], record: &csv::StringRecord) -> Value {
    if columns.is_empty() {
        return record.iter().collect();
    }
    let members: Map<String, Value> = columns.iter().cloned().zip(record.iter().map(Value::from)).collect();
    Value::Object(members)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvStringifyArguments {
    rows: Vec<Box<RawValue>>,
    columns: Option<Vec<String>>,
    delimiter: Option<char>,
}

#[derive(Serialize)]
struct CsvStringifyAnswer {
    csv: String,
}

fn stringify_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "stringify",
        title: "Write CSV",
        description: "Turns rows into CSV. Rows are objects (written below a header, missing members empty) or \
                      lists of cells (a header only when `columns` is given). Null is an empty cell; lists and \
                      objects in a cell are written as JSON.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "rows": rows_schema("The rows, all objects or all lists."),
                "columns": {
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "description": "The columns to write, in order; for objects every member met unless told."
                },
                "delimiter": delimiter_schema(),
            }),
            &["rows"],
        ),
        output: object_schema(
            json!({ "csv": { "type": "string", "description": "The CSV text; lines end with a line feed." } }),
            &["csv"],
        ),
    }
}

fn stringify(
    arguments: &CsvStringifyArguments,
    stop: &StopSignal,
) -> Result<CsvStringifyAnswer, BuiltinFailure> {
    let rows = arguments.rows.iter().enumerate().map(|(at, row)| CsvRow::read(at, row));
    let rows: Vec<CsvRow<'_>> = rows.collect::<Result<_, _>>()?;
    let columns = match &arguments.columns {
        Some(columns) => columns.clone(),
        None => members_met(&rows),
    };
    bounded(rows.len(), rows.len() * columns.len().max(1))?;
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter(arguments.delimiter)?)
        .flexible(true)
        .from_writer(Vec::new());
    let broken = |error: csv::Error| failure!("the rows cannot be written as CSV: {error}");
    if !columns.is_empty() {
        writer.write_record(&columns).map_err(broken)?;
    }
    for (at, row) in rows.iter().enumerate() {
        if at % 1024 == 0 {
            stop.check()?;
        }
        writer.write_record(row.cells(at, &columns)?).map_err(broken)?;
    }
    let bytes =
        writer.into_inner().map_err(|error| failure!("the rows cannot be written as CSV: {error}"))?;
    Ok(CsvStringifyAnswer {
        csv: String::from_utf8(bytes).expect("cells are text, and so are the delimiters"),
    })
}

enum CsvRow<'a> {
    Members(Fields<'a>),
    Cells(Vec<&'a RawValue>),
}

impl<'a> CsvRow<'a> {
    fn read(at: usize, row: &'a RawValue) -> Result<CsvRow<'a>, BuiltinFailure> {
        let text = row.get();
        let read = if text.starts_with('[') {
            serde_json::from_str(text).map(CsvRow::Cells)
        } else {
            Fields::parse(text).map(CsvRow::Members)
        };
        read.map_err(|_| failure!("row {} is neither an object nor a list", at + 1))
    }

    fn cells(&self, at: usize, columns: &[String]) -> Result<Vec<String>, BuiltinFailure> {
        match self {
            CsvRow::Members(fields) if columns.is_empty() && !fields.is_empty() => {
                Err(failure!("row {} is an object among lists; give all rows the same shape", at + 1))
            }
            CsvRow::Members(fields) => {
                Ok(columns.iter().map(|column| fields.get(column).map_or_else(String::new, cell)).collect())
            }
            CsvRow::Cells(cells) if !columns.is_empty() && cells.len() != columns.len() => {
                Err(failure!("row {} has {} cells for {} columns", at + 1, cells.len(), columns.len()))
            }
            CsvRow::Cells(cells) => Ok(cells.iter().map(|&value| cell(value)).collect()),
        }
    }
}

/// The members of all rows, in order of first occurrence.
fn members_met(rows: &[CsvRow<'_>]) -> Vec<String> {
    let (mut seen, mut columns) = (HashSet::new(), Vec::new());
    for row in rows {
        if let CsvRow::Members(fields) = row {
            columns.extend(fields.iter().map(|(name, _)| name).filter(|&name| seen.insert(name)));
        }
    }
    columns.into_iter().map(ToOwned::to_owned).collect()
}

fn cell(value: &RawValue) -> String {
    match value.get() {
        "null" => String::new(),
        text if text.starts_with('"') => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        text if text.starts_with(['[', '{']) => compact(value).get().to_owned(),
        text => text.to_owned(),
    }
}

fn delimiter(given: Option<char>) -> Result<u8, BuiltinFailure> {
    match u8::try_from(given.unwrap_or(',')) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(byte),
        _ => Err(failure!("`delimiter` must be one ASCII character other than a quote or a line break")),
    }
}

fn bounded(rows: usize, cells: usize) -> Result<(), BuiltinFailure> {
    if rows > MAX_ROWS || cells > MAX_CELLS {
        return Err(failure!("at most {MAX_ROWS} rows and {MAX_CELLS} cells are taken; give them in parts"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::builtin::check::{check, server};

    #[test]
    fn a_header_makes_rows_objects() {
        let server = server("csv");
        check(
            &server,
            "parse",
            r#"{"csv":"\ufeffname,note\r\nAda,\"a, \"\"b\"\"\n2\"\nBob,007\n"}"#,
            &expect![[
                r#"{"columns":["name","note"],"rows":[{"name":"Ada","note":"a, \"b\"\n2"},{"name":"Bob","note":"007"}]}"#
            ]],
        );
        check(
            &server,
            "parse",
            r#"{"csv":"a;b\n1;2","header":false,"delimiter":";"}"#,
            &expect![[r#"{"columns":[],"rows":[["a","b"],["1","2"]]}"#]],
        );
        check(&server, "parse", r#"{"csv":""}"#, &expect![[r#"{"columns":[],"rows":[]}"#]]);
    }

    #[test]
    fn rows_that_would_lose_cells_are_refused() {
        let server = server("csv");
        check(
            &server,
            "parse",
            r#"{"csv":"a,a\n1,2"}"#,
            &expect![
                "error: column `a` appears twice, so rows cannot be objects; parse with `header: false`"
            ],
        );
        check(
            &server,
            "parse",
            r#"{"csv":"a,b\n1,2\n3"}"#,
            &expect![
                "error: the text is not CSV: CSV error: record 2 (line: 3, byte: 8): found record with 1 fields, but the previous record has 2 fields"
            ],
        );
        check(
            &server,
            "parse",
            r#"{"csv":"a","delimiter":"é"}"#,
            &expect!["error: `delimiter` must be one ASCII character other than a quote or a line break"],
        );
    }

    #[test]
    fn rows_are_written_below_their_columns() {
        let server = server("csv");
        check(
            &server,
            "stringify",
            r#"{"rows":[{"a":10e110,"b":"x, y"},{"b":null,"c":{"k":[ 1 ]},"a":true}]}"#,
            &expect![[r#"{"csv":"a,b,c\n10e110,\"x, y\",\ntrue,,\"{\"\"k\"\":[1]}\"\n"}"#]],
        );
        check(
            &server,
            "stringify",
            r#"{"rows":[{"a":1,"b":2}],"columns":["b"],"delimiter":"\t"}"#,
            &expect![[r#"{"csv":"b\n2\n"}"#]],
        );
        check(&server, "stringify", r#"{"rows":[["1","a b"],[2]]}"#, &expect![[r#"{"csv":"1,a b\n2\n"}"#]]);
        check(&server, "stringify", r#"{"rows":[]}"#, &expect![[r#"{"csv":""}"#]]);
    }

    #[test]
    fn rows_of_another_shape_are_named() {
        let server = server("csv");
        check(
            &server,
            "stringify",
            r#"{"rows":[[1],2]}"#,
            &expect!["error: row 2 is neither an object nor a list"],
        );
        check(
            &server,
            "stringify",
            r#"{"rows":[{"a":1,"b":2},[1]]}"#,
            &expect!["error: row 2 has 1 cells for 2 columns"],
        );
    }
}
