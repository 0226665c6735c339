//! Capabilities that one person publishes, and what the agents of others can do with them.

use pml::keys::KeyRequest;
use pml_model::{KeyRights, Membership, Principal, Role, ToolScope};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, Served, eventually};
use crate::place::{ALL, api_as};

/// As a rule everything may be called; writing is asked about.
const ASKING: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"fs:write\" = { approval_mode = \"hil\" }\n\
    [builtin.fs]\nroot = \".\"\n";
const WORDS: &str = "const file = await mcp.fs.read({ path: \"a.txt\" });\n\
    return file.content.split(/\\s+/).filter(Boolean).length;";
const COUNT: &str = "const file = await mcp.fs.read({ path: args.path });\n\
    return file.content.split(/\\s+/).filter(Boolean).length;";
const LENGTH: &str = "return (await mcp.fs.read({ path: args.path })).content.length;";

/// A gateway that serves the people of a team, each with a key.
struct Team {
    served: Served,
    home: Home,
}

/// A person, with an agent of theirs.
struct Member {
    key: String,
    agent: Gateway,
}

impl Team {
    fn start(config: &str) -> Team {
        let home = Home::new(config);
        std::fs::write(home.path("a.txt"), "one two three").unwrap();
        std::fs::write(home.path("b.txt"), "four five").unwrap();
        Team { served: home.serve(&[]), home }
    }

    fn member(&self, name: &str, role: Role) -> Member {
        let rights = KeyRights::of_role(role);
        let key = self.home.key_of(name, KeyRequest { rights, ..KeyRequest::named(name) });
        let agent = self.home.command(&["stdio", "--key-file", &format!("{name}.key")]);
        Member { key, agent: Gateway::start(agent) }
    }

    fn ask(&self, who: &Member, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        // A key counts from the next moment at which the gateway looks.
        let mut told = (0, Value::Null);
        eventually("the key is known", || {
            told = api_as(&self.served, &who.key, method, path, body.cloned());
            told.0 != 401
        });
        told
    }

    #[track_caller]
    fn done(&self, who: &Member, path: &str, body: &Value) -> Value {
        let (status, told) = self.ask(who, "POST", path, Some(body));
        assert_eq!(status, 200, "{path}: {told}");
        told["capability"].clone()
    }

    #[track_caller]
    fn create(&self, who: &Member, name: &str, intent: &str, code: &str) -> Value {
        let taken = json!({ "intent": intent, "name": name, "code": code, "newVersion": true });
        self.done(who, "/api/capabilities", &taken)
    }

    #[track_caller]
    fn publish(&self, who: &Member, name: &str, visibility: &str) -> Value {
        self.done(who, &format!("/api/capabilities/{name}/publish"), &json!({ "visibility": visibility }))
    }

    fn assign(&self, name: &str, org: &str, project: &str) {
        let member = Membership { org: org.to_owned(), project: project.to_owned() };
        self.home.store().set_membership(&Principal(name.to_owned()), &member, 1).unwrap();
    }

    fn status(&self, who: &Member, path: &str) -> u16 {
        self.ask(who, "GET", path, None).0
    }
}

impl Member {
    #[track_caller]
    fn run(&mut self, intent: &str, code: &str) -> Value {
        let implementation = json!({ "type": "code", "code": code });
        self.agent.call(
            "pml_execute",
            &json!({ "intent": intent, "implementation": implementation, "options": { "cache": false } }),
        )
    }

    #[track_caller]
    fn wish(&mut self, intent: &str) -> Value {
        self.agent.call("pml_execute", &json!({ "intent": intent, "options": { "cache": false } }))
    }

    /// Runs a capability by its name, on `b.txt`.
    #[track_caller]
    fn run_named(&mut self, name: &str) -> Value {
        self.agent.call(
            "pml_execute",
            &json!({ "intent": "whatever it does", "context": { "path": "b.txt" },
                "implementation": { "type": "capability", "id": name }, "options": { "cache": false } }),
        )
    }

    /// What a program returns.
    #[track_caller]
    fn result(&mut self, code: &str) -> Value {
        let told = self.run("call it", code);
        assert_eq!(told["status"], "success", "{told}");
        told["result"].clone()
    }

    /// Whether the capability `words` is not found, neither by an intent nor by its name.
    fn finds_nothing(&mut self) -> bool {
        let told = self.wish("count the words in b.txt");
        let Some(found) = told["suggestions"]["candidates"].as_array() else { return false };
        let named = self.run_named("words");
        found.iter().all(|found| found["name"] != "words")
            && named.to_string().contains("there is no capability")
    }
}

#[test]
fn what_one_person_publishes_serves_the_agents_of_others_until_it_is_taken_back() {
    let team = Team::start(ALL);
    std::fs::write(team.home.path("salaries.txt"), "one").unwrap();
    let (mut ann, mut bob) = (team.member("ann", Role::Member), team.member("bob", Role::Member));
    let told = ann.run("count the words in a.txt", WORDS);
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    eventually("it runs for other files", || ann.wish("count the words in salaries.txt")["result"] == 1);
    team.done(&ann, &format!("/api/capabilities/{id}/rename"), &json!({ "name": "words" }));
    assert!(bob.finds_nothing(), "it is private");
    assert_eq!(team.status(&bob, "/api/capabilities/words"), 404);

    let published = team.publish(&ann, "words", "project");
    assert_eq!((&published["visibility"], &published["usesByOthers"]), (&json!("project"), &json!(0)));
    eventually("it runs for an intent of somebody else", || {
        let told = bob.wish("count the words in b.txt");
        told["status"] == "success" && told["result"] == 2
    });
    assert_eq!(bob.run_named("words")["result"], 2);
    let (_, own) = team.ask(&bob, "GET", "/api/capabilities", None);
    assert_eq!(own["capabilities"], json!([]), "it stays its owner's");
    let (_, others) = team.ask(&bob, "GET", "/api/capabilities?published=true", None);
    let listed = &others["capabilities"][0];
    assert_eq!((&listed["name"], &listed["owner"]), (&json!("words"), &json!("ann")), "{others}");
    let (status, shown) = team.ask(&bob, "GET", "/api/capabilities/words", None);
    assert_eq!((status, &shown["capability"]["owner"]), (200, &json!("ann")));
    for told in [&others, &shown] {
        assert!(!told.to_string().contains("salaries"), "what runs were given stays private: {told}");
    }
    assert_eq!(bob.result("return await capabilities.words({ path: \"b.txt\" });"), 2);

    // It can be read and nothing else, and what others did with it is theirs.
    for (path, body) in [
        ("rename", json!({ "name": "mine" })),
        ("publish", json!({ "visibility": "public" })),
        ("rollback", json!({})),
        ("forget-intent", json!({ "intent": "count the words in a.txt" })),
        ("cache", json!({ "ttlSeconds": 5 })),
    ] {
        let (status, told) = team.ask(&bob, "POST", &format!("/api/capabilities/words/{path}"), Some(&body));
        assert!(status == 404 || (path == "cache" && status == 400), "{path}: {told}");
    }
    assert_eq!(team.ask(&bob, "DELETE", "/api/capabilities/words", None).0, 404);
    let run = bob.run_named("words")["workflowId"].as_str().unwrap().to_owned();
    assert_eq!(team.status(&bob, &format!("/api/runs/{run}")), 200);
    assert_eq!(team.status(&ann, &format!("/api/runs/{run}")), 404);
    let (_, kept) = team.ask(&ann, "GET", "/api/capabilities/words", None);
    assert!(kept["capability"]["usesByOthers"].as_u64().unwrap() >= 3, "{kept}");
    assert!(!kept.to_string().contains("b.txt"), "{kept}");
    assert_eq!(team.status(&bob, &format!("/api/traces/{id}")), 404);

    team.publish(&ann, "words", "private");
    eventually("it is taken back", || bob.finds_nothing());
    assert_eq!(team.status(&bob, "/api/capabilities/words"), 404);
    assert_eq!(ann.run_named("words")["result"], 2);
}

#[test]
fn each_sees_what_was_published_for_them_and_their_own_first() {
    let team = Team::start(ALL);
    let (ann, mut bob) = (team.member("ann", Role::Member), team.member("bob", Role::Member));
    let (mut cid, root) = (team.member("cid", Role::Agent), team.member("root", Role::Admin));
    team.assign("ann", "acme", "web");
    team.assign("bob", "acme", "web");
    team.assign("cid", "acme", "app");
    team.create(&ann, "words", "count the words of a file", COUNT);
    team.publish(&ann, "words", "project");
    eventually("a member of the project sees it", || bob.run_named("words")["result"] == 2);
    assert!(cid.finds_nothing());
    let other = json!({ "visibility": "org", "owner": "ann" });
    let (status, told) = team.ask(&bob, "POST", "/api/capabilities/words/publish", Some(&other));
    assert_eq!(status, 403, "{told}");
    assert_eq!(team.ask(&cid, "POST", "/api/capabilities/words/publish", Some(&other)).0, 403);
    team.done(&root, "/api/capabilities/words/publish", &other);
    eventually("a member of the organisation sees it", || cid.run_named("words")["result"] == 2);
    team.assign("cid", "other", "web");
    eventually("somebody who left does not", || cid.finds_nothing());
    team.done(&root, "/api/capabilities/words/publish", &json!({ "visibility": "public", "owner": "ann" }));
    eventually("everybody sees it", || cid.run_named("words")["result"] == 2);

    team.create(&bob, "words", "how long a file is", LENGTH);
    eventually("one's own comes first", || bob.run_named("words")["result"] == 9);
    assert_eq!(bob.result("return await capabilities.words({ path: \"b.txt\" });"), 9);
    assert_eq!(cid.run_named("words")["result"], 2);
    assert_eq!(team.ask(&bob, "DELETE", "/api/capabilities/words", None).0, 200);
    eventually("the one of the others is there again", || bob.run_named("words")["result"] == 2);
}

#[test]
fn a_published_capability_runs_under_the_policy_and_the_approvals_of_whoever_runs_it() {
    let team = Team::start(ASKING);
    let (ann, mut bob) = (team.member("ann", Role::Member), team.member("bob", Role::Approver));
    let code = "await mcp.fs.write({ path: args.path, content: 'x' });\nreturn 1;";
    team.create(&ann, "overwrite", "overwrite a file", code);
    team.publish(&ann, "overwrite", "public");
    eventually("it is found", || bob.run_named("overwrite")["status"] == "approval_required");
    assert_eq!(bob.wish("overwrite a file")["status"], "suggestions");
    assert_eq!(std::fs::read_to_string(team.home.path("b.txt")).unwrap(), "four five");
    let (_, mine) = team.ask(&bob, "GET", "/api/approvals", None);
    let (_, theirs) = team.ask(&ann, "GET", "/api/approvals", None);
    assert_eq!(mine["approvals"].as_array().map(|all| !all.is_empty()), Some(true), "{mine}");
    assert_eq!(theirs["approvals"], json!([]), "{theirs}");

    let rights = KeyRights {
        tools: ToolScope::parse(["fs:read".to_owned()]).unwrap(),
        ..KeyRights::of_role(Role::Agent)
    };
    team.home.key_of("dan", KeyRequest { rights, ..KeyRequest::named("dan") });
    let mut dan = Gateway::start(team.home.command(&["stdio", "--key-file", "dan.key"]));
    let told = dan.call(
        "pml_execute",
        &json!({ "intent": "x", "context": { "path": "b.txt" },
            "implementation": { "type": "capability", "id": "overwrite" } }),
    );
    assert!(!told.to_string().contains("approval_required"), "the key does not reach the tool: {told}");
}

#[test]
fn a_published_program_calls_the_capabilities_of_its_owner() {
    let team = Team::start(ALL);
    let (ann, mut bob) = (team.member("ann", Role::Member), team.member("bob", Role::Member));
    team.create(&ann, "words", "count the words of a file", COUNT);
    let twice = "return 2 * await capabilities.words({ path: args.path });";
    team.create(&ann, "twice", "twice the number of words of a file", twice);
    let (status, told) =
        team.ask(&ann, "POST", "/api/capabilities/twice/publish", Some(&json!({ "visibility": "org" })));
    assert_eq!(status, 400, "{told}");
    assert!(told.to_string().contains("`twice` calls `words`, which is private"), "{told}");
    team.publish(&ann, "words", "org");
    team.publish(&ann, "twice", "org");
    team.create(&bob, "words", "how long a file is", LENGTH);
    eventually("the words of its owner are counted", || bob.run_named("twice")["result"] == 4);
    assert_eq!(bob.result("return await capabilities.twice({ path: \"b.txt\" });"), 4);
    team.publish(&ann, "words", "private");
    eventually("what it calls was taken back", || {
        bob.run_named("twice").to_string().contains("there is no capability `words`")
    });
}

#[test]
fn others_run_the_version_that_is_in_force() {
    let team = Team::start(ALL);
    let (ann, mut bob) = (team.member("ann", Role::Member), team.member("bob", Role::Member));
    team.create(&ann, "words", "count the words of a file", COUNT);
    team.publish(&ann, "words", "project");
    eventually("the first version", || bob.run_named("words")["result"] == 2);
    team.create(&ann, "words", "count the words of a file", LENGTH);
    eventually("the second version", || bob.run_named("words")["result"] == 9);
    assert!(bob.run_named("words@1").to_string().contains("there is no capability"));
    team.done(&ann, "/api/capabilities/words/rollback", &json!({ "version": 1 }));
    eventually("the first version again", || bob.run_named("words")["result"] == 2);
}
