// edges: A->B
// around: A->B
// A value waits in a second variable before it is used, so it only arrives two turns later.
let older = "";
let old = "";
for (const query of args.queries) {
  const found = await mcp.web.search({ query }); // @A
  await mcp.chat.post({ channel: "trail", text: older }); // @B
  older = old;
  old = found.results[0].title;
}
