// edges: A->B
// The polled value decides when to stop; it is not given to the next poll.
let state: any;
do {
  state = await mcp.db.get({ table: "jobs", id: args.job }); // @A
} while (state.status !== "done");
await mcp.chat.post({ channel: "jobs", text: state.name }); // @B
