// Signs in. What proves later that an answer comes from a page of this origin is kept here and nowhere else: cookies
// of this machine go to every port of it, storage belongs to one.

const form = document.getElementById('login');
const problem = document.getElementById('problem');
const field = document.getElementById('passphrase');
const button = form.querySelector('button');

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  button.disabled = true;
  problem.hidden = true;
  try {
    const response = await fetch('/login', { method: 'POST', body: new URLSearchParams(new FormData(form)) });
    const answer = await response.json();
    if (response.ok) {
      localStorage.setItem('pml-csrf', answer.csrf);
      location.replace(target());
      return;
    }
    const { message, hint } = answer.error;
    problem.textContent = hint ? `${message}: ${hint}` : message;
  } catch {
    problem.textContent = 'PML does not answer. Is it still running?';
  }
  problem.hidden = false;
  button.disabled = false;
  field.select();
});

/** The page that was asked for. Only a path of this server counts: an address of another one may stand in a link. */
function target() {
  const wanted = new URL(new URLSearchParams(location.search).get('to') ?? '/', location.origin);
  const own = wanted.origin === location.origin ? wanted.pathname + wanted.search : '/';
  return `${own}${location.hash}`;
}
