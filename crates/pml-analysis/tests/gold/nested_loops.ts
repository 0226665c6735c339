// edges: A->B, A->C, B->C
// Inner items together with outer items.
const { rows: teams } = await mcp.db.query({ sql: "select id, name from teams" }); // @A
for (const team of teams) {
  const { rows: members } = await mcp.db.query({ sql: "select email from members where team = ?", params: [team.id] }); // @B
  for (const member of members) {
    await mcp.mail.send({ to: member.email, subject: team.name, body: "Meeting at noon" }); // @C
  }
}
