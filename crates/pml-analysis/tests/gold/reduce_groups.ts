// edges: A->B
// A reduce that builds an object, then its entries.
interface Row { team: string; name: string }
const { rows } = await mcp.db.query({ sql: "select team, name from members" }); // @A
const byTeam = (rows as Row[]).reduce<Record<string, string[]>>((groups, row) => {
  (groups[row.team] ??= []).push(row.name);
  return groups;
}, {});
for (const [team, names] of Object.entries(byTeam)) {
  await mcp.chat.post({ channel: team, text: names.join(", ") }); // @B
}
