//! Files with flipped bytes and lost pages: what decides is served as it was stored, or not at all.
//!
//! Each seed damages a copy of one database in its own way and compares all that is served with what was stored.
//! `PML_SOAK_SEEDS` says how many seeds are tried (`cargo xtask soak corruption`).

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use pml_model::{Digest, ToolId};
use pml_store::{BlockingStore, CacheKey, CapabilityQuery, Error, NewApprovalRule, NewCachedResult, NewMock};

use super::memory::{capability_id, learn, memory, remember, trace};
use super::{Fixture, fixture, listing, me, raw, server, tool};

/// How many seeds are tried where nobody says otherwise.
const SAMPLE: u64 = 40;
/// A time at which most rules count.
const NOW: i64 = 2000;

fn rule(number: usize) -> NewApprovalRule {
    NewApprovalRule {
        principal: me(),
        tool: format!("fs:tool{number}"),
        definition: Digest::of(b"definition"),
        code_hash: Some(format!("c0de{number}")),
        arguments: Some(Digest::of(b"arguments")),
        expires_at: if number.is_multiple_of(3) { 1500 } else { 5000 },
        by: "terminal".to_owned(),
        now: 1000,
    }
}

fn cache_key(number: usize) -> CacheKey {
    CacheKey {
        principal: me(),
        capability: capability_id(&format!("p{number}")),
        parameters: Digest::of(b"parameters"),
        epoch: "e".to_owned(),
    }
}

/// A database with something of everything that decides.
fn filled() -> Fixture {
    let fixture = fixture();
    let store = &fixture.store;
    for name in ["fs", "git", "mail"] {
        let tools = (0..40).map(|n| tool(&format!("tool{n}"), &format!("does {name} {n}. ").repeat(8)));
        store.record_manifest(&me(), listing(name, tools.collect()), 1).unwrap();
    }
    // Some have another definition than the accepted one.
    let changed =
        (0..40).map(|n| tool(&format!("tool{n}"), &format!("does {} otherwise. ", n % 35).repeat(8)));
    store.record_manifest(&me(), listing("mail", changed.collect()), 2).unwrap();
    for number in 0..60 {
        let rule = store.add_rule(rule(number), Vec::new()).unwrap();
        if number.is_multiple_of(5) {
            store.revoke_rule(&me(), rule, 1800, Vec::new()).unwrap();
        } else if number.is_multiple_of(4) {
            assert!(store.use_rule(&me(), rule, 1400, Vec::new()).unwrap());
        }
    }
    for number in 0..240_u128 {
        let mut trace = trace(number);
        trace.intent = format!("read the file of project {}", number % 90);
        trace.session = format!("session {}", number % 4);
        for call in &mut trace.body.task_results {
            call.args = raw("{\"path\":\"a.json\"}");
        }
        remember(store, memory(&format!("p{}", number % 80), trace));
    }
    learn(store);
    store.merge_capabilities(&me(), &capability_id("p1"), &capability_id("p2"), 3000).unwrap();
    for number in 0..20 {
        let (reply, answer) = sync_channel(1);
        let result = raw(&format!("{{\"answer\":{number}}}"));
        let new = NewCachedResult {
            result: &result,
            intent: None,
            stamps: "[]",
            at: 1,
            expires_at: 9000,
            max_entries: 9,
        };
        store.cache_result(&cache_key(number), &new, move |stored| reply.send(stored).unwrap());
        answer.recv().unwrap().unwrap();
    }
    let mock = |number: usize| NewMock {
        principal: me(),
        tool: ToolId::parse(&format!("fs:tool{}", number % 4)).unwrap(),
        digest: Digest::of(b"definition"),
        arguments: raw(&format!("{{\"path\":\"{number}.txt\"}}")),
        result: raw(&format!("{{\"size\":{number}}}")),
    };
    store.record_mocks((0..40).map(mock).collect(), 1).unwrap();
    fixture
}

/// All that is served of what decides, each thing in words of its own; and the questions that were refused.
fn served(store: &BlockingStore) -> (BTreeSet<String>, Vec<Error>) {
    let (mut all, mut refused) = (BTreeSet::new(), Vec::new());
    let mut take = |what: &str, answer: Result<Vec<String>, Error>| match answer {
        Ok(rows) => all.extend(rows.into_iter().map(|row| format!("{what} {row}"))),
        Err(error) => refused.push(error),
    };
    fn words<T: std::fmt::Debug>(rows: impl IntoIterator<Item = T>) -> Vec<String> {
        rows.into_iter().map(|row| format!("{row:?}")).collect()
    }
    take("rule", store.rules(&me()).map(words));
    take("rule in force", store.rules_in_force(&me(), NOW).map(words));
    for name in ["fs", "git", "mail"] {
        let tools = store.manifest(&me(), &server(name)).map(|manifest| {
            words(manifest.into_iter().flat_map(|manifest| manifest.tools).map(|tool| {
                let definition = tool.definition;
                (name, definition.name, definition.raw, definition.digest, tool.identifier)
            }))
        });
        take("tool", tools);
    }
    let accepted = store.accepted_definitions(&me()).map(|accepted| {
        words(accepted.into_iter().flat_map(|(server, tools)| {
            tools.into_iter().map(move |(tool, accepted)| {
                // Which text it had is there to be shown, and may be missing.
                (server.clone(), tool, accepted.digest)
            })
        }))
    });
    take("accepted", accepted);
    let every = CapabilityQuery { state: None, recent: false, limit: 1000, offset: 0 };
    let parts = |capability: pml_model::capability::Capability| {
        let mut parts = vec![format!("{} intents {:?}", capability.name, "")];
        parts.extend(words(capability.intents.iter().map(|intent| (&capability.name, intent))));
        let statistics = (&capability.statistics, &capability.learning, &capability.state);
        parts.push(format!("{} {:?} {statistics:?}", capability.name, capability.procedure));
        parts
    };
    take(
        "capability",
        store.capabilities(&me(), &every).map(|all| all.into_iter().flat_map(parts).collect()),
    );
    for number in 0..80 {
        let id = capability_id(&format!("p{number}"));
        let found =
            store.capability(&me(), &id).map(|found| words(found.map(|found| (number, found.procedure))));
        take("by id", found);
        let kept = store.cached_result(&cache_key(number), NOW);
        take("kept", kept.map(|kept| words(kept.map(|kept| (number, kept.result)))));
    }
    take("edge", store.learned_edges(&me()).map(words));
    take("use", store.tool_call_counts(&me()).map(words));
    take("pattern", store.argument_pattern_counts(&me()).map(words));
    take("observed", store.observed_schemas(&me()).map(words));
    take("mock", store.mocks(&me()).map(words));
    (all, refused)
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// Damages a file in one of the ways in which disks and copies do.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    const PAGE: usize = 4096;
    let pages = bytes.len() / PAGE;
    match random.below(8) {
        0..4 => {
            let many = 1 << random.below(7);
            for _ in 0..many {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            format!("{many} bits flipped")
        }
        4 => {
            let (page, many) = (random.below(pages), 1 + random.below(4));
            let start = page * PAGE;
            let end = bytes.len().min(start + many * PAGE);
            bytes[start..end].fill(0);
            format!("{many} pages from {page} on are zero")
        }
        5 => {
            let (from, to) = (random.below(pages), random.below(pages));
            bytes.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
            format!("page {from} stands in place of page {to}")
        }
        6 => {
            let keep = random.below(pages);
            bytes.truncate(keep * PAGE + random.below(PAGE));
            format!("cut off after page {keep}")
        }
        _ => {
            let start = random.below(pages) * PAGE + 512 * random.below(8);
            for byte in &mut bytes[start..start + 512] {
                *byte = u8::try_from(random.next() & 255).unwrap();
            }
            format!("a sector at {start} is noise")
        }
    }
}

/// What a seed came to.
#[derive(Debug, Default)]
struct Tally {
    refused: u32,
    left_out: u32,
    untouched: u32,
    /// Rows hidden by a sound page that stands in the place of theirs. Nothing in such a file is wrong, so nothing can
    /// tell; what is learned of traces comes back with `relearn`.
    hidden: u32,
}

fn try_seed(
    seed: u64,
    home: &Path,
    original: &[u8],
    key: &[u8],
    truth: &BTreeSet<String>,
    tally: &mut Tally,
) {
    let path = home.join(format!("{seed}/pml.db"));
    fs::create_dir(path.parent().unwrap()).unwrap();
    let mut bytes = original.to_vec();
    let what = damage(&mut bytes, &mut Random(seed));
    fs::write(&path, &bytes).unwrap();
    fs::write(path.with_file_name("seal.key"), key).unwrap();
    private(&path.with_file_name("seal.key"));
    let store = match BlockingStore::open(&path) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_clear(&error), "seed {seed}, {what}: {error}");
            tally.refused += 1;
            return;
        }
    };
    let (found, refused) = served(&store);
    for error in &refused {
        assert!(is_clear(error), "seed {seed}, {what}: {error}");
    }
    let wrong: Vec<&String> = found.difference(truth).collect();
    assert!(wrong.is_empty(), "seed {seed}, {what}: served as if nothing had happened: {wrong:#?}");
    let whole = store.check_integrity();
    if whole.as_ref().is_ok_and(|whole| !whole.file_errors.is_empty()) {
        let written = store.record_manifest(&me(), listing("new", vec![tool("a", "b")]), 9);
        assert!(written.is_err(), "seed {seed}, {what}: a damaged file is not written to");
    }
    if !refused.is_empty() {
        tally.refused += 1;
    } else if found != *truth {
        let told =
            whole.map_or(true, |whole| !whole.file_errors.is_empty() || !whole.damaged_rows.is_empty());
        let missing: Vec<&String> = truth.difference(&found).collect();
        let sound_page = what.contains("stands in place of");
        assert!(
            told || sound_page,
            "seed {seed}, {what}: nobody is told that something is missing: {missing:#?}"
        );
        *if told { &mut tally.left_out } else { &mut tally.hidden } += 1;
    } else {
        tally.untouched += 1;
    }
    // Whatever is asked of it afterwards, it does not panic.
    store.learn_traces(1000, 9000).ok();
    store.relearn_all(9000).ok();
    drop(store);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// Whether a refusal says that the file is damaged, or is no database any more.
fn is_clear(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::NotADatabase { .. } | Error::NewerVersion { .. })
}

fn private(path: &Path) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    #[cfg(not(unix))]
    drop(path);
}

#[test]
fn whatever_page_is_damaged_no_row_that_decides_is_served_as_something_else() {
    let fixture = filled();
    let (truth, refused) = served(&fixture.store);
    assert!(refused.is_empty(), "{refused:?}");
    assert!(truth.len() > 800, "there is enough to be damaged: {}", truth.len());
    assert!(fixture.store.damaged_rows().is_empty());
    drop(fixture.store);
    let original = fs::read(&fixture.path).unwrap();
    let key = fs::read(fixture.path.with_file_name("seal.key")).unwrap();
    let seeds = std::env::var("PML_SOAK_SEEDS").map_or(SAMPLE, |seeds| seeds.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    for seed in 0..seeds {
        let tried = AssertUnwindSafe(|| try_seed(seed, home.path(), &original, &key, &truth, &mut tally));
        if let Err(panic) = catch_unwind(tried) {
            let text =
                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| format!("seed {seed} panicked"));
            failed.push(text);
        }
    }
    assert!(failed.is_empty(), "{} of {seeds} seeds ({tally:?}):\n{}", failed.len(), failed.join("\n"));
    assert!(tally.refused > 0 && tally.left_out > 0, "the damage is felt: {tally:?}");
    assert!(u64::from(tally.hidden) * 200 <= seeds, "rows are hidden rarely: {tally:?}");
}

#[test]
fn a_row_that_was_altered_by_hand_is_left_out_and_named() {
    let alterations = [
        ("capability", "UPDATE capability SET success_count = 4000 WHERE name = 'readFile7'"),
        ("capability", "UPDATE capability SET approved = 1 WHERE name = 'readFile7'"),
        (
            "capability procedure",
            "UPDATE capability_procedure SET procedure = replace(procedure, 'fs.read', 'fs.wipe') WHERE capability = 9",
        ),
        ("capability procedure", "UPDATE capability_procedure SET tools = '[]' WHERE capability = 9"),
        ("capability intent", "UPDATE capability_intent SET text = 'delete ' || text WHERE capability = 9"),
        (
            "capability intent",
            "INSERT INTO capability_intent (capability, text, count, first_at, last_at, mark) VALUES (9, 'delete everything', 1, 1, 1, x'00')",
        ),
        (
            "capability intent",
            "INSERT INTO capability_intent (capability, text, count, first_at, last_at, mark) VALUES (9, 'delete everything', 1, 1, 1, NULL)",
        ),
        (
            "accepted definition",
            "UPDATE accepted_definition SET digest = (SELECT digest FROM definition ORDER BY id DESC LIMIT 1), definition = (SELECT id FROM definition ORDER BY id DESC LIMIT 1) WHERE tool = 'tool3' AND server = 'mail'",
        ),
        (
            "definition",
            "UPDATE definition SET digest = (SELECT digest FROM definition WHERE id = 4) WHERE id = 5",
        ),
        ("tool", "UPDATE tool SET definition = 5 WHERE server = 'fs' AND tool = 'tool3'"),
        ("edge", "UPDATE edge SET count = count + 1"),
        ("tool use", "UPDATE tool_use SET failures = 0, calls = 99"),
        ("argument pattern", "UPDATE argument_pattern SET failures = 0, calls = 99"),
        ("observed", "UPDATE observed SET shape = replace(shape, '1', '2')"),
        ("mock", "UPDATE mock SET result = replace(result, '1', '2')"),
        ("mock", "UPDATE mock SET status = 'pinned'"),
        ("approval rule", "UPDATE approval_rule SET uses = 0, used_at = NULL WHERE uses > 0"),
        ("approval rule", "UPDATE approval_rule SET revoked_at = 7 WHERE revoked_at IS NOT NULL"),
        ("cached result", "UPDATE cached_result SET result = '{\"answer\":42}'"),
    ];
    let original = filled();
    let (truth, _) = served(&original.store);
    drop(original.store);
    let home = tempfile::tempdir().unwrap();
    for (number, (kind, alteration)) in alterations.into_iter().enumerate() {
        let path = home.path().join(format!("{number}/pml.db"));
        fs::create_dir(path.parent().unwrap()).unwrap();
        for name in ["pml.db", "seal.key"] {
            fs::copy(original.path.with_file_name(name), path.with_file_name(name)).unwrap();
        }
        let altered = rusqlite::Connection::open(&path).unwrap().execute(alteration, []).unwrap();
        assert!(altered > 0, "{alteration}");
        let store = BlockingStore::open(&path).unwrap();
        let (found, refused) = served(&store);
        assert!(refused.is_empty(), "{alteration}: {refused:?}");
        let wrong: Vec<&String> = found.difference(&truth).collect();
        assert!(wrong.is_empty(), "{alteration}: {wrong:#?}");
        assert!(found.len() < truth.len() || alteration.starts_with("INSERT"), "{alteration}");
        let named = store.damaged_rows();
        assert!(named.iter().any(|row| row.starts_with(kind)), "{alteration}: {named:?}");
        assert_eq!(store.check_integrity().unwrap().file_errors, Vec::<String>::new());
        // What is learned later does not vouch for it.
        remember(&store, memory("p8", trace(9000)));
        learn(&store);
        drop(store);
        let reopened = BlockingStore::open(&path).unwrap();
        assert!(!reopened.check_integrity().unwrap().damaged_rows.is_empty(), "{alteration}");
    }
}
