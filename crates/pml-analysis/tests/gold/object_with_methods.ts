// edges: A->B, B->C
// A small client object: its method makes the call.
const client = {
  base: args.base,
  async get(path: string) {
    return mcp.http.get({ url: this.base + path });
  },
};
const session = await client.get("/session"); // @A(get)
const profile = await client.get(`/users/${session.body}`); // @B(get)
await mcp.fs.write({ path: args.out, content: profile.body }); // @C
