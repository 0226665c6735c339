// Sorts exported GitHub issues by urgency and writes one list for each label.
interface Issue {
  number: number;
  title: string;
  body: string | null;
  labels: { name: string }[];
  created_at: string;
}

const exported = await mcp.fs.read({ path: args.issues });
const { data } = await mcp.json.parse({ json: exported.content });
const now = await mcp.time.now({});

const urgent: string[] = [];
const stale: string[] = [];
for (const issue of data as Issue[]) {
  const age = await mcp.time.diff({ from: issue.created_at, to: now.time });
  const labels = issue.labels.map((label) => label.name);
  if (labels.includes("bug") && /crash|data loss/i.test(issue.body ?? "")) {
    urgent.push(`#${issue.number} ${issue.title}`);
  } else if (age.days > (args.staleAfterDays ?? 90)) {
    stale.push(`#${issue.number} ${issue.title} (${age.days} days)`);
  }
}

if (urgent.length > 0) {
  const { text } = await mcp.text.join({ parts: urgent, separator: "\n" });
  await mcp.fs.write({ path: "triage/urgent.md", content: text });
}
if (stale.length > 0) {
  const { text } = await mcp.text.join({ parts: stale, separator: "\n" });
  await mcp.fs.write({ path: "triage/stale.md", content: text });
}
return { urgent: urgent.length, stale: stale.length };
