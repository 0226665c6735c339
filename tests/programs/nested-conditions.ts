// Choose a shipping service for each order and print one label per order, never two.
type Order = { id: number; total: number; country: string; express: boolean };
const EU = new Set(["FR", "DE", "ES"]);
const chosen: Record<number, string> = {};

for (const order of args.orders as Order[]) {
  let service: string;
  if (EU.has(order.country)) {
    if (order.express) {
      service = "express";
      await mcp.fs.create({ path: `labels/${order.id}-express.txt`, content: `EU express for order ${order.id}` });
    } else if (order.total > 200) {
      service = "insured";
      await mcp.fs.create({ path: `labels/${order.id}-insured.txt`, content: `EU insured for order ${order.id}` });
    } else {
      service = "standard";
      await mcp.fs.create({ path: `labels/${order.id}-standard.txt`, content: `EU standard for order ${order.id}` });
    }
  } else {
    const duty = await mcp.math.evaluate({ expression: "total * rate", variables: { total: order.total, rate: 0.15 } });
    service = order.total < 100 ? "world-small" : "world-customs";
    await mcp.fs.create({ path: `labels/${order.id}-${service}.txt`, content: `duty ${duty.value}` });
  }
  chosen[order.id] = service;
}
return chosen;
