//! What ranking promises to those who search.

use expect_test::{Expect, expect};
use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::rank::{RankingEvidence, ScoredItem, explain_rank, rank, rank_first};

/// `server:name description`.
fn index(tools: &[&'static str]) -> LexicalIndex {
    LexicalIndex::build(tools.iter().map(|tool| {
        let (id, description) = tool.split_once(' ').unwrap_or((tool, ""));
        let (server, name) = id.split_once(':').expect("a tool is written `server:name`");
        ToolDocument { server, name, description, ..ToolDocument::default() }
    }))
}

fn found(request: &str, index: &LexicalIndex) -> Vec<ScoredItem> {
    rank(request, &RankingEvidence { lexical: index, dense: None, advice: None })
}

fn items(request: &str, index: &LexicalIndex) -> Vec<usize> {
    found(request, index).into_iter().map(|ranked| ranked.item).collect()
}

const OFFICE: &[&str] = &[
    "fs:read_file Read the contents of a file",
    "fs:write_file Write contents to a file",
    "fs:list_directory List the files in a directory",
    "mail:send_email Send an email message to a recipient",
    "mail:search_inbox Search messages",
    "weather:forecast Weather forecast for a city",
    "web:search Search the web for pages",
    "git:log Show the commits of a repository",
    "git:diff Compare two commits; can write the result to a file",
    "calendar:create_event Create an event and notify people by email",
];

#[track_caller]
fn check(request: &str, expected: &Expect) {
    let index = index(OFFICE);
    let evidence = RankingEvidence { lexical: &index, dense: None, advice: None };
    let mut text = String::new();
    for ScoredItem { item, score } in rank(request, &evidence).into_iter().take(4) {
        let id = OFFICE[item].split(' ').next().unwrap_or_default();
        let why: Vec<String> =
            explain_rank(request, &evidence, item).iter().map(ToString::to_string).collect();
        text.push_str(&format!("{score:.2} {id}: {}\n", why.join("; ")));
    }
    expected.assert_eq(&text);
}

#[test]
fn a_name_counts_more_than_a_description() {
    let index = index(&["a:one compress images", "b:compress_images", "c:three"]);
    assert_eq!(items("compress images", &index), [1, 0]);
}

#[test]
fn the_first_of_many_are_the_first_of_all() {
    const THINGS: [&str; 5] = ["file", "letter", "table", "branch", "invoice"];
    const VERBS: [&str; 7] = ["read", "write", "sort", "send", "compare", "archive", "count"];
    let names: Vec<String> = (0..300).map(|number| format!("tool_{number}")).collect();
    let texts: Vec<String> = (0..300)
        .map(|number| format!("{} the {} {}", VERBS[number % 7], THINGS[number % 5], THINGS[number % 3]))
        .collect();
    let index = LexicalIndex::build(names.iter().zip(&texts).map(|(name, description)| ToolDocument {
        server: "many",
        name,
        description,
        ..ToolDocument::default()
    }));
    let evidence = RankingEvidence { lexical: &index, dense: None, advice: None };
    let places = |ranked: &[ScoredItem]| -> Vec<(usize, String)> {
        ranked.iter().map(|ranked| (ranked.item, format!("{:.6}", ranked.score))).collect()
    };
    for request in ["sort the letter", "send the file and compare the invoice", "count"] {
        let all = found(request, &index);
        for count in [1, 20, 120] {
            let first = rank_first(request, &evidence, count);
            assert_eq!(places(&first), places(&all[..count.min(all.len())]), "{request}: {count}");
        }
    }
}

#[test]
fn rare_words_count_more_than_common_ones() {
    let index =
        index(&["a:file_a", "a:file_b", "a:file_c", "a:file_d", "a:checksum", "a:other_one", "a:other_two"]);
    assert_eq!(items("checksum file", &index)[0], 4);
}

#[test]
fn words_side_by_side_count_more_than_the_same_words_apart() {
    let index = index(&["a:one The value at present", "b:two The present value", "c:other Something else"]);
    assert_eq!(items("What is its present value?", &index), [1, 0]);
    // In the order of the request, and with nothing between them that says anything.
    assert_eq!(items("What is its value at present?", &index), [0, 1]);
}

#[test]
fn words_of_two_parts_do_not_stand_side_by_side() {
    let index = index(&["a:one value present", "b:two present value", "c:other Something else"]);
    assert_eq!(items("old present value new", &index), [1, 0]);
    assert_eq!(items("old present. value new", &index), [0, 1]);
}

#[test]
fn the_server_a_request_names_comes_first() {
    let index = index(&["gitlab:list_issues", "github:list_issues", "jira:list_issues"]);
    assert_eq!(items("list the issues on github", &index)[0], 1);
}

#[test]
fn names_match_however_they_are_written() {
    let index = index(&["a:other", "b:searchGitHub", "c:another"]);
    assert_eq!(items("search github", &index), [1]);
    assert_eq!(items("Searching git", &index), [1]);
}

#[test]
fn reasons_quote_the_request() {
    check(
        "Reading a File from disk",
        &expect![[r#"
            0.84 fs:read_file: name matches `Reading`, `File`
            0.25 fs:write_file: name matches `File`
            0.19 fs:list_directory: description mentions `File`
            0.18 git:diff: description mentions `File`
        "#]],
    );
}

#[test]
fn every_part_of_a_request_is_answered_early() {
    check(
        "Read the file report.txt and write the file copy.txt. Give me the weather forecast. Send an email to Ann.",
        &expect![[r#"
            0.83 weather:forecast: name matches `forecast`; server matches `weather`
            0.65 mail:send_email: name matches `Send`, `email`
            0.58 fs:read_file: name matches `Read`, `file`
            0.53 fs:write_file: name matches `file`, `write`
        "#]],
    );
}

#[test]
fn scores_tell_a_good_answer_from_an_incidental_word() {
    let index = index(OFFICE);
    let best = |request: &str| found(request, &index).first().map_or(0.0, |ranked| ranked.score);
    assert!(best("read a file") > 0.7);
    assert!(best("weather forecast") > 0.7);
    assert!(best("notify the fire brigade about burning houses") < 0.2);
    assert_eq!(best("knit a pullover"), 0.0);
}

#[test]
fn scores_lie_between_nought_and_one_and_never_rise() {
    let index = index(OFFICE);
    for request in ["read file", "email", "search email. write file. list commits", "a the of", ""] {
        let found = found(request, &index);
        assert!(found.iter().all(|ranked| ranked.score > 0.0 && ranked.score <= 1.0), "{request}");
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score), "{request}");
    }
}

#[test]
fn nothing_asked_or_nothing_there_finds_nothing() {
    let office = index(OFFICE);
    assert!(found("", &office).is_empty());
    assert!(found("please show me the", &office).is_empty());
    assert!(found("?!… \u{200b}", &office).is_empty());
    assert!(found("read file", &index(&[])).is_empty());
}

#[test]
fn a_catalogue_of_one_is_ranked() {
    let found = found("read file", &index(&["fs:read_file"]));
    assert_eq!(found.len(), 1);
    assert!(found[0].score > 0.3, "{found:?}");
}

#[test]
fn scripts_without_spaces_and_accents_match() {
    let index = index(&[
        "bing:bing_search 使用必应搜索指定的关键词",
        "meteo:prevision Prévisions météo",
        "x:y 发送邮件",
    ]);
    assert_eq!(items("搜索网页", &index), [0]);
    assert_eq!(items("METEO", &index), [1]);
    assert_eq!(items("邮件", &index), [2]);
}

#[test]
fn equal_items_stay_in_catalogue_order_every_time() {
    let index = index(&["a:read_file", "a:read_file", "b:none", "a:read_file", "a:read_file"]);
    for _ in 0..3 {
        assert_eq!(items("read a file. write a file", &index), [0, 1, 3, 4]);
    }
}

#[test]
fn a_huge_request_is_ranked_by_its_beginning() {
    let index = index(OFFICE);
    let request = format!("read file {}", "é".repeat(1_000_000));
    assert_eq!(items(&request, &index)[0], 0);
}

#[test]
fn parameters_and_results_are_searched_too() {
    let index = LexicalIndex::build([
        ToolDocument { name: "one", parameter_names: vec!["latitude"], ..ToolDocument::default() },
        ToolDocument {
            name: "two",
            parameter_descriptions: vec!["IANA timezone"],
            ..ToolDocument::default()
        },
        ToolDocument { name: "three", outputs: r#"{"humidity": "int"}"#, ..ToolDocument::default() },
    ]);
    let evidence = RankingEvidence { lexical: &index, dense: None, advice: None };
    let why = |request: &str| {
        let first = rank(request, &evidence)[0];
        explain_rank(request, &evidence, first.item)[0].to_string()
    };
    assert_eq!(why("latitude"), "parameters mention `latitude`");
    assert_eq!(why("timezones"), "parameters mention `timezones`");
    assert_eq!(why("humidity"), "result mentions `humidity`");
}
