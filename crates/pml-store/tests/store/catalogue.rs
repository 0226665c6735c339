//! Manifests, identifiers and the history of definitions.

use super::{open_at, raw_database};
use std::time::Instant;

use pml_model::{Definition, Digest, Principal, ToolId};
use pml_store::{BlockingStore, CatalogueChange, ChangedTool, ManifestChange, StoredServerProfile};

use super::{definition, fixture, listing, me, raw, server, tool};

fn record(store: &BlockingStore, tools: Vec<Definition>, now: i64) -> ManifestChange {
    store.record_manifest(&me(), listing("fs", tools), now).unwrap()
}

/// `name=identifier` of every tool on offer.
fn identifiers(store: &BlockingStore) -> Vec<String> {
    let manifest = store.manifest(&me(), &server("fs")).unwrap().unwrap();
    manifest.tools.iter().map(|tool| format!("{}={}", tool.definition.name, tool.identifier)).collect()
}

fn id(tool: &str) -> ToolId {
    ToolId { server: server("fs"), tool: tool.to_owned() }
}

/// `description seen_at..replaced_at` of every definition a tool had.
fn history(store: &BlockingStore, tool: &str) -> Vec<String> {
    let known = store.definition_history(&me(), &id(tool)).unwrap();
    let line = |known: &pml_store::DefinitionVersion| {
        let definition = known.definition.as_ref().unwrap();
        let end = known.replaced_at.map(|at| at.to_string()).unwrap_or_default();
        format!("{} {}..{end}", definition.description.as_ref().unwrap(), known.seen_at)
    };
    known.iter().map(line).collect()
}

fn changed(tool: &str, before: &Definition, after: &Definition) -> ChangedTool {
    ChangedTool { tool: tool.to_owned(), before: before.digest.clone(), after: after.digest.clone() }
}

#[test]
fn a_manifest_comes_back_as_it_was_told_also_after_a_restart() {
    let fixture = fixture();
    let mut told = listing("fs", vec![tool("write", "w"), tool("read", "r")]);
    told.profile = StoredServerProfile {
        info: Some(raw(r#"{"name":"fs", "version":"1.0"}"#)),
        instructions: Some("read before you write".to_owned()),
        protocol_version: Some("2025-11-25".to_owned()),
        era: Some("sessions".to_owned()),
        capabilities: Some(raw(r#"{"tools":{ }}"#)),
    };
    fixture.store.record_manifest(&me(), told, 7).unwrap();
    drop(fixture.store);
    let store = open_at(&fixture.path).unwrap();
    let manifest = store.manifest(&me(), &server("fs")).unwrap().unwrap();
    assert_eq!(manifest.seen_at, 7);
    assert_eq!(manifest.launch, Digest::of(b"launch"));
    assert_eq!(manifest.profile.info.unwrap().get(), r#"{"name":"fs", "version":"1.0"}"#);
    assert_eq!(manifest.profile.instructions.unwrap(), "read before you write");
    assert_eq!(manifest.profile.protocol_version.unwrap(), "2025-11-25");
    assert_eq!(manifest.profile.era.unwrap(), "sessions");
    assert_eq!(manifest.profile.capabilities.unwrap().get(), r#"{"tools":{ }}"#);
    let names: Vec<_> = manifest.tools.iter().map(|tool| tool.definition.name.as_str()).collect();
    assert_eq!(names, ["read", "write"]);
    assert!(store.manifest(&me(), &server("other")).unwrap().is_none());
}

#[test]
fn odd_definitions_come_back_byte_for_byte() {
    let odd = [
        r#"{ "name":"a", "inputSchema":{"type":"object","n":10e110,"big":1234567890123456789012345678901234567890}}"#,
        r##"{"inputSchema":{"$ref":"#/nowhere","x":null,"x":1},"name":"b","unknown":{"deep":[[[[{}]]]]} }"##,
        "{\"name\":\"c\",\n\t\"description\":\"\\u0000\\ud83d\\ude00 é \u{1F600}\",\"inputSchema\":{}}",
        r#"{"name":"d","title":"D","outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true,"x":1},"inputSchema":{"enum":[1.0,1,-0,"'; DROP TABLE tool; --"]},"icons":[{"src":"data:,"}]}"#,
        r#"{"name":"e","title":5,"description":null,"outputSchema":true,"annotations":[]}"#,
    ];
    let fixture = fixture();
    record(&fixture.store, odd.map(definition).to_vec(), 1);
    let manifest = fixture.store.manifests(&me()).unwrap().remove(0);
    assert_eq!(manifest.tools.len(), odd.len());
    for (tool, text) in manifest.tools.iter().zip(odd) {
        assert_eq!(tool.definition.raw.get(), text);
        assert_eq!(format!("{:?}", tool.definition), format!("{:?}", definition(text)));
    }
}

#[test]
fn a_new_text_of_the_same_meaning_is_kept_and_is_no_change() {
    let fixture = fixture();
    record(&fixture.store, vec![definition(r#"{"name":"a","icons":[]}"#)], 1);
    let version = fixture.store.catalogue_version().unwrap();
    let change = record(&fixture.store, vec![definition(r#"{"name":"a","title":"A"}"#)], 2);
    assert_eq!(change, ManifestChange::default());
    let manifest = fixture.store.manifest(&me(), &server("fs")).unwrap().unwrap();
    assert_eq!(manifest.tools[0].definition.raw.get(), r#"{"name":"a","title":"A"}"#);
    assert!(fixture.store.catalogue_version().unwrap() > version, "other processes must hear of it");
    assert_eq!(fixture.store.definition_history(&me(), &id("a")).unwrap().len(), 1);
    let texts = raw_database(&fixture.path).number("SELECT count(*) FROM definition");
    assert_eq!(texts, 1, "a text nobody refers to is dropped");
}

#[test]
fn additions_removals_and_changes_are_told() {
    let fixture = fixture();
    let (a, b, b2, c) = (tool("a", "1"), tool("b", "1"), tool("b", "2"), tool("c", "1"));
    let first = record(&fixture.store, vec![b.clone(), a.clone()], 1);
    assert_eq!(first, ManifestChange { added: vec!["a".into(), "b".into()], ..Default::default() });
    assert_eq!(record(&fixture.store, vec![a.clone(), b.clone()], 2), ManifestChange::default());
    let second = record(&fixture.store, vec![b2.clone(), c.clone()], 3);
    assert_eq!(
        second,
        ManifestChange {
            added: vec!["c".into()],
            removed: vec!["a".into()],
            changed: vec![changed("b", &b, &b2)],
            voided_rules: Vec::new(),
            voided_questions: Vec::new(),
            launch_before: None,
        }
    );
    let entry = |tool: &str, before: Option<&Definition>, after: Option<&Definition>| CatalogueChange {
        tool: id(tool),
        before: before.map(|d| d.digest.clone()),
        after: after.map(|d| d.digest.clone()),
        at: 3,
    };
    let recent = fixture.store.recent_catalogue_changes(&me(), 10).unwrap();
    assert_eq!(
        recent,
        [entry("a", Some(&a), None), entry("c", None, Some(&c)), entry("b", Some(&b), Some(&b2))]
    );
    assert_eq!(fixture.store.recent_catalogue_changes(&me(), 1).unwrap().len(), 1);
}

#[test]
fn flipping_back_is_a_change_like_any_other() {
    let fixture = fixture();
    let (good, evil) = (tool("a", "good"), tool("a", "evil"));
    record(&fixture.store, vec![good.clone()], 1);
    assert_eq!(record(&fixture.store, vec![evil.clone()], 2).changed, [changed("a", &good, &evil)]);
    assert_eq!(record(&fixture.store, vec![good.clone()], 3).changed, [changed("a", &evil, &good)]);
    assert_eq!(history(&fixture.store, "a"), ["good 1..2", "evil 2..3", "good 3.."]);
}

#[test]
fn a_tool_cannot_change_by_going_away_in_between() {
    let fixture = fixture();
    let (good, evil) = (tool("a", "good"), tool("a", "evil"));
    record(&fixture.store, vec![good.clone()], 1);
    record(&fixture.store, vec![], 2);
    assert_eq!(record(&fixture.store, vec![evil.clone()], 3).changed, [changed("a", &good, &evil)]);
    assert!(fixture.store.remove_server(&me(), &server("fs")).unwrap());
    assert_eq!(record(&fixture.store, vec![good.clone()], 4).changed, [changed("a", &evil, &good)]);
    let told = fixture.store.recent_catalogue_changes(&me(), 1).unwrap().remove(0);
    assert_eq!((told.before, told.after), (Some(evil.digest), Some(good.digest)));
    assert_eq!(history(&fixture.store, "a"), ["good 1..3", "evil 3..4", "good 4.."]);
}

#[test]
fn another_launch_of_a_server_is_told() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("a", "1")], 1);
    let mut other = listing("fs", vec![tool("a", "1")]);
    other.launch = Digest::of(b"another command");
    let change = fixture.store.record_manifest(&me(), other, 2).unwrap();
    let expected = ManifestChange { launch_before: Some(Digest::of(b"launch")), ..Default::default() };
    assert_eq!(change, expected);
}

#[test]
fn identifiers_that_clash_are_told_apart_whatever_the_order() {
    for order in [["get-sum", "get_sum", "get.sum"], ["get.sum", "get-sum", "get_sum"]] {
        let fixture = fixture();
        record(&fixture.store, order.map(|name| tool(name, "d")).to_vec(), 1);
        assert_eq!(
            identifiers(&fixture.store),
            ["get-sum=get_sum_2", "get.sum=get_sum_3", "get_sum=get_sum"]
        );
    }
}

#[test]
fn an_identifier_is_never_given_to_another_tool() {
    let fixture = fixture();
    record(&fixture.store, vec![tool("get-sum", "d")], 1);
    record(&fixture.store, vec![tool("get_sum", "d"), tool("get_sum_2", "d")], 2);
    assert_eq!(identifiers(&fixture.store), ["get_sum=get_sum_2", "get_sum_2=get_sum_2_2"]);
    fixture.store.remove_server(&me(), &server("fs")).unwrap();
    assert!(fixture.store.manifests(&me()).unwrap().is_empty());
    drop(fixture.store);
    let store = open_at(&fixture.path).unwrap();
    record(&store, vec![tool("get_sum", "d"), tool("get-sum", "d")], 3);
    assert_eq!(identifiers(&store), ["get-sum=get_sum", "get_sum=get_sum_2"]);
    let manifest = store.manifest(&me(), &server("fs")).unwrap().unwrap();
    assert_eq!(manifest.tools[0].first_seen_at, 1);
}

#[test]
fn of_several_tools_with_one_name_the_first_is_taken() {
    let fixture = fixture();
    let change = record(&fixture.store, vec![tool("a", "first"), tool("a", "second")], 1);
    assert_eq!(change.added, ["a"]);
    assert_eq!(history(&fixture.store, "a"), ["first 1.."]);
}

#[test]
fn names_full_of_sql_are_just_names() {
    let fixture = fixture();
    let hostile = ["'; DROP TABLE tool; --", "\" OR 1=1", "%", "_", "?1", "a'b\"c`d", "NULL"];
    record(&fixture.store, hostile.map(|name| tool(name, name)).to_vec(), 1);
    let bobby = Principal("x' OR '1'='1".to_owned());
    assert!(fixture.store.manifests(&bobby).unwrap().is_empty());
    for name in hostile {
        assert_eq!(history(&fixture.store, name), [format!("{name} 1..")]);
    }
    assert_eq!(record(&fixture.store, vec![tool("%", "%")], 2).removed.len(), hostile.len() - 1);
}

#[test]
fn principals_do_not_see_each_other() {
    let fixture = fixture();
    let (ann, bob) = (Principal("ann".to_owned()), Principal("bob".to_owned()));
    let store = &fixture.store;
    store.record_manifest(&ann, listing("fs", vec![tool("a", "1")]), 1).unwrap();
    store.record_manifest(&ann, listing("fs", vec![tool("a", "2")]), 2).unwrap();
    assert!(store.manifests(&bob).unwrap().is_empty());
    assert!(store.manifest(&bob, &server("fs")).unwrap().is_none());
    assert!(store.definition_history(&bob, &id("a")).unwrap().is_empty());
    assert!(store.recent_catalogue_changes(&bob, 10).unwrap().is_empty());
    assert!(!store.remove_server(&bob, &server("fs")).unwrap());
    // The same definition under the same name is new to the other one, and stays ann's when bob's goes.
    let change = store.record_manifest(&bob, listing("fs", vec![tool("a", "2")]), 3).unwrap();
    assert_eq!(change.added, ["a"]);
    assert!(store.remove_server(&bob, &server("fs")).unwrap());
    assert_eq!(store.manifest(&ann, &server("fs")).unwrap().unwrap().tools.len(), 1);
}

#[test]
fn the_version_grows_with_changes_and_only_with_them() {
    let fixture = fixture();
    let other = open_at(&fixture.path).unwrap();
    let mut last = other.catalogue_version().unwrap();
    let mut step = |expected: u64, what: &str| {
        let version = other.catalogue_version().unwrap();
        assert_eq!(version - last, expected, "{what}");
        last = version;
    };
    step(0, "nothing happened");
    record(&fixture.store, vec![tool("a", "1")], 1);
    step(1, "a server came");
    record(&fixture.store, vec![tool("a", "1")], 2);
    step(0, "the same again");
    record(&fixture.store, vec![tool("a", "2")], 3);
    step(1, "a definition changed");
    fixture.store.remove_server(&me(), &server("fs")).unwrap();
    step(1, "the server went");
    fixture.store.remove_server(&me(), &server("fs")).unwrap();
    step(0, "it was gone already");
}

#[test]
fn history_and_changes_are_bounded_and_leave_no_texts_behind() {
    let fixture = fixture();
    for now in 0..1100 {
        record(&fixture.store, vec![tool("a", &now.to_string())], now);
    }
    let kept = history(&fixture.store, "a");
    assert_eq!((kept.len(), kept[0].as_str()), (65, "1035 1035..1036"));
    assert_eq!(fixture.store.recent_catalogue_changes(&me(), 5000).unwrap().len(), 1000);
    let texts = raw_database(&fixture.path).number("SELECT count(*) FROM definition");
    assert_eq!(texts, 66, "those, and the one that was accepted");
}

#[test]
fn an_altered_definition_is_set_aside_and_the_others_are_served() {
    let fixture = fixture();
    let told = record(&fixture.store, vec![tool("a", "1"), tool("b", "1"), tool("c", "1")], 1);
    assert_eq!(told.added.len(), 3);
    let database = raw_database(&fixture.path);
    for (tool, text) in [("a", r#"{"name":"a","description":"evil"}"#), ("b", "not JSON")] {
        let alter =
            "UPDATE definition SET raw = '%' WHERE id = (SELECT definition FROM tool WHERE tool = '?')";
        assert_eq!(database.execute(&alter.replace('%', text).replace('?', tool)), 1);
    }
    let manifest = fixture.store.manifest(&me(), &server("fs")).unwrap().unwrap();
    assert_eq!(manifest.damaged_tools, ["a", "b"]);
    assert_eq!(identifiers(&fixture.store), ["c=c"]);
    assert!(fixture.store.definition_history(&me(), &id("a")).unwrap()[0].definition.is_none());
}

#[test]
fn five_thousand_tools_are_recorded_and_read_back() {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer","minimum":1,"maximum":1000},"options":{"type":"object","properties":{"deep":{"type":"boolean"},"mode":{"enum":["a","b","c"]}}}},"required":["path"]}"#;
    let listed = |server: usize| -> Vec<Definition> {
        let text = |tool: usize| {
            format!(
                r#"{{"name":"tool-{server}-{tool}","description":"{}","inputSchema":{schema},"annotations":{{"readOnlyHint":true}}}}"#,
                "Does something useful with a path. ".repeat(10)
            )
        };
        (0..250).map(|tool| definition(&text(tool))).collect()
    };
    let listings: Vec<_> = (0..20).map(|n| listing(&format!("server{n}"), listed(n))).collect();
    let fixture = fixture();
    let timed = |what: &str, work: &dyn Fn()| {
        let started = Instant::now();
        work();
        println!("{what}: {:.2} ms", started.elapsed().as_secs_f64() * 1000.0);
    };
    let record_all = || {
        for listing in &listings {
            fixture.store.record_manifest(&me(), listing.clone(), 1).unwrap();
        }
    };
    timed("open a file that exists", &|| drop(open_at(&fixture.path).unwrap()));
    let other = fixture.path.with_file_name("other.db");
    timed("open a fresh file", &|| drop(open_at(&other).unwrap()));
    timed("record 5,000 tools of 20 servers", &record_all);
    timed("record them unchanged", &record_all);
    for _ in 0..2 {
        timed("read 5,000 tools", &|| {
            let manifests = fixture.store.manifests(&me()).unwrap();
            assert_eq!(manifests.iter().map(|manifest| manifest.tools.len()).sum::<usize>(), 5000);
        });
    }
    timed("ask the version 1,000 times", &|| {
        for _ in 0..1000 {
            assert_eq!(fixture.store.catalogue_version().unwrap(), 20);
        }
    });
}
