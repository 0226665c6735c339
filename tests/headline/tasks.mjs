// The tasks. Each has what its arms need:
//
//   id, files, graph      a name, and what is there before: texts by path, items of the knowledge graph
//   first, second         values of the first and of the second time, among them the user's `intent`
//   plain(tool, values)   what a model does with all tools listed, one call each turn; resolves with its answer
//   code(values)          the program a model writes after `pml_discover`; `context(values)` is what it gives it, if anything
//   wrong(values)         the program it writes before that and has to correct, where it does
//   check(answer, values, place)   throws where the answer, or what the place has become, is not right

import { CALCULATIONS } from './tasks/calculations.mjs';
import { CHANGES } from './tasks/changes.mjs';
import { DOCUMENTS } from './tasks/documents.mjs';
import { GRAPHS } from './tasks/graphs.mjs';
import { TABLES } from './tasks/tables.mjs';

export const TASKS = [...DOCUMENTS, ...TABLES, ...CALCULATIONS, ...CHANGES, ...GRAPHS];
