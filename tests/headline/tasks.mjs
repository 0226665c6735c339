// The tasks. Each has what its arms need:
//
//   id, files, graph      a name, and what is there before: texts by path, items of the knowledge graph
//   first, second         values of the first and of the second time, among them the user's `intent`
//   plain(tool, values)   what a model does with all tools listed, one call each turn; resolves with its answer
//   code(values)          the program a model writes once `pml_discover` has shown it the tools; `context(values)` is what it
//                         gives it, if anything
//   wrong(values)         the program it writes before that and has to correct, where it does
//   check(answer, values, place)   throws where the answer, or what the place has become, is not right

import { CALCULATIONS } from './tasks/calculations.mjs';
import { CHANGES } from './tasks/changes.mjs';
import { DOCUMENTS } from './tasks/documents.mjs';
import { EVERYDAY } from './tasks/everyday.mjs';
import { FOLDERS } from './tasks/folders.mjs';
import { GRAPHS } from './tasks/graphs.mjs';
import { RECORDS } from './tasks/records.mjs';
import { TABLES } from './tasks/tables.mjs';
import { UPKEEP } from './tasks/upkeep.mjs';

export const TASKS = [
  ...DOCUMENTS,
  ...TABLES,
  ...CALCULATIONS,
  ...CHANGES,
  ...GRAPHS,
  ...FOLDERS,
  ...RECORDS,
  ...EVERYDAY,
  ...UPKEEP,
];

/** What a model asks for when it misses one of the tools that programs call. */
export const STEPS = {
  'csv:parse': 'turn CSV text into rows',
  'csv:stringify': 'turn rows into CSV text',
  'everything:get-sum': 'sum of two numbers',
  'everything:get-structured-content': 'weather in a city',
  'files:list_directory': 'list a directory',
  'files:move_file': 'rename a file',
  'files:read_text_file': 'read a text file',
  'fs:create': 'create a file',
  'fs:delete': 'delete a file',
  'fs:list': 'list a directory',
  'fs:read': 'read a file',
  'fs:search': 'find files that contain a text',
  'fs:write': 'write a file',
  'json:parse': 'parse JSON text',
  'json:stringify': 'turn a value into JSON text',
  'math:evaluate': 'evaluate an expression',
  'math:round': 'round a number',
  'math:statistics': 'sum of a list of numbers',
  'memory:add_observations': 'add an observation to an entity of the knowledge graph',
  'memory:create_entities': 'create entities in the knowledge graph',
  'memory:create_relations': 'create relations in the knowledge graph',
  'memory:open_nodes': 'open nodes of the knowledge graph',
  'memory:read_graph': 'read the knowledge graph',
  'memory:search_nodes': 'search the knowledge graph',
  'text:count': 'count the words of a text',
  'text:match': 'find all matches of a regular expression',
  'text:replace': 'replace a text in a text',
  'time:add': 'add days to a date',
  'time:convert': 'tell a time in another time zone',
  'time:diff': 'days between two dates',
};
