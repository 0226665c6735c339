// edges: A->B
// A callback writes a variable of the function around it.
let longest = "";
const { rows } = await mcp.db.query({ sql: "select name from people" }); // @A
rows.forEach((row: { name: string }) => {
  if (row.name.length > longest.length) longest = row.name;
});
await mcp.chat.post({ channel: "fun", text: longest }); // @B
