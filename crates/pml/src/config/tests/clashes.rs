//! Tests: which server keeps a name that two servers claim.

use super::*;

/// Which of two servers with these names stays, and why the other does not.
fn pair(first: &str, second: &str) -> String {
    let key = |name: &str| serde_json::to_string(name).unwrap();
    let text =
        format!("[servers.{}]\ncommand = \"1\"\n[servers.{}]\ncommand = \"2\"\n", key(first), key(second));
    let config = user(&text).load().unwrap();
    let out =
        config.findings.problems.iter().map(|problem| problem.complaint.message.as_str()).collect::<Vec<_>>();
    format!("stays {:?}; {}\n", names(&config), out.join("; "))
}

#[test]
fn of_names_that_could_be_confused_only_the_first_stays() {
    let pairs = [
        ("github", "gіthub"),
        ("github", "GitHub"),
        ("github", "github "),
        ("git-hub", "git_hub"),
        ("paypal", "paypa1"),
        ("corner", "comer"),
        ("oauth", "0auth"),
        ("github", "git\u{200b}hub"),
        ("good", "__proto__"),
        ("good", "constructor"),
        ("a-b", "a.b"),
        ("ab", "a:b"),
        ("mine", "fs"),
        ("mine", "Json"),
        ("good", "pml_execute"),
        ("github", "gitlab"),
    ];
    let said: String = pairs.iter().map(|(first, second)| pair(first, second)).collect();
    expect![[r#"
        stays ["github"]; server name `gіthub` contains 'і'; use ASCII letters, digits, `_` and `-`, such as `g-thub`
        stays ["github"]; server `GitHub` is left out: its name could be taken for that of the server `github` at ~/pml/pml.toml:1
        stays ["github"]; server name `github ` contains ' '; use ASCII letters, digits, `_` and `-`, such as `github`
        stays ["git-hub"]; server `git_hub` is left out: its name could be taken for that of the server `git-hub` at ~/pml/pml.toml:1
        stays ["paypal"]; server `paypa1` is left out: its name could be taken for that of the server `paypal` at ~/pml/pml.toml:1
        stays ["corner"]; server `comer` is left out: its name could be taken for that of the server `corner` at ~/pml/pml.toml:1
        stays ["oauth"]; server `0auth` is left out: its name could be taken for that of the server `oauth` at ~/pml/pml.toml:1
        stays ["github"]; server name `git\u{200b}hub` contains '\u{200b}'; use ASCII letters, digits, `_` and `-`, such as `git-hub`
        stays ["good"]; server name `__proto__` is reserved
        stays ["good"]; server name `constructor` is reserved
        stays ["a-b"]; server name `a.b` contains '.'; use ASCII letters, digits, `_` and `-`, such as `a-b`
        stays ["ab"]; server name `a:b` contains ':'; use ASCII letters, digits, `_` and `-`, such as `a-b`
        stays ["mine"]; server `fs` is left out: its name belongs to the built-in server `fs`
        stays ["mine"]; server `Json` is left out: its name could be taken for that of the built-in server `json`
        stays ["good"]; server name `pml_execute` is reserved
        stays ["github", "gitlab"]; 
    "#]].assert_eq(&said);
}

#[test]
fn the_less_trusted_of_two_is_left_out_even_if_the_other_is_unusable() {
    let home = Home::new(&[
        (
            "pml/pml.toml",
            "import = [\"../i.json\"]\n[servers.user]\ncommand = \"u\"\n[servers.broken]\ncommand = \"${NOT_SET}\"\n",
        ),
        ("i.json", r#"{"mcpServers": {"user": {"command": "i"}, "import": {"command": "i"}}}"#),
        (
            "work/pml.toml",
            "[servers.User]\ncommand = \"p\"\n[servers.import]\ncommand = \"p\"\n\
             [servers.broken]\ncommand = \"p\"\n[servers.project]\ncommand = \"p\"\n",
        ),
    ]);
    trust_all(&home, "work");
    let config = home.load().unwrap();
    assert_eq!(names(&config), ["user", "import", "project"]);
    expect![[r#"
        ~/pml/pml.toml:4:10: server `broken` is left out: the variable `NOT_SET` is not set
        hint: set `NOT_SET` in the environment PML is started in
        ~/pml/../i.json:1:17: server `user` is left out: its name belongs to the server `user` at ~/pml/pml.toml:2
        hint: rename one of them
        ~/work/pml.toml:1:10: server `User` is left out: its name could be taken for that of the server `user` at ~/pml/pml.toml:2
        hint: rename one of them
        ~/work/pml.toml:3:10: server `import` is left out: its name belongs to the server `import` at ~/pml/../i.json:1
        hint: rename one of them
        ~/work/pml.toml:5:10: server `broken` is left out: its name belongs to the server `broken` at ~/pml/pml.toml:4
        hint: rename one of them
    "#]].assert_eq(&problems(&config));
}

#[test]
fn a_built_in_name_is_free_once_it_is_disabled() {
    let config = user("[builtin.time]\nenabled = false\n[servers.time]\ncommand = \"x\"\n").load().unwrap();
    assert_eq!((names(&config), problems(&config)), (vec!["time"], String::new()));
}
