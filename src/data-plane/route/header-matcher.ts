// Tests of request headers, ready to run: as conditions of routes. Made once per snapshot.

import { compileByteMatch, type StringTest } from '../../base/string-match.ts';
import type { HeaderMatch } from '../../snapshot/index.ts';
import { HEADER_ID, type KnownHeader, Method, type RequestHead } from '../../wasm/http1.ts';
import { upgradeType } from '../http/upgrade-fields.ts';
import type { RouteRequest } from './route-request.ts';

export type RequestTest = (request: RouteRequest) => boolean;
export type HeaderTest = (value: string | undefined) => boolean;

/** @returns the value, several fields joined by ','; undefined when there is none. */
export type ReadHeader = (request: RouteRequest) => string | undefined;

/** What is no field of the request as received: parts of its first line, and what the proxy itself says of it. */
const SPECIAL: Readonly<Record<string, ReadHeader>> = {
  ':method': ({ head }) => head.method,
  ':path': ({ target }) => target,
  ':authority': ({ authority }) => authority || undefined,
  ':scheme': ({ forwardedProto }) => forwardedProto,
  host: ({ authority }) => authority || undefined,
  'x-forwarded-proto': ({ forwardedProto }) => forwardedProto,
  'x-proxy-internal': ({ isInternal }) => (isInternal ? 'true' : undefined),
  'x-envoy-internal': ({ isInternal }) => (isInternal ? 'true' : undefined),
  // It ends at this hop; of a request that wants an upgrade it is seen as the client has written it.
  connection: ({ head }) => (isUpgrade(head) ? head.header(HEADER_ID.connection) : head.headerByName('connection')),
};

/** Fields that a connection manager adds to requests; without filters nobody else has added any before they are read. */
const FROM_CONNECTION_MANAGER: ReadonlySet<string> = new Set([
  'via',
  'x-forwarded-client-cert',
  'x-forwarded-for',
  'x-request-id',
]);
/** The same under whatever prefix. */
const EXTERNAL_ADDRESS = /-external-address$/;

/** A 64-bit integer at most. */
const INTEGER = /^[+-]?\d{1,19}$/;

export function compileHeaderMatch(match: HeaderMatch): RequestTest {
  const read = headerReader(match.name);
  const passes = compileHeaderTest(match);
  return (request) => passes(read(request));
}

/** @returns a test of a header's value, undefined when it is missing. */
export function compileHeaderTest(match: HeaderMatch): HeaderTest {
  const { test, isInverted } = match;
  if (test.kind === 'present') {
    const wanted = test.isPresent !== isInverted;
    return match.treatMissingAsEmpty ? () => wanted : (value) => (value !== undefined) === wanted;
  }
  const passes = test.kind === 'range' ? rangeTest(test.start, test.end) : compileByteMatch(test);
  // A missing header matches nothing, not even inverted.
  const missing = match.treatMissingAsEmpty && passes('') !== isInverted;
  return (value) => (value === undefined ? missing : passes(value) !== isInverted);
}

/** @param name in lower case. */
export function headerReader(name: string): ReadHeader {
  if (Object.hasOwn(SPECIAL, name)) return SPECIAL[name]!;
  const id = knownId(name);
  const isAdded = isManaged(name);
  return ({ head, isFiltered }) => {
    if (isFiltered || isAdded) return head.headerByName(name, ',');
    let value: string | undefined;
    for (let index = firstField(head, name, id); index >= 0; index = nextField(head, index, name, id)) {
      value = value === undefined ? head.valueAt(index) : `${value},${head.valueAt(index)}`;
    }
    return value;
  };
}

/**
 * @param name in lower case.
 * @returns the value of the only field, or the values of several; undefined when there is none.
 */
export function headerValuesReader(name: string): (request: RouteRequest) => string | readonly string[] | undefined {
  if (Object.hasOwn(SPECIAL, name)) return SPECIAL[name]!;
  return ({ head }) => {
    const values = head.valuesByName(name);
    return values.length > 1 ? values : values[0];
  };
}

/**
 * @param name in lower case.
 * @returns the value of the first field of that name, whatever follows it.
 */
export function firstValueReader(name: string): ReadHeader {
  if (Object.hasOwn(SPECIAL, name)) return SPECIAL[name]!;
  const id = knownId(name);
  const isAdded = isManaged(name);
  return ({ head, isFiltered }) => {
    if (isFiltered || isAdded) return head.valuesByName(name)[0];
    const index = firstField(head, name, id);
    return index < 0 ? undefined : head.valueAt(index);
  };
}

function isUpgrade(head: RequestHead): boolean {
  return head.methodId !== Method.CONNECT && upgradeType(head) !== '';
}

function isManaged(name: string): boolean {
  return FROM_CONNECTION_MANAGER.has(name) || EXTERNAL_ADDRESS.test(name);
}

/** Of those that have not been dropped, by id where there is one: that is found faster. -1 when there is none. */
function firstField(head: RequestHead, name: string, id: number | undefined): number {
  const index = id === undefined ? head.findByName(name, 0) : head.indexOf(id);
  return index < 0 || !head.isDropped(index) ? index : nextField(head, index, name, id);
}

function nextField(head: RequestHead, from: number, name: string, id: number | undefined): number {
  let index = from;
  do index = id === undefined ? head.findByName(name, index + 1) : head.nextIndexOf(index);
  while (index >= 0 && head.isDropped(index));
  return index;
}

/** An x-envoy-* name is a spelling of the x-proxy-* one, and both share an id. */
function knownId(name: string): number | undefined {
  const known = name.replace(/^x-envoy-/, 'x-proxy-');
  return Object.hasOwn(HEADER_ID, known) ? HEADER_ID[known as KnownHeader] : undefined;
}

function rangeTest(start: number, end: number): StringTest {
  return (text) => {
    if (!INTEGER.test(text)) return false;
    const value = Number(text);
    return value >= start && value < end;
  };
}
