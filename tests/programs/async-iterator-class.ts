// Write the people to one file per batch of two, as if the list were too long to handle at once.
class Batches<T> implements AsyncIterable<T[]> {
  constructor(private source: () => Promise<T[]>, private size: number) {}

  [Symbol.asyncIterator](): AsyncIterator<T[]> {
    let all: T[] | null = null;
    let at = 0;
    return {
      next: async () => {
        all ??= await this.source();
        if (at >= all.length) return { done: true, value: undefined };
        const value = all.slice(at, at + this.size);
        at += this.size;
        return { done: false, value };
      },
    };
  }
}

type Person = { name: string; team: string };
const source = async () => (await mcp.csv.parse({ csv: (await mcp.fs.read({ path: args.file })).content })).rows as Person[];

let number = 0;
const sizes: number[] = [];
for await (const batch of new Batches<Person>(source, args.batch)) {
  number += 1;
  await mcp.fs.write({ path: `batch-${String(number).padStart(2, "0")}.txt`, content: batch.map((p) => p.name).join(",") });
  sizes.push(batch.length);
}
return { batches: number, sizes };
