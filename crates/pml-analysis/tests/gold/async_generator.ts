// edges: A->A, A->B
// around: A->A
// Pages are yielded and consumed one at a time.
async function* pages(sql: string) {
  let cursor: string | null = null;
  do {
    const page = await mcp.db.query({ sql, cursor }); // @A
    yield page.rows;
    cursor = page.nextCursor;
  } while (cursor);
}
for await (const rows of pages("select * from events")) {
  await mcp.queue.publish({ topic: "events", message: rows }); // @B
}
