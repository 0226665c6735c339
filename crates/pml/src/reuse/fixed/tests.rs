//! Tests: which intents contradict the constants of a program, and which may be stored for it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Judgement, judge};
use crate::reuse::{ReadIntent, ReusableProcedure};

/// A learned program: its source, its parameters with the values of the first intent, and that intent.
struct Learned {
    code: &'static str,
    parameters: Value,
    intent: &'static str,
}

impl Learned {
    fn judge(&self, intent: &str, arguments: &Value) -> Judgement {
        let defaults = self.parameters.as_object().unwrap();
        let properties: Map<String, Value> =
            defaults.iter().map(|(name, value)| (name.clone(), json!({ "default": value }))).collect();
        let procedure = ReusableProcedure {
            parameters: &json!({ "type": "object", "properties": properties }),
            intents: &[&ReadIntent::new(self.intent)],
            examples: &BTreeMap::new(),
            reads_only: true,
        };
        judge(
            &procedure,
            &pml_analysis::find_constants(self.code).unwrap(),
            &ReadIntent::new(intent),
            arguments.as_object().unwrap(),
        )
    }

    /// The intent contradicts the program, with exactly this value instead of that constant.
    #[track_caller]
    fn contradicts(&self, intent: &str, arguments: &Value, expected: (&str, &str)) {
        let judgement = self.judge(intent, arguments);
        let found = judgement
            .contradiction
            .as_ref()
            .map(|found| (found.constant.as_str(), found.said_instead.as_str()));
        assert_eq!(found, Some(expected), "{intent}: {judgement:?}");
        assert!(!judgement.is_fully_placed(), "{intent}");
    }

    /// The intent may be run and remembered.
    #[track_caller]
    fn fits(&self, intent: &str, arguments: &Value) {
        let judgement = self.judge(intent, arguments);
        assert!(judgement.is_fully_placed(), "{intent}: {judgement:?}");
    }

    /// The intent may be run and is not remembered.
    #[track_caller]
    fn is_not_remembered(&self, intent: &str, arguments: &Value) {
        let judgement = self.judge(intent, arguments);
        assert!(judgement.contradiction.is_none() && !judgement.is_fully_placed(), "{intent}: {judgement:?}");
    }
}

fn salaries() -> Learned {
    Learned {
        code: "const f = await mcp.fs.read({ path: args[\"path\"] });\n\
               const rows = (await mcp.csv.parse({ csv: f.content })).rows.filter((r) => r.department === \"Engineering\");\n\
               return (await mcp.math.statistics({ values: rows.map((r) => Number(r.salary)) })).mean;",
        parameters: json!({ "path": "data/employees.csv" }),
        intent: "average salary of the Engineering department in data/employees.csv",
    }
}

#[test]
fn a_name_in_a_comparison() {
    let given = json!({ "path": "data/employees.csv" });
    let learned = salaries();
    for intent in [
        "average salary of the Sales department in data/employees.csv",
        "average salary in the department Sales, from data/employees.csv",
        "salaire moyen du département Sales dans data/employees.csv",
        "what does Sales pay on average according to data/employees.csv",
    ] {
        learned.contradicts(intent, &given, ("Engineering", "Sales"));
    }
    learned.contradicts(
        "average salary of the sales department in data/employees.csv",
        &given,
        ("Engineering", "sales"),
    );
    let other = json!({ "path": "data/staff.csv" });
    learned.fits("average salary of the Engineering department in data/staff.csv", &other);
    learned.fits("mean salary of engineering, taken from data/staff.csv", &other);
    learned.fits("salaire moyen du département Engineering dans data/staff.csv", &other);
    learned.is_not_remembered("average salary in data/staff.csv", &other);
    for vague in ["run it", "do the same again", "relance-le"] {
        learned.is_not_remembered(vague, &given);
    }
}

#[test]
fn a_number_in_a_slice() {
    let learned = Learned {
        code: "const rows = (await mcp.json.parse({ json: (await mcp.fs.read({ path: args[\"path\"] })).content })).data;\n\
               rows.sort((a, b) => b.votes - a.votes); return rows.slice(0, 3).map((r) => r.title);",
        parameters: json!({ "path": "films.json" }),
        intent: "top 3 films by votes in films.json",
    };
    let given = json!({ "path": "films.json" });
    for (intent, said) in [
        ("top 5 films by votes in films.json", "5"),
        ("the top five films by votes in films.json", "five"),
        ("top twenty-five films by votes in films.json", "twenty-five"),
        ("les 10 meilleurs films par votes dans films.json", "10"),
        ("les dix-sept meilleurs films par votes dans films.json", "dix-sept"),
        ("all films by votes in films.json", "all"),
        ("the single best film by votes in films.json", "single"),
    ] {
        learned.contradicts(intent, &given, ("3", said));
    }
    learned.contradicts("bottom 3 films by votes in films.json", &given, ("top", "bottom"));
    learned.contradicts("top 3 films by length in films.json", &given, ("votes", "length"));
    learned.fits("top three films by votes in older.json", &json!({ "path": "older.json" }));
    learned.fits("les trois meilleurs films par votes dans older.json", &json!({ "path": "older.json" }));
}

#[test]
fn a_word_in_a_comparison() {
    let learned = Learned {
        code: "const all = (await mcp.shop.orders({ shop: args[\"shop\"] })).orders; return all.filter((o) => o.state === 'pending').length",
        parameters: json!({ "shop": "Lyon" }),
        intent: "how many pending orders does the shop in Lyon have",
    };
    let given = json!({ "shop": "Nantes" });
    learned.contradicts(
        "how many shipped orders does the shop in Nantes have",
        &given,
        ("pending", "shipped"),
    );
    learned.contradicts("count the cancelled orders of the shop in Nantes", &given, ("pending", "cancelled"));
    learned.fits("how many pending orders does the shop in Nantes have", &given);
    learned.fits("number of orders that are pending in Nantes", &given);
    learned.is_not_remembered("how many orders does the shop in Nantes have", &given);
}

#[test]
fn an_enum_word_in_two_languages() {
    let learned = Learned {
        code: "const all = await mcp.tracker.issues({ project: args[\"project\"] }); return all.filter((i) => i.status === \"open\")",
        parameters: json!({ "project": "apollo" }),
        intent: "list the open issues of apollo",
    };
    let given = json!({ "project": "gemini" });
    learned.contradicts("list the closed issues of gemini", &given, ("open", "closed"));
    learned.fits("list the open issues of gemini", &given);
}

#[test]
fn a_part_of_a_text_or_a_template() {
    let learned = Learned {
        code: "await mcp.mail.send({ to: args[\"to\"], body: `Hello ${args.name}, see you in Geneva on Friday` }); return 'sent'",
        parameters: json!({ "to": "ann@example.org" }),
        intent: "invite ann@example.org to Geneva",
    };
    let given = json!({ "to": "bob@example.org" });
    let judgement = learned.judge("invite bob@example.org to Zurich", &given);
    assert_eq!(judgement.contradiction.map(|found| found.said_instead).as_deref(), Some("Zurich"));
    learned.fits("invite bob@example.org to Geneva", &given);
}

#[test]
fn dates_units_and_what_is_written_otherwise_in_the_program() {
    let dated = Learned {
        code: "const r = await mcp.db.rows({ table: args[\"table\"] }); return r.filter((x) => x.at.startsWith('2026-03')).length",
        parameters: json!({ "table": "orders" }),
        intent: "count the rows of orders in March 2026",
    };
    dated.contradicts(
        "count the rows of orders in April 2026",
        &json!({ "table": "orders" }),
        ("March 2026", "April 2026"),
    );
    let sized = Learned {
        code: "const l = await mcp.fs.list({ path: args[\"path\"] }); return l.entries.filter((e) => e.size > 2097152)",
        parameters: json!({ "path": "backups/" }),
        intent: "files larger than 2 MB in backups/",
    };
    sized.contradicts("files larger than 5 MB in backups/", &json!({ "path": "backups/" }), ("2", "5"));
    sized.contradicts("files larger than 2 GB in backups/", &json!({ "path": "backups/" }), ("MB", "GB"));
    sized.contradicts(
        "files smaller than 2 MB in backups/",
        &json!({ "path": "backups/" }),
        ("larger than", "smaller than"),
    );
    let coded = Learned {
        code: "const c = await mcp.crm.customers({ list: args[\"list\"] }); return c.filter((x) => x.country === 'DE')",
        parameters: json!({ "list": "main" }),
        intent: "customers in Germany from the main list",
    };
    coded.contradicts(
        "customers in France from the main list",
        &json!({ "list": "main" }),
        ("Germany", "France"),
    );
}

#[test]
fn a_value_that_is_given_in_another_form_accounts_for_what_the_intent_says() {
    let learned = Learned {
        code: "const l = await mcp.fs.list({ path: args[\"path\"] }); return l.entries.filter((e) => e.size > args.least)",
        parameters: json!({ "path": "backups/", "least": 2_097_152 }),
        intent: "files larger than 2 MB in backups/",
    };
    let given = json!({ "path": "backups/", "least": 5_242_880 });
    let judgement = learned.judge("files larger than 5 MB in backups/", &given);
    assert_eq!(judgement.contradiction, None);
}

#[test]
fn two_values_that_change_places() {
    let learned = Learned {
        code: "const t = await mcp.rail.trains({ day: args[\"day\"] }); return t.filter((x) => x.from === 'Paris' && x.to === 'Lyon')",
        parameters: json!({ "day": "2026-05-01" }),
        intent: "trains from Paris to Lyon on 2026-05-01",
    };
    let given = json!({ "day": "2026-05-02" });
    assert!(learned.judge("trains from Lyon to Paris on 2026-05-02", &given).contradiction.is_some());
    learned.contradicts("trains from Paris to Nice on 2026-05-02", &given, ("Lyon", "Nice"));
    learned.contradicts("trains de Paris à Nice le 2026-05-02", &given, ("Lyon", "Nice"));
    learned.fits("trains from Paris to Lyon on 2026-05-02", &given);
}

#[test]
fn units_and_words_that_change_places() {
    let learned = Learned {
        code: "const v = await mcp.math.evaluate({ expression: \"(f - 32) * 5 / 9\", variables: { f: args[\"f\"] } }); return v.value",
        parameters: json!({ "f": 98.6 }),
        intent: "convert 98.6 degrees Fahrenheit to Celsius",
    };
    assert!(
        learned
            .judge("convert 37 degrees Celsius to Fahrenheit", &json!({ "f": 37 }))
            .contradiction
            .is_some()
    );
    learned.fits("convert 212 degrees Fahrenheit to Celsius", &json!({ "f": 212 }));
    let replaced = Learned {
        code: "const f = await mcp.fs.read({ path: args[\"path\"] }); return f.content.replaceAll('colour', 'color')",
        parameters: json!({ "path": "a.md" }),
        intent: "replace colour with color in a.md",
    };
    let given = json!({ "path": "b.md" });
    assert!(replaced.judge("replace color with colour in b.md", &given).contradiction.is_some());
    replaced.contradicts("replace centre with center in b.md", &given, ("colour", "centre"));
    replaced.fits("replace colour with color in b.md", &given);
    let both = Learned {
        code: "const r = await mcp.hr.people({ site: args[\"site\"] }); return r.filter((p) => ['Sales', 'Legal'].includes(p.team))",
        parameters: json!({ "site": "Bonn" }),
        intent: "people of Sales and Legal in Bonn",
    };
    both.fits("people of Legal and Sales in Kiel", &json!({ "site": "Kiel" }));
}

#[test]
fn places_in_a_row() {
    let learned = Learned {
        code: "const f = await mcp.fs.read({ path: args[\"path\"] }); return f.content.split('\\n')[0]",
        parameters: json!({ "path": "notes/a.md" }),
        intent: "the first line of notes/a.md",
    };
    let given = json!({ "path": "notes/b.md" });
    for (intent, said) in [
        ("the second line of notes/b.md", "second"),
        ("the third line of notes/b.md", "third"),
        ("the last line of notes/b.md", "last"),
        ("la dernière ligne de notes/b.md", "latest"),
        ("the 4th line of notes/b.md", "4th"),
    ] {
        learned.contradicts(intent, &given, ("first", said));
    }
    learned.fits("the first line of notes/b.md", &given);
    learned.fits("show me the first line in notes/b.md", &given);
}

#[test]
fn another_column() {
    let learned = Learned {
        code: "const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: args[\"path\"] })).content }); return rows.reduce((a, r) => a + Number(r.amount), 0)",
        parameters: json!({ "path": "a.csv" }),
        intent: "sum of the amount column in a.csv",
    };
    let given = json!({ "path": "b.csv" });
    learned.contradicts("sum of the tax column in b.csv", &given, ("amount", "tax"));
    learned.contradicts("add up the column fees in b.csv", &given, ("amount", "fees"));
    learned.fits("add up the amount column in b.csv", &given);
    let plain = Learned { intent: "sum of the amount in a.csv", ..learned };
    plain.contradicts("sum of the tax in b.csv", &given, ("amount", "tax"));
}

#[test]
fn a_sign_or_a_point_makes_another_value() {
    let learned = Learned {
        code: "const r = await mcp.station.readings({ station: args[\"station\"] }); return r.filter((x) => x.celsius > 5)",
        parameters: json!({ "station": "north" }),
        intent: "readings of north above 5",
    };
    learned.contradicts("readings of north above -5", &json!({ "station": "north" }), ("5", "-5"));
    learned.contradicts("readings of north below 5", &json!({ "station": "north" }), ("above", "below"));
}

#[test]
fn constants_that_no_intent_named_are_not_held_against_it() {
    let learned = Learned {
        code: "const r = await mcp.git.log({ repo: args[\"repo\"], limit: 20 }); return r.map((c) => c.subject.slice(0, 72)).join('\\n')",
        parameters: json!({ "repo": "repos/alpha" }),
        intent: "show what was committed to repos/alpha",
    };
    learned.fits("which changes were made in repos/beta", &json!({ "repo": "repos/beta" }));
    learned.fits("qu'est-ce qui a été fait dans repos/beta", &json!({ "repo": "repos/beta" }));
    learned.is_not_remembered("show the last 5 commits of repos/beta", &json!({ "repo": "repos/beta" }));
}

#[test]
fn a_field_is_another_one_only_where_it_was_put_in_its_place() {
    let learned = Learned {
        code: "const { rows } = await mcp.csv.parse({ csv: args.csv }); return rows.map((r) => r.price).reduce((a, b) => a + Number(b), 0)",
        parameters: json!({ "csv": "x" }),
        intent: "total price of the basket",
    };
    let given = json!({ "csv": "y" });
    learned.contradicts("total weight of the basket", &given, ("price", "weight"));
    learned.fits("what does the basket cost", &given);
}

#[test]
fn a_modifier_of_the_same_noun() {
    let feature = Learned {
        code: "const { data } = await mcp.json.parse({ json: args.json }); return data.features.search",
        parameters: json!({ "json": "{}" }),
        intent: "is the search feature on",
    };
    feature.contradicts("does it switch the beta feature on", &json!({ "json": "[]" }), ("search", "beta"));
    let tasks = Learned {
        code: "const f = await mcp.fs.read({ path: args[\"path\"] }); return f.content.split('\\n').filter((l) => l.startsWith('- [ ]'))",
        parameters: json!({ "path": "a.md" }),
        intent: "the open tasks in a.md",
    };
    let given = json!({ "path": "b.md" });
    tasks.contradicts("the done tasks in b.md", &given, ("open", "done"));
    tasks.fits("the open tasks in b.md", &given);
    let renamed = Learned {
        code: "await mcp.files.move_file({ source: args[\"source\"], destination: args[\"destination\"] }); return 'renamed'",
        parameters: json!({ "source": "a.txt", "destination": "b.txt" }),
        intent: "rename a.txt to b.txt",
    };
    renamed.fits("move c.txt to d.txt", &json!({ "source": "c.txt", "destination": "d.txt" }));
}

#[test]
fn one_instead_of_several_and_letters() {
    let cheap = Learned {
        code: "const { data } = await mcp.json.parse({ json: args.json }); return data.sort((a, b) => a.price - b.price).slice(0, 2)",
        parameters: json!({ "json": "[]" }),
        intent: "the 2 cheapest products",
    };
    cheap.contradicts("the cheapest product", &json!({ "json": "[1]" }), ("2", "product"));
    let class = Learned {
        code: "const { rows } = await mcp.csv.parse({ csv: args.csv }); return rows.filter((r) => r.class === 'a').length",
        parameters: json!({ "csv": "x" }),
        intent: "number of pupils of class a",
    };
    let given = json!({ "csv": "y" });
    class.contradicts("number of pupils of class b", &given, ("a", "b"));
    class.fits("count the pupils of class a", &given);
    let orders = Learned {
        code: "const { rows } = await mcp.csv.parse({ csv: args.csv }); return rows.filter((r) => r.date >= '2026-02-01')",
        parameters: json!({ "csv": "x" }),
        intent: "orders since 2026-02-01",
    };
    orders.contradicts("orders before 2026-02-01", &given, ("since", "before"));
}

#[test]
fn the_same_words_always_fit() {
    salaries().fits("Average salary of the engineering department in data/employees.csv?", &json!({}));
}
