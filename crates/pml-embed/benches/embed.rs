//! How long texts of several lengths take, one at a time and many together, on one core.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pml_embed::TransformerModel;

/// Words that are one token each, so that a text has as many tokens as it is asked to.
const WORDS: [&str; 8] = ["send", "the", "report", "of", "last", "week", "to", "everybody"];

fn text(tokens: usize) -> String {
    let text: Vec<&str> = WORDS.iter().copied().cycle().take(tokens - 2).collect();
    text.join(" ")
}

fn one_text(criterion: &mut Criterion) {
    let model = TransformerModel::embedded();
    let mut group = criterion.benchmark_group("one text");
    for tokens in [4, 16, 32, 128] {
        let text = text(tokens);
        assert_eq!(model.tokens(&text).len(), tokens);
        group.bench_with_input(BenchmarkId::new("tokens", tokens), &text, |bencher, text| {
            bencher.iter(|| model.embed(text));
        });
    }
    group.finish();
}

/// Descriptions of tools, mostly of 20 to 60 tokens: multiply with 50 for a catalogue of 5,000.
fn catalogue(criterion: &mut Criterion) {
    let model = TransformerModel::embedded();
    let texts: Vec<String> = (0..100).map(|index| text(20 + index * 7 % 41)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut group = criterion.benchmark_group("catalogue");
    group.sample_size(10).throughput(Throughput::Elements(texts.len() as u64));
    group.bench_function("100 tools", |bencher| bencher.iter(|| model.embed_all(&texts)));
    group.finish();
}

/// Text of any length costs no more than the part of it that counts.
fn long_text(criterion: &mut Criterion) {
    let model = TransformerModel::embedded();
    let text = text(100_000);
    criterion.bench_function("tokens of 600 KB", |bencher| bencher.iter(|| model.tokens(&text)));
}

criterion_group!(benches, one_text, catalogue, long_text);
criterion_main!(benches);
