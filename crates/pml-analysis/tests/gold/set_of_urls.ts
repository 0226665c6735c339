// edges: A->C, B->C
// A set collects from two searches and is gone through.
const urls = new Set<string>();
const news = await mcp.web.search({ query: args.topic + " news" }); // @A
for (const hit of news.results) urls.add(hit.url);
const papers = await mcp.web.search({ query: args.topic + " paper" }); // @B
papers.results.forEach((hit: { url: string }) => urls.add(hit.url));
for (const url of urls) {
  await mcp.web.fetch({ url }); // @C
}
