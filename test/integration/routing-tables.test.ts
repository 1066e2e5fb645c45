// The tables of test/routing: each line against the route table itself, and by bytes on the wire.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { RuntimeValues } from '../../src/base/runtime.ts';
import { HeaderValueOption_HeaderAppendAction } from '../../src/config/proto/generated/enums.ts';
import type { DownstreamFacts } from '../../src/data-plane/format/facts.ts';
import { ProxyHeaders } from '../../src/data-plane/http/proxy-headers.ts';
import { keepUpgradeFields, upgradeType } from '../../src/data-plane/http/upgrade-fields.ts';
import type { TlsFacts } from '../../src/data-plane/network/tls/connection-tls.ts';
import type { Route } from '../../src/data-plane/route/route.ts';
import { type RequestSender, RouteRequest } from '../../src/data-plane/route/route-request.ts';
import { RouteTable } from '../../src/data-plane/route/route-table.ts';
import { DataPlaneFixture, loopback } from '../support/data-plane.ts';
import { requestHeadOf } from '../support/heads.ts';
import { type RoutingCase, routingFiles } from '../support/routing-tables.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nserver: upstream\r\nx-upstream: 1\r\n\r\nok';
const NAMES = new ProxyHeaders();
/** What decides by chance has 32 bits. */
const CHANCES = 2 ** 32;

function headText({ method, target, host, lines }: RoutingCase): string {
  return `${[`${method} ${target} HTTP/1.1`, `host: ${host}`, ...lines].join('\r\n')}\r\n\r\n`;
}

function requestOf(asked: RoutingCase): RouteRequest {
  const { marks } = asked;
  const head = requestHeadOf(headText(asked));
  if (marks.has('https')) head.append('x-forwarded-proto', 'https');
  if (upgradeType(head) !== '') keepUpgradeFields(head);
  const random = Math.trunc(Number(marks.get('random') ?? 0) * CHANCES);
  const request = new RouteRequest({ u32: () => random });
  request.read(head, marks.has('internal'), false, senderOf(marks));
  return request;
}

function senderOf(marks: RoutingCase['marks']): RequestSender {
  const metadata = marks.get('metadata')?.split(/[.=]/);
  const state = marks.get('state')?.split('=');
  const certificate = marks.get('certificate');
  const peer = certificate === undefined ? null : {};
  const tls = marks.has('https') || peer !== null ? { peer, isPeerVerified: certificate === 'valid' } : null;
  return {
    dynamicMetadata: metadata && { [metadata[0]!]: { [metadata[1]!]: metadata[2]! } },
    clientAddress: marks.get('from') ?? '',
    downstream: { tls: tls as TlsFacts | null },
    namedHost: null,
    connectionEnds: { local: { ip: '10.0.0.1', port: 8080 } } as DownstreamFacts,
    state: (key: string) => (key === state?.[0] ? state[1] : undefined),
  };
}

function assertRouted({ expected }: RoutingCase, request: RouteRequest, route: Route | undefined): void {
  assert.equal(route !== undefined, expected.hasRoute, `has route: ${route?.name}`);
  if (route === undefined) return;
  const { plan, name } = route;
  if (expected.route !== undefined) assert.equal(name, expected.route);
  if (plan.kind === 'cluster') {
    const target = plan.target ?? plan.choose(request, null);
    assert.equal(target !== undefined, expected.hasCluster);
    if (expected.cluster !== undefined) assert.equal(target?.name, expected.cluster);
  } else if (plan.kind === 'redirect') {
    assert.deepEqual([plan.status, plan.location(request)], [expected.status, expected.location]);
  }
}

/** Several of a name are joined; null without any. */
function headerOf(head: string, name: string): string | null {
  const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return lines.length === 0 ? null : lines.map((line) => line.slice(name.length + 1).trim()).join(',');
}

/** Only a head that says all there is to know goes over the wire; CONNECT and upgrades open tunnels. */
function isOfWire({ marks, method, lines, expected: { cluster } }: RoutingCase): boolean {
  const isUpgrade = lines.some((line) => line.toLowerCase().startsWith('upgrade:'));
  return (
    [...marks.keys()].every((mark) => mark === 'wire') && method !== 'CONNECT' && !(isUpgrade && cluster !== undefined)
  );
}

const files = routingFiles();

test('there are as many cases as were promised', () => {
  assert.ok(files.reduce((sum, { cases }) => sum + cases.length, 0) >= 300);
});

test('each action of header edits stands in a table, for requests and for responses', () => {
  const { routeTable } = files.find(({ name }) => name === 'header-edits')!.settings;
  const routes = routeTable.virtualHosts.flatMap((host) => host.routes);
  for (const direction of ['requestEdits', 'responseEdits'] as const) {
    const actions = routes.flatMap((route) => route[direction].flatMap(({ add }) => add.map(({ action }) => action)));
    assert.equal(new Set(actions).size, Object.keys(HeaderValueOption_HeaderAppendAction).length, direction);
  }
});

for (const { name, settings, clusters, cases } of files) {
  describe(`the table ${name}`, () => {
    const table = new RouteTable(settings.routeTable, NAMES, new RuntimeValues());
    for (const asked of cases.filter(({ marks }) => !marks.has('wire'))) {
      test(asked.text, () => {
        const request = requestOf(asked);
        assertRouted(asked, request, table.find(request));
      });
    }
  });

  describe(`the table ${name} on the wire`, () => {
    const upstreams = new Map<string, WireUpstream & { heads: string[] }>();
    let proxy: DataPlaneFixture;
    let client: WireClient;

    before(async () => {
      proxy = new DataPlaneFixture();
      for (const cluster of clusters) {
        const upstream = await WireUpstream.answering(ANSWER);
        upstreams.set(cluster, upstream);
        proxy.cluster(cluster, [loopback(upstream.port)], { hostname: `${cluster}.upstream` });
      }
      client = new WireClient(await proxy.listen({ ...settings, generateRequestId: false, useRemoteAddress: false }));
    });

    after(async () => {
      client.close();
      await proxy.close();
      for (const upstream of upstreams.values()) await upstream.close();
    });

    for (const asked of cases.filter(isOfWire)) {
      test(asked.text, async () => {
        client.write(headText(asked));
        const { head, body, status } = await client.response();
        const { expected } = asked;
        const [seen] = [...upstreams].flatMap(([cluster, { heads }]) =>
          heads.splice(0).map((text) => ({ cluster, text })),
        );
        if (!expected.hasRoute) assert.equal(status, 404);
        if (expected.status !== undefined) assert.equal(status, expected.status);
        if (expected.location !== undefined) assert.equal(headerOf(head, 'location'), expected.location);
        if (expected.body !== undefined) assert.equal(body, expected.body);
        for (const [header, value] of expected.responseHeaders) assert.equal(headerOf(head, header), value, header);
        if (expected.cluster !== undefined) assert.equal(seen?.cluster, expected.cluster);
        const [, target] = seen?.text.split(' ') ?? [];
        if (expected.path !== undefined) assert.equal(target, expected.path);
        if (expected.host !== undefined) assert.equal(headerOf(seen!.text, 'host'), expected.host);
        for (const [header, value] of expected.requestHeaders)
          assert.equal(headerOf(seen!.text, header), value, header);
      });
    }
  });
}
