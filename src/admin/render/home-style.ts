// Style of the home page, in both colour schemes. Its hash is part of the page's policy.

export const HOME_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --soft: light-dark(#f6f8fa, #161b22);
  --link: light-dark(#0b5cad, #6cb6ff); --quiet: light-dark(#57606a, #9198a1); --alert: light-dark(#b42318, #ff8a80);
  --good: light-dark(#18703a, #56d364); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1.5rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0; }
header p { color: var(--quiet); margin: 0; overflow-wrap: anywhere; }
.state { color: var(--alert); }
.state-live { color: var(--good); }
table { border: 1px solid var(--line); border-collapse: collapse; margin-top: 1rem; width: 100%; }
caption { color: var(--quiet); font-size: .9rem; padding-bottom: .4rem; text-align: start; }
th { background: var(--soft); text-align: start; }
th, td { padding: .35rem .8rem; vertical-align: middle; }
tbody { border-top: 1px solid var(--line); }
td:first-child { white-space: nowrap; width: 14rem; }
.parameter td { padding-block: .15rem .35rem; }
.parameter td:first-child { padding-inline-start: 2rem; }
.parameter label { color: var(--quiet); font-size: .9rem; }
.note { color: var(--alert); font-size: .8rem; }
.home-form { margin: 0; }
a, .button-as-link { color: var(--link); font: inherit; }
.button-as-link { background: none; border: 0; cursor: pointer; padding: 0; text-decoration: underline; }
a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible { outline: 2px solid var(--link);
  outline-offset: 2px; }
input[type='text'], select { font: inherit; font-size: .9rem; max-width: 11rem; }
`;
