// The versions of a capability: which there are, how two of them differ, and which one its name stands for.

import { get, send } from '../api.js';
import { html, useEffect, useState } from '../html.js';
import { href } from '../router.js';
import { confirm } from '../ui/dialog.js';
import { count } from '../ui/format.js';
import { Mark, Status } from '../ui/status.js';
import { Code, Problem, Sentence, Text } from '../ui/text.js';
import { Ago } from '../ui/time.js';
import { addedTools, codeLines, comparedWith } from './version-words.js';

const STATE_KINDS = { active: 'ok', planned: 'waiting', degraded: 'error' };

const base = (name) => `/api/capabilities/${encodeURIComponent(name)}`;

/** `onPut(name)` is called after another version was put in force; `name` is what all of them are known by. */
export function Versions({ list, shown, onPut }) {
  const { name, versions } = list;
  const [compared, setCompared] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => setCompared(null), [list]);
  if (versions.length < 2) {
    return html`<section class="panel versions"><h2>Versions</h2><p class="fine">This is the only one. New code under the same name becomes a version of it, and you can go back.</p></section>`;
  }
  const current = versions.find((version) => version.current);
  const attempt = async (act) => {
    setBusy(true);
    setProblem(null);
    try {
      await act();
    } catch (error) {
      if (error.code !== 'SIGN_IN_CANCELLED') setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const compare = (version) => {
    if (compared?.version === version.version) return setCompared(null);
    const { from, to } = comparedWith(version, versions);
    return attempt(async () => setCompared({ version: version.version, diff: (await get(`${base(name)}/diff?from=${from}&to=${to}`)).diff }));
  };
  const put = (version) => attempt(async () => {
    const { from, to } = comparedWith(version, versions);
    const { diff } = await get(`${base(name)}/diff?from=${from}&to=${to}`);
    const more = addedTools(diff, version.version);
    const sure = await confirm({
      title: `Put version ${version.version} in force?`,
      text: [`${name} will run version ${version.version}${current ? ` instead of version ${current.version}` : ''}. What was learned of it counts again; you can go back.`,
        ...(more.length > 0 ? [`It also calls: ${more.join(', ')}`] : [])].join('\n'),
      yes: 'Put in force',
    });
    if (!sure) return;
    await send('POST', `${base(name)}/rollback`, { version: version.version });
    await onPut(name);
  });
  return html`<section class="panel versions"><h2>Versions</h2>
    <${Problem} error=${problem} />
    <div class="scroll"><table class="plain"><thead><tr><th scope="col" class="num">Version</th><th scope="col">Runs as</th><th scope="col">State</th><th scope="col" class="num">Worked</th><th scope="col">Since</th><th scope="col"><span class="sr">What to do</span></th></tr></thead>
      <tbody>${versions.map((version) => html`<tr key=${version.version} aria-current=${version.id === shown ? 'true' : undefined}>
        <td class="num">${version.version}</td>
        <td>${version.id === shown ? html`<${Code} text=${version.name} />` : html`<a href=${href('capability', { name: version.name })}><${Code} text=${version.name} /></a>`}
          ${version.current && html` <${Mark} kind="ok">in force</${Mark}>`}
          ${version.offeredBecause && html`<br /><span class="fine">offered: <${Sentence} text=${version.offeredBecause} /></span>`}</td>
        <td><${Status} status=${STATE_KINDS[version.state]} label=${version.state} /></td>
        <td class="num">${count(version.successCount)} of ${count(version.successCount + version.failureCount)}</td>
        <td><${Ago} at=${version.createdAt} /></td>
        <td class="version-actions">
          <button type="button" class="quiet" disabled=${busy} aria-pressed=${compared?.version === version.version ? 'true' : 'false'} onClick=${() => compare(version)}>Compare<span class="sr"> version ${version.version}</span></button>
          ${!version.current && html`<button type="button" disabled=${busy} onClick=${() => put(version)}>Put in force…<span class="sr"> Version ${version.version}</span></button>`}</td>
      </tr>`)}</tbody></table></div>
    ${compared && html`<${Difference} diff=${compared.diff} />`}
  </section>`;
}

function Difference({ diff }) {
  const { added = [], removed = [], changed = [] } = diff.parameters ?? {};
  const lines = codeLines(diff.code);
  const same = lines.every((line) => line.side === 'both');
  return html`<div class="version-diff" role="region" aria-label=${`Version ${diff.from} compared with version ${diff.to}`}>
    <h3>Version ${diff.from} → ${diff.to}</h3>
    ${same ? html`<p class="fine">The code is the same.</p>` : html`<pre class="value" tabindex="0" role="region" aria-label="Changed lines">${lines.map((line, index) => html`<span key=${index} class=${{ added: 'added', removed: 'removed', skipped: 'skipped' }[line.side]}>${{ added: '+ ', removed: '- ' }[line.side] ?? '  '}${line.side === 'skipped' ? `${count(line.count)} lines are the same` : html`<${Text} text=${line.text} />`}${'\n'}</span>`)}</pre>`}
    ${added.length + removed.length + changed.length > 0 && html`<h4>Parameters</h4><ul class="plain-list">
      ${added.map((name) => html`<li><${Mark} kind="info">new</${Mark}> <${Code} text=${name} /></li>`)}
      ${removed.map((name) => html`<li><${Mark} kind="bad">gone</${Mark}> <${Code} text=${name} /></li>`)}
      ${changed.map((one) => html`<li><${Mark}>changed</${Mark}> <${Code} text=${one.name} /> <span class="fine"><${Code} text=${JSON.stringify(one.before)} /> → <${Code} text=${JSON.stringify(one.after)} /></span></li>`)}</ul>`}
    ${diff.effects?.length > 0 && html`<h4>Tools that only one of them calls</h4><ul class="plain-list">${diff.effects.map((effect) => html`<li>
      <${Mark} kind=${effect.added ? 'warn' : ''}>${effect.added ? `version ${diff.to}` : `version ${diff.from}`}</${Mark}> <${Code} text=${effect.tool} /> <span class="fine">${[effect.effect ?? 'nobody says what it does', { hil: 'needs approval', auto: 'runs without approval', deny: 'is denied' }[effect.approval] ?? 'is gone'].join(', ')}</span></li>`)}</ul>`}
  </div>`;
}
