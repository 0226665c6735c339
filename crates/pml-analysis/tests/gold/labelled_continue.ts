// edges: A->C, B->C
// A labelled continue leaves the inner loop.
const teams = await mcp.db.query({ sql: "select id, name from teams" }); // @A
teams: for (const team of teams.rows) {
  for (const member of args.members) {
    if (member.skip) continue teams;
    const user = await mcp.db.get({ table: "users", id: member.id }); // @B
    if (user.team !== team.id) continue;
    await mcp.chat.post({ channel: team.name, text: user.name }); // @C
    continue teams;
  }
}
