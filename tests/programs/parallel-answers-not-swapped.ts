// Ask for many small calculations at once, of different kinds, and check that each answer belongs to its question.
const questions = Array.from({ length: args.count as number }, (_, i) => i);
const answers = await Promise.all(
  questions.map((i) => {
    switch (i % 3) {
      case 0:
        return mcp.math.evaluate({ expression: `${i} * ${i}` }).then((r: { value: number }) => r.value === i * i);
      case 1:
        return mcp.text.case({ text: `item ${i}`, to: "upper" }).then((r: { text: string }) => r.text === `ITEM ${i}`);
      default:
        return mcp.time.add({ time: "2026-01-01", days: i }).then(
          (r: { unixMs: number }) => r.unixMs === Date.UTC(2026, 0, 1 + i),
        );
    }
  }),
);
return { asked: answers.length, right: answers.filter(Boolean).length, wrong: questions.filter((i) => !answers[i]) };
