// Tests a workflow: runs a capability dry and shows what it would do, or tries several ways to serve an intent.

import { ApiError, get, send } from '../api.js';
import { html, useMemo, useState } from '../html.js';
import { navigate, setQuery } from '../navigation.js';
import { href } from '../router.js';
import { confirm } from '../ui/dialog.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Tabs } from '../ui/filter.js';
import { SchemaFields } from '../ui/form.js';
import { fieldsOf, readFields, textOf } from '../ui/schema.js';
import { Problem, Text } from '../ui/text.js';
import { firstCapabilities, useAllCapabilities } from '../views/all-capabilities.js';
import { Exploration } from './test-exploration.js';
import { Report } from './test-report.js';

export const title = 'Test a workflow';

/** Runs of one program in search of branches; as many as `pml execute --explore-branches`. */
const MOST_BRANCHES = 100;

export async function load({ query, signal }) {
  const wanted = query.get('capability');
  const [first, one] = await Promise.all([
    firstCapabilities(signal),
    wanted ? get(`/api/capabilities/${encodeURIComponent(wanted)}`, { signal }).catch((error) => {
      if (error instanceof ApiError && error.status === 404) return { missing: true };
      throw error;
    }) : null,
  ]);
  return { first, capability: one?.capability ?? null, missing: one?.missing === true };
}

export function view({ query, data }) {
  const mode = query.get('mode') === 'intent' ? 'intent' : 'capability';
  return html`<${PageHead} title="Test a workflow" note="See what would happen. Tools that only read are called; nothing is changed." />
    <${Tabs} label="What to test" value=${mode} tabs=${[['capability', 'A capability'], ['intent', 'An intent']]} onChange=${(next) => setQuery({ mode: next === 'intent' ? next : '' })} />
    <div hidden=${mode !== 'capability'}><${DryRun} query=${query} data=${data} /></div>
    <div hidden=${mode !== 'intent'}><${Explore} query=${query} /></div>`;
}

function DryRun({ query, data }) {
  const { capability } = data;
  const capabilities = useAllCapabilities(data.first);
  if (capabilities.length === 0 && !capability) {
    return html`<${Empty} title="No capability yet"><p>A capability is learned when an agent's program succeeds. Until then, test an <button type="button" class="link" onClick=${() => setQuery({ mode: 'intent' })}>intent</button>.</p></${Empty}>`;
  }
  return html`<div class="workbench">
    <section class="panel stack" aria-label="What to run dry">
      <label class="field">Capability <select value=${capability?.name ?? ''} onChange=${(event) => setQuery({ capability: event.currentTarget.value, args: '' })}>
        <option value="" selected=${!capability}>Choose one</option>
        ${capabilities.map((item) => html`<option key=${item.id} value=${item.name} selected=${item.name === capability?.name}><${Text} text=${item.name} /></option>`)}
        ${capability && !capabilities.some((item) => item.name === capability.name) && html`<option value=${capability.name} selected><${Text} text=${capability.name} /></option>`}
      </select></label>
      ${data.missing && html`<p class="notice">There is no capability of yours by this name.</p>`}
      ${capability && html`<p class="soft"><${Text} text=${capability.description ?? ''} /></p>`}
    </section>
    ${capability && html`<${DryRunForm} key=${capability.id ?? capability.name} capability=${capability} given=${query.get('args')} />`}
    ${!capability && html`<${Empty} title="Choose a capability"><p>It is run dry with the values that you give: you see its calls on a timeline and what a real run would change.</p></${Empty}>`}
  </div>`;
}

function DryRunForm({ capability, given }) {
  const fields = useMemo(() => fieldsOf(capability.parametersSchema), [capability]);
  const [texts, setTexts] = useState(() => initialTexts(fields, given));
  const [errors, setErrors] = useState({});
  const [mocked, setMocked] = useState(false);
  const [branches, setBranches] = useState(false);
  const [mocks, setMocks] = useState('');
  const [report, setReport] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const input = (name, text) => setTexts((known) => ({ ...known, [name]: text }));
  const read = () => {
    const { values, errors: wrong } = readFields(fields, texts);
    let answers;
    try {
      answers = mocks.trim() ? JSON.parse(mocks) : undefined;
    } catch (error) {
      wrong['(mocks)'] = `not JSON: ${error.message}`;
    }
    setErrors(wrong);
    return Object.keys(wrong).length === 0 ? { args: values, mocks: answers } : null;
  };
  const attempt = async (act) => {
    setBusy(true);
    setProblem(null);
    try {
      await act();
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const dry = (event) => {
    event.preventDefault();
    const request = read();
    if (!request) return;
    attempt(async () => {
      const reply = await send('POST', '/api/dry-run', { capability: capability.name, args: request.args, mode: mocked ? 'mocked' : 'hybrid', ...(branches && { maxBranches: MOST_BRANCHES }), ...(request.mocks && { mocks: request.mocks }) });
      setReport(reply.report);
    });
  };
  const run = async () => {
    const request = read();
    if (!request) return;
    const sure = await confirm({ title: 'Run it for real?', text: `${capability.name}\n${JSON.stringify(request.args, null, 2)}\nCalls that need your approval wait in the inbox.`, yes: 'Run' });
    if (sure) attempt(async () => navigate(href('run', { id: (await send('POST', '/api/execute', { capability: capability.name, args: request.args })).run })));
  };
  return html`<form class="panel stack form-panel" aria-label="Values" onSubmit=${dry} novalidate>
      ${fields.length > 0 ? html`<${SchemaFields} fields=${fields} texts=${texts} errors=${errors} onInput=${input} />` : html`<p class="soft">It takes no values.</p>`}
      <label class="check"><input type="checkbox" checked=${mocked} onChange=${(event) => setMocked(event.currentTarget.checked)} /> Call no tool at all: make every answer up</label>
      <label class="check"><input type="checkbox" checked=${branches} onChange=${(event) => setBranches(event.currentTarget.checked)} /> Take every branch: run it again with other values</label>
      <details><summary>Answers of your own</summary>
        <label class="field">Mocks, as JSON <textarea rows="4" spellcheck="false" placeholder=${'{ "tools": { "fs:list": { … } } }'} value=${mocks} onInput=${(event) => setMocks(event.currentTarget.value)}></textarea></label>
        ${errors['(mocks)'] && html`<p class="field-error"><${Text} text=${errors['(mocks)']} /></p>`}</details>
      <div class="actions"><button type="submit" class="primary" disabled=${busy}>${busy ? 'Running dry…' : 'Run dry'}</button>
        <button type="button" disabled=${busy} onClick=${run}>Run for real…</button></div>
      <${Problem} error=${problem} />
    </form>
    ${report ? html`<${Report} report=${report} />` : html`<${Empty} title="Nothing run yet"><p>Give the values and press <em>Run dry</em>.</p></${Empty}>`}`;
}

function initialTexts(fields, given) {
  let values = {};
  try {
    values = JSON.parse(given ?? '{}') ?? {};
  } catch {
    // A link that was cut short: the defaults stand.
  }
  return Object.fromEntries(fields.map((field) => [field.name, values[field.name] === undefined ? field.initial : textOf(values[field.name], field.kind, field.options)]));
}

function Explore({ query }) {
  const [intent, setIntent] = useState(query.get('intent') ?? '');
  const [paths, setPaths] = useState('3');
  const [depth, setDepth] = useState('5');
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const explore = async (event) => {
    event.preventDefault();
    if (!intent.trim()) return;
    setQuery({ intent: intent.trim() });
    setBusy(true);
    setProblem(null);
    try {
      const reply = await send('POST', '/api/explore', { intent: intent.trim(), maxPaths: Number(paths), maxDepth: Number(depth) });
      setFound(reply.exploration);
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<form class="toolbar" onSubmit=${explore}>
      <input class="filter wide" type="search" aria-label="Intent" placeholder="What should be done, with its values" value=${intent} onInput=${(event) => setIntent(event.currentTarget.value)} autocomplete="off" />
      <label class="inline">Paths <input type="number" min="1" max="10" value=${paths} onInput=${(event) => setPaths(event.currentTarget.value)} /></label>
      <label class="inline">Calls in a row <input type="number" min="1" max="10" value=${depth} onInput=${(event) => setDepth(event.currentTarget.value)} /></label>
      <button type="submit" class="primary" disabled=${busy}>${busy ? 'Trying…' : 'Try ways'}</button>
    </form>
    <${Problem} error=${problem} />
    ${found ? html`<${Exploration} found=${found} />` : !problem && html`<${Empty} title="Try ways to do something"><p>PML puts tools together in several ways, tries each without changing anything, and shows them side by side.</p></${Empty}>`}`;
}
