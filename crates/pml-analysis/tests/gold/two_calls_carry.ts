// edges: A->B, B->A
// around: B->A
// The second call of a turn feeds the first call of the next turn.
let last = "";
for (const question of args.queries) {
  const found = await mcp.web.search({ query: `${question} ${last}` }); // @A
  const answer = await mcp.ai.summarize({ text: found.results[0].snippet }); // @B
  last = answer.summary;
}
