// Square these numbers with at most three calculations under way at any time, results in the given order.
const jobs: number[] = args.jobs;
const results = new Array<number>(jobs.length);
let next = 0;
let running = 0;
let most = 0;

async function worker(): Promise<void> {
  while (next < jobs.length) {
    const index = next++;
    most = Math.max(most, ++running);
    try {
      results[index] = (await mcp.math.evaluate({ expression: "x ^ 2", variables: { x: jobs[index] } })).value;
    } finally {
      running--;
    }
  }
}

await Promise.all(Array.from({ length: args.workers }, worker));
return { results, most, running };
