// What the policy says of a tool, in words: `[kind of mark, text, sentence]` by verdict.
export const VERDICTS = {
  auto: ['ok', 'runs', 'It runs without asking.'],
  hil: ['warn', 'asks', 'It waits for approval.'],
  deny: ['bad', 'denied', 'It is never called.'],
};
