// Standing rules: what is approved for later runs too, and taking that back.

import { get, send } from '../api.js';
import { html, useState } from '../html.js';
import { confirm } from '../ui/dialog.js';
import { Empty, PageHead } from '../ui/empty.js';
import { plural } from '../ui/format.js';
import { Mark } from '../ui/status.js';
import { Code, Problem, Text, plain } from '../ui/text.js';
import { Ago, now } from '../ui/time.js';
import { span } from '../text.js';
import { ruleState, whatItCovers } from './rule-words.js';

export const title = 'Rules';

export async function load({ signal }) {
  return get('/api/rules', { signal });
}

export function view({ data, reload }) {
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(null);
  const rules = data.items;
  const revoke = async (rule) => {
    const sure = await confirm({ title: 'Revoke this rule?', text: `${rule.tool}, ${whatItCovers(rule)}\nIts calls need approval again.`, yes: 'Revoke the rule', danger: true });
    if (!sure) return;
    setBusy(rule.id);
    setProblem(null);
    try {
      await send('DELETE', `/api/rules/${rule.id}`);
      await reload();
    } catch (error) {
      if (error.code !== 'SIGN_IN_CANCELLED') setProblem(error);
    } finally {
      setBusy(null);
    }
  };
  if (rules.length === 0) {
    return html`<${PageHead} title="Rules" /><${Empty} title="No standing rules">
      <p>A rule approves the same calls of later runs. It is made in the <a href="/inbox">inbox</a>, under <em>More ways to approve</em>, or by <code>pml runs approve --remember code</code>.</p>
      <p>Rules of the configuration are another thing: <a href="/servers">Servers</a> shows which of them apply to a tool.</p></${Empty}>`;
  }
  const active = rules.filter((rule) => ruleState(rule, now.value) === 'active').length;
  return html`<${PageHead} title="Rules" note=${`${plural(rules.length, 'rule')}, ${active} in force. What they cover is not asked again.`} />
    <${Problem} error=${problem} />
    <div class="scroll" tabindex="0" role="region" aria-label="Standing rules"><table class="plain rules">
      <thead><tr><th scope="col">Tool</th><th scope="col">Covers</th><th scope="col">State</th><th scope="col">Made</th><th scope="col">Used</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
      <tbody>${rules.map((rule) => html`<${Rule} key=${rule.id} rule=${rule} busy=${busy !== null} revoke=${() => revoke(rule)} />`)}</tbody>
    </table></div>`;
}

function Rule({ rule, busy, revoke }) {
  const state = ruleState(rule, now.value);
  return html`<tr>
    <th scope="row"><${Code} text=${rule.tool} /></th>
    <td>${whatItCovers(rule)}</td>
    <td>${state === 'active' ? html`<${Mark} kind="ok">in force</${Mark}> <span class="soft">for ${span(rule.expiresAt - now.value)}</span>` : html`<${Mark}>${state}</${Mark}> <span class="soft"><${Ago} at=${rule.revokedAt ?? rule.expiresAt} /></span>`}</td>
    <td><${Ago} at=${rule.createdAt} /> <span class="soft">by <${Text} text=${rule.by} /></span></td>
    <td>${rule.uses > 0 ? html`${plural(rule.uses, 'time')}, <${Ago} at=${rule.usedAt} />` : 'never'}</td>
    <td>${state === 'active' && html`<button type="button" class="danger small" disabled=${busy} aria-label=${`Revoke the rule for ${plain(rule.tool)}`} onClick=${revoke}>Revoke…</button>`}</td>
  </tr>`;
}
