//! Changed definitions, and what becomes of a program that calls the tool.

use pml_analysis::{AnalysisCatalogue, AnalysisTool};
use pml_model::json::raw;
use serde_json::json;

use super::*;

/// `name: description | fields -> results`, a field as `name!: type "description" =default`, with `!` where it is required.
fn definition(text: &str) -> Definition {
    let (head, schemas) = text.split_once('|').unwrap();
    let (name, description) = head.split_once(':').unwrap();
    let (input, output) =
        schemas.split_once("->").map_or((schemas, None), |(input, output)| (input, Some(output)));
    let mut whole =
        json!({ "name": name.trim(), "description": description.trim(), "inputSchema": schema(input) });
    if let Some(output) = output {
        whole["outputSchema"] = schema(output);
    }
    Definition::parse(raw(&whole)).unwrap()
}

fn schema(text: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in text.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, rest) = field.split_once(':').unwrap();
        let (rest, default) =
            rest.split_once('=').map_or((rest, None), |(rest, default)| (rest, Some(default)));
        let (kind, description) = rest.split_once('"').map_or((rest, ""), |(kind, text)| (kind, text));
        let mut schema = match kind.trim() {
            kind if kind.contains('/') => {
                json!({ "type": "string", "enum": kind.split('/').collect::<Vec<_>>() })
            }
            kind => json!({ "type": kind }),
        };
        if !description.is_empty() {
            schema["description"] = json!(description.trim_end().trim_end_matches('"'));
        }
        if let Some(default) = default {
            schema["default"] = serde_json::from_str(default).unwrap();
        }
        let name = name.trim();
        if name.ends_with('!') {
            required.push(name.trim_end_matches('!').rsplit('.').next_back().unwrap().to_owned());
        }
        // `a.b` is a member of the object `a`.
        let mut place = &mut properties;
        let path: Vec<&str> = name.trim_end_matches('!').split('.').collect();
        for outer in &path[..path.len() - 1] {
            let member = place.entry(*outer).or_insert_with(|| json!({ "type": "object", "properties": {} }));
            place = member["properties"].as_object_mut().unwrap();
        }
        place.insert(path[path.len() - 1].to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn catalogue(tools: &[OfferedTool]) -> AnalysisCatalogue {
    let mut catalogue = AnalysisCatalogue::default();
    for tool in tools {
        let Definition { input_schema, output_schema, .. } = tool.definition.clone();
        let (id, name) = (tool.id.clone(), tool.identifier.clone());
        catalogue.add_tool(AnalysisTool::new(id, name, input_schema, output_schema, false));
    }
    catalogue
}

fn offered(text: &str, is_new: bool) -> OfferedTool {
    let definition = definition(text);
    let identifier = definition.name.replace('-', "_");
    OfferedTool {
        id: ToolId::parse(&format!("s:{}", definition.name)).unwrap(),
        identifier,
        definition,
        is_new,
    }
}

/// What a program becomes when the tool that it calls, `before`, is replaced by those of `now`; a name that `before` does
/// not have is new.
fn repaired(code: &str, before: &str, now: &[&str]) -> Option<String> {
    let old = offered(before, false);
    let now: Vec<OfferedTool> = now
        .iter()
        .map(|text| {
            let is_new = !text.starts_with('=') && !text.starts_with(&format!("{}:", old.definition.name));
            offered(text.trim_start_matches('='), is_new)
        })
        .collect();
    let structure = pml_analysis::analyse(code, &catalogue(std::slice::from_ref(&old))).unwrap().structure;
    let found = repair_program(code, &structure, (&old.id, &old.definition), &now, &catalogue(&now))?;
    Some(found.code)
}

const CITY: &str =
    "report: the weather | city!: string \"Name of the city to report on\" -> degrees: number; sky: string";
const USE: &str = "const w = await mcp.s.report({ city: 'Oslo' });\nreturn w.degrees;";
const FIND: &str = "find: finds issues | repo!: string; q!: string; limit: integer; state: open/closed";
const LOOK: &str = "return mcp.s.find({ repo: args.repo, q: 'bug', limit: 3 })";

/// A change that can be followed: the program, the tool before, the tools now, and what the new program has in it.
const REPAIRABLE: &[(&str, &str, &[&str], &str)] = &[
    (
        USE,
        CITY,
        &[
            "report: the weather | town!: string \"Name of the city to report on\" -> degrees: number; sky: string",
        ],
        "{ town: 'Oslo' }",
    ),
    (
        USE,
        CITY,
        &["report: the weather | cityName!: string -> degrees: number; sky: string"],
        "{ cityName: 'Oslo' }",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city_name!: string -> degrees: number; sky: string"],
        "{ city_name: 'Oslo' }",
    ),
    (USE, CITY, &["report: the weather | City!: string -> degrees: number; sky: string"], "{ City: 'Oslo' }"),
    (USE, CITY, &["report: the weather | cities!: string -> degrees: number; sky: string"], ""),
    (
        USE,
        CITY,
        &["report: the weather | city!: string; units!: string =\"metric\" -> degrees: number; sky: string"],
        "{ units: \"metric\", city: 'Oslo' }",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city!: string; days!: integer =1 -> degrees: number; sky: string"],
        "{ days: 1, city",
    ),
    (USE, CITY, &["report: the weather | city!: string; mode!: fast/ -> degrees: number; sky: string"], ""),
    (
        USE,
        CITY,
        &["report: the weather | city!: string; live!: boolean =true -> degrees: number; sky: string"],
        "{ live: true, city",
    ),
    (
        USE,
        CITY,
        &[
            "report: the weather | town!: string \"Name of the city to report on\"; days!: integer =1 -> degrees: number; sky: string",
        ],
        "{ days: 1, town: 'Oslo' }",
    ),
    (
        USE,
        CITY,
        &["get-report: the weather | city!: string -> degrees: number; sky: string"],
        "mcp.s.get_report({ city: 'Oslo' })",
    ),
    (
        USE,
        CITY,
        &["reports: the weather | city!: string -> degrees: number; sky: string"],
        "mcp.s.reports({ city: 'Oslo' })",
    ),
    (
        USE,
        "report: tells the weather of a city | city!: string",
        &["forecast: tells the weather of a city | city!: string"],
        "mcp.s.forecast({ city: 'Oslo' })",
    ),
    (
        USE,
        "report: tells the weather of a city | city!: string",
        &["report-text: tells the weather of a city | city!: string"],
        "mcp.s.report_text({ city",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city!: string -> current.degrees: number; sky: string"],
        ".then((r) => ({ ...r, degrees: r?.current?.degrees }))",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city!: string -> data.now.degrees: number; sky: string"],
        "r?.data?.now?.degrees",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city!: string -> Degrees: number; sky: string"],
        "degrees: r?.Degrees",
    ),
    (
        USE,
        CITY,
        &[
            "report: the weather | town!: string \"Name of the city to report on\" -> current.degrees: number; sky: string",
        ],
        "mcp.s.report({ town: 'Oslo' }).then(",
    ),
    (
        USE,
        CITY,
        &["report: the weather | city!: string; days!: integer =2 -> current.degrees: number; sky: string"],
        "{ days: 2, city: 'Oslo' }).then(",
    ),
    (
        "const w = await mcp.s.report({ city: 'Oslo' }); return w.now.degrees;",
        "report: w | city!: string -> now.degrees: number",
        &["report: w | city!: string -> degrees: number"],
        "now: { ...r?.now, degrees: r?.degrees }",
    ),
    (
        "const w = await mcp.s.report({ city: 'Oslo' }); return w.temp;",
        "report: w | city!: string -> temp: number",
        &["report: w | city!: string -> temperature: number"],
        "temp: r?.temperature",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repository!: string; q!: string; limit: integer; state: open/closed"],
        "{ repository: args.repo, q: 'bug', limit: 3 }",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repo!: string; query!: string; limit: integer; state: open/closed"],
        "query: 'bug'",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repo!: string; q!: string; limits: integer; state: open/closed"],
        "limits: 3",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repository!: string; query!: string; limit: integer"],
        "{ repository: args.repo, query: 'bug', limit: 3 }",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repoName!: string; q!: string; limit: integer"],
        "repoName: args.repo",
    ),
    (
        LOOK,
        FIND,
        &["find: finds issues | repo!: string; q!: string; limit: integer; sort!: string =\"new\""],
        "sort: \"new\"",
    ),
    (
        LOOK,
        FIND,
        &["finds: finds issues | repo!: string; q!: string; limit: integer; state: open/closed"],
        "mcp.s.finds(",
    ),
    (
        "const city = 'Oslo'; return mcp.s.report({ city })",
        CITY,
        &["report: the weather | town!: string \"Name of the city to report on\""],
        "{ town: city }",
    ),
    (
        "return mcp.s.report({ 'city': `a, ${[1, 2].join()}` })",
        CITY,
        &["report: the weather | cityName!: string"],
        "{ cityName: `a, ${[1, 2].join()}` }",
    ),
    (
        "return mcp.s.report({ /* city: */ city: 'city: x' })",
        CITY,
        &["report: the weather | city_name!: string"],
        "{ /* city: */ city_name: 'city: x' }",
    ),
    (
        "const all = []; for (const c of args.cities) { all.push(await mcp.s.report({ city: c })) } return all",
        CITY,
        &["report: the weather | cityName!: string"],
        "{ cityName: c }",
    ),
    (
        "if (args.x) { return mcp.s.report({ city: 'a' }) } return mcp.s.report({ city: 'b' })",
        CITY,
        &["report: the weather | cityName!: string"],
        "{ cityName: 'b' }",
    ),
    ("return mcp.s.list({})", "list: lists all | ", &["list: lists all | page!: integer =1"], "{ page: 1"),
    ("return mcp.s.list()", "list: lists all | ", &["list: lists all | page!: integer =1"], "({ page: 1 })"),
    (
        "return mcp.s.put({ user_id: 1 })",
        "put: puts | user_id!: integer",
        &["put: puts | userId!: integer"],
        "{ userId: 1 }",
    ),
    (
        "return mcp.s.put({ msg: 'a' })",
        "put: puts | msg!: string",
        &["put: puts | message!: string"],
        "{ message: 'a' }",
    ),
    (
        "return mcp.s.put({ dir: 'a' })",
        "put: puts | dir!: string",
        &["put: puts | directory!: string"],
        "{ directory: 'a' }",
    ),
    (
        "return mcp.s.put({ file_path: 'a' })",
        "put: puts | file_path!: string \"Path of the file\"",
        &["put: puts | path!: string"],
        "{ path: 'a' }",
    ),
    (
        "return mcp.s.put_file({ path: 'a' })",
        "put_file: puts | path!: string",
        &["put_file: puts | file-path!: string"],
        "{ \"file-path\": 'a' }",
    ),
    (
        "return mcp.s.put({ max: 3 })",
        "put: puts | max!: integer",
        &["put: puts | maximum!: integer"],
        "{ maximum: 3 }",
    ),
    (
        "return mcp.s.put({ tags: ['a'] })",
        "put: puts | tags!: array",
        &["put: puts | tag_list!: array"],
        "{ tag_list: ['a'] }",
    ),
];

/// A change that nobody can follow from the definitions, or that would be followed wrongly.
const UNCLEAR: &[(&str, &str, &[&str])] = &[
    (USE, CITY, &[]),
    (USE, CITY, &["other: something else | city!: string"]),
    (USE, CITY, &["create-report: the weather | city!: string -> degrees: number; sky: string"]),
    (USE, CITY, &["delete-report: the weather | city!: string -> degrees: number; sky: string"]),
    (USE, CITY, &["=reports: the weather | city!: string"]),
    (USE, CITY, &["report: the weather | country!: string \"Code of the country\""]),
    (USE, CITY, &["report: the weather | country!: string"]),
    (USE, CITY, &["report: the weather | cityName!: integer"]),
    (USE, CITY, &["report: the weather | city!: integer"]),
    (USE, CITY, &["report: the weather | city!: array"]),
    (USE, CITY, &["report: the weather | city!: string; key!: string"]),
    (USE, CITY, &["report: the weather | lat!: number; lon!: number"]),
    (USE, CITY, &["report: the weather | cityName: string; city_name: string"]),
    (USE, CITY, &["report: the weather | city!: string -> sky: string"]),
    (USE, CITY, &["report: the weather | city!: string -> degrees: string; sky: string"]),
    (
        USE,
        CITY,
        &["report: the weather | city!: string -> day.degrees: number; night.degrees: number; sky: string"],
    ),
    (USE, CITY, &["report: the weather | city!: string -> wind: number; sky: string"]),
    (USE, CITY, &["weather-report: other | city!: string", "report-city: other | city!: string"]),
    (USE, CITY, &["reports: the weather | city!: string; key!: string"]),
    (LOOK, FIND, &["find: finds issues | owner!: string; q!: string; limit: integer"]),
    (LOOK, FIND, &["find: finds issues | repo!: string; sql!: string; limit: integer"]),
    (LOOK, FIND, &["find: finds issues | repo!: string; q!: string; limit: string"]),
    (LOOK, FIND, &["find: finds issues | repo!: string; q!: string; offset: integer"]),
    (
        "return mcp.s.put({ from: 'a', to: 'b' })",
        "put: puts | from!: string; to!: string",
        &["put: puts | source!: string; target!: string"],
    ),
    ("return mcp.s.put({ path: 'a' })", "put: puts | path!: string", &["put: puts | new_path!: string"]),
    (
        "return mcp.s.put({ path: 'a' })",
        "put: puts | path!: string",
        &["put: puts | target_path!: string; source_path!: string"],
    ),
    ("return mcp.s.put({ user: 'a' })", "put: puts | user!: string", &["put: puts | username!: string"]),
    ("return mcp.s.put({ time: 'a' })", "put: puts | time!: string", &["put: puts | timezone!: string"]),
    ("return mcp.s.put({ id: 'a' })", "put: puts | id!: string", &["put: puts | parent_id!: string"]),
    (
        "return mcp.s.put({ id: 'a' })",
        "put: puts | id!: string \"the id\"",
        &["put: puts | key!: string \"the id\""],
    ),
    ("return mcp.s.put({ ...args.all })", "put: puts | path!: string", &["put: puts | file_path!: string"]),
    ("return mcp.s.put(args.all)", "put: puts | path!: string", &["put: puts | file_path!: string"]),
    (
        "const k = 'path'; return mcp.s.put({ [k]: 'a' })",
        "put: puts | path!: string",
        &["put: puts | file_path!: string"],
    ),
    ("return mcp.s.put({ name: 'a' })", "put: puts | name!: string", &["put: puts | family_name!: string"]),
    (
        "return mcp.s.add_user({ name: 'a' })",
        "add_user: adds | name!: string \"Name of the user\"",
        &["add_user: adds | host_name!: string"],
    ),
    ("return mcp.s.put({ id: 'a' })", "put: puts | id!: string", &["put: puts | user_id!: string"]),
    ("return mcp.s.put({ file: 'a' })", "put: puts | file!: string", &["put: puts | file_text!: string"]),
    ("return mcp.s.put({ user: 'a' })", "put: puts | user!: string", &["put: puts | user_name!: string"]),
    (
        "const r = await mcp.s.get({}); return r.name",
        "get: gets | -> name: string",
        &["get: gets | -> family_name: string"],
    ),
    (
        "return mcp.s.put({ path: 'a' })",
        "put: puts | path!: string",
        &["put: puts | path!: string; dry_run!: boolean =false"],
    ),
    (
        "return mcp.s.put({ path: 'a' })",
        "put: puts | path!: string",
        &["put: puts | path!: string; force!: boolean =true"],
    ),
    (
        "return mcp.s.put({ path: 'a' })",
        "put: puts | path!: string",
        &["put: puts | path!: string; mode!: string =\"replace\""],
    ),
    (
        "return mcp.s.put({ path: 'a' })",
        "put: puts | path!: string",
        &["put: puts | path!: string; all!: boolean \"deletes everything else\" =false"],
    ),
    // One that need not be given, and has another value than before, or is new.
    (
        "return mcp.s.put({ msg: 'a' })",
        "put: puts | msg!: string; dryRun: boolean =true",
        &["put: puts | message!: string; dryRun: boolean =false"],
    ),
    (
        "return mcp.s.put({ msg: 'a' })",
        "put: puts | msg!: string",
        &["put: puts | message!: string; dryRun: boolean =true"],
    ),
    ("return mcp.s.put({ mode: 'open' })", "put: puts | mode!: open/closed", &["put: puts | mode!: on/off"]),
];

#[test]
fn changes_that_definitions_show_are_followed_and_no_others() {
    let mut followed = 0;
    let mut missed = Vec::new();
    for (code, before, now, expected) in REPAIRABLE {
        match repaired(code, before, now) {
            Some(new) => {
                assert!(!expected.is_empty() && new.contains(expected), "{now:?}\n{new}");
                followed += 1;
            }
            None => missed.push(now),
        }
    }
    for (code, before, now) in UNCLEAR {
        assert_eq!(repaired(code, before, now), None, "{now:?} is followed wrongly");
    }
    let all = REPAIRABLE.len();
    println!("{} changes: {all} that can be followed, {followed} followed, 0 wrongly", all + UNCLEAR.len());
    assert!(all + UNCLEAR.len() >= 60 && followed * 4 >= all * 3, "{followed} of {all}; missed {missed:?}");
}

#[test]
fn recorded_calls_are_mapped_as_the_program_is() {
    let edits = [
        ProgramEdit::RenameField { from: "city".to_owned(), to: "town".to_owned() },
        ProgramEdit::AddField { name: "days".to_owned(), value: json!(1) },
        ProgramEdit::MoveResult {
            from: vec!["degrees".to_owned()],
            to: vec!["current".to_owned(), "degrees".to_owned()],
        },
    ];
    let arguments = json!({ "city": "Oslo" });
    assert_eq!(
        Value::Object(map_arguments(&edits, arguments.as_object().unwrap())),
        json!({ "town": "Oslo", "days": 1 })
    );
    let result = json!({ "degrees": 21, "sky": "clear" });
    assert_eq!(map_result(&edits, &result), json!({ "sky": "clear", "current": { "degrees": 21 } }));
    assert_eq!(map_result(&edits, &json!("text")), json!("text"));
}

#[test]
fn a_tool_that_claims_other_effects_is_not_the_renamed_one() {
    let hinted = |text: &str, read_only: Option<bool>, destructive: Option<bool>| {
        let mut tool = offered(text, true);
        tool.definition.annotations.read_only_hint = read_only;
        tool.definition.annotations.destructive_hint = destructive;
        tool
    };
    let before = "report: the weather of a city | city!: string";
    let now = "weather_report: the weather of a city | city!: string";
    let repair = |before: &OfferedTool, now: OfferedTool| {
        find_repair((&before.id, &before.definition), &[now], &["city".to_owned()], |_| false)
    };
    let reads = hinted(before, Some(true), None);
    assert!(repair(&reads, hinted(now, Some(true), None)).is_some());
    assert!(repair(&reads, hinted(now, None, None)).is_none());
    assert!(repair(&reads, hinted(now, Some(false), Some(true))).is_none());
    let writes = hinted(before, None, Some(false));
    assert!(repair(&writes, hinted(now, None, Some(false))).is_some());
    assert!(repair(&writes, hinted(now, Some(true), None)).is_some(), "less than before");
    assert!(repair(&writes, hinted(now, None, Some(true))).is_none());
}
