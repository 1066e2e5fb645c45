// The files of test/routing: a route configuration as an operator writes it, and what becomes of requests, a line each:
//
//   GET h.example/path?query [header: value] {mark}  =>  what is expected
//
// A target that begins with `/` asks `h.example`. Marks say what no head can: `{internal}`, `{https}`, `{random 0.3}`,
// `{certificate}` and `{certificate valid}`, `{metadata namespace.key=value}`, `{state key=value}`; or that filters decide: `{wire}`.
// What follows `=>` is any of: `no route`, `route NAME`, `cluster NAME`, `no cluster`, `path TARGET` and `host HOST` as the
// upstream sees them, `[name: value]` and `[-name]` for headers that it gets or does not, `301 to LOCATION`,
// `200 says TEXT`, `<name: value>` and `<-name>` for headers of the response.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { load as readYaml } from 'js-yaml';
import type { HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, mustLoad } from './bootstrap.ts';

export interface RoutingCase {
  /** As it stands in the file. */
  readonly text: string;
  readonly method: string;
  readonly host: string;
  /** Path and query; of a CONNECT its authority. */
  readonly target: string;
  readonly lines: readonly string[];
  readonly marks: ReadonlyMap<string, string>;
  readonly expected: Expected;
}

export interface Expected {
  readonly hasRoute: boolean;
  readonly hasCluster: boolean;
  readonly route?: string;
  readonly cluster?: string;
  readonly path?: string;
  readonly host?: string;
  readonly status?: number;
  readonly location?: string;
  readonly body?: string;
  /** Null for those that must not be there. */
  readonly requestHeaders: ReadonlyMap<string, string | null>;
  readonly responseHeaders: ReadonlyMap<string, string | null>;
}

export interface RoutingFile {
  readonly name: string;
  readonly clusters: readonly string[];
  readonly settings: HttpConnectionManagerSettings;
  readonly cases: readonly RoutingCase[];
}

const FOLDER = new URL('../routing/', import.meta.url);
const SIDES = /^(.*?)\s+=>\s+(.*)$/;
const ASKED = /^(\S+) (\S+)((?:\s+(?:\[[^\]]*\]|\{[^}]*\}))*)$/;
const PART = /\[([^\]]*)\]|\{([^}]*)\}/g;
const EXPECTATION =
  /no route|no cluster|route \S+|cluster \S+|path \S+|host \S+|\[[^\]]*\]|<[^>]*>|(\d{3}) to \S+|(\d{3}) says .*|\d{3}/gy;

export function routingFiles(): readonly RoutingFile[] {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));
  return names.sort().map((name) => routingFile(name, readFileSync(new URL(name, FOLDER), 'utf8')));
}

function routingFile(name: string, text: string): RoutingFile {
  const {
    clusters = [],
    manager = {},
    route_config,
    cases,
  } = readYaml(text) as {
    clusters?: string[];
    manager?: JsonObject;
    route_config: JsonObject;
    cases: string;
  };
  const listener = listenerWith([httpFilter({ ...manager, route_config })]);
  const bootstrap = mustLoad({
    static_resources: { listeners: [listener], clusters: clusters.map((cluster) => clusterNamed(cluster)) },
  });
  const { filter } = bootstrap.listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  const lines = cases.split('\n').map((line) => line.trim());
  return {
    name: name.replace('.yaml', ''),
    clusters,
    settings: filter,
    cases: lines.filter((line) => line !== '' && !line.startsWith('#')).map(routingCase),
  };
}

function routingCase(text: string): RoutingCase {
  const [, left, right] = SIDES.exec(text) ?? [];
  assert.ok(left !== undefined && right !== undefined, `no case: ${text}`);
  const [, method, where, rest] = ASKED.exec(left) ?? [];
  assert.ok(method !== undefined && where !== undefined, `no request: ${left}`);
  const slash = where.indexOf('/');
  const isAuthority = method === 'CONNECT';
  const lines: string[] = [];
  const marks = new Map<string, string>();
  for (const [, line, mark] of rest!.matchAll(PART)) {
    if (line !== undefined) lines.push(line);
    else marks.set(mark!.split(' ')[0]!, mark!.split(' ').slice(1).join(' '));
  }
  return {
    text,
    method,
    host: isAuthority ? where : where.slice(0, slash) || 'h.example',
    target: isAuthority ? where : where.slice(slash),
    lines,
    marks,
    expected: expectedOf(right),
  };
}

function expectedOf(text: string): Expected {
  const requestHeaders = new Map<string, string | null>();
  const responseHeaders = new Map<string, string | null>();
  const plain: Record<string, string> = {};
  let hasRoute = true;
  let hasCluster = true;
  EXPECTATION.lastIndex = 0;
  for (let at = 0; at < text.length; at = EXPECTATION.lastIndex) {
    while (text[at] === ' ') at += 1;
    EXPECTATION.lastIndex = at;
    const found = EXPECTATION.exec(text)?.[0];
    assert.ok(found !== undefined, `nothing to expect: ${text.slice(at)}`);
    const [first, second, ...others] = found.split(' ');
    if (found === 'no route') hasRoute = false;
    else if (found === 'no cluster') hasCluster = false;
    else if (found.startsWith('[')) header(requestHeaders, found);
    else if (found.startsWith('<')) header(responseHeaders, found);
    else if (/^\d/.test(found)) {
      plain.status = first!;
      if (second === 'to') plain.location = others.join(' ');
      if (second === 'says') plain.body = others.join(' ');
    } else plain[first!] = second!;
  }
  const { status, ...others } = plain;
  const expected = { hasRoute, hasCluster, requestHeaders, responseHeaders, ...others };
  return status === undefined ? expected : { ...expected, status: Number(status) };
}

function header(headers: Map<string, string | null>, found: string): void {
  const text = found.slice(1, -1);
  const colon = text.indexOf(': ');
  if (text.startsWith('-')) headers.set(text.slice(1), null);
  else headers.set(text.slice(0, colon), text.slice(colon + 2));
}
