// Keep the warehouse ledger: book each move, refuse what is not in stock, and write the closing stock.
abstract class Move {
  constructor(readonly item: string, readonly quantity: number) {}
  abstract apply(stock: Map<string, number>): boolean;
  static parse(line: string): Move {
    const [kind, item, quantity] = line.split(" ");
    return kind === "in" ? new Receipt(item, Number(quantity)) : new Issue(item, Number(quantity));
  }
}
class Receipt extends Move {
  apply(stock: Map<string, number>): boolean {
    stock.set(this.item, (stock.get(this.item) ?? 0) + this.quantity);
    return true;
  }
}
class Issue extends Move {
  apply(stock: Map<string, number>): boolean {
    const left = (stock.get(this.item) ?? 0) - this.quantity;
    if (left < 0) return false;
    stock.set(this.item, left);
    return true;
  }
}

class Ledger {
  private stock = new Map<string, number>();
  refused: string[] = [];

  async book(line: string): Promise<this> {
    const booked = Move.parse(line).apply(this.stock);
    if (!booked) this.refused.push(line);
    await mcp.fs.write({ path: booked ? "ledger.txt" : "refused.txt", content: `${line}\n`, append: true });
    return this;
  }

  async close() {
    const rows = Array.from(this.stock, ([item, quantity]) => ({ item, quantity }));
    await mcp.fs.write({ path: "closing.csv", content: (await mcp.csv.stringify({ rows })).csv });
    return Object.fromEntries(this.stock);
  }
}

const ledger = new Ledger();
for (const move of args.moves) await ledger.book(move);
return { closing: await ledger.close(), refused: ledger.refused };
