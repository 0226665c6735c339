//! Which tools can feed which, by their schemas.

use super::super::fields::FieldKind;
use super::super::names::MatchBasis;
use super::super::provides::{InputCoverage, MOST_INCOMING, MOST_OUTGOING, ProvidesIndex};
use super::*;

/// `from.path -> parameter (basis)` for each field, with the coverage first.
#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    let (giver, taker) = (tool(from), tool(to));
    let (from, to) = (giver.id.clone(), taker.id.clone());
    let provides = ProvidesIndex::build([giver, taker]);
    let found = provides.link_between(&from, &to).map_or_else(
        || "nothing".to_owned(),
        |link| {
            let fields: Vec<String> = link
                .mapping
                .iter()
                .map(|one| format!("{} -> {} ({})", one.from, one.to, one.basis.describe()))
                .collect();
            format!("{:?}: {}", link.coverage, fields.join(", "))
        },
    );
    assert_eq!(found, expected);
}

#[test]
fn reading_feeds_parsing_and_parsing_feeds_posting() {
    check(
        "fs:read(path:string*) -> content:string",
        "json:parse(json:string*) -> data:object",
        "Strict: content -> json (another word for it)",
    );
    check(
        "json:parse(json:string*) -> json:object",
        "http:post(url:string*, body:string*, headers:object*)",
        "Partial: json -> body (another word for it)",
    );
}

#[test]
fn fields_match_by_name_end_alias_and_owner() {
    check(
        "a:x() -> tracking_number:string",
        "b:y(trackingNumber:string*)",
        "Strict: tracking_number -> trackingNumber (same name)",
    );
    check(
        "a:x() -> converted_amount:number",
        "b:y(amount:number*, to:string*)",
        "Partial: converted_amount -> amount (similar name)",
    );
    check(
        "a:search_airport() -> skyId:string",
        "b:y(originSkyId:string*)",
        "Strict: skyId -> originSkyId (similar name)",
    );
    check(
        "crm:create_user(name:string*) -> id:string",
        "b:mail(user_id:string*)",
        "Strict: id -> user_id (its id)",
    );
    check("crm:find() -> user_id:string", "crm:delete_user(id:string*)", "Strict: user_id -> id (its id)");
    check(
        "math:add() -> result:number",
        "math:root(number:number*)",
        "Strict: result -> number (another word for it)",
    );
    check("a:x() -> uri:string", "b:y(url:string*)", "Strict: uri -> url (another word for it)");
    check(
        "a:x() -> username:String",
        "b:y(username_or_id:STR*)",
        "Strict: username -> username_or_id (similar name)",
    );
    check("a:x() -> url:string", "b:y(url:string, depth:number)", "Optional: url -> url (same name)");
    check("a:x() -> url:string", "b:y(url:string, depth:number*)", "Optional: url -> url (same name)");
}

#[test]
fn what_only_looks_alike_does_not_match() {
    check("a:x() -> invoice_id:string", "b:y(contact_id:string*)", "nothing");
    check("a:x() -> count:number", "b:y(enabled:boolean*)", "nothing");
    check("a:list() -> user_list:array", "b:y(max_results:number*)", "nothing");
    check("a:x() -> path:boolean", "b:y(path:string*)", "nothing");
    check("a:x() -> phone_number:string", "b:y(amount:number*)", "nothing");
    check("a:x()", "b:y(path:string*)", "nothing");
}

#[test]
fn a_description_that_names_the_field_matches() {
    let giver = tool("a:search() -> geoId:string");
    let mut taker = tool("b:restaurants(locationId:string*)");
    taker.inputs[0].description = ["locat", "geo", "id"].into_iter().collect();
    let link =
        ProvidesIndex::build([giver, taker]).link_between("a:search", "b:restaurants").expect("a link");
    assert_eq!((link.coverage, link.mapping[0].basis), (InputCoverage::Strict, MatchBasis::Description));
}

#[test]
fn fields_inside_are_reached_by_a_path() {
    let output = json!({
        "type": "object",
        "properties": {
            "user": { "$ref": "#/$defs/user" },
            "orders": { "type": "array", "items": { "type": "object", "properties": { "order_id": { "type": ["string", "null"] } } } },
            "loop": { "$ref": "#/properties/loop" }
        },
        "$defs": { "user": { "type": "object", "properties": { "email": { "anyOf": [{ "type": "null" }, { "type": "string" }] } } } }
    });
    let definition = FieldsDefinition {
        id: "shop:account",
        name: "account",
        description: "",
        input_schema: &json!({}),
        output_schema: Some(&output),
    };
    let giver = ToolFields::from_definition(&definition);
    let paths: Vec<&str> = giver.outputs.iter().map(|output| output.path.as_str()).collect();
    assert_eq!(paths, ["user", "user.email", "orders", "orders[].order_id", "loop"]);
    assert_eq!(giver.outputs[1].kind, FieldKind::String);
    let provides = ProvidesIndex::build([
        giver,
        tool("shop:cancel(order_id:string*)"),
        tool("mail:send(email:string*)"),
    ]);
    let from = |to: &str| provides.link_between("shop:account", to).map(|link| link.mapping[0].from.clone());
    assert_eq!(from("shop:cancel").as_deref(), Some("orders[].order_id"));
    assert_eq!(from("mail:send").as_deref(), Some("user.email"));
}

#[test]
fn odd_schemas_are_read_as_well_as_can_be() {
    for schema in [
        json!(null),
        json!([]),
        json!("x"),
        json!({ "properties": [] }),
        json!({ "properties": { "a": 1, "b": true } }),
        json!({ "type": 3, "required": "a" }),
    ] {
        let tool = ToolFields::from_definition(&FieldsDefinition {
            id: "a",
            name: "a",
            description: "",
            input_schema: &schema,
            output_schema: Some(&schema),
        });
        assert!(ProvidesIndex::build([tool]).links_from("a").is_empty());
    }
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "properties": { "next": inner } }));
    let tool = ToolFields::from_definition(&FieldsDefinition {
        id: "a",
        name: "a",
        description: "",
        input_schema: &deep,
        output_schema: Some(&deep),
    });
    assert!(tool.outputs.len() <= 120);
}

#[test]
fn common_fields_count_little_and_few_are_kept() {
    let mut tools: Vec<ToolFields> =
        (0..60).map(|number| tool(&format!("s{number}:use(path:string*)"))).collect();
    tools.push(tool("fs:find() -> path:string, barcode:string"));
    tools.push(tool("shop:scan(barcode:string*)"));
    let provides = ProvidesIndex::build(tools);
    let links = provides.links_from("fs:find");
    assert_eq!(links.len(), MOST_OUTGOING);
    assert_eq!(links[0].to, "shop:scan");
    assert!(links[0].weight > 2.0 * links[1].weight, "{links:?}");
}

#[test]
fn changes_one_by_one_lead_where_building_at_once_does() {
    // Few words for many tools, so that lists exceed their stored length.
    let words = ["path", "user_id", "city", "barcode"];
    let mut random = Random(5);
    let mut draw = |number: usize| {
        let mut field = || words[random.below(4) as usize];
        tool(&format!(
            "s:t{number}({}:string*, {}:string) -> {}:string, new_{}:string",
            field(),
            field(),
            field(),
            field()
        ))
    };
    let mut changing = ProvidesIndex::default();
    let mut kept: Vec<ToolFields> = Vec::new();
    for step in 0..600 {
        let number = (step * 7) % 150;
        let id = format!("s:t{number}");
        kept.retain(|tool| tool.id != id);
        if step % 5 == 4 {
            changing.remove_tool(&id);
        } else {
            let tool = draw(number);
            kept.push(tool.clone());
            changing.replace_tool(tool);
        }
        if step % 60 == 59 {
            kept.reverse();
            same(&changing, &kept);
        }
    }
    // Candidates from the reserve move up.
    while kept.len() > 20 {
        changing.remove_tool(&kept.pop().expect("more than twenty").id);
        if kept.len().is_multiple_of(10) {
            same(&changing, &kept);
        }
    }
}

#[track_caller]
fn same(changing: &ProvidesIndex, kept: &[ToolFields]) {
    let fresh = ProvidesIndex::build(kept.to_vec());
    for tool in kept {
        assert_eq!(changing.links_from(&tool.id), fresh.links_from(&tool.id), "{} tools", kept.len());
    }
}

#[test]
fn a_change_names_every_tool_it_touches() {
    let mut random = Random(9);
    let words = ["path", "user_id", "city"];
    let mut provides = ProvidesIndex::default();
    for step in 0..120 {
        let before: Vec<(String, Vec<String>)> = lists(&provides);
        let mut field = || words[random.below(3) as usize];
        let changed = tool(&format!("s:t{}({}:string*) -> {}:string", step % 50, field(), field()));
        let touched = provides.replace_tool(changed);
        for (id, list) in lists(&provides) {
            let same = before.iter().any(|(other, old)| *other == id && *old == list);
            assert!(same || touched.contains(&id), "{id} at step {step}");
        }
    }
}

fn lists(provides: &ProvidesIndex) -> Vec<(String, Vec<String>)> {
    let list = |tool: &ToolFields| provides.fed_tools(&tool.id).map(|(id, _)| id.to_owned()).collect();
    provides.tools().map(|tool| (tool.id.clone(), list(tool))).collect()
}

#[test]
fn a_tool_knows_who_could_feed_it_however_much_else_they_feed() {
    // Sixty tools take only the parsed value; posting takes two more.
    let takers = (0..60).map(|number| tool(&format!("t:take{number}(json:object*)")));
    let parse = tool("json:parse(text:string*) -> json:object");
    let post = tool("http:post(url:string*, body:string*, headers:object*)");
    let provides = ProvidesIndex::build(takers.chain([parse, post]));
    assert!(provides.fed_tools("json:parse").all(|(target, _)| target != "http:post"), "others fit better");
    assert_eq!(provides.best_sources("http:post"), ["json:parse"]);
    let link = provides.link_between("json:parse", "http:post").map(|link| link.coverage);
    assert_eq!(link, Some(InputCoverage::Partial));
    let many = (0..60).map(|number| tool(&format!("g:give{number}() -> url:string")));
    let provides = ProvidesIndex::build(many.chain([tool("http:get(url:string*)")]));
    assert_eq!(provides.best_sources("http:get").len(), MOST_INCOMING);
    // Many better-fitting tools of one server leave room for the best of another.
    let many = (0..60).map(|number| tool(&format!("g:give{number}() -> url:string, body:string")));
    let parse = tool("json:parse(text:string*) -> json:object");
    let provides = ProvidesIndex::build(many.chain([parse, tool("http:post(url:string*, body:string*)")]));
    assert_eq!(provides.best_sources("http:post")[..2], ["g:give0", "json:parse"]);
}
