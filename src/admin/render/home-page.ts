// The home page: every command with its parameters. Links are relative, so that the page works below another
// path. It needs nothing from anywhere else, and its policy allows the browser nothing else.

import { createHash } from 'node:crypto';
import { formatVersion } from '../../base/version.ts';
import type { Endpoint } from '../endpoint.ts';
import type { ListedParameter } from '../parameter.ts';
import { type AdminResponse, HTML } from '../response.ts';
import type { ServerView } from '../views/index.ts';
import { HOME_STYLE } from './home-style.ts';
import { escapeHtml } from './html.ts';

const STYLE_HASH = createHash('sha256').update(HOME_STYLE).digest('base64');

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${STYLE_HASH}'`,
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** A weir seen from the side: water falling over a wall. */
const ICON =
  'data:image/svg+xml,' +
  encodeURIComponent(
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M0 4h8c4 0 4 9 8 9v3H8V7H0z' fill='#1971c2'/></svg>",
  );

export function homePage(endpoints: readonly Endpoint[], server: ServerView): AdminResponse {
  const rows = endpoints
    .filter(({ path }) => path !== '/')
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(endpointRows);
  const state = server.state();
  const body = `<!DOCTYPE html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<title>weir admin</title>
<link rel='icon' href="${ICON}">
<style>${HOME_STYLE}</style>
</head>
<body>
<header>
<h1>weir</h1>
<p><strong class='state state-${state.toLowerCase()}'>${state}</strong> for ${server.uptimeCurrentEpochSeconds()} s, ${escapeHtml(formatVersion(server.version))}</p>
</header>
<main>
<table class='home-table'>
<caption>Commands of the admin interface</caption>
<thead>
<tr><th scope='col'>Command</th><th scope='col'>Description</th></tr>
</thead>
${rows.join('\n')}
</table>
</main>
</body>
</html>
`;
  return { status: 200, contentType: HTML, headers: { 'content-security-policy': POLICY }, body };
}

/** One group of rows: the command, then its parameters. */
function endpointRows(endpoint: Endpoint): string {
  const { path, help, mutates, parameters } = endpoint;
  const name = escapeHtml(path.slice(1));
  const command = mutates || parameters.length > 0 ? commandForm(endpoint, name) : `<a href='${name}'>${name}</a>`;
  const note = mutates ? " <span class='note'>changes the server</span>" : '';
  const rows = [
    `<tr class='command'><td class='home-data'>${command}</td><td class='home-data'>${escapeHtml(help)}${note}</td></tr>`,
    // A form cannot ask for names that the caller makes up.
    ...parameters.filter(({ kind }) => kind !== 'pairs').map((parameter) => parameterRow(name, parameter)),
  ];
  return `<tbody>\n${rows.join('\n')}\n</tbody>`;
}

/** Mutating commands are forms with POST: no crawler or prefetch follows them. */
function commandForm({ mutates }: Endpoint, name: string): string {
  const method = mutates ? 'post' : 'get';
  const button = `<button class='button-as-link'>${name}</button>`;
  return `<form action='${name}' method='${method}' id='${name}' class='home-form'>${button}</form>`;
}

function parameterRow(form: string, parameter: ListedParameter): string {
  const name = escapeHtml(parameter.name);
  const id = `${form}-${name}`;
  const label = `<label for='${id}'>${name}: ${escapeHtml(parameter.help)}</label>`;
  return `<tr class='parameter'><td class='option'>${control(form, id, name, parameter)}</td><td class='home-data'>${label}</td></tr>`;
}

function control(form: string, id: string, name: string, parameter: ListedParameter): string {
  const attributes = `form='${form}' id='${id}' name='${name}'`;
  if (parameter.kind === 'flag') return `<input type='checkbox' ${attributes}>`;
  if (parameter.kind === 'text') return `<input type='text' ${attributes} autocomplete='off' spellcheck='false'>`;
  const options = parameter.choices.map((choice) => `<option>${escapeHtml(choice)}</option>`);
  return `<select ${attributes}>${options.join('')}</select>`;
}
