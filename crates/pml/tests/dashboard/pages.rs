//! The pages in a real browser: what they show, and what a person can do with them.

use pml_model::Digest;
use pml_model::question::{
    Answer, Answerer, ApprovalArguments, ApprovalQuestion, ApprovalScope, ArgumentOrigin, CallInDoubt,
    CallToApprove, DoubtVerdict, LayerDecision, LayerQuestion, LayerResult, Question, ResolvedDoubt,
};
use serde_json::{Value, json};

use crate::browser::{play, play_at};
use crate::harness::eventually;
use crate::place::{Place, approval, call};

const WRITES: &str = r#"{"path":"notes.md","content":"hello"}"#;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn a_person_signs_in_lands_at_the_run_of_the_link_and_signs_out() {
    let place = Place::new();
    place.ask("first", approval(vec![call("fs:write", WRITES)]));
    let (run, _) = place.ask("second", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let seen = play(&served, "signing_in", &[("run", run.as_str())]);
    let url = served.url.strip_suffix("/mcp").unwrap();
    assert_eq!(seen["redirected"], format!("{url}/login#{run}"));
    assert_eq!((&seen["problem"], &seen["before"]), (&json!("that is not the passphrase"), &json!(0)));
    assert_eq!(
        (&seen["inbox"], &seen["focused"]),
        (&json!(format!("{url}/inbox#{run}")), &json!(run.as_str()))
    );
    let cookies = seen["cookies"].as_array().unwrap();
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!((&cookies[0]["httpOnly"], &cookies[0]["sameSite"]), (&json!(true), &json!("Strict")));
    assert_eq!(
        (&cookies[0]["session"], &seen["readable"]),
        (&json!(true), &json!("")),
        "no script can read it"
    );
    assert_eq!(seen["after"], format!("{url}/login"));
}

#[test]
fn without_a_passphrase_the_page_says_how_to_set_one() {
    let seen = play(&Place::without_passphrase().serve(), "no_passphrase", &[]);
    assert!(seen["text"].as_str().unwrap().contains("pml passphrase"), "{seen}");
}

/// All that a person has to see of a call.
fn telling() -> CallToApprove {
    CallToApprove {
        description: "Writes a file.\nMakes its folders.".to_owned(),
        origins: vec![
            ArgumentOrigin {
                part: "content".into(),
                from: "web:fetch".into(),
                node: Some("n2".into()),
                characters: Some(212),
            },
            ArgumentOrigin { part: "path".into(), from: "args".into(), node: None, characters: None },
        ],
        differs: vec!["`path` was `notes.md`".to_owned()],
        ..call(
            "fs:write",
            r#"{"path":"a.md","count":12345678901234567890,"path":"b.md","text":"one\ntwo","none":{},"list":[1,[]]}"#,
        )
    }
}

#[test]
fn a_card_tells_all_there_is_to_know() {
    let place = Place::new();
    let later = CallToApprove {
        repeats: true,
        scope: "network-api".to_owned(),
        arguments: ApprovalArguments::Unknown { source: "{ to: list[i],\n  text }".to_owned() },
        ..call("mail:send", "{}")
    };
    let question = Question::Approval(ApprovalQuestion {
        intent: String::new(),
        code_hash: String::new(),
        by: Answerer::Human,
        begun: false,
        calls: vec![telling(), later],
        opaque: vec!["line 9: `mcp[name]`".to_owned()],
    });
    let (run, _) = place.ask("publish the notes", question);
    let seen = play(&place.serve(), "reading", &[]);
    let card = texts(&seen["cards"])[0];
    for told in [
        "publish the notes\n",
        "by claude-code · expires in 24 h",
        run.as_str(),
        "Nothing has run yet.",
        "fs:write\nwrites files",
        "You are asked because nobody has said that it only reads.",
        "Line 4 of the program · n3\nawait mcp.fs.write({ path, content: text });",
        // As it stands, with every digit, and a name that is there twice is seen twice.
        "{\n  \"path\": \"a.md\",\n  \"count\": 12345678901234567890,\n  \"path\": \"b.md\",\n  \"text\": \"one\\n\n    two\",\n  \"none\": {},\n  \"list\": [\n    1,\n    []\n  ]\n}",
        "content contains 212 characters from web:fetch (n2)",
        "path comes from args",
        "Different from the last time you allowed it\npath was notes.md",
        "The words of the server. Nobody has checked them.\nWrites a file.\nMakes its folders.",
        "mail:send\nreaches a network",
        "It stands in a loop and may be made any number of times.",
        "The program writes:\n{ to: list[i],\n  text }",
        "line 9: mcp[name]",
    ] {
        assert!(card.replace("\n\n", "\n").contains(told), "{told}\n\n{card}");
    }
    assert_eq!(seen["title"], "(1) Inbox · PML");
}

/// Ways to become more than text.
const PAYLOADS: [&str; 64] = [
    r#"<script>pwned=1</script>"#,
    r#"<SCRIPT SRC=data:,pwned=1></SCRIPT>"#,
    r#"<script type=module>pwned=1</script>"#,
    r#"<script/x>pwned=1</script/x>"#,
    r#"<scr<script>ipt>pwned=1</scr</script>ipt>"#,
    r#"<img src=x onerror=pwned=1>"#,
    r#"<img src="x" onerror="pwned=1">"#,
    r#"<img src=`x`onerror=pwned=1>"#,
    r#"<image src=x onerror=pwned=1>"#,
    r#"<img srcset=x onerror=pwned=1>"#,
    r#"<svg onload=pwned=1>"#,
    r#"<svg/onload=pwned=1>"#,
    r#"<svg><script>pwned=1</script></svg>"#,
    r#"<svg><animate onbegin=pwned=1 attributeName=x dur=1s>"#,
    r#"<svg><a xlink:href="javascript:pwned=1"><text y=9>x</text></a></svg>"#,
    r#"<svg><use href="data:image/svg+xml,<svg id=x onload=pwned=1>#x"/></svg>"#,
    r#"<svg><foreignObject><body onload=pwned=1></foreignObject></svg>"#,
    r#"<body onload=pwned=1>"#,
    r#"<body onpageshow=pwned=1>"#,
    r#"<iframe src="javascript:parent.pwned=1"></iframe>"#,
    r#"<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>"#,
    r#"<iframe onload=pwned=1></iframe>"#,
    r#"<frameset onload=pwned=1>"#,
    r#"<object data="javascript:pwned=1"></object>"#,
    r#"<object data="data:text/html,<script>parent.pwned=1</script>"></object>"#,
    r#"<embed src="javascript:pwned=1">"#,
    r#"<applet code=x></applet>"#,
    r#"<input autofocus onfocus=pwned=1>"#,
    r#"<select autofocus onfocus=pwned=1>"#,
    r#"<textarea autofocus onfocus=pwned=1></textarea>"#,
    r#"<button autofocus onfocus=pwned=1>x</button>"#,
    r#"<form action="javascript:pwned=1"><input type=submit></form>"#,
    r#"<button form=x formaction="javascript:pwned=1">x</button>"#,
    r#"<isindex action="javascript:pwned=1">"#,
    r#"<a href="javascript:pwned=1">x</a>"#,
    r#"<a href="java&#x09;script:pwned=1">x</a>"#,
    r#"<a href="data:text/html,<script>pwned=1</script>">x</a>"#,
    r#"<base href="http://evil.example/">"#,
    r#"<link rel=stylesheet href="http://evil.example/x.css">"#,
    r#"<link rel=import href="data:text/html,<script>pwned=1</script>">"#,
    r#"<meta http-equiv=refresh content="0;url=javascript:pwned=1">"#,
    r#"<meta http-equiv="Content-Security-Policy" content="script-src *">"#,
    r#"<style>*{display:none}</style>"#,
    r#"<style>@import "http://evil.example/x.css";</style>"#,
    r#"<div style="background:url(http://evil.example/x)">x</div>"#,
    r#"<video><source onerror=pwned=1></video>"#,
    r#"<video poster=javascript:pwned=1 onloadstart=pwned=1 src=x></video>"#,
    r#"<audio src=x onerror=pwned=1></audio>"#,
    r#"<details open ontoggle=pwned=1>x</details>"#,
    r#"<marquee onstart=pwned=1>x</marquee>"#,
    r#"<keygen autofocus onfocus=pwned=1>"#,
    r#"<math><mi//xlink:href="data:x,<script>pwned=1</script>">"#,
    r#"<math><mtext><table><mglyph><style><img src=x onerror=pwned=1>"#,
    r#"<template><script>pwned=1</script></template>"#,
    r#"<noscript><p title="</noscript><img src=x onerror=pwned=1>">"#,
    r#"</pre></article><script>pwned=1</script>"#,
    r#""><script>pwned=1</script>"#,
    r#"'-pwned=1-'"#,
    r#"javascript:pwned=1"#,
    r#"{{constructor.constructor('pwned=1')()}}"#,
    r#"${pwned=1}"#,
    r#"<!--<img src="--><img src=x onerror=pwned=1>">"#,
    r#"<![CDATA[<script>pwned=1</script>]]>"#,
    r#"<x onclick=pwned=1 tabindex=0 id=x autofocus onfocus=pwned=1>"#,
];

/// A question with `text` wherever somebody else writes something.
fn full_of(text: &str) -> Question {
    let text = || text.to_owned();
    let json = serde_json::to_string(&json!({ text(): [text(), { "k": text() }] })).unwrap();
    let asked = |arguments| CallToApprove {
        tool: text(),
        definition: Digest::of(b""),
        description: text(),
        scope: text(),
        because: text(),
        call: Some(1),
        node: Some(text()),
        line: Some(1),
        code: Some(text()),
        arguments,
        repeats: true,
        origins: vec![ArgumentOrigin { part: text(), from: text(), node: Some(text()), characters: Some(1) }],
        differs: vec![text()],
    };
    Question::Approval(ApprovalQuestion {
        intent: text(),
        code_hash: text(),
        by: Answerer::Human,
        begun: true,
        calls: vec![
            asked(ApprovalArguments::Known { digest: Digest::of(b""), json }),
            asked(ApprovalArguments::Unknown { source: text() }),
        ],
        opaque: vec![text()],
    })
}

#[test]
fn whatever_others_write_stays_text() {
    let place = Place::new();
    let harmless = Place::new();
    for payload in PAYLOADS {
        place.ask(payload, full_of(payload));
        let results = vec![LayerResult {
            task_id: payload.into(),
            status: payload.into(),
            execution_time_ms: None,
            result_preview: Some(payload.into()),
            result_size: None,
        }];
        let next = vec![payload.to_owned()];
        place.ask(payload, Question::Layer(LayerQuestion { layer_index: 0, total_layers: 2, results, next }));
        let doubt = CallInDoubt {
            call: 1,
            node: Some(payload.into()),
            tool: payload.into(),
            arguments: json!(payload).to_string(),
            sent_at: 0,
        };
        place.ask(payload, Question::InDoubt { calls: vec![doubt], by: Answerer::Human });
    }
    harmless.ask("harmless", full_of("harmless"));
    harmless.ask(
        "harmless",
        Question::Layer(LayerQuestion {
            layer_index: 0,
            total_layers: 2,
            results: Vec::new(),
            next: Vec::new(),
        }),
    );
    let doubt =
        CallInDoubt { call: 1, node: None, tool: "harmless".into(), arguments: "{}".into(), sent_at: 0 };
    harmless.ask("harmless", Question::InDoubt { calls: vec![doubt], by: Answerer::Human });
    let seen = play(&place.serve(), "reading", &[]);
    let plain = play(&harmless.serve(), "reading", &[]);
    assert_eq!((&seen["ran"], &seen["handlers"]), (&json!(false), &json!(0)));
    assert_eq!(seen["made"], plain["made"], "no other elements than for harmless text");
    let cards = texts(&seen["cards"]);
    assert_eq!(cards.len(), 3 * PAYLOADS.len());
    for (index, payload) in PAYLOADS.iter().enumerate() {
        for card in &cards[3 * index..3 * index + 3] {
            assert!(card.matches(payload).count() >= 2, "{payload}\n{card}");
        }
    }
}

#[test]
fn characters_that_hide_or_move_others_are_written_out() {
    let place = Place::new();
    let cases = [
        ("rm \u{202e}gpj.exe\u{2066}x", "rm \\u202egpj.exe\\u2066x"),
        ("\u{1b}[2Kclear\u{7}", "\\u001b[2Kclear\\u0007"),
        ("a\u{200b}b\u{feff}c\u{ad}d\u{2060}e", "a\\u200bb\\ufeffc\\u00add\\u2060e"),
        ("tag\u{e0041}\u{e0020}s\u{fe0f}", "tag\\u{e0041}\\u{e0020}s\\ufe0f"),
        ("line\u{2028}and\u{85}so\ton", "line\\u2028and\\u0085so\\ton"),
        ("wide\u{3000}no\u{a0}break\u{3164}", "wide\\u3000no\\u00a0break\\u3164"),
        ("z\u{300}\u{301}\u{302}\u{303}\u{304}", "z\u{300}\u{301}\u{302}\\u0303\\u0304"),
        ("é ü ß 中文 עברית 🙂 stay", "é ü ß 中文 עברית 🙂 stay"),
    ];
    for (text, _) in cases {
        place.ask(text, full_of(text));
    }
    // Half of a pair, which no Rust string can hold.
    place.ask("half", approval(vec![call("fs:write", r#"{"half":"\ud800x"}"#)]));
    let seen = play(&place.serve(), "reading", &[]);
    assert_eq!(seen["hidden"], false);
    let cards = texts(&seen["cards"]);
    for ((text, shown), card) in cases.iter().zip(&cards) {
        // The intent, and of each call: tool, scope, reason, node, code, arguments, origins, differences, description.
        assert!(card.matches(shown).count() >= 20, "{}\n{card}", text.escape_debug());
    }
    assert!(cards[cases.len()].contains(r#""half": "\ud800x""#), "{}", cards[cases.len()]);
}

#[test]
fn a_real_run_waits_for_the_page_and_goes_on_as_it_says() {
    for (scenario, file) in [("approving", "yes.md"), ("denying", "no.md")] {
        let place = Place::new();
        let run = place.wants_to_write(file);
        let served = place.serve();
        let seen = play(&served, scenario, &[]);
        let card = seen["card"].as_str().unwrap();
        for told in [
            "save the notes",
            "fs:write\nwrites files",
            &format!("\"path\": \"{file}\""),
            "\"content\": \"hello\"",
        ] {
            assert!(card.contains(told), "{told}\n{card}");
        }
        let mut over = String::new();
        eventually("the run is over", || {
            over = place.home.run(&["runs", "show", run.as_str(), "--json"]).stdout;
            ["done", "failed"].iter().any(|state| over.contains(&format!("\"{state}\"")))
        });
        assert_eq!(place.home.path(file).exists(), scenario == "approving", "{over}");
    }
}

#[test]
fn what_differs_from_the_last_time_is_on_the_card() {
    let place = Place::new();
    place.wants_to_write("first.md");
    let served = place.serve();
    let seen = play(&served, "approving", &[]);
    assert!(!seen["card"].as_str().unwrap().contains("Different"), "{seen}");
    eventually("it is written", || place.home.path("first.md").exists());
    place.wants_to_write("second.md");
    let seen = play(&served, "denying", &[]);
    let told = "Different from the last time you allowed it\npath: \"first.md\" → \"second.md\"";
    assert!(seen["card"].as_str().unwrap().replace("\n\n", "\n").contains(told), "{seen}");
}

#[test]
fn of_two_people_who_answer_one_wins_and_the_other_is_told() {
    let place = Place::new();
    let (run, _) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let seen = play(&place.serve(), "two_people", &[]);
    assert_eq!(seen["told"], "Approved.");
    assert!(seen["late"].as_str().unwrap().contains("already"), "{seen}");
    let answers = place.answers(&run);
    let [Answer::Approval(decision)] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(
        decision.approved && decision.remember.is_none() && decision.any_arguments.is_none(),
        "{decision:?}"
    );
}

#[test]
fn a_page_notices_by_itself_what_was_answered_elsewhere() {
    let place = Place::new();
    place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let seen = play(&place.serve(), "noticing", &[]);
    assert!(seen["noticed"].as_str().unwrap().starts_with("This is not asked any more"), "{seen}");
}

#[test]
fn all_can_be_done_by_keyboard() {
    let place = Place::new();
    let (yes, _) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let (no, _) = place.ask("delete the notes", approval(vec![call("fs:delete", WRITES)]));
    let seen = play(&place.serve(), "by_keyboard", &[]);
    let asked = seen["asked"].as_str().unwrap();
    assert!(asked.contains("save the notes") && asked.contains("1 call: fs:write"), "{asked}");
    assert_eq!(
        (&seen["cancelled"], &seen["first"], &seen["second"]),
        (&json!(true), &json!("Approved."), &json!("Denied."))
    );
    let said = |run| match place.answers(run).as_slice() {
        [Answer::Approval(decision)] => (decision.approved, decision.reason.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(&yes), (true, None));
    assert_eq!(said(&no), (false, Some("a and d: not on a Friday".to_owned())));
}

#[test]
fn any_arguments_and_not_asking_again_are_choices_of_their_own() {
    let place = Place::new();
    let (any, _) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let (standing, _) = place.ask("save them daily", approval(vec![call("fs:write", WRITES)]));
    let seen = play(&place.serve(), "more_ways", &[]);
    assert_eq!(seen["told"], json!(["Approved, with any arguments.", "Approved, and not asked again."]));
    let said = |run| match place.answers(run).as_slice() {
        [Answer::Approval(decision)] => decision.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((said(&any).any_arguments, said(&any).remember), (Some(5), None));
    let (standing, days) = (said(&standing), 24 * 3600 * 1000);
    let remember = standing.remember.unwrap();
    assert_eq!(
        (remember.only, remember.any_arguments, standing.any_arguments),
        (ApprovalScope::Tool, true, None)
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert_eq!((remember.expires_at + days / 2 - i64::try_from(now).unwrap()) / days, 7);
}

#[test]
fn nothing_large_is_approved_unseen() {
    let place = Place::new();
    // As long as values can be, with what matters at the very end.
    let text = "a line of the file that goes on for a while\n".repeat(1000)
        + &"x".repeat(10_000_000)
        + "and its end";
    let json = json!({ "content": text, "path": "x" }).to_string();
    place.ask("save much", approval(vec![call("fs:write", &json)]));
    let seen = play(&place.serve(), "large_values", &[]);
    assert_eq!(seen["before"], json!([false, false, false]));
    assert_eq!(seen["refused"], "Open the large values first.");
    assert!(seen["warned"].as_str().unwrap().contains("9.6 MiB"), "{seen}");
    assert_eq!(seen["after"], json!([true, true, true]));
    assert_eq!(seen["scrolls"], true);
    assert!(seen["length"].as_u64() > Some(10_000_000), "{seen}");
    assert!(seen["end"].as_str().unwrap().ends_with("and its end\",\n  \"path\": \"x\"\n}"), "{seen}");
}

#[test]
fn layers_go_on_and_doubts_are_resolved() {
    let place = Place::new();
    let result = LayerResult {
        task_id: "fetch".into(),
        status: "success".into(),
        execution_time_ms: Some(12),
        result_preview: Some("{\"title\":".into()),
        result_size: Some(4096),
    };
    let layer =
        LayerQuestion { layer_index: 0, total_layers: 3, results: vec![result], next: vec!["save".into()] };
    let (layered, _) = place.ask("look first", Question::Layer(layer));
    let doubt = CallInDoubt {
        call: 3,
        node: None,
        tool: "mail:send".into(),
        arguments: r#"{"to":"ada"}"#.into(),
        sent_at: 0,
    };
    let (doubted, _) = place.ask("send mail", Question::InDoubt { calls: vec![doubt], by: Answerer::Human });
    let seen = play(&place.serve(), "other_questions", &[]);
    let cards = texts(&seen["cards"]);
    for told in ["Layer 1 of 3 has run.", "fetch\nsuccess · 12 ms", "{\"title\":", "4.0 KiB", "Next\nsave"] {
        assert!(cards[0].replace("\n\n", "\n").contains(told), "{told}\n{}", cards[0]);
    }
    let command = format!("pml runs resume {doubted} --call 3=JSON");
    for told in ["mail:send", "\"to\": \"ada\"", command.as_str()] {
        assert!(cards[1].contains(told), "{told}\n{}", cards[1]);
    }
    assert_eq!(
        (&seen["incomplete"], &seen["told"]),
        (&json!("Say what became of call 3."), &json!(["Continued.", "Answered."]))
    );
    assert_eq!(place.answers(&layered), [Answer::Layer(LayerDecision::Continue)]);
    assert_eq!(
        place.answers(&doubted),
        [Answer::Doubts { calls: vec![ResolvedDoubt { call: 3, verdict: DoubtVerdict::Again }] }]
    );
}

#[test]
fn it_fits_a_narrow_window() {
    let place = Place::new();
    let long = "x".repeat(300);
    place.ask(&long, full_of(&long));
    place.ask("publish the notes", approval(vec![telling()]));
    let served = place.serve();
    assert_eq!(play(&served, "narrow", &[])["wide"], false);
    assert_eq!(play(&served, "reading", &[])["wide"], false);
}

#[test]
fn a_session_that_ends_in_mid_answer_costs_nothing_but_the_passphrase() {
    let place = Place::new();
    let (run, _) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let seen = play(&place.serve(), "expired", &[]);
    assert_eq!((&seen["asked"], &seen["told"]), (&json!(true), &json!("Denied.")));
    let answers = place.answers(&run);
    let [Answer::Approval(decision)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((decision.approved, decision.reason.as_deref()), (false, Some("not on a Friday")));
}

#[test]
fn a_gateway_that_restarts_under_an_open_page_is_found_again() {
    let place = Place::new();
    let (run, _) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let url = served.url.strip_suffix("/mcp").unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap().to_owned();
    let (typed, missed) = (place.home.path("typed"), place.home.path("missed"));
    let files = [("typed", typed.display().to_string()), ("missed", missed.display().to_string())];
    let seen = std::thread::scope(|scope| {
        let browser = scope.spawn(|| {
            let files: Vec<(&str, &str)> = files.iter().map(|(name, path)| (*name, path.as_str())).collect();
            play_at(&url, "restarting", &files)
        });
        eventually("the reason is typed", || typed.exists());
        drop(served);
        eventually("the page says that PML is away", || missed.exists());
        let _again = place.home.serve_by(place.home.command(&["serve", "--listen", &address]));
        browser.join().unwrap()
    });
    assert_eq!((&seen["reason"], &seen["told"]), (&json!("not on a Friday"), &json!("Denied.")));
    let answers = place.answers(&run);
    let [Answer::Approval(decision)] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((decision.approved, decision.reason.as_deref()), (false, Some("not on a Friday")));
}
