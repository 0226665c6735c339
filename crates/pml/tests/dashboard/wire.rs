//! Byte by byte: who is let in, what is refused, and what every response says to browsers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pml_model::Principal;
use pml_model::question::{Answer, ApprovalScope};
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Served};
use crate::place::{PASSPHRASE, Place, approval, call};

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.status, self.body))
    }
}

pub fn authority(served: &Served) -> &str {
    served.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap()
}

/// One request with exactly these headers, besides those that frame it.
pub fn send(served: &Served, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(authority(served)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    Reply { status, headers, body: body.to_owned() }
}

/// Somebody who has signed in.
pub struct Person<'a> {
    served: &'a Served,
    cookie: String,
    csrf: String,
}

impl Person<'_> {
    pub fn sign_in(served: &Served) -> Person<'_> {
        let reply = log_in(served, PASSPHRASE, &[]);
        assert_eq!(reply.status, 200, "{}", reply.body);
        let cookie = reply.header("set-cookie").split(';').next().unwrap().to_owned();
        Person { served, cookie, csrf: reply.json()["csrf"].as_str().unwrap().to_owned() }
    }

    pub fn get(&self, path: &str) -> Reply {
        send(self.served, "GET", path, &[("Host", authority(self.served)), ("Cookie", &self.cookie)], "")
    }

    /// The cookie, as a browser sends it.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Says something to a question.
    fn say(&self, (run, question): (&str, &str), said: &Value) -> Reply {
        self.post(&format!("/api/approvals/{run}/{question}"), &[], &said.to_string())
    }

    /// A POST as the page sends it, with some headers in place of its own.
    pub fn post(&self, path: &str, instead: &[(&str, &str)], body: &str) -> Reply {
        let origin = format!("http://{}", authority(self.served));
        let own = [
            ("Host", authority(self.served)),
            ("Origin", &origin),
            ("Cookie", &self.cookie),
            ("Content-Type", "application/json"),
            ("X-Pml-Csrf", &self.csrf),
        ];
        let kept = own.into_iter().filter(|(name, _)| instead.iter().all(|(other, _)| other != name));
        let all: Vec<(&str, &str)> =
            kept.chain(instead.iter().copied()).filter(|(_, value)| !value.is_empty()).collect();
        send(self.served, "POST", path, &all, body)
    }
}

pub fn log_in(served: &Served, passphrase: &str, more: &[(&str, &str)]) -> Reply {
    let form: String =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("passphrase", passphrase).finish();
    let mut headers =
        vec![("Host", authority(served)), ("Content-Type", "application/x-www-form-urlencoded")];
    headers.extend(more);
    send(served, "POST", "/login", &headers, &form)
}

const WRITES: &str = r#"{"path":"notes.md","content":"hello"}"#;

#[test]
fn signing_in_gives_a_cookie_that_scripts_and_other_sites_do_not_get() {
    let place = Place::new();
    let served = place.serve();
    let plain = log_in(&served, PASSPHRASE, &[]);
    let (value, flags) = plain.header("set-cookie").split_once("; ").unwrap();
    assert_eq!(flags, "HttpOnly; SameSite=Strict; Path=/");
    assert_eq!(value.strip_prefix("pml_session=").unwrap().len(), 43, "256 bits: {value}");
    let origin = format!("https://{}", authority(&served));
    let behind_tls = log_in(&served, PASSPHRASE, &[("Origin", &origin)]);
    let (other, flags) = behind_tls.header("set-cookie").split_once("; ").unwrap();
    assert_eq!(flags, "HttpOnly; SameSite=Strict; Path=/; Secure");
    assert_ne!(value, other);
    assert_ne!(plain.json()["csrf"], behind_tls.json()["csrf"]);
}

#[test]
fn a_wrong_passphrase_opens_nothing_and_guessing_has_to_wait() {
    let place = Place::new();
    let served = place.serve();
    for wrong in ["", "correct horse", "Correct horse battery"] {
        let reply = log_in(&served, wrong, &[]);
        assert_eq!((reply.status, reply.header("set-cookie")), (401, ""), "{wrong}");
        assert_eq!(reply.json()["error"]["message"], "that is not the passphrase");
    }
    // Pauses grow until one is longer than a try takes, on however slow a machine.
    let refused =
        (0..12).map(|_| log_in(&served, "wrong again", &[])).find(|reply| reply.status != 401).unwrap();
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("RATE_LIMITED")));
    assert_eq!(log_in(&served, PASSPHRASE, &[]).status, 429, "the right one has to wait as well");
}

#[test]
fn without_a_passphrase_nobody_signs_in_and_the_page_says_what_to_do() {
    let place = Place::without_passphrase();
    let served = place.serve();
    assert_eq!(log_in(&served, "", &[]).status, 403);
    let page = send(&served, "GET", "/login", &[("Host", authority(&served))], "");
    assert!(page.body.contains("pml passphrase") && !page.body.contains("<form"), "{}", page.body);
}

#[test]
fn only_a_page_of_ours_in_a_session_can_answer() {
    let place = Place::new();
    let (run, question) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let person = Person::sign_in(&served);
    let path = format!("/api/approvals/{run}/{question}");
    let yes = r#"{"approved": true}"#;
    let token = format!("Bearer {}", served.token);
    let refused: [(u16, &[(&str, &str)]); 10] = [
        (403, &[("X-Pml-Csrf", "")]),
        (403, &[("X-Pml-Csrf", "guessed")]),
        (403, &[("Origin", "http://evil.example")]),
        (403, &[("Origin", "http://localhost:3000")]),
        (403, &[("Origin", "null")]),
        (403, &[("Host", "evil.example")]),
        (401, &[("Cookie", "")]),
        (401, &[("Cookie", "pml_session=guessed")]),
        (415, &[("Content-Type", "text/plain")]),
        (415, &[("Content-Type", "")]),
    ];
    for (status, instead) in refused {
        assert_eq!(person.post(&path, instead, yes).status, status, "{instead:?}");
    }
    let program = person.post(&path, &[("Cookie", ""), ("X-Pml-Csrf", ""), ("Authorization", &token)], yes);
    assert_eq!((program.status, &program.json()["error"]["code"]), (403, &json!("DENIED")));
    let both = person.post(&path, &[("Authorization", &token)], yes);
    assert_eq!(both.status, 403, "whoever shows the token is taken for a program");
    assert_eq!(place.answers(&run), [], "nothing of this has counted");
    assert_eq!(person.post(&path, &[], yes).status, 200);
    assert_eq!(place.answers(&run).len(), 1);
}

#[test]
fn an_answer_counts_once_and_only_for_the_question_it_was_given_to() {
    let place = Place::new();
    let (run, question) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    let somebody = Principal("somebody".to_owned());
    let (foreign, theirs) = place.ask_as(&somebody, "theirs", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let person = Person::sign_in(&served);
    let asked = (run.as_str(), question.as_str());
    let yes = json!({"approved": true});
    assert_eq!(person.say((run.as_str(), "q_other"), &yes).status, 410);
    for unknown in [foreign.as_str(), "run_00000000000000000000000000000000", "x", "..%2f..%2fmcp"] {
        assert_eq!(person.say((unknown, &theirs), &yes).status, 404, "{unknown}");
    }
    for bad in [
        json!({}),
        json!({"approved": "yes"}),
        json!({"approved": true, "by": "me"}),
        json!({"calls": []}),
        json!({"approved": true, "anyArguments": 0}),
        json!({"approved": true, "remember": {"only": "code", "days": 0}}),
        json!({"approved": true, "remember": {"only": "code", "days": 366}}),
        json!({"approved": true, "remember": {"only": "everything"}}),
    ] {
        let reply = person.say(asked, &bad);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!("INVALID_REQUEST")), "{bad}");
    }
    assert_eq!(
        person.post(&format!("/api/approvals/{run}/{question}"), &[], &" ".repeat(65 * 1024)).status,
        413
    );

    let said = json!({"approved": true, "anyArguments": 5, "remember": {"only": "tool", "anyArguments": true, "days": 7}});
    let reply = person.say(asked, &said);
    assert_eq!((reply.status, reply.json()), (200, json!({"schemaVersion": 1, "status": "answered"})));
    let again = person.say(asked, &json!({"approved": false, "reason": "no"}));
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &json!("ALREADY_ANSWERED")));
    let answers = place.answers(&run);
    let [Answer::Approval(decision)] = answers.as_slice() else { panic!("{answers:?}") };
    let remember = decision.remember.as_ref().unwrap();
    assert_eq!((decision.approved, decision.any_arguments, &decision.reason), (true, Some(5), &None));
    assert_eq!((remember.only, remember.any_arguments), (ApprovalScope::Tool, true));
}

#[test]
fn what_waits_is_listed_for_people_and_programs_of_its_owner() {
    let place = Place::new();
    let (run, question) = place.ask("save the notes", approval(vec![call("fs:write", WRITES)]));
    place.ask_as(&Principal("somebody".to_owned()), "theirs", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let person = Person::sign_in(&served);
    let reply = person.get("/api/approvals");
    let listed = reply.json()["approvals"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let one = &listed[0];
    assert_eq!((&one["workflowId"], &one["questionId"]), (&json!(run.as_str()), &json!(question)));
    assert_eq!((&one["session"], &one["intent"]), (&json!("claude-code"), &json!("save the notes")));
    assert!(one["expiresAt"].as_i64() > one["askedAt"].as_i64(), "{one}");
    assert_eq!(one["question"]["type"], "approval");
    assert_eq!(one["question"]["calls"][0]["arguments"]["json"], WRITES);

    let (host, token) = (authority(&served), format!("Bearer {}", served.token));
    let program = send(&served, "GET", "/api/approvals", &[("Host", host), ("Authorization", &token)], "");
    assert_eq!((program.status, program.json()), (200, reply.json()));
    let same = [("Host", host), ("Authorization", token.as_str()), ("If-None-Match", reply.header("etag"))];
    assert_eq!(send(&served, "GET", "/api/approvals", &same, "").status, 304);
    assert_eq!(send(&served, "GET", "/api/approvals", &[("Host", host)], "").status, 401);

    person.say((run.as_str(), &question), &json!({"approved": false}));
    assert_eq!(person.get("/api/approvals").json(), json!({"schemaVersion": 1, "approvals": []}));
}

#[test]
fn a_session_opens_the_pages_and_the_api_and_ends() {
    let place = Place::new();
    let served = place.serve();
    let person = Person::sign_in(&served);
    assert_eq!((person.get("/").status, person.get("/api/approvals").status), (200, 200));
    assert_eq!(person.get("/mcp").status, 401);
    assert_eq!(person.post("/api/analyse", &[], r#"{"code": "return 1"}"#).status, 200);
    assert_eq!(person.post("/logout", &[("X-Pml-Csrf", "")], "").status, 403);
    assert_eq!(person.get("/").status, 200);
    assert_eq!(person.post("/logout", &[], "").status, 204);
    let sent_away = person.get("/");
    assert_eq!((sent_away.status, sent_away.header("location")), (303, "/login"));
    assert_eq!(person.get("/api/approvals").status, 401);

    let person = Person::sign_in(&served);
    place.set_passphrase("another horse altogether");
    assert_eq!(person.get("/api/approvals").status, 401, "a new passphrase ends the sessions of the old one");
}

/// A browser that came by the link.
pub fn viewer(served: &Served) -> Person<'_> {
    let path = served.link.strip_prefix(&format!("http://{}", authority(served))).unwrap();
    let opened = send(served, "GET", path, &[("Host", authority(served))], "");
    assert_eq!((opened.status, opened.header("location")), (303, "/"), "{}", opened.body);
    let (cookie, flags) = opened.header("set-cookie").split_once("; ").unwrap();
    assert_eq!(flags, "HttpOnly; SameSite=Lax; Path=/");
    assert!(!path.contains(cookie.split_once('=').unwrap().1), "the cookie is another secret than the link");
    Person { served, cookie: cookie.to_owned(), csrf: "none".to_owned() }
}

#[test]
fn the_link_opens_the_dashboard_for_reading_and_nothing_more() {
    let place = Place::new();
    let (run, question) = place.ask("write it down", approval(vec![call("fs:write", WRITES)]));
    let served = place.serve();
    let host = authority(&served);
    let viewer = viewer(&served);
    let session = viewer.get("/api/session").json();
    let expected = json!({"schemaVersion": 1, "role": "viewer", "passphraseSet": true, "principal": "local",
        "version": session["version"]});
    assert_eq!(session, expected);
    for path in ["/", "/api/approvals", "/api/quarantine", "/api/capabilities", "/api/traces", "/api/graph"] {
        assert_eq!(viewer.get(path).status, 200, "{path}");
    }
    assert_eq!(viewer.post("/api/analyse", &[], r#"{"code": "return 1"}"#).status, 200);
    let answer = format!("/api/approvals/{run}/{question}");
    for (path, body) in [
        (answer.as_str(), r#"{"approved": true}"#),
        ("/api/quarantine/s:tool", "{}"),
        ("/api/explore", r#"{"intent": "x"}"#),
        ("/api/capabilities", r#"{"intent": "x", "code": "return 1"}"#),
        ("/api/capabilities/x/rename", r#"{"name": "y"}"#),
    ] {
        let refused = viewer.post(path, &[], body);
        let code = &refused.json()["error"]["code"];
        assert_eq!((refused.status, code), (401, &json!("SIGN_IN_REQUIRED")), "{path}");
    }
    assert_eq!(viewer.get("/mcp").status, 401);
    assert_eq!(viewer.get("/api/approvals").json()["approvals"].as_array().unwrap().len(), 1);

    let person = Person::sign_in(&served);
    let both = format!("{}; {}", viewer.cookie, person.cookie);
    let both = Person { served: &served, cookie: both, csrf: person.csrf };
    assert_eq!(both.get("/api/session").json()["role"], "person");
    assert_eq!(both.post(&answer, &[], r#"{"approved": true}"#).status, 200, "the same request, signed in");
    let unproven = both.post(&answer, &[("X-Pml-Csrf", "")], r#"{"approved": true}"#);
    assert_eq!((unproven.status, &unproven.json()["error"]["code"]), (403, &json!("SIGN_IN_REQUIRED")));
    let token = format!("Bearer {}", served.token);
    let program = send(&served, "GET", "/api/session", &[("Host", host), ("Authorization", &token)], "");
    assert_eq!(program.json()["role"], "program");
    assert_eq!(send(&served, "GET", "/api/session", &[("Host", host)], "").status, 401);
}

#[test]
fn the_link_leads_to_pages_of_ours_and_ends_with_the_process() {
    let place = Place::new();
    let served = place.serve();
    let ticket = served.link.rsplit_once('/').unwrap().1;
    let open = |path: &str| send(&served, "GET", path, &[("Host", authority(&served))], "");
    for (to, expected) in [
        ("%2Fruns%2Frun_1%3Fcall%3D2%23timeline", "/runs/run_1?call=2#timeline"),
        ("/capabilities/days", "/capabilities/days"),
        ("//evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("https://evil.example", "/"),
        ("/a%0D%0Aset-cookie:x=y", "/"),
        ("", "/"),
    ] {
        let opened = open(&format!("/open/{ticket}?to={to}"));
        assert_eq!((opened.status, opened.header("location")), (303, expected), "{to}");
    }
    for wrong in ["x", &ticket[1..], &format!("{ticket}x")] {
        let refused = open(&format!("/open/{wrong}"));
        assert_eq!((refused.status, refused.header("set-cookie")), (404, ""), "{wrong}");
    }
    let earlier = viewer(&served);
    let again = place.serve();
    let later = Person { served: &again, cookie: earlier.cookie, csrf: String::new() };
    assert_eq!(later.get("/api/session").status, 401, "another process has another link");
}

/// Every route, and some that are none.
const ROUTES: [(&str, &str); 21] = [
    ("GET", "/"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
    ("GET", "/assets/style.css"),
    ("GET", "/assets/inbox.js"),
    ("GET", "/assets/icon.svg"),
    ("GET", "/assets/nothing"),
    ("GET", "/api/approvals"),
    ("POST", "/api/approvals/run_0/q"),
    ("GET", "/api/quarantine"),
    ("POST", "/api/quarantine/s:tool"),
    ("POST", "/api/analyse"),
    ("GET", "/api/session"),
    ("GET", "/open/x"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/mcp"),
    ("POST", "/mcp"),
    ("DELETE", "/"),
    ("GET", "/nothing"),
];

#[test]
fn every_response_tells_browsers_what_they_may_do() {
    let place = Place::new();
    let served = place.serve();
    let person = Person::sign_in(&served);
    let host = authority(&served);
    let token = format!("Bearer {}", served.token);
    for (method, path) in ROUTES {
        for credentials in [("X-None", "-"), ("Cookie", &person.cookie), ("Authorization", &token)] {
            let reply = send(&served, method, path, &[("Host", host), credentials], "");
            let about = format!("{method} {path} with {}: {}", credentials.0, reply.status);
            assert_eq!(
                reply.header("content-security-policy"),
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                 form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
                "{about}"
            );
            let others = ["x-content-type-options", "x-frame-options", "referrer-policy"]
                .map(|name| reply.header(name));
            assert_eq!(others, ["nosniff", "DENY", "no-referrer"], "{about}");
            let kept = reply.header("cache-control");
            let asset = path.starts_with("/assets/") && reply.status == 200;
            assert_eq!(kept, if asset { "no-cache" } else { "no-store" }, "{about}");
            assert!(reply.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{about}");
        }
    }
}

#[test]
fn names_and_origins_that_are_not_ours_are_refused_on_every_route() {
    let place = Place::new();
    let served = place.serve();
    let person = Person::sign_in(&served);
    let token = format!("Bearer {}", served.token);
    let (own, port) = (authority(&served), authority(&served).rsplit(':').next().unwrap());
    let rebound = format!("evil.example:{port}");
    let elsewhere = format!("http://evil.example:{port}");
    let pairs: [(&str, &str); 14] = [
        ("evil.example", ""),
        (&rebound, ""),
        ("127.0.0.1.nip.io", ""),
        ("localhost.evil.example", ""),
        ("0.0.0.0", ""),
        ("[::2]", ""),
        ("169.254.169.254", ""),
        (&rebound, &elsewhere),
        (own, "http://evil.example"),
        (own, &elsewhere),
        (own, "null"),
        (own, "file://"),
        (own, "http://localhost:1"),
        (own, "chrome-extension://abcdef"),
    ];
    for (method, path) in ROUTES {
        for (host, origin) in pairs {
            let mut headers = vec![("Host", host), ("Cookie", &person.cookie), ("X-Pml-Csrf", &person.csrf)];
            headers.push(("Content-Type", "application/json"));
            if !origin.is_empty() {
                headers.push(("Origin", origin));
            }
            if path == "/mcp" || path == "/api/analyse" {
                headers.push(("Authorization", &token));
            }
            let reply = send(&served, method, path, &headers, "");
            assert_eq!(reply.status, 403, "{method} {path} as {host} from {origin}");
        }
    }
}
