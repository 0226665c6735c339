// The sign-in dialog: over the page that needs it, so that nothing typed there is lost.

import { login, refreshSession, session } from './api.js';
import { html, useState } from './html.js';
import { Dialog } from './ui/dialog.js';
import { Problem, Sentence } from './ui/text.js';

export function SignIn({ request }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const unset = session.value?.passphraseSet === false;
  const cancel = () => request.done(false);
  // Somebody whose session ended signs in as themselves again.
  const named = session.value && session.value.principal !== 'local' ? session.value.principal : '';
  const submit = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const field = form.elements.passphrase;
    setBusy(true);
    setError(null);
    try {
      // Where the page is loaded anew for another person, what waits for this is never sent.
      if (await login(field.value, form.elements.name.value.trim())) request.done(true);
    } catch (failure) {
      setError(failure);
      setBusy(false);
      field.select();
    }
  };
  if (unset) {
    return html`<${Dialog} title="No passphrase yet" onClose=${cancel}>
      <p>You change things here with a passphrase that only you know. Set one in a terminal:</p>
      <pre class="value">pml passphrase</pre>
      <div class="actions"><button type="button" class="primary" autofocus onClick=${() => refreshSession({ quiet: true }).catch(() => {})}>Done</button>
        <button type="button" onClick=${cancel}>Cancel</button></div>
    </${Dialog}>`;
  }
  return html`<${Dialog} title="Sign in" onClose=${cancel}>
    <p>${request.reason ? html`<${Sentence} text=${request.reason} />` : 'Looking needs no passphrase; changing something does.'}</p>
    <form class="sign-in" onSubmit=${submit}>
      <label for="name">Name <span class="fine">(the operator leaves it empty)</span></label>
      <input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64" value=${named} />
      <label for="passphrase">Passphrase</label>
      <input id="passphrase" name="passphrase" type="password" autocomplete="current-password" required autofocus maxlength="1024" />
      ${!session.value && html`<p class="fine">To look only, open the link that <code>pml serve</code> prints when it starts.</p>`}
      <${Problem} error=${error} />
      <div class="actions"><button class="primary" type="submit" disabled=${busy}>Sign in</button>
        <button type="button" onClick=${cancel}>Cancel</button></div>
    </form>
  </${Dialog}>`;
}
