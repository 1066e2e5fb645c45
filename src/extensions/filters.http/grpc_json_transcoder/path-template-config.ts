// Reads paths as google.api.http writes them: `/v1/{name=shelves/*}/books:list`. A star is one segment, two are the rest of the path.

import type { PathTemplate, PathVariable } from './path-template.ts';

const LITERAL = /^[\w\-.~%!$&'()+,;=@]+$/;
const FIELD_PATH = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/;
const REST = '**';
const ONE = '*';

/** @returns what is wrong with it as text. */
export function parseTemplate(text: string): PathTemplate | string {
  if (!text.startsWith('/')) return 'does not begin with /';
  const colon = text.lastIndexOf(':');
  const hasVerb = colon > text.lastIndexOf('/') && colon > text.lastIndexOf('}');
  const verb = hasVerb ? text.slice(colon + 1) : '';
  const path = hasVerb ? text.slice(1, colon) : text.slice(1);
  if (hasVerb && !LITERAL.test(verb)) return `"${verb}" cannot be a verb`;
  const segments: string[] = [];
  const variables: PathVariable[] = [];
  // A variable may have slashes of its own.
  for (const part of path.match(/\{[^{}]*\}|[^/]+|(?<=^|\/)(?=\/|$)/g) ?? []) {
    if (!part.startsWith('{')) {
      segments.push(part);
      continue;
    }
    const [name = '', pattern = ONE] = part.slice(1, -1).split('=', 2);
    if (!FIELD_PATH.test(name)) return `"${name}" cannot be the name of a field`;
    const own = pattern.split('/');
    const start = segments.length;
    segments.push(...own);
    const end = own.at(-1) === REST ? Number.POSITIVE_INFINITY : segments.length;
    variables.push({ field: name.split('.'), start, end });
  }
  for (const [at, segment] of segments.entries()) {
    if (segment === REST && at < segments.length - 1) return '** is not the last segment';
    if (segment !== ONE && segment !== REST && !LITERAL.test(segment)) return `"${segment}" cannot be a segment`;
  }
  return { segments, verb, variables };
}

/** Before others that match the same path comes what says more, from the left. */
export function compareTemplates(a: PathTemplate, b: PathTemplate): number {
  if ((a.verb === '') !== (b.verb === '')) return a.verb === '' ? 1 : -1;
  const count = Math.max(a.segments.length, b.segments.length);
  for (let at = 0; at < count; at += 1) {
    const difference = rank(a.segments[at]) - rank(b.segments[at]);
    if (difference !== 0) return difference;
  }
  return 0;
}

function rank(segment: string | undefined): number {
  if (segment === undefined) return 1;
  if (segment === REST) return 3;
  return segment === ONE ? 2 : 0;
}
