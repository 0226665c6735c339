// edges: A->B
// A generator cuts a result into chunks.
function* chunks<T>(items: T[], size: number): Generator<T[]> {
  for (let i = 0; i < items.length; i += size) {
    yield items.slice(i, i + size);
  }
}
const { rows } = await mcp.db.query({ sql: "select * from events" }); // @A
for (const chunk of chunks(rows, 100)) {
  await mcp.queue.publish({ topic: "events", message: chunk }); // @B
}
