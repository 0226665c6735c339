//! How long finding takes, from the words of a request to a page of results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_graph::everyday;
use pml_graph::lexical::Entry;
use pml_graph::rank::{self, Dense, Evidence};
use pml_model::Principal;
use pml_model::structure::{Argument, Letter, Node, NodeId, NodeKind, Position};
use pml_store::{BlockingStore, Memory as Stored, Store};

use super::super::ingest::{self, Line};
use super::super::memory::{intent, store_many, trace};
use super::super::{Figure, failed, milliseconds, quantile};
use super::data;
use super::{Bench, retrieval};
use crate::catalogue::Snapshot;
use crate::config::Embedding;
use crate::config::Naming;
use crate::discover::{self, Recalled, Request};
use crate::knowledge::embeddings::{Embeddings, SanitiserOf, Wanted, stored};
use crate::knowledge::{Learned, Memory, experience};
use crate::problem::Problem;

/// How many tools and capabilities there are.
const EACH: usize = 5_000;
/// How many tools there are where it is about many.
const MANY: usize = 100_000;
/// How many requests are measured.
const ROUNDS: usize = 60;
/// How many texts are read to tell how long a catalogue takes.
const SAMPLE: usize = 100;

/// Short requests, and one that is long.
const SENTENCES: [&str; 6] = [
    "find flights from Paris to Tokyo next month",
    "convert this PDF into plain text",
    "what is the weather going to be in Lyon tomorrow",
    "list the open issues of a repository and who they are assigned to",
    "send a message to the team about the release",
    "how much is one bitcoin in euros right now",
];
const PARAGRAPH: &str = "I am preparing a trip with my family for the spring holidays and need some help. \
    First look for flights from Lyon to Lisbon in the second week of April, not too early in the morning. \
    Then find a quiet hotel near the river with a family room and free cancellation. \
    Please also tell me what the weather is usually like at that time of the year. \
    It would be nice to have a list of museums that children enjoy, with their opening hours. \
    Finally put everything into my calendar and send a summary by mail to my wife.";

pub(super) fn measure(bench: &mut Bench<'_>) -> Result<Vec<Figure>, Problem> {
    let lines: Vec<Line> = ingest::read(&bench.data.join("mcp_schemas").join("dev.jsonl"))?;
    let (servers, _) = ingest::definitions(&lines)?;
    let snapshot = Arc::new(Snapshot::new(ingest::listings(servers), Naming::Qualified));
    let mut figures = vec![reading(&snapshot)];
    figures.extend(whole(bench, &snapshot)?);
    figures.push(updating(bench)?);
    figures.push(many(bench)?);
    Ok(figures)
}

/// How long the model takes for the tools of a catalogue.
fn reading(snapshot: &Snapshot) -> Figure {
    let model = pml_embed::Model::embedded();
    let step = (snapshot.tools.len() / SAMPLE).max(1);
    let texts: Vec<String> =
        snapshot.tools.iter().step_by(step).map(crate::knowledge::embeddings::text).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let started = Instant::now();
    model.embed_all(&texts);
    let all = started.elapsed().mul_f64(EACH as f64 / texts.len().max(1) as f64);
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let started = Instant::now();
        model.embed(SENTENCES[round % SENTENCES.len()]);
        times.push(started.elapsed());
    }
    let sentence = quantile(&mut times, 0.5);
    Figure::of(
        "reading one sentence / 5,000 tools, on one core",
        format!("{} / {:.0} s (from {})", milliseconds(sentence), all.as_secs_f64(), texts.len()),
    )
    .target("≤ 8 ms / ≤ 300 s", sentence <= Duration::from_millis(8) && all <= Duration::from_secs(300))
}

/// From the words to a page, over tools and capabilities.
fn whole(bench: &mut Bench<'_>, snapshot: &Arc<Snapshot>) -> Result<Vec<Figure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    let store = BlockingStore::open(&home.path().join("pml.db"))?;
    store_many(&store, (0..EACH).map(|number| over(snapshot, number)))?;
    while store.learn(500, 0).map_err(failed)?.left {}
    let mut texts: Vec<String> = snapshot.tools.iter().map(crate::knowledge::embeddings::text).collect();
    texts.extend((0..EACH).map(intent));
    texts.extend(everyday::texts().map(str::to_owned));
    let read = bench.reader.read(&texts)?;
    let model = pml_embed::Model::embedded().id();
    let kept: BTreeMap<_, _> = texts
        .iter()
        .zip(&read)
        .map(|(text, vector)| (crate::knowledge::embeddings::digest(text), stored(vector)))
        .collect();
    store.keep_vectors(&Principal::local(), model, kept.into_iter().collect())?;
    let memory = Arc::new(Memory::new(Store::from(store.clone()), []));
    let known = Arc::clone(&memory);
    let sanitiser = SanitiserOf(Box::new(move || known.sanitiser()));
    let meaning = Embeddings::new(Store::from(store), sanitiser, &Embedding::BuiltIn);
    meaning.remember_now(&[Principal::local()])?;
    let learned = Learned::default();
    snapshot.index();
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    // Otherwise done in the background.
    runtime.block_on(memory.refresh())?;
    experience::bring_up_to_date((&memory, &meaning), Arc::clone(snapshot), &Principal::local(), &learned);
    let find = |intent: &str| -> Result<Duration, Problem> {
        let request = Request::new(intent.to_owned(), 10);
        runtime.block_on(async {
            let started = Instant::now();
            let wanted = meaning.wanted(intent).await;
            let principal = Principal::local();
            let capabilities = memory.find(&principal, intent, &wanted, Some(&meaning)).await?;
            let vectors = meaning.of_tools(snapshot);
            let past = learned.advice(snapshot, &wanted);
            let known = Recalled {
                capabilities,
                observed: None,
                wanted: Some(&wanted),
                vectors: Some(&*vectors),
                past: past.as_ref(),
                ..Recalled::default()
            };
            discover::find(snapshot, &known, &request, |_| true)?;
            Ok(started.elapsed())
        })
    };
    find("anything at all")?;
    let (mut fresh, mut known, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Another number makes another text, which has to be read.
        let sentence = format!("{} {round}", SENTENCES[round % SENTENCES.len()]);
        fresh.push(find(&sentence)?);
        known.push(find(&sentence)?);
        long.push(find(&PARAGRAPH.replace("April", &format!("April {round}")))?);
    }
    let (fresh, known, long) =
        (quantile(&mut fresh, 0.5), quantile(&mut known, 0.5), quantile(&mut long, 0.5));
    let target = |figure: Figure, time: Duration, most: u64| {
        figure.target(format!("≤ {most} ms"), time <= Duration::from_millis(most))
    };
    let over = format!("{} tools and {EACH} capabilities", snapshot.tools.len());
    Ok(vec![
        target(Figure::of(format!("one sentence over {over}"), milliseconds(fresh)), fresh, 15),
        target(Figure::of("a paragraph of six sentences", milliseconds(long)), long, 40),
        target(Figure::of("a sentence that was read before", milliseconds(known)), known, 2),
    ])
}

/// A run of a procedure over three tools of the snapshot.
fn over(snapshot: &Snapshot, number: usize) -> Stored {
    let mut stored = trace(number, number);
    if let Some(procedure) = &mut stored.procedure {
        procedure.static_structure.nodes = (1..=3)
            .map(|call| Node {
                id: NodeId { letter: Letter::N, number: call },
                kind: NodeKind::Task {
                    tool: snapshot.tools[(number * 3 + call as usize) % snapshot.tools.len()].id.to_string(),
                    arguments: Argument::nothing(),
                    code: None,
                    pure: false,
                },
                at: Position::default(),
                branches: Vec::new(),
            })
            .collect();
    }
    stored
}

/// One changed tool among many.
fn updating(bench: &mut Bench<'_>) -> Result<Figure, Problem> {
    let tools = data::catalogue(&bench.data.join("sealtools").join("tools.jsonl"))?;
    let index = data::index(&tools);
    let mut vectors = retrieval::vectors(&mut bench.reader, &tools)?;
    let changed = tools.len() / 2;
    let (names, descriptions, outputs) = data::texts(&tools[changed]);
    let vector = bench.reader.read(&[tools[changed].text()])?.remove(0);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let entries = (0..tools.len()).map(|item| {
            if item == changed {
                Entry::New(data::document(&tools[item], &names, &descriptions, &outputs))
            } else {
                Entry::Kept(item)
            }
        });
        let updated = index.updated(entries);
        vectors.replace(changed, Some(&vector));
        times.push(started.elapsed());
        drop(updated);
    }
    let time = quantile(&mut times, 0.5);
    Ok(Figure::of(format!("index of {} tools after one changed", tools.len()), milliseconds(time))
        .target("≤ 5 ms", time <= Duration::from_millis(5)))
}

/// Very many tools.
fn many(bench: &mut Bench<'_>) -> Result<Figure, Problem> {
    let tools = data::catalogue(&bench.data.join("sealtools").join("tools.jsonl"))?;
    let texts: Vec<String> = tools.iter().map(data::Tool::text).collect();
    let read = bench.reader.read(&texts)?;
    let mut vectors = bench.reader.table()?;
    (0..MANY).for_each(|item| vectors.push(Some(&read[item % read.len()])));
    let index = data::index_of((0..MANY).map(|item| &tools[item % tools.len()]));
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let sentence = SENTENCES[round % SENTENCES.len()];
        let wanted = Wanted::words(sentence);
        let whole = bench.reader.read(&[sentence.to_owned()])?.remove(0);
        let parts = [whole.to_vec()];
        let started = Instant::now();
        let dense = Dense { items: &vectors, whole: &whole, parts: &parts };
        rank::rank(&wanted.text, &Evidence { lexical: &index, dense: Some(dense), past: None });
        times.push(started.elapsed());
    }
    let time = quantile(&mut times, 0.5);
    Ok(Figure::of(format!("ranking {MANY} tools, sentence read before"), milliseconds(time))
        .target("≤ 25 ms", time <= Duration::from_millis(25)))
}
