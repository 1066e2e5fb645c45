// The home page: the live overview, which its script fills in, and below it every command with its parameters. Links are
// relative, so that the page works below another path. It needs nothing from anywhere else, and its policy allows the browser
// nothing else: no script that stands in the page, and no text that a script makes into markup.

import { formatVersion } from '../../base/version.ts';
import type { AdminRequest, Endpoint } from '../endpoint.ts';
import type { ListedParameter } from '../parameter.ts';
import { type AdminResponse, HTML, textResponse } from '../response.ts';
import type { ServerView } from '../views/index.ts';
import { escapeHtml } from './html.ts';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
};

/** Instead of the page, in builds without it. */
const LEFT_OUT = 'HTML output was disabled by building with --define admin_html=disabled';

/** A weir seen from the side: water falling over a wall. */
const ICON =
  'data:image/svg+xml,' +
  encodeURIComponent(
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M0 4h8c4 0 4 9 8 9v3H8V7H0z' fill='#1971c2'/></svg>",
  );

/** What the page begins with, and what is written into its search for stats. */
export interface PageStart {
  readonly view: 'overview' | 'stats';
  readonly filter?: string | undefined;
}

export function homePage(server: ServerView, request: AdminRequest, start: PageStart): AdminResponse {
  const { endpoints, pageFiles, isReadOnly = false } = request;
  if (pageFiles === undefined) return textResponse(LEFT_OUT);
  const rows = endpoints
    .filter(({ path }) => path !== '/')
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map((endpoint) => endpointRows(endpoint, isReadOnly));
  const state = server.state();
  const body = `<!DOCTYPE html>
<html lang='en'>
<head>
<meta charset='utf-8'>
<meta name='viewport' content='width=device-width, initial-scale=1'>
<title>weir admin</title>
<link rel='icon' href="${ICON}">
<link rel='stylesheet' href='page/${pageFiles.style.name}'>
<script type='module' src='page/${pageFiles.script.name}'></script>
</head>
<body data-view='${start.view}' data-filter='${escapeHtml(start.filter ?? '')}'>
<a class='skip' href='#commands'>Skip to the commands</a>
<header>
<h1>weir</h1>
<p id='state'><strong class='state state-${state.toLowerCase()}'>${state}</strong> for ${server.uptimeCurrentEpochSeconds()} s, ${escapeHtml(formatVersion(server.version))}</p>
</header>
<main>
<div id='live'><noscript><p>The live overview needs JavaScript; the commands below do not.</p></noscript></div>
<section id='commands' aria-labelledby='commands-title'>
<h2 id='commands-title'>Commands</h2>
<table class='home-table'>
<caption>Commands of the admin interface</caption>
<thead>
<tr><th scope='col'>Command</th><th scope='col'>Description</th></tr>
</thead>
${rows.join('\n')}
</table>
</section>
</main>
</body>
</html>
`;
  return { status: 200, contentType: HTML, headers: HEADERS, body };
}

/** One group of rows: the command, then its parameters. */
function endpointRows(endpoint: Endpoint, isReadOnly: boolean): string {
  const { path, help, mutates, parameters } = endpoint;
  const name = escapeHtml(path.slice(1));
  const isRefused = mutates && isReadOnly;
  const isForm = mutates || parameters.length > 0;
  const command = isRefused ? name : isForm ? commandForm(endpoint, name) : `<a href='${name}'>${name}</a>`;
  const effect = isRefused ? 'not with --admin-read-only' : 'changes the server';
  const note = mutates ? ` <span class='note'>${effect}</span>` : '';
  // A form cannot ask for names that the caller makes up.
  const asked = isRefused ? [] : parameters.filter(({ kind }) => kind !== 'pairs');
  const rows = [
    `<tr class='command'><td class='home-data'>${command}</td><td class='home-data'>${escapeHtml(help)}${note}</td></tr>`,
    ...asked.map((parameter) => parameterRow(name, parameter)),
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
