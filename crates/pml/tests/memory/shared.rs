//! Packages: capabilities that are exported in one home and imported in another.

use pml_store::{BlockingStore, PackageSignature};
use serde_json::{Value, json};

use crate::harness::{Finished, Home, eventually};
use crate::place::{ALL, Place};

const WORDS: &str = "const file = await mcp.fs.read({ path: \"a.txt\" });\n\
    return file.content.split(/\\s+/).filter(Boolean).length;";

/// A home with a capability `words`, and the package it makes of it.
fn exported() -> (Place, String) {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "one two three").unwrap();
    let told = place.run("count the words in a.txt", WORDS, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "words"]).code, 0);
    let package = export(&place.home, &["words"]);
    (place, package)
}

#[track_caller]
fn export(home: &Home, names: &[&str]) -> String {
    let told = home.run(&[&["capabilities", "export"], names].concat());
    assert_eq!(told.code, 0, "{}", told.stderr);
    told.stdout
}

fn import(home: &Home, package: &str, more: &[&str]) -> Finished {
    std::fs::write(home.path("package.json"), package).unwrap();
    home.run(&[&["capabilities", "import", "package.json", "--yes"], more].concat())
}

#[track_caller]
fn refused(home: &Home, package: &str, why: &str) {
    let told = import(home, package, &[]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains(why), "{}", told.stderr);
    assert_eq!(names(home), Vec::<String>::new());
}

fn names(home: &Home) -> Vec<String> {
    let told = home.run(&["capabilities", "list", "--json"]);
    let all: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
    all.as_array().unwrap_or_else(|| panic!("{told:?}")).iter().map(name).collect()
}

/// The package with other content, signed by somebody else.
fn signed_again(package: &str, change: impl FnOnce(&mut Value)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let store = BlockingStore::open(&directory.path().join("pml.db")).unwrap();
    let mut content = serde_json::from_str::<Value>(package).unwrap()["content"].take();
    change(&mut content);
    let content = serde_json::to_string_pretty(&content).unwrap();
    let PackageSignature { signer, signature } = store.sign_package(content.as_bytes()).unwrap();
    format!(r#"{{"pmlPackage": 1, "signer": "{signer}", "signature": "{signature}", "content": {content}}}"#)
}

#[test]
fn what_one_home_learned_another_imports_and_runs() {
    let (_, package) = exported();
    let mut other = Place::start(ALL);
    std::fs::write(other.home.path("b.txt"), "four five").unwrap();
    let told = import(&other.home, &package, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("imported words"), "{}", told.stdout);

    let told = other.wish("count the words in b.txt");
    assert_eq!(told["status"], "suggestions", "it has never run here: {told}");
    let by_name = json!({ "intent": "count the words in b.txt", "context": { "path": "b.txt" },
        "implementation": { "type": "capability", "id": "words" }, "options": { "cache": false } });
    let told = other.gateway.call("pml_execute", &by_name);
    assert_eq!((&told["status"], &told["result"]), (&json!("success"), &json!(2)), "{told}");
    eventually("it runs for the intent alone", || {
        let told = other.wish("count the words in b.txt");
        told["status"] == "success" && told["result"] == 2
    });

    let told = import(&other.home, &package, &[]);
    assert!(told.stdout.contains("words was here already"), "{told:?}");
}

#[test]
fn a_capability_takes_along_what_it_calls() {
    let (mut place, _) = exported();
    let code = "const one = await capabilities.words({ path: args.path });\nreturn one * 2;";
    let told = place.run("count the words twice", code, &json!({ "path": "a.txt" }));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, "twice"]).code, 0);
    let package = export(&place.home, &["twice", "words"]);
    let other = Home::new(ALL);
    std::fs::write(other.path("b.txt"), "four five").unwrap();
    let told = import(&other, &package, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(names(&other), ["twice", "words"]);
    let told = other.run(&["execute", "--capability", "twice", "--args", r#"{"path":"b.txt"}"#]);
    assert_eq!(told.stdout.trim(), "4", "{told:?}");
}

#[test]
fn a_package_that_was_changed_is_refused() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    refused(&home, &package.replace("a.txt", "b.txt"), "it was changed");
    refused(&home, &package.replace("\"pmlPackage\": 1", "\"pmlPackage\": 2"), "version 2");
    refused(&home, &package[..package.len() / 2], "this is no package");
    refused(&home, "[]", "this is no package");
    refused(&home, &" ".repeat(10 << 20), "larger than 4 MiB");
}

#[test]
fn a_package_that_does_not_say_what_it_does_is_refused() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    let with = |what: &str, value: Value| {
        signed_again(&package, |content| *content.pointer_mut(what).unwrap() = value)
    };
    let other_code = "await mcp.fs.delete({ path: args.path }); return 1;";
    refused(
        &home,
        &with("/capabilities/0/source/template", json!(other_code)),
        "does not follow from its program",
    );
    let hidden = "await mcp.fs.write({ path: 'x', content: 'y' });\n".to_owned() + WORDS;
    refused(
        &home,
        &with("/capabilities/0/source/template", json!(hidden)),
        "does not follow from its program",
    );
    refused(&home, &with("/capabilities/0/source/code", json!("return (")), "refused");
    refused(&home, &with("/capabilities/0/name", json!("../../words")), "cannot be the name");
    let elsewhere = signed_again(&package, |content| {
        *content.pointer_mut("/capabilities/0/source/code").unwrap() = json!(WORDS.replace("fs", "files"));
        *content.pointer_mut("/tools/0/id").unwrap() = json!("files:read");
    });
    refused(&home, &elsewhere, "tools that are not here: `files:read`");
    refused(&home, &with("/capabilities", json!([])), "0 capabilities");
    let twice = |content: &mut Value| {
        let one = content["capabilities"][0].clone();
        content["capabilities"].as_array_mut().unwrap().push(one);
    };
    refused(&home, &signed_again(&package, twice), "two capabilities called `words`");
}

#[test]
fn the_tools_that_a_package_calls_are_found_in_its_programs() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    let silent = signed_again(&package, |content| content["tools"] = json!([]));
    refused(&home, &silent, "calls `fs:read`, which the package does not list");
    let other = signed_again(&package, |content| content["tools"][0]["id"] = json!("fs:list"));
    refused(&home, &other, "calls `fs:read`, which the package does not list");
    let boasting = signed_again(&package, |content| {
        let digest = content["tools"][0]["digest"].clone();
        content["tools"].as_array_mut().unwrap().push(json!({ "id": "fs:delete", "digest": digest }));
    });
    let told = import(&home, &boasting, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("calls fs:read\n"), "{}", told.stdout);
}

/// A package with `words`, and `twice`, which calls it.
fn exported_with_caller() -> String {
    let (mut place, _) = exported();
    let code = "const one = await capabilities.words({ path: args.path });\nreturn one * 2;";
    let told = place.run("count the words twice", code, &json!({ "path": "a.txt" }));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, "twice"]).code, 0);
    export(&place.home, &["twice"])
}

#[test]
fn a_package_calls_no_capability_but_its_own() {
    let package = exported_with_caller();
    let alone = signed_again(&package, |content| {
        let all = content["capabilities"].as_array_mut().unwrap();
        all.retain(|one| one["name"] == "twice");
    });
    refused(&Home::new(ALL), &alone, "calls `words`, which is not in the package");

    // The same procedure is there under another name, and another one has its name.
    let (mut place, _) = exported();
    assert_eq!(place.home.run(&["capabilities", "rename", "words", "count"]).code, 0);
    let code = "return (await mcp.fs.read({ path: args.path })).content.length;";
    let told = place.run("how long a file is", code, &json!({ "path": "a.txt" }));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, "words"]).code, 0);
    let told = import(&place.home, &package, &[]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("it would call your capability `words`"), "{}", told.stderr);
    assert!(!names(&place.home).contains(&"twice".to_owned()));
}

#[test]
fn an_earlier_version_is_exported_under_its_plain_name() {
    let (mut place, _) = exported();
    let told =
        place.run("count", "return (await mcp.fs.read({ path: 'a.txt' })).content.length;", &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    let told = place.home.run(&["capabilities", "rename", &id, "words", "--new-version"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let package = export(&place.home, &["words@1"]);
    let other = Home::new(ALL);
    let told = import(&other, &package, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(names(&other), ["words"]);
    let told = place.home.run(&["capabilities", "export", "words", "words@1"]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("two versions of `words`"), "{}", told.stderr);
}

#[test]
fn the_signer_of_a_capability_is_known_by_its_new_name_too() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    assert_eq!(import(&home, &package, &[]).code, 0);
    assert_eq!(home.run(&["capabilities", "rename", "words", "count"]).code, 0);
    assert_eq!(home.run(&["capabilities", "delete", "count"]).code, 0);
    let other = signed_again(&package, |content| content["capabilities"][0]["name"] = json!("count"));
    refused(&home, &other, "from another signer before");
}

#[test]
fn a_package_whose_values_are_not_those_it_says_is_refused() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    let with = |what: &str, value: Value| {
        signed_again(&package, |content| *content.pointer_mut(what).unwrap() = value)
    };
    let elsewhere = WORDS.replace("a.txt", "/etc/passwd");
    refused(&home, &with("/capabilities/0/source/code", json!(elsewhere)), "does something else");
    let template = serde_json::from_str::<Value>(&package).unwrap();
    let template = template["content"]["capabilities"][0]["source"]["template"].as_str().unwrap().to_owned();
    let constant = template.replace("args[\"path\"]", "\"/etc/passwd\"");
    assert_ne!(constant, template);
    refused(&home, &with("/capabilities/0/source/template", json!(constant)), "does not follow");
    let default = "/capabilities/0/parametersSchema/properties/path/default";
    refused(&home, &with(default, json!("/etc/passwd")), "the default of `path`");
}

#[test]
fn a_package_does_not_tell_what_later_runs_were_given() {
    let (mut place, _) = exported();
    std::fs::write(place.home.path("salaries.txt"), "one two").unwrap();
    eventually("it runs for other files", || place.wish("count the words in salaries.txt")["result"] == 2);
    let told = place.home.run(&["capabilities", "show", "words", "--json"]);
    assert!(told.stdout.contains("salaries.txt"), "{}", told.stdout);
    let package = export(&place.home, &["words"]);
    assert!(!package.contains("salaries") && package.contains("a.txt"), "{package}");
    assert!(export(&place.home, &["words", "--with-examples"]).contains("salaries"));
    let told = import(&Home::new(ALL), &package, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
}

#[test]
fn a_program_that_was_lifted_is_imported_in_that_form() {
    const AVERAGE: &str = "const file = await mcp.fs.read({ path: \"staff.csv\" });\n\
        const { rows } = await mcp.csv.parse({ csv: file.content });\n\
        return rows.filter((row) => row.team === \"Engineering\").length;";
    let mut place = Place::start(ALL);
    let staff = "name,team\nAnn,Engineering\nBob,Sales\nCid,Sales\n";
    std::fs::write(place.home.path("staff.csv"), staff).unwrap();
    let told = place.run("people of the Engineering team in staff.csv", AVERAGE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "people"]).code, 0);
    eventually("the lifted form is proven", || {
        export(&place.home, &["people"]).contains("row.team === args")
    });
    let other = Home::new(ALL);
    std::fs::write(other.path("staff.csv"), staff).unwrap();
    let told = import(&other, &export(&place.home, &["people"]), &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let told =
        other.run(&["execute", "--capability", "people", "--args", r#"{"team":"Sales","path":"staff.csv"}"#]);
    assert_eq!(told.stdout.trim(), "2", "{told:?}");
}

#[test]
fn another_signer_of_the_same_name_is_refused_until_accepted() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    assert_eq!(import(&home, &package, &[]).code, 0);
    assert_eq!(home.run(&["capabilities", "delete", "words"]).code, 0);
    let other = signed_again(&package, |_| {});
    refused(&home, &other, "from another signer before");
    let told = import(&home, &other, &["--accept-signer"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(names(&home), ["words"]);
}

#[test]
fn a_later_package_of_the_same_signer_makes_a_new_version() {
    let (place, package) = exported();
    let home = Home::new(ALL);
    assert_eq!(import(&home, &package, &[]).code, 0);
    let lines =
        "const file = await mcp.fs.read({ path: args.path });\nreturn file.content.split(/\\s+/).length;";
    std::fs::write(place.home.path("other.ts"), lines).unwrap();
    let create = ["capabilities", "create", "count the words in a.txt", "--name", "words", "--new-version"];
    let told = place.home.run(&[&create[..], &["--code", "other.ts"]].concat());
    assert_eq!(told.code, 0, "{}", told.stderr);
    let later = export(&place.home, &["words"]);

    let told = import(&home, &later, &[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("another version of `words`, which is here:"), "{}", told.stdout);
    assert!(
        told.stdout.lines().any(|line| line.starts_with("- ") && line.contains("filter")),
        "{}",
        told.stdout
    );
    let told = home.run(&["capabilities", "show", "words", "--json"]);
    assert!(told.stdout.contains("split") && !told.stdout.contains("filter(Boolean)"), "{}", told.stdout);
    let told = home.run(&["capabilities", "rollback", "words"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let told = home.run(&["capabilities", "show", "words", "--json"]);
    assert!(told.stdout.contains("filter(Boolean)"), "the earlier one is kept: {}", told.stdout);

    let other = signed_again(&later, |_| {});
    let told = import(&home, &other, &[]);
    assert!(told.stderr.contains("from another signer before"), "{told:?}");
}

#[test]
fn a_name_that_is_taken_stays_with_its_owner() {
    let (_, package) = exported();
    let mut place = Place::start(ALL);
    let told = place.run("one", "return (await mcp.math.evaluate({ expression: '1' })).value", &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, "words"]).code, 0);
    let told = import(&place.home, &package, &[]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("another capability is called `words`"), "{}", told.stderr);
}

#[test]
fn nothing_is_imported_that_nobody_agreed_to() {
    let (_, package) = exported();
    let home = Home::new(ALL);
    std::fs::write(home.path("package.json"), package).unwrap();
    let told = home.run(&["capabilities", "import", "package.json"]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("--yes"), "{}", told.stderr);
    assert_eq!(names(&home), Vec::<String>::new());
}

#[test]
fn skills_whose_names_differ_in_writing_only_have_folders_of_their_own() {
    let place = Place::start(ALL);
    for (name, code) in [("oneWord", "1"), ("one_word", "2")] {
        let code = format!("return (await mcp.math.evaluate({{ expression: '{code}' }})).value");
        std::fs::write(place.home.path("code.ts"), code).unwrap();
        let told =
            place.home.run(&["capabilities", "create", "one word", "--name", name, "--code", "code.ts"]);
        assert_eq!(told.code, 0, "{}", told.stderr);
    }
    let told = place.home.run(&["capabilities", "export", "oneWord", "one_word", "--skill", "skills"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for (folder, expression) in [("one-word", "'1'"), ("one-word-2", "'2'")] {
        let skill = std::fs::read_to_string(place.home.path(&format!("skills/{folder}/SKILL.md"))).unwrap();
        assert!(skill.starts_with(&format!("---\nname: {folder}\n")), "{skill}");
        let program =
            std::fs::read_to_string(place.home.path(&format!("skills/{folder}/program.ts"))).unwrap();
        assert!(program.contains(expression), "{program}");
    }
}

#[test]
fn a_skill_folder_has_the_program_and_how_to_run_it() {
    let (place, _) = exported();
    let told = place.home.run(&["capabilities", "export", "words", "--skill", "skills"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let skill = std::fs::read_to_string(place.home.path("skills/words/SKILL.md")).unwrap();
    assert!(
        skill.starts_with("---\nname: words\ndescription: \"count the words in {path}\"\n---\n"),
        "{skill}"
    );
    assert!(skill.contains("| path | string | `\"a.txt\"` |"), "{skill}");
    let program = std::fs::read_to_string(place.home.path("skills/words/program.ts")).unwrap();
    assert!(program.contains("args[\"path\"]"), "{program}");
}
