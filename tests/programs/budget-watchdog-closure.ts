// Book the expenses until the budget would be exceeded; keep a counter that nobody else can touch.
const makeBudget = (limit: number) => {
  let spent = 0;
  return {
    get left() {
      return limit - spent;
    },
    async book(what: string, amount: number): Promise<boolean> {
      if (amount > this.left) return false;
      spent += amount;
      await mcp.fs.write({ path: "booked.csv", content: `${what},${amount},${this.left}\n`, append: true });
      return true;
    },
  };
};

const budget = makeBudget(args.budget);
const refused: string[] = [];
for (const [what, amount] of args.spend as [string, number][]) {
  (await budget.book(what, amount)) || refused.push(what);
}
return { left: budget.left, refused, booked: (await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "booked.csv" })).content, header: false })).rows };
