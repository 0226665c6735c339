// edges: A->C
// The failing call's number of attempts is not its result.
let response: { body: string } | null = null;
for (let attempt = 1; attempt <= 3 && !response; attempt++) {
  try {
    response = await mcp.http.get({ url: args.url }); // @A
  } catch {
    await mcp.chat.post({ channel: "ops", text: `attempt ${attempt} failed` }); // @B
  }
}
await mcp.fs.write({ path: args.out, content: response?.body ?? "" }); // @C
