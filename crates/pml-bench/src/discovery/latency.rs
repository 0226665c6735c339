//! The latency of discovery, from the text of a request to a page of results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::catalogue::ToolSnapshot;
use pml::config::EmbeddingSettings;
use pml::config::ToolNaming;
use pml::discover::{self, DiscoverMemory, DiscoverRequest};
use pml::knowledge::embeddings::{Embeddings, IntentReading, SanitiserSource, quantised};
use pml::knowledge::{CapabilityMemory, PrincipalKnowledge, experience};
use pml::problem::Problem;
use pml_graph::everyday;
use pml_graph::lexical::IndexEntry;
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};
use pml_model::Principal;
use pml_model::structure::{Argument, Node, NodeId, NodeKind, NodeLetter, Position};
use pml_store::{BlockingStore, RunMemory, Store};

use super::data;
use super::{DiscoveryBench, retrieval};
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::ingest::{self, DefinitionLine};
use crate::memory::{intent, store_many, trace};

/// The number of tools, and of capabilities.
const EACH: usize = 5_000;
/// The number of tools in the measurements with many.
const MANY: usize = 100_000;
/// The number of measured requests.
const ROUNDS: usize = 60;
/// The number of texts embedded to estimate the time for a catalogue.
const SAMPLE: usize = 100;

/// Short requests and a long one.
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

pub(super) fn measure(bench: &mut DiscoveryBench<'_>) -> Result<Vec<BenchFigure>, Problem> {
    let lines: Vec<DefinitionLine> = ingest::read(&bench.data.join("mcp_schemas").join("dev.jsonl"))?;
    let (servers, _) = ingest::definitions(&lines)?;
    let snapshot = Arc::new(ToolSnapshot::new(ingest::listings(servers), ToolNaming::Qualified));
    let mut figures = vec![reading(&snapshot)];
    figures.extend(whole(bench, &snapshot)?);
    figures.push(updating(bench)?);
    figures.push(many(bench)?);
    Ok(figures)
}

/// The time to embed the tools of a catalogue.
fn reading(snapshot: &ToolSnapshot) -> BenchFigure {
    let model = pml_embed::TransformerModel::embedded();
    let step = (snapshot.tools.len() / SAMPLE).max(1);
    let texts: Vec<String> =
        snapshot.tools.iter().step_by(step).map(pml::knowledge::embeddings::tool_text).collect();
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
    BenchFigure::of(
        "reading one sentence / 5,000 tools, on one core",
        format!("{} / {:.0} s (from {})", milliseconds(sentence), all.as_secs_f64(), texts.len()),
    )
    .target("≤ 8 ms / ≤ 300 s", sentence <= Duration::from_millis(8) && all <= Duration::from_secs(300))
}

/// From the text to a page, over tools and capabilities.
fn whole(bench: &mut DiscoveryBench<'_>, snapshot: &Arc<ToolSnapshot>) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    let store = BlockingStore::open(&home.path().join("pml.db"))?;
    store_many(&store, (0..EACH).map(|number| stored_run(snapshot, number)))?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    let mut texts: Vec<String> = snapshot.tools.iter().map(pml::knowledge::embeddings::tool_text).collect();
    texts.extend((0..EACH).map(intent));
    texts.extend(everyday::everyday_texts().map(str::to_owned));
    let read = bench.reader.embed(&texts)?;
    let model = pml_embed::TransformerModel::embedded().id();
    let kept: BTreeMap<_, _> = texts
        .iter()
        .zip(&read)
        .map(|(text, vector)| (pml::knowledge::embeddings::digest(text), quantised(vector)))
        .collect();
    store.store_vectors(&Principal::local(), model, kept.into_iter().collect())?;
    let memory = Arc::new(CapabilityMemory::new(Store::from(store.clone()), []));
    let known = Arc::clone(&memory);
    let sanitiser = SanitiserSource(Box::new(move || known.sanitiser()));
    let meaning = Embeddings::new(Store::from(store), sanitiser, &EmbeddingSettings::BuiltIn);
    meaning.load_stored(&[Principal::local()])?;
    let learned = PrincipalKnowledge::default();
    snapshot.index();
    let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
    // The program does this in the background.
    runtime.block_on(memory.refresh())?;
    experience::update_experience((&memory, &meaning), Arc::clone(snapshot), &Principal::local(), &learned);
    let find = |intent: &str| -> Result<Duration, Problem> {
        let request = DiscoverRequest::new(intent.to_owned(), 10);
        runtime.block_on(async {
            let started = Instant::now();
            let wanted = meaning.read_intent(intent).await;
            let principal = Principal::local();
            let capabilities = memory.find(&principal, intent, &wanted, Some(&meaning)).await?;
            let vectors = meaning.tool_vectors(snapshot);
            let past = learned.advice(snapshot, &wanted);
            let known = DiscoverMemory {
                capabilities,
                observed: None,
                reading: Some(&wanted),
                vectors: Some(&*vectors),
                advice: past.as_ref(),
                ..DiscoverMemory::default()
            };
            discover::find(snapshot, &known, &request, |_| true)?;
            Ok(started.elapsed())
        })
    };
    find("anything at all")?;
    let (mut fresh, mut known, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The number makes a new text, which has to be embedded.
        let sentence = format!("{} {round}", SENTENCES[round % SENTENCES.len()]);
        fresh.push(find(&sentence)?);
        known.push(find(&sentence)?);
        long.push(find(&PARAGRAPH.replace("April", &format!("April {round}")))?);
    }
    let (fresh, known, long) =
        (quantile(&mut fresh, 0.5), quantile(&mut known, 0.5), quantile(&mut long, 0.5));
    let target = |figure: BenchFigure, time: Duration, most: u64| {
        figure.target(format!("≤ {most} ms"), time <= Duration::from_millis(most))
    };
    let over = format!("{} tools and {EACH} capabilities", snapshot.tools.len());
    Ok(vec![
        target(BenchFigure::of(format!("one sentence over {over}"), milliseconds(fresh)), fresh, 15),
        target(BenchFigure::of("a paragraph of six sentences", milliseconds(long)), long, 40),
        target(BenchFigure::of("a sentence that was read before", milliseconds(known)), known, 2),
    ])
}

/// A stored run of a procedure over three tools of the snapshot.
fn stored_run(snapshot: &ToolSnapshot, number: usize) -> RunMemory {
    let mut stored = trace(number, number);
    if let Some(procedure) = &mut stored.procedure {
        procedure.static_structure.nodes = (1..=3)
            .map(|call| Node {
                id: NodeId { letter: NodeLetter::N, number: call },
                kind: NodeKind::Task {
                    tool: snapshot.tools[(number * 3 + call as usize) % snapshot.tools.len()].id.to_string(),
                    arguments: Argument::empty_object(),
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

/// Updating one changed tool among many.
fn updating(bench: &mut DiscoveryBench<'_>) -> Result<BenchFigure, Problem> {
    let tools = data::read_tools(&bench.data.join("sealtools").join("tools.jsonl"))?;
    let index = data::index(&tools);
    let mut vectors = retrieval::vectors(&mut bench.reader, &tools)?;
    let changed = tools.len() / 2;
    let (names, descriptions, outputs) = data::tool_texts(&tools[changed]);
    let vector = bench.reader.embed(&[tools[changed].text()])?.remove(0);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let entries = (0..tools.len()).map(|item| {
            if item == changed {
                IndexEntry::New(data::document(&tools[item], &names, &descriptions, &outputs))
            } else {
                IndexEntry::Kept(item)
            }
        });
        let updated = index.with_entries(entries);
        vectors.replace(changed, Some(&vector));
        times.push(started.elapsed());
        drop(updated);
    }
    let time = quantile(&mut times, 0.5);
    Ok(BenchFigure::of(format!("index of {} tools after one changed", tools.len()), milliseconds(time))
        .target("≤ 5 ms", time <= Duration::from_millis(5)))
}

/// Discovery over very many tools.
fn many(bench: &mut DiscoveryBench<'_>) -> Result<BenchFigure, Problem> {
    let tools = data::read_tools(&bench.data.join("sealtools").join("tools.jsonl"))?;
    let texts: Vec<String> = tools.iter().map(data::BenchTool::text).collect();
    let read = bench.reader.embed(&texts)?;
    let mut vectors = bench.reader.table()?;
    (0..MANY).for_each(|item| vectors.push(Some(&read[item % read.len()])));
    let index = data::index_of((0..MANY).map(|item| &tools[item % tools.len()]));
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let sentence = SENTENCES[round % SENTENCES.len()];
        let wanted = IntentReading::words_only(sentence);
        let whole = bench.reader.embed(&[sentence.to_owned()])?.remove(0);
        let parts = [whole.to_vec()];
        let started = Instant::now();
        let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
        rank::rank(&wanted.text, &RankingEvidence { lexical: &index, dense: Some(dense), advice: None });
        times.push(started.elapsed());
    }
    let time = quantile(&mut times, 0.5);
    Ok(BenchFigure::of(format!("ranking {MANY} tools, sentence read before"), milliseconds(time))
        .target("≤ 25 ms", time <= Duration::from_millis(25)))
}
