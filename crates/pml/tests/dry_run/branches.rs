//! Exploring branches: every branch that can be reached is taken.

use serde_json::{Value, json};

use crate::place::Place;

/// Programs all of whose branches can be reached within 150 runs.
const PROGRAMS: &[&str] = &[
    "const r = await mcp.a.read({ key: 'k' }); if (r.ok) await mcp.a.write({}); return 1;",
    "const r = await mcp.a.read({}); if (r.count > 10) await mcp.a.write({}); else await mcp.a.look({});",
    "const r = await mcp.a.read({}); if (r.state === 'open') await mcp.a.write({}); else if (r.state === 'closed') await mcp.a.look({}); return 2;",
    "const r = await mcp.a.read({}); switch (r.kind) { case 'bug': await mcp.a.write({}); break; case 'idea': await mcp.b.write({}); break; default: await mcp.a.look({}); }",
    "const r = await mcp.a.read({}); if (r.items.length === 0) await mcp.a.write({}); else await mcp.a.look({});",
    "const r = await mcp.a.read({}); if ((r.items ?? []).length > 3) await mcp.a.write({}); return 1;",
    "try { await mcp.a.read({}); } catch { await mcp.a.write({}); }",
    "try { await mcp.a.read({}); await mcp.b.read({}); } catch (e) { await mcp.a.write({}); } return 1;",
    "if (args.force) await mcp.a.write({}); else await mcp.a.look({});",
    "if (args.mode === 'fast') await mcp.a.write({}); else if (args.mode === 'slow') await mcp.b.write({}); else await mcp.a.look({});",
    "const n = args.n ?? 1; if (n > 100) await mcp.a.write({}); return n;",
    "const r = await mcp.a.read({}); const v = r.value ?? (await mcp.b.read({ key: 'fallback' })); return v;",
    "const r = await mcp.a.read({}); r.ready && (await mcp.a.write({})); return 1;",
    "const r = await mcp.a.read({}); r.done || (await mcp.a.write({})); return 1;",
    "const r = await mcp.a.read({}); const x = r.yes ? await mcp.a.write({}) : await mcp.b.write({}); return x;",
    "const a = await mcp.a.read({}); const b = await mcp.b.read({}); if (a.ok) { if (b.ok) await mcp.a.write({}); else await mcp.a.look({}); }",
    "const a = await mcp.a.read({}); if (a.user.admin) await mcp.a.write({}); return 1;",
    "const a = await mcp.a.read({}); if (a.level >= 5) { if (a.level >= 50) await mcp.a.write({}); else await mcp.b.write({}); }",
    "const a = await mcp.a.read({}); if (a.name === '') await mcp.a.write({}); else await mcp.a.look({});",
    "const a = await mcp.a.read({}); if (a.ok && a.count > 7) await mcp.a.write({}); else await mcp.a.look({});",
    "const a = await mcp.a.read({}); if (a.deleted === null) await mcp.a.write({}); else await mcp.a.look({});",
    "const a = await mcp.a.read({}); for (const one of a.list ?? [{}]) { if (one.bad) await mcp.a.write({}); else await mcp.a.look({}); }",
    "const a = await mcp.a.read({}); if (typeof a.price === 'number') await mcp.a.write({}); else await mcp.a.look({});",
    "const a = await mcp.a.read({}); if (Array.isArray(a.rows)) await mcp.a.write({}); return 1;",
    "const r = await mcp.a.write({}); if (r.created) await mcp.b.write({}); else await mcp.a.look({});",
    "const s = await mcp.fs.stat({ path: 'x.txt' }); if (s.exists) await mcp.fs.delete({ path: 'x.txt' }); else await mcp.fs.write({ path: 'x.txt', content: 'x' });",
    "const l = await mcp.fs.list({}); if (l.entries.length > 4) await mcp.a.write({}); else await mcp.a.look({});",
    "try { const f = await mcp.fs.read({ path: 'conf' }); if (f.content === 'on') await mcp.a.write({}); } catch { await mcp.b.write({}); }",
    "const a = await mcp.a.read({}); if (!a.ok) { try { await mcp.b.read({}); } catch { await mcp.b.write({}); } } return 1;",
    "const a = await mcp.a.read({}); const big = a.total > 1000; if (big) await mcp.a.write({}); return big;",
    "const [a, b] = await Promise.all([mcp.a.read({}), mcp.b.read({})]); if (a.x === b.y) await mcp.a.write({}); else await mcp.a.look({});",
    "const a = await mcp.a.read({}); switch (args.lang) { case 'fr': await mcp.a.write({}); break; case 'en': await mcp.b.write({}); break; default: if (a.ok) await mcp.a.look({}); }",
];

#[test]
fn every_branch_that_can_be_reached_is_taken() {
    let mut place = Place::start("");
    let mut left = Vec::new();
    for code in PROGRAMS {
        let report = crate::report(
            &mut place,
            code,
            &json!({}),
            &json!({ "explore": true, "maxBranches": 150, "seed": 1 }),
        );
        let branches = &report["branches"];
        println!(
            "{} runs, {} branches: {code}",
            branches["runs"],
            branches["covered"].as_array().unwrap().len()
        );
        if branches["uncovered"] != json!([]) {
            left.push(format!("{}\n  {}", code, branches["uncovered"]));
        }
    }
    assert!(left.is_empty(), "{} of {} programs:\n{}", left.len(), PROGRAMS.len(), left.join("\n"));
    assert_eq!(place.writes(), 0);
}

#[test]
fn a_branch_that_cannot_be_reached_is_named_with_what_would_reach_it() {
    let mut place = Place::start("");
    let code = "const r = await mcp.a.read({}); const s = JSON.stringify(r);\nif (s.length > 1000000) await mcp.a.write({});\nreturn 1;";
    let how = json!({ "explore": true, "maxBranches": 20 });
    let report = crate::report(&mut place, code, &json!({}), &how);
    let uncovered = &report["branches"]["uncovered"];
    assert_eq!(uncovered[0]["line"], 2, "{report:#}");
    assert_eq!(uncovered[0]["reachedBy"], "`s.length > 1000000` has to hold", "{uncovered}");
}

#[test]
fn the_paths_become_one_structure() {
    let mut place = Place::start("");
    let report = crate::report(&mut place, PROGRAMS[1], &json!({}), &json!({ "explore": true }));
    let outcomes: Vec<&Value> = report["dag"]["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| &edge["outcome"])
        .filter(|outcome| !outcome.is_null())
        .collect();
    assert!(outcomes.contains(&&json!("true")) && outcomes.contains(&&json!("false")), "{report:#}");
    assert_eq!(report["paths"].as_array().unwrap().len(), 1, "{report:#}");
    assert!(report["paths"][0]["effects"].as_array().unwrap().len() == 1, "{report:#}");
}

#[test]
fn the_branches_of_called_capabilities_are_explored_too() {
    let mut place = Place::start("");
    let code = "const r = await mcp.a.read({ key: args.key });\n\
        if (r.count > 10) { await mcp.a.write({ key: args.key }); return 'many'; }\n\
        try { await mcp.b.read({ key: 'b' }); } catch { await mcp.b.write({ key: 'failed' }); }\n\
        return 'few';";
    place.learn("tidies", code, &json!({ "key": "k" }));
    let written = place.writes();
    let program = "return await capabilities.tidies({ key: 'inner' });";
    let once = crate::report(&mut place, program, &json!({}), &json!(true));
    let open = &once["branches"]["uncovered"];
    assert_eq!((&open[0]["capability"], &open[0]["line"]), (&json!("tidies"), &json!(2)), "{open:#}");
    assert!(open[0]["reachedBy"].as_str().unwrap().contains("r.count > 10"), "{open:#}");
    let report =
        crate::report(&mut place, program, &json!({}), &json!({ "explore": true, "maxBranches": 60 }));
    let branches = &report["branches"];
    assert_eq!(branches["uncovered"], json!([]), "{branches:#}");
    let covered: Vec<(&str, &str)> = branches["covered"]
        .as_array()
        .unwrap()
        .iter()
        .map(|branch| (branch["capability"].as_str().unwrap(), branch["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(covered, [("tidies", "false"), ("tidies", "true"), ("tidies", "error")], "{branches:#}");
    let because = report["paths"].to_string();
    assert!(because.contains("`a:read` in `tidies` returns"), "{because}");
    assert_eq!(place.writes(), written);
}
