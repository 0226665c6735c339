// Tables of what was measured.

/** What the arms are called in tables. */
const NAMES = { plain: 'tools one by one', first: 'PML, first time', second: 'PML, second time' };
const FIGURES = {
  once: 'tokens, each message once',
  read: 'tokens as the model reads them',
  turns: 'model turns',
  ms: 'MCP round trips, ms',
};

/** Totals and medians over tasks of each arm, and what went wrong. */
export function summary(rows, arms) {
  const over = (arm, figure, fold) => fold(rows.map((row) => row[arm][figure]));
  const fold = (how) =>
    Object.fromEntries(
      arms.map((arm) => [
        arm,
        Object.fromEntries(Object.keys(FIGURES).map((figure) => [figure, over(arm, figure, how)])),
      ]),
    );
  const problems = rows.flatMap((row) =>
    arms.filter((arm) => row[arm].problem).map((arm) => ({ task: row.id, arm, problem: row[arm].problem })),
  );
  const hows = {};
  for (const row of rows) hows[row.second.how] = (hows[row.second.how] ?? 0) + 1;
  return { count: rows.length, totals: fold(sum), medians: fold(middle), roundTrips: roundTrips(rows), hows, problems };
}

/** The time of the requests with PML the first time, as a multiple of the tools one by one. */
function roundTrips(rows) {
  const times = (arm) => sum(rows.map((row) => row[arm].ms));
  const ratios = rows.map(({ first, plain }) => first.ms / plain.ms);
  return { all: times('first') / times('plain'), median: middle(ratios), worst: Math.max(...ratios) };
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function middle(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[Math.ceil(sorted.length / 2) - 1] + sorted[Math.floor(sorted.length / 2)]) / 2;
}

function number(value) {
  return Math.round(value).toLocaleString('en-GB');
}

/** The rows of the table over tasks: first the heading. */
function perTask(rows) {
  const arms = Object.keys(NAMES);
  const cells = ({ id, ...row }) => [
    id,
    ...Object.keys(FIGURES).map((figure) => arms.map((arm) => number(row[arm][figure])).join(' / ')),
    row.second.how + (arms.some((arm) => row[arm].problem) ? ', FAILED' : ''),
  ];
  return [['task', ...Object.values(FIGURES), 'second time by'], ...rows.map(cells)];
}

/** The rows of the table of totals. */
function overall({ totals, medians, count }) {
  const line = (name, figures) => (figure) => [
    `${FIGURES[figure]}, ${name}`,
    ...Object.keys(NAMES).map((arm) => number(figures[arm][figure])),
  ];
  return [
    ['', ...Object.values(NAMES)],
    ...Object.keys(FIGURES).map(line(`all ${count} tasks`, totals)),
    ...Object.keys(FIGURES).map(line('median task', medians)),
  ];
}

function markdown([heading, ...rows]) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const rule = `|${heading.map((_, i) => (i === 0 ? '---|' : '--:|')).join('')}`;
  return [line(heading), rule, ...rows.map(line)].join('\n');
}

function aligned(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  '))
    .join('\n');
}

/** How the second times went, in a sentence. */
function secondTimes({ hows }) {
  const again = (hows.program ?? 0) + (hows['suggestion refused, program'] ?? 0);
  const ways = [
    [hows.intent, 'ran on the intent alone'],
    [hows.suggestion, 'ran once a suggestion was answered'],
    [again, 'needed a program again'],
    [hows.nothing, 'did not run'],
  ];
  const told = ways.filter(([count]) => count).map(([count, way]) => `${count} ${way}`);
  return `The second time, ${told.join(', ').replace(/, ([^,]*)$/, ' and $1')}.`;
}

function failures({ problems }) {
  return `Wrong results: ${problems.length}.`;
}

/** The time of the requests in a sentence, with what is asked of it. */
function timeRatios({ roundTrips, count, latency }) {
  const times = (factor) => `× ${factor.toFixed(2)}`;
  const { all, median, worst } = roundTrips;
  const [asked, met] = latency > 0 ? ['less than × 1', all < 1] : ['at most × 1.15', all <= 1.15];
  const told = `all ${count} tasks ${times(all)}, median task ${times(median)}, worst ${times(worst)}`;
  const servers = latency > 0 ? `calls of the npm servers ${latency} ms slower` : 'undelayed servers';
  const target = `asked of all: ${asked}${met ? '' : '; missed'}`;
  return `MCP round trips, PML the first time ÷ tools one by one, ${servers}: ${told} (${target}).`;
}

/** Everything for a terminal. Each cell over tasks has the three arms in their order. */
export function asText(rows, report) {
  const sentences = `${timeRatios(report)}\n${secondTimes(report)} ${failures(report)}`;
  return `${aligned(perTask(rows))}\n\n${aligned(overall(report))}\n\n${sentences}`;
}

/** Round trips of the first times with and without reading ahead. */
export function asComparison(rows, { count, median, worst }) {
  const times = (factor) => `× ${factor.toFixed(2)}`;
  const cells = ({ id, on, off, speedUp }) => [id, number(on), number(off), times(speedUp)];
  const table = aligned([['task', 'on, ms', 'off, ms', 'speed-up'], ...rows.map(cells)]);
  return `${table}\n\nSpeed-up of ${count} tasks: median ${times(median)}, worst ${times(worst)}.`;
}

/** Everything as Markdown. */
export function asMarkdown(rows, report) {
  const sentences = `${timeRatios(report)}\n\n${secondTimes(report)} ${failures(report)}`;
  return `${markdown(overall(report))}\n\n${markdown(perTask(rows))}\n\n${sentences}`;
}

/** The page of benchmarks with all totals between its marks. */
export function intoBenchmarks(page, report) {
  return between(page, `${markdown(overall(report))}\n\n${secondTimes(report)} ${failures(report)}`);
}

/** The README with three of the totals between its marks. */
export function intoReadme(page, { totals, problems, count }) {
  const arms = Object.keys(NAMES);
  const row = (name, cell) => [name, ...arms.map((arm) => number(cell(arm)))];
  const rows = [
    [`${count} tasks`, ...Object.values(NAMES)],
    row('tokens that the model reads', (arm) => totals[arm].read),
    row('model turns', (arm) => totals[arm].turns),
    row('wrong results', (arm) => problems.filter((problem) => problem.arm === arm).length),
  ];
  return between(page, markdown(rows));
}

function between(page, told) {
  const [open, close] = ['<!-- headline -->', '<!-- /headline -->'];
  const [start, end] = [page.indexOf(open), page.indexOf(close)];
  if (start < 0 || end < start) throw new Error(`the page has no ${open} … ${close} to put the table between`);
  return `${page.slice(0, start + open.length)}\n${told}\n${page.slice(end)}`;
}
