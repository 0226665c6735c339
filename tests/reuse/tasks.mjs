// The tasks, as they are written; make.mjs runs them and writes tasks.jsonl. Each has
//
//   id
//   first         `[intent, values]`
//   code(values)  the program that a model writes the first time
//   args          by value the name under which the program reads it from `args`, where the intent says the values too
//   given         the same where they are only in the context
//   seconds       `[closeness and language, intent, values that are others, {context, note}]`
//   distractors   `[kind, intent, {context, ok}]`: what must not be run, or only with the result `ok`
//   again         `[intent, values that are others]`: the same program written once more, which is no second capability

import { CALCULATIONS } from './tasks/calculations.mjs';
import { DATES } from './tasks/dates.mjs';
import { DOCUMENTS } from './tasks/documents.mjs';
import { GRAPHS } from './tasks/graphs.mjs';
import { HOUSEHOLD } from './tasks/household.mjs';
import { OFFICE } from './tasks/office.mjs';
import { SERVERS } from './tasks/servers.mjs';
import { SWITCHES } from './tasks/switches.mjs';
import { TABLES } from './tasks/tables.mjs';
import { TEXTS } from './tasks/texts.mjs';
import { WRITES } from './tasks/writes.mjs';

export const TASKS = [...TEXTS, ...TABLES, ...DOCUMENTS, ...DATES, ...CALCULATIONS, ...GRAPHS, ...SERVERS, ...WRITES, ...HOUSEHOLD, ...OFFICE, ...SWITCHES];
