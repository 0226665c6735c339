// Sets the theme before the page is drawn: a script of its own and not a module, because modules run after the first
// paint.
(() => {
  const kept = localStorage.getItem('pml-theme');
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept;
})();
