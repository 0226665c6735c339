// edges: A->B
// A sum over a result.
const { rows } = await mcp.db.query({ sql: "select total from orders" }); // @A
const total = rows.reduce((sum: number, row: { total: number }) => sum + row.total, 0);
await mcp.math.add({ a: total, b: 1 }); // @B
