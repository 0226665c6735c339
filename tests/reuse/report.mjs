// Sums up what was measured, and writes it as tables.

import { tokens } from '../headline/conversation.mjs';

const BY = ['kind', 'closeness', 'language', 'placement', 'server'];

/** All figures; `failures` are what must not be. */
export function summary({ tasks, verbatim, firstFailed, duplicates, firstTexts, rows }) {
  const seconds = rows.filter(({ what }) => what === 'second');
  const distractors = rows.filter(({ what }) => what === 'distractor');
  const offered = seconds.filter(({ oneMoreCall }) => oneMoreCall);
  const refusals = rows.filter(({ status }) => status === 'suggestions').map(({ text }) => text);
  return {
    firsts: tasks.length,
    firstFailed,
    duplicates: { n: duplicates.length, merged: duplicates.filter(Boolean).length },
    verbatim: { ...counts(verbatim, 'verdict'), not: verbatim.filter(({ verdict }) => verdict !== 'right') },
    seconds: shares(seconds),
    rightAtOnceOrNext: share(seconds.filter(({ verdict, oneMoreCall }) => verdict === 'right' || oneMoreCall?.verdict === 'right').length, seconds.length),
    suggestedFirst: share(offered.filter(({ rank }) => rank === 1).length, seconds.filter(({ status }) => status === 'suggestions').length),
    oneMoreCall: counts(offered.map(({ oneMoreCall }) => oneMoreCall), 'verdict'),
    asOffered: counts(offered.map(({ asOffered }) => asOffered), 'verdict'),
    askedAgain: counts(offered.map(({ askedAgain }) => askedAgain), 'verdict'),
    distractors: { n: distractors.length, ...counts(distractors, 'verdict') },
    by: Object.fromEntries(BY.map((key) => [key, grouped(seconds, key)])),
    distractorsBy: Object.fromEntries(Object.entries(groups(distractors, ({ distractor }) => [distractor])).map(([key, group]) => [key, { n: group.length, ...counts(group, 'verdict') }])),
    refusal: { bytes: middle(refusals.map((text) => Buffer.byteLength(text))), tokens: middle(refusals.map(tokens)) },
    first: { bytes: middle(firstTexts.map((text) => Buffer.byteLength(text))), tokens: middle(firstTexts.map(tokens)) },
    ms: { median: middle(rows.map(({ ms }) => ms)), worst: Math.max(0, ...rows.map(({ ms }) => ms)) },
    failures: failures(firstFailed, verbatim, rows),
  };
}

function failures(firstFailed, verbatim, rows) {
  const told = (row, why) => `${row.id}: ${why}: "${row.intent}" gave ${JSON.stringify(row.result ?? row.because)?.slice(0, 120)}`;
  return [
    ...firstFailed.map(({ task, intent, reply }) => `${task}: first task failed: "${intent}": ${JSON.stringify(reply).slice(0, 200)}`),
    ...verbatim.filter(({ verdict }) => verdict === 'wrong').map(({ task }) => `${task}: wrong word for word`),
    ...rows.filter(({ verdict }) => verdict === 'wrong' || verdict === 'failed').map((row) => told(row, `ran ${row.ran} and was ${row.verdict}`)),
    ...rows.filter(({ verdict }) => verdict === 'executed').map((row) => told(row, `distractor (${row.distractor}) ran ${row.ran}`)),
    ...rows.filter(({ asOffered }) => asOffered?.verdict === 'wrong').map((row) => told({ ...row, result: row.asOffered.told }, 'wrong as it was offered')),
    ...rows.filter(({ askedAgain }) => askedAgain?.verdict === 'wrong').map((row) => told({ ...row, result: row.askedAgain.told }, 'wrong when asked again')),
  ];
}

function counts(rows, key) {
  const sums = {};
  for (const row of rows) sums[row[key]] = (sums[row[key]] ?? 0) + 1;
  return sums;
}

function share(count, of) {
  return of ? Math.round((1000 * count) / of) / 1000 : null;
}

function shares(rows) {
  const sums = counts(rows, 'verdict');
  return { n: rows.length, ...sums, rightShare: share(sums.right ?? 0, rows.length) };
}

function groups(rows, keysOf) {
  const found = {};
  for (const row of rows) for (const key of keysOf(row)) (found[key] ??= []).push(row);
  return found;
}

/** A task of several servers counts for each of them. */
function grouped(rows, key) {
  const found = groups(rows, (row) => (key === 'server' ? row.servers : [row[key]]));
  return Object.fromEntries(Object.keys(found).sort().map((name) => [name, shares(found[name])]));
}

function middle(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** The tables for a terminal. */
export function asText(report) {
  const percent = (value) => (value === null ? '-' : `${(100 * value).toFixed(1)} %`);
  const row = (name, { n, right = 0, wrong = 0, failed = 0, suggested = 0, notFound = 0, rightShare }) =>
    [name, n, right, wrong + failed, suggested, notFound, percent(rightShare)].map(String);
  const table = [
    ['second intents', 'n', 'right', 'wrong', 'suggested', 'not found', 'right share'],
    row('all', report.seconds),
    ...BY.flatMap((key) => Object.entries(report.by[key]).map(([name, figures]) => row(`${key} ${name}`, figures))),
  ];
  const { right: verbatim = 0 } = report.verbatim;
  const { right: confirmed = 0 } = report.oneMoreCall;
  const facts = [
    `first tasks: ${report.firsts}, failed ${report.firstFailed.length}; written again ${report.duplicates.n}, of these one capability with the first ${report.duplicates.merged}`,
    `word for word: ${verbatim} of ${report.firsts} right`,
    `right with at most one more call: ${percent(report.rightAtOnceOrNext)} (${confirmed} of ${report.seconds.suggested ?? 0} suggested); right capability first: ${percent(report.suggestedFirst)}`,
    `as offered: ${JSON.stringify(report.asOffered)}; asked again: ${JSON.stringify(report.askedAgain)}`,
    `distractors: ${JSON.stringify(report.distractors)}`,
    `a refusal: ${report.refusal.bytes} bytes, ${report.refusal.tokens} tokens (median); a question: ${report.ms.median} ms (median), ${report.ms.worst} ms (worst)`,
    ...report.failures.map((failure) => `FAILED ${failure}`),
  ];
  return `${aligned(table)}\n\n${facts.join('\n')}`;
}

function aligned(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows.map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ')).join('\n');
}
