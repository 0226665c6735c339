// Join the orders with the customers; list orders of unknown customers and customers without orders apart.
async function table<T>(path: string): Promise<T[]> {
  const { content } = await mcp.fs.read({ path });
  return (await mcp.csv.parse({ csv: content })).rows as T[];
}
const [customers, orders] = await Promise.all([
  table<{ id: string; name: string; city: string }>("customers.csv"),
  table<{ order: string; customer: string; total: string }>("orders.csv"),
]);

const byId = new Map(customers.map((customer) => [customer.id, customer] as const));
const joined = [];
const unknown: string[] = [];
for (const { order, customer, total } of orders) {
  const who = byId.get(customer);
  if (!who) {
    unknown.push(order);
    continue;
  }
  joined.push({ order, name: who.name, city: who.city, total: Number(total) });
}
const buyers = new Set(orders.map((order) => order.customer));
const idle = customers.filter((customer) => !buyers.has(customer.id)).map((customer) => customer.name);
await mcp.fs.write({ path: "joined.csv", content: (await mcp.csv.stringify({ rows: joined })).csv });
return { joined, unknown, idle };
