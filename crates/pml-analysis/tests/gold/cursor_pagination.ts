// edges: A->A, A->B
// around: A->A
// The cursor of one page asks for the next.
const rows: unknown[] = [];
let cursor: string | null = null;
do {
  const page = await mcp.db.query({ sql: "select * from events", cursor }); // @A
  rows.push(...page.rows);
  cursor = page.nextCursor;
} while (cursor);
await mcp.db.insert({ table: "archive", record: { rows } }); // @B
