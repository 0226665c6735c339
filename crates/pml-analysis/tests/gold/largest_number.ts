// edges: A->B
// A number computed from many.
const { rows } = await mcp.db.query({ sql: "select total from orders" }); // @A
const largest = Math.max(0, ...rows.map((row: { total: number }) => row.total));
await mcp.math.add({ a: largest, b: 1 }); // @B
