// Evaluate all expressions; give values where there are values and reasons where there are none.
type Result<T, E = Error> = { ok: true; value: T } | { ok: false; error: E };
const attempt = async <T>(work: () => Promise<T>): Promise<Result<T>> => {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error: error as Error };
  }
};
function partition<T>(results: readonly Result<T>[]): [values: T[], errors: Error[]] {
  const values: T[] = [];
  const errors: Error[] = [];
  for (const result of results) {
    if (result.ok) values.push(result.value);
    else errors.push(result.error);
  }
  return [values, errors];
}

const results: Result<number>[] = [];
for (const expression of args.expressions as string[]) {
  results.push(await attempt(async () => (await mcp.math.evaluate({ expression })).value as number));
}
const [values, errors] = partition(results);
return { values, failed: errors.length, names: [...new Set(errors.map((error) => error.name))], pattern: results.map((r) => +r.ok).join("") };
