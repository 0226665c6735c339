// edges: A->A, A->B
// around: A->A
// A function that calls itself with the next cursor.
async function all(cursor: string | null): Promise<unknown[]> {
  const page = await mcp.db.query({ sql: "select * from events", cursor }); // @A
  if (!page.nextCursor) return page.rows;
  return [...page.rows, ...(await all(page.nextCursor))];
}
const rows = await all(null);
await mcp.db.insert({ table: "archive", record: { rows } }); // @B
