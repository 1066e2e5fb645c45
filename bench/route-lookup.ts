// What it costs to find the route of a request: among 10,000 virtual hosts, and among 10,000 routes of one of them, by what
// decides; beside it, a bare loop over as many prefixes and a bare look-up in a Map. CPU time, which others on the machine
// change least; medians of many rounds. And what it costs to make the tables.
// Bar: 2 us by host, path and prefix, 6 us by regular expressions.
// node bench/route-lookup.ts

import { RuntimeValues } from '../src/base/runtime.ts';
import { ProxyHeaders } from '../src/data-plane/http/proxy-headers.ts';
import { RouteRequest } from '../src/data-plane/route/route-request.ts';
import { RouteTable } from '../src/data-plane/route/route-table.ts';
import type { PathMatch, RouteSnapshot, VirtualHostSnapshot } from '../src/snapshot/index.ts';
import type { RequestHead } from '../src/wasm/http1.ts';

const MANY = 10_000;
const ASKED = 500;
const ROUNDS = 31;
const NAMES = new ProxyHeaders();
const RUNTIME = new RuntimeValues();

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}

function route(kind: PathMatch['kind'], value: string, caseSensitive = true): RouteSnapshot {
  return {
    name: value,
    match: { kind, value, caseSensitive },
    conditions: null,
    action: { kind: 'direct-response', status: 200, body: new Uint8Array() },
    requestEdits: [],
    responseEdits: [],
    countsAttemptsInRequest: false,
    countsAttemptsInResponse: false,
  };
}

function requestTo(host: string, path: string): RouteRequest {
  const request = new RouteRequest({ u32: () => 0 });
  request.read(
    { hasPath: () => false, path: () => path, authority: () => host, methodId: 0 } as unknown as RequestHead,
    false,
    false,
  );
  return request;
}

/** @param asked what requests ask for: host and path of the nth. */
function measure(
  name: string,
  virtualHosts: readonly VirtualHostSnapshot[],
  asked: (index: number) => readonly [host: string, path: string],
): void {
  const before = cpuMs();
  const snapshot = { name: 'bench', virtualHosts, ignoresPort: false, internalOnlyHeaders: [] };
  const table = new RouteTable(snapshot, NAMES, RUNTIME);
  const made = cpuMs() - before;
  const requests = Array.from({ length: ASKED }, (_, index) => requestTo(...asked((index * 7919) % MANY)));
  for (const request of requests) if (table.find(request) === undefined) throw new Error(`${name}: nothing found`);
  const us = timed(() => {
    for (const request of requests) table.find(request);
  });
  console.log(`${name.padEnd(44)} ${us.toFixed(2).padStart(8)} us   made in ${made.toFixed(0)} ms`);
}

/** Microseconds of one of the calls that `round` makes `ASKED` of. */
function timed(round: () => void): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = cpuMs();
    for (let count = 0; count < 20; count++) round();
    return ((cpuMs() - start) * 1000) / (20 * ASKED);
  });
  return median(rounds);
}

function hosts(domain: (index: number) => string): readonly VirtualHostSnapshot[] {
  const routes = [route('prefix', '/')];
  return Array.from({ length: MANY }, (_, index) => ({ name: `host-${index}`, domains: [domain(index)], routes }));
}

function routes(of: (index: number) => RouteSnapshot, last: readonly RouteSnapshot[] = []): VirtualHostSnapshot[] {
  return [{ name: 'all', domains: ['*'], routes: [...Array.from({ length: MANY }, (_, index) => of(index)), ...last] }];
}

measure(
  'virtual hosts by name',
  hosts((index) => `svc-${index}.example.com`),
  (index) => [`svc-${index}.example.com`, '/'],
);
measure(
  'virtual hosts by suffix',
  hosts((index) => `*.svc-${index}.example.com`),
  (index) => [`www.svc-${index}.example.com`, '/'],
);
measure(
  'routes by path',
  routes((index) => route('path', `/api/v1/service-${index}`)),
  (index) => ['h', `/api/v1/service-${index}`],
);
measure(
  'routes by prefix',
  routes((index) => route('prefix', `/api/v1/service-${index}/`)),
  (index) => ['h', `/api/v1/service-${index}/users/42`],
);
measure(
  'routes by prefix, none but the last',
  routes((index) => route('prefix', `/api/v1/service-${index}/`), [route('prefix', '/')]),
  (index) => ['h', `/api/v2/service-${index}/users/42`],
);
measure(
  'routes by prefix, whatever the case',
  routes((index) => route('prefix', `/Api/Service-${index}/`, false)),
  (index) => ['h', `/api/service-${index}/users/42`],
);
measure(
  'routes by segments',
  routes((index) => route('path-separated-prefix', `/api/v1/service-${index}`)),
  (index) => ['h', `/api/v1/service-${index}/users/42`],
);
measure(
  'routes by regular expressions, told apart early',
  routes((index) => route('regex', `/service-${index}/[a-z]+/[0-9]+`)),
  (index) => ['h', `/service-${index}/users/42`],
);
measure(
  'routes by regular expressions, told apart late',
  routes((index) => route('regex', `/[a-z]+/service-${index}/[0-9]+`)),
  (index) => ['h', `/users/service-${index}/42`],
);

const prefixes = Array.from({ length: MANY }, (_, index) => `/api/v1/service-${index}/`);
const paths = Array.from({ length: ASKED }, (_, index) => `/api/v1/service-${(index * 7919) % MANY}/users/42`);
const map = new Map(paths.map((path, index) => [path, index]));
let found = 0;
const loop = timed(() => {
  // One of twenty: it takes that long.
  for (let index = 0; index < ASKED / 20; index++) {
    const path = paths[index]!;
    for (const prefix of prefixes) if (path.startsWith(prefix)) found += 1;
  }
});
const lookup = timed(() => {
  for (const path of paths) found += map.get(path)!;
});
console.log(`${'a bare loop over as many prefixes'.padEnd(44)} ${(loop * 20).toFixed(2).padStart(8)} us`);
console.log(`${'a bare look-up in a Map'.padEnd(44)} ${lookup.toFixed(2).padStart(8)} us${found === 0 ? '!' : ''}`);
