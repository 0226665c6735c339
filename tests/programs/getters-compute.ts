// What is the stock worth in total, and which item ties up the most money?
interface Item { item: string; qty: string; price: string }

class Stock {
  #rows: Item[] | undefined;
  loads = 0;

  constructor(private readonly path: string) {}

  get rows(): Promise<Item[]> {
    return this.load();
  }

  private async load(): Promise<Item[]> {
    if (!this.#rows) {
      this.loads += 1;
      const file = await mcp.fs.read({ path: this.path });
      this.#rows = (await mcp.csv.parse({ csv: file.content })).rows as Item[];
    }
    return this.#rows;
  }

  get value(): Promise<number> {
    return (async () => {
      const terms = (await this.rows).map((row) => `${row.qty} * ${row.price}`);
      return (await mcp.math.evaluate({ expression: terms.join(" + ") })).value as number;
    })();
  }
}

const stock = new Stock(args.file);
const value = await stock.value;
const rows = await stock.rows;
const dearest = rows.reduce((a, b) => (+a.qty * +a.price >= +b.qty * +b.price ? a : b));
return { value, dearest: dearest.item, loads: stock.loads, text: (await mcp.math.round({ value, digits: 1 })).text };
