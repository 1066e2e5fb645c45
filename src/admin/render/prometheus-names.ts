// Names of metrics and labels, and values, as Prometheus and OpenMetrics write them.

import type { TagView } from '../views/index.ts';

/** Before the names of this build's own tags. */
const OWN_TAGS = 'proxy.';
/** Labels that a format uses for itself. */
const RESERVED_LABELS = new Set(['le', 'quantile', 'text_value']);

export function metricName(namespace: string, extractedName: string): string {
  return `${namespace}_${extractedName.replace(/[^a-zA-Z0-9_]/g, '_')}`;
}

/** @returns `a="1",b="2"` without braces; the first of two labels of one name. */
export function labelsText(namespace: string, tags: readonly TagView[]): string {
  let text = '';
  for (const [at, { name, value }] of tags.entries()) {
    const label = labelName(namespace, name);
    if (at > 0 && tags.findIndex((tag) => labelName(namespace, tag.name) === label) < at) continue;
    text += `${text === '' ? '' : ','}${label}="${escapeLabel(value)}"`;
  }
  return text;
}

const LABEL_NAMES = new Map<string, string>();

function labelName(namespace: string, tag: string): string {
  if (tag.startsWith(OWN_TAGS)) {
    const key = `${namespace} ${tag}`;
    const known = LABEL_NAMES.get(key) ?? `${namespace}_${labelWord(tag.slice(OWN_TAGS.length))}`;
    // The tags that names are searched for are few.
    if (LABEL_NAMES.size < 1024) LABEL_NAMES.set(key, known);
    return known;
  }
  const word = labelWord(tag);
  return RESERVED_LABELS.has(word) ? `tag_${word}` : word;
}

function labelWord(text: string): string {
  const word = text.replace(/[^a-zA-Z0-9_]/g, '_');
  return /^\d/.test(word) ? `_${word}` : word;
}

export function escapeLabel(value: string): string {
  return /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value;
}

/** Without an exponent wherever that can be read. */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-Inf' : '+Inf';
  const text = String(value);
  if (!text.includes('e')) return text;
  return Number.isInteger(value) ? String(BigInt(value)) : value.toFixed(20).replace(/0+$/, '');
}

/** A number that has a dot in it always, as OpenMetrics compares bounds as text. */
export function canonicalNumber(value: number): string {
  const text = numberText(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}
