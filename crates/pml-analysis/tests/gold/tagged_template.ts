// edges: A->B
// A tag separates texts from values; only the values hold the result.
function sql(texts: TemplateStringsArray, ...values: unknown[]) {
  return { sql: texts.join("?"), params: values };
}
const user = await mcp.db.get({ table: "users", id: args.user }); // @A
const query = sql`select * from orders where user = ${user.id} and year = ${args.year}`;
await mcp.db.query({ sql: query.sql, params: query.params }); // @B
await mcp.fs.write({ path: args.out, content: query.sql }); // @C
