// edges: A->B
// Sorting a copy and taking the best three.
const { rows } = await mcp.db.query({ sql: "select name, total from sellers" }); // @A
const best = [...rows].sort((a: any, b: any) => b.total - a.total).slice(0, 3);
const [winner, ...others] = best;
await mcp.chat.post({ channel: "sales", text: `${winner.name}, then ${others.map((o) => o.name).join(" and ")}` }); // @B
