// edges: A->C, B->D
// Promises wait in the members of an object.
const jobs = {
  user: mcp.db.get({ table: "users", id: args.user }), // @A
  page: mcp.web.fetch({ url: args.url }), // @B
};
await mcp.chat.post({ channel: "users", text: (await jobs.user).name }); // @C
await mcp.chat.post({ channel: "pages", text: await jobs.page }); // @D
