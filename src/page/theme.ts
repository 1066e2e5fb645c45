// Light, dark, or as the system has it. Charts are painted, so they ask here for colours, and hear of changes.

import { el } from './dom.ts';

const CHOICES = ['auto', 'light', 'dark'] as const;
type Choice = (typeof CHOICES)[number];
const KEY = 'weir-theme';

const listeners: (() => void)[] = [];

export function onThemeChange(listener: () => void): void {
  listeners.push(listener);
}

/** The colour that a variable of the style has now. */
export function colour(variable: string): string {
  const probe = el('span', { class: 'probe' });
  document.body.append(probe);
  probe.style.color = `var(${variable})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

export function themeSwitch(): HTMLElement {
  const select = el(
    'select',
    { id: 'theme', 'aria-label': 'Colours', change: () => choose(select.value as Choice) },
    ...CHOICES.map((choice) => el('option', { value: choice }, choice)),
  );
  select.value = stored();
  apply(stored());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
  return select;
}

function choose(choice: Choice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Without storage it holds until the page is left.
  }
  apply(choice);
}

function stored(): Choice {
  try {
    return CHOICES.find((choice) => choice === localStorage.getItem(KEY)) ?? 'auto';
  } catch {
    return 'auto';
  }
}

function apply(choice: Choice): void {
  document.documentElement.dataset.theme = choice;
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}
