// edges: A->A, A->B
// around: A->A
// The loop keeps its state in one object; only the cursor goes around.
const state = { cursor: null as string | null, seen: [] as string[] };
while (true) {
  const page = await mcp.web.search({ query: args.topic, cursor: state.cursor }); // @A
  for (const hit of page.results) {
    if (state.seen.includes(hit.url)) continue;
    state.seen.push(hit.url);
    await mcp.web.fetch({ url: hit.url }); // @B
  }
  state.cursor = page.nextCursor ?? null;
  if (!state.cursor) break;
}
