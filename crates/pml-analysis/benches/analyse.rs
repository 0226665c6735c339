//! How long a program takes from text to structure and JavaScript: 30 lines, 1,000 lines, and up to
//! the source limit, where time per line must stay what it was.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pml_analysis::{AnalysisCatalogue, AnalysisTool, analyse};
use pml_model::{ServerName, ToolId};
use serde_json::value::RawValue;

/// Thirty lines of the kind a model writes.
const BLOCK: &str = r#"
interface Issue_N { id: number; title: string; labels: string[]; body?: string }

async function fetchPage_N(page: number): Promise<Issue_N[]> {
  const result = await mcp.github.list_issues({ repo: args.repo, state: "open", page });
  return result.issues ?? [];
}

const pages_N = await Promise.all([1, 2, 3].map(page => fetchPage_N(page)));
const issues_N = pages_N.flat().filter((issue: Issue_N) => !issue.labels.includes("done"));
let total_N = 0;
for (const issue of issues_N) {
  if (issue.body && issue.body.length > 500) {
    const { summary } = await mcp.ai.summarize({ text: issue.body, words: 40 });
    await mcp.github.comment({ repo: args.repo, number: issue.id, text: `Summary: ${summary}` });
    total_N += 1;
  } else {
    try {
      await mcp.github.label({ repo: args.repo, number: issue.id, labels: ["triaged"] });
    } catch (error) {
      console.error(issue.id, error);
    }
  }
}
const titles_N = issues_N.map(issue => issue.title.trim()).sort();
const report_N = await mcp.fs.write({
  path: `${args.folder}/report-N.md`,
  content: titles_N.join("\n"),
});
if (!report_N.ok) throw new Error("not written");
"#;

fn program(blocks: usize) -> String {
    (0..blocks)
        .map(|index| BLOCK.replace("_N", &format!("_{index}")).replace("-N", &format!("-{index}")))
        .collect()
}

fn catalogue() -> AnalysisCatalogue {
    let tools = [
        (
            "github",
            "list_issues",
            r#"{"repo":{"type":"string"},"state":{"enum":["open","closed"]},"page":{"type":"integer"}}"#,
        ),
        (
            "github",
            "comment",
            r#"{"repo":{"type":"string"},"number":{"type":"integer"},"text":{"type":"string"}}"#,
        ),
        (
            "github",
            "label",
            r#"{"repo":{"type":"string"},"number":{"type":"integer"},"labels":{"type":"array"}}"#,
        ),
        ("ai", "summarize", r#"{"text":{"type":"string"},"words":{"type":"integer"}}"#),
        ("fs", "write", r#"{"path":{"type":"string"},"content":{"type":"string"}}"#),
    ];
    let mut catalogue = AnalysisCatalogue::default();
    for (server, tool, properties) in tools {
        let id = ToolId { server: ServerName::new(server).expect("a name"), tool: tool.to_owned() };
        let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
        let schema = RawValue::from_string(schema).expect("JSON");
        catalogue.add_tool(AnalysisTool::new(id, tool.to_owned(), schema, None, false));
    }
    catalogue
}

fn analysis(criterion: &mut Criterion) {
    let catalogue = catalogue();
    let mut group = criterion.benchmark_group("analyse");
    group.sample_size(30);
    // The last one is close to the limit of 256 KiB.
    for blocks in [1, 33, 66, 132, 185] {
        let source = program(blocks);
        let lines = source.lines().count();
        analyse(&source, &catalogue).expect("a program that is understood");
        group.throughput(Throughput::Elements(lines as u64));
        group.bench_with_input(BenchmarkId::new("lines", lines), &source, |bencher, source| {
            bencher.iter(|| analyse(source, &catalogue));
        });
    }
    group.finish();
}

criterion_group!(benches, analysis);
criterion_main!(benches);
