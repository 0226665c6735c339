// Sort the tickets by urgency and write one list per urgency that has any.
enum Urgency { Low, Normal, High, Critical = 10 }
interface Ticket { id: number; title: string; opened: string }

const { data } = await mcp.json.parse({ json: (await mcp.fs.read({ path: "tickets.json" })).content });
const sorted = new Map<Urgency, Ticket[]>();

async function urgency(ticket: Ticket): Promise<Urgency> {
  if (/data loss/i.test(ticket.title)) return Urgency.Critical;
  const { days } = await mcp.time.diff({ from: ticket.opened, to: args.now });
  if (/crash/i.test(ticket.title)) return days > 3 ? Urgency.Critical : Urgency.High;
  return days > 60 || days < 2 ? Urgency.Low : Urgency.Normal;
}

for (const ticket of data as Ticket[]) {
  const level = await urgency(ticket);
  sorted.set(level, [...(sorted.get(level) ?? []), ticket]);
}
const summary: Record<string, number[]> = {};
for (const [level, tickets] of [...sorted].sort(([a], [b]) => b - a)) {
  const name = Urgency[level].toLowerCase();
  await mcp.fs.write({ path: `triage/${name}.txt`, content: tickets.map((t) => `#${t.id} ${t.title}`).join("\n") });
  summary[name] = tickets.map((t) => t.id);
}
return summary;
