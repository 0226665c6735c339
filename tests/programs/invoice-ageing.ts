// Sort the open invoices into ageing buckets as of a date: not due, 1-30, 31-60, over 60 days late.
enum Bucket { Current = "current", Late30 = "1-30", Late60 = "31-60", Older = "60+" }
type Invoice = { no: number; due: string; amount: number };

const bucketOf = (days: number): Bucket =>
  days <= 0 ? Bucket.Current : days <= 30 ? Bucket.Late30 : days <= 60 ? Bucket.Late60 : Bucket.Older;

const file = await mcp.fs.read({ path: "invoices.json" });
const { data } = await mcp.json.parse({ json: file.content });
const buckets: Record<Bucket, { count: number; total: number }> = {
  [Bucket.Current]: { count: 0, total: 0 },
  [Bucket.Late30]: { count: 0, total: 0 },
  [Bucket.Late60]: { count: 0, total: 0 },
  [Bucket.Older]: { count: 0, total: 0 },
};

for (const invoice of data as Invoice[]) {
  const { days } = await mcp.time.diff({ from: invoice.due, to: args.today });
  const bucket = buckets[bucketOf(days)];
  bucket.count += 1;
  bucket.total += invoice.amount;
}
return buckets;
