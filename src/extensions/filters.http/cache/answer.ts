// What a client gets of a response that is kept: all of it, the part that it asks for, or word that it has it already (RFC 9110
// sections 13 and 14).

import { secondsOfDate } from './freshness.ts';
import type { Field, StoredResponse } from './stored-response.ts';

/** What a request asks beside its target; undefined for nothing. */
export interface Conditions {
  readonly ifNoneMatch: string | undefined;
  readonly ifModifiedSince: string | undefined;
  readonly range: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
}

const NO_BODY = Buffer.alloc(0);
const RANGE = /^bytes=(?:(\d+)-(\d*)|-(\d+))$/i;
/** Of the body that a 304 does not bring. */
const NOT_OF_A_304 = new Set([
  'content-encoding',
  'content-language',
  'content-range',
  'content-type',
  'content-length',
]);
const ETAG = /(?:W\/)?"[^"]*"/g;

/** @param age in seconds. */
export function answerOf(stored: StoredResponse, conditions: Conditions, age: number): Answer {
  const { status, body } = stored;
  const fields: readonly Field[] = [...stored.fields, ['age', String(Math.max(0, Math.floor(age)))]];
  if (status !== 200) return { status, fields, body };
  if (hasAlready(stored, conditions)) {
    return { status: 304, fields: fields.filter(([name]) => !NOT_OF_A_304.has(name)), body: NO_BODY };
  }
  const range = conditions.range === undefined ? null : RANGE.exec(conditions.range.trim());
  return range === null ? { status, fields, body } : partOf(range, fields, body);
}

function hasAlready({ etag, lastModified }: StoredResponse, { ifNoneMatch, ifModifiedSince }: Conditions): boolean {
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() === '*') return true;
    if (etag === undefined) return false;
    const wanted = withoutWeakness(etag);
    return [...ifNoneMatch.matchAll(ETAG)].some(([each]) => withoutWeakness(each) === wanted);
  }
  const since = secondsOfDate(ifModifiedSince);
  const modified = secondsOfDate(lastModified);
  return since !== undefined && modified !== undefined && modified <= since;
}

function withoutWeakness(etag: string): string {
  return etag.replace(/^W\//, '');
}

function partOf([, first, last, suffix]: RegExpExecArray, fields: readonly Field[], body: Buffer): Answer {
  const { length } = body;
  const from = suffix === undefined ? Number(first) : Math.max(0, length - Number(suffix));
  const to = suffix !== undefined || last === '' ? length - 1 : Math.min(Number(last), length - 1);
  // A range that ends before it begins is none (RFC 9110 section 14.1.1).
  if (suffix === undefined && last !== '' && Number(last) < Number(first)) return { status: 200, fields, body };
  if (from > to) {
    const rest = fields.filter(([name]) => !NOT_OF_A_304.has(name));
    return { status: 416, fields: [...rest, ['content-range', `bytes */${length}`]], body: NO_BODY };
  }
  const range: Field = ['content-range', `bytes ${from}-${to}/${length}`];
  return { status: 206, fields: [...fields, range], body: body.subarray(from, to + 1) };
}
