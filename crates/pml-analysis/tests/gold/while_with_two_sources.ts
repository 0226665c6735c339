// edges: A->B, B->B, A->C, B->C
// around: B->B
// A first page, then further pages while there are any.
let page = await mcp.issues.list({ state: "open", page: 1 }); // @A
const titles: string[] = page.issues.map((issue: any) => issue.title);
while (page.nextPage) {
  page = await mcp.issues.list({ state: "open", page: page.nextPage }); // @B
  titles.push(...page.issues.map((issue: any) => issue.title));
}
await mcp.chat.post({ channel: "dev", text: titles.join("\n") }); // @C
