// What can be done to the server, each after a question. Only what this server answers: the table of commands says so.

import { getJson, post } from './api.ts';
import type { LoggerLevel } from './data.ts';
import { el, setText } from './dom.ts';

interface Action {
  /** Path of its command. */
  readonly command: string;
  readonly label: string;
  /** What happens, as the question before it says. */
  readonly effect: string;
  readonly isGrave?: boolean;
  readonly fields?: readonly Field[];
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind: 'text' | 'flag' | 'logger' | readonly string[];
  readonly isRequired?: boolean;
}

const LEVELS = ['trace', 'debug', 'info', 'warning', 'error', 'critical', 'off'];

const ACTIONS: readonly Action[] = [
  {
    command: 'logging',
    label: 'Set log levels',
    effect: 'Loggers write from this level on.',
    fields: [
      { name: 'logger', label: 'Logger', kind: 'logger' },
      { name: 'level', label: 'Level', kind: LEVELS },
    ],
  },
  {
    command: 'healthcheck/fail',
    label: 'Fail health checks',
    effect: 'Health checks of clients fail, and they go elsewhere.',
  },
  { command: 'healthcheck/ok', label: 'Pass health checks', effect: 'Health checks of clients succeed again.' },
  {
    command: 'drain_listeners',
    label: 'Drain listeners',
    effect: 'Listeners stop. They do not come back before a restart.',
    isGrave: true,
    fields: [
      { name: 'graceful', label: 'drain first', kind: 'flag' },
      { name: 'inboundonly', label: 'inbound only', kind: 'flag' },
    ],
  },
  {
    command: 'runtime_modify',
    label: 'Set a runtime value',
    effect: 'The value holds at once, over that of all other layers. An empty one removes what was set here.',
    fields: [
      { name: 'key', label: 'Key', kind: 'text', isRequired: true },
      { name: 'value', label: 'Value', kind: 'text' },
    ],
  },
  { command: 'reset_counters', label: 'Reset counters', effect: 'All counters start at 0 again.' },
  { command: 'reopen_logs', label: 'Reopen logs', effect: 'Log files are opened anew by their names.' },
  {
    command: 'quitquitquit',
    label: 'End the server',
    effect: 'The server ends cleanly. Nobody starts it again from here.',
    isGrave: true,
  },
];

/** The loggers of the server with their present levels, to choose from. */
class LoggerChoice {
  readonly element: HTMLSelectElement;
  #shown = '';

  constructor(name: string, id: string) {
    this.element = el(
      'select',
      { name, id, focus: () => void this.load() },
      el('option', { value: '' }, 'all loggers'),
    );
    new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) void this.load();
    }).observe(this.element);
  }

  /** Levels change behind the page's back too. */
  async load(): Promise<void> {
    const loggers = await getJson<readonly LoggerLevel[]>('page/loggers').catch(() => undefined);
    const text = JSON.stringify(loggers);
    if (loggers === undefined || text === this.#shown) return;
    this.#shown = text;
    const chosen = this.element.value;
    const levels = new Set(loggers.map(({ level }) => level));
    const all = levels.size === 1 ? `all loggers (${[...levels][0]})` : 'all loggers';
    this.element.replaceChildren(
      el('option', { value: '' }, all),
      ...loggers.map(({ name, level }) => el('option', { value: name }, `${name} (${level})`)),
    );
    this.element.value = chosen;
  }
}

export class ActionsPanel {
  readonly element: HTMLElement;
  #loggers: LoggerChoice | undefined;
  readonly #result = el('p', { class: 'result', role: 'status' });

  constructor() {
    const known = ACTIONS.filter(({ command }) => document.getElementById(command) !== null);
    const forms = known.map((action) => this.#form(action));
    this.element = el(
      'section',
      { id: 'live-actions', 'aria-labelledby': 'actions-title' },
      el('h2', { id: 'actions-title' }, 'Actions'),
      known.length === 0
        ? el('p', { class: 'quiet' }, 'This interface is read-only: nothing can be changed from here.')
        : el('div', { class: 'actions' }, ...forms),
      this.#result,
    );
  }

  #form(action: Action): HTMLElement {
    const form = el(
      'form',
      {
        class: action.isGrave ? 'action grave' : 'action',
        submit: (event) => {
          event.preventDefault();
          void this.#ask(action, new FormData(form));
        },
      },
      ...(action.fields ?? []).map((field) => this.#input(action, field)),
      el('button', { type: 'submit' }, `${action.label} …`),
    );
    return form;
  }

  async #ask(action: Action, given: FormData): Promise<void> {
    const values = (action.fields ?? [])
      .map(({ name, label, kind }) => [kind === 'flag' ? label : name, shownValue(kind, given.get(name))] as const)
      .filter(([, value]) => value !== '');
    if (!(await confirmed(action, values))) return;
    try {
      const text = await post(`${action.command}${queryOf(action, given)}`);
      this.#tell(`${action.label}: ${text.length < 60 ? text : 'done'}`, false);
      if (action.command === 'logging') await this.#loggers?.load();
    } catch (error) {
      this.#tell(`${action.label}: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  #input({ command }: Action, { name, label, kind, isRequired = false }: Field): HTMLElement {
    const id = `${command.replace('/', '-')}-${name}-action`;
    if (kind === 'flag')
      return el('label', { class: 'flag' }, el('input', { type: 'checkbox', name, id }), ` ${label}`);
    if (kind === 'logger') {
      this.#loggers = new LoggerChoice(name, id);
      return el('label', {}, `${label} `, this.#loggers.element);
    }
    if (kind === 'text') {
      const field = el('input', { name, id, autocomplete: 'off', spellcheck: 'false', required: isRequired });
      return el('label', {}, `${label} `, field);
    }
    const select = el('select', { name, id }, ...kind.map((choice) => el('option', {}, choice)));
    select.value = kind.includes('info') ? 'info' : kind[0]!;
    return el('label', {}, `${label} `, select);
  }

  #tell(text: string, isBad: boolean): void {
    setText(this.#result, text);
    this.#result.classList.toggle('bad', isBad);
  }
}

/** As the question before an action has it. */
function shownValue(kind: Field['kind'], value: FormDataEntryValue | null): string {
  if (kind === 'logger' && value === '') return 'all';
  return String(value ?? '');
}

function queryOf({ command }: Action, given: FormData): string {
  const value = (name: string): string => String(given.get(name) ?? '').trim();
  if (command === 'logging')
    return `?${encodeURIComponent(value('logger') || 'level')}=${encodeURIComponent(value('level'))}`;
  if (command === 'runtime_modify') return `?${encodeURIComponent(value('key'))}=${encodeURIComponent(value('value'))}`;
  const names = [...given.keys()];
  return names.length === 0 ? '' : `?${names.map(encodeURIComponent).join('&')}`;
}

/** Asks; whatever closes the question but its button is a no. */
function confirmed(action: Action, values: readonly (readonly [string, string])[]): Promise<boolean> {
  return new Promise((resolve) => {
    const yes = el('button', { value: 'yes', class: action.isGrave ? 'grave' : 'plain' }, action.label);
    const dialog = el(
      'dialog',
      {
        'aria-labelledby': 'question',
        close: () => {
          resolve(dialog.returnValue === 'yes');
          dialog.remove();
        },
      },
      el(
        'form',
        { method: 'dialog' },
        el('h2', { id: 'question' }, `${action.label}?`),
        el('p', {}, action.effect),
        el('ul', {}, ...values.map(([name, value]) => el('li', {}, `${name}: ${value}`))),
        el('p', { class: 'buttons' }, el('button', { value: 'no', autofocus: true }, 'Cancel'), yes),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
