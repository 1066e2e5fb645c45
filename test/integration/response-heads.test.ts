// Heads of responses that are larger than a cluster takes, by bytes on the wire.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterOverrides } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, httpBench, RESET_BODY, TELL_FLAGS } from '../support/http-bench.ts';
import { type WireClient, WireUpstream } from '../support/wire.ts';

const FIRST_LINE = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n';

/** A head of this many bytes. */
function headOf(bytes: number): string {
  const rest = bytes - FIRST_LINE.length - 'x: \r\n\r\n'.length;
  return `${FIRST_LINE}x: ${'a'.repeat(rest)}\r\n\r\n`;
}

/** A head with this many fields. */
function headWith(fields: number): string {
  return `${FIRST_LINE}${'x: y\r\n'.repeat(fields - 1)}\r\n`;
}

interface Case {
  readonly limits?: NonNullable<ClusterOverrides['responseHeadLimits']>;
  readonly passes: string;
  readonly fails: string;
  readonly reason: string;
}

const CASES: Readonly<Record<string, Case>> = {
  'by default 60 KiB': {
    passes: headOf(60 * 1024),
    fails: headOf(60 * 1024 + 1),
    reason: 'head_too_large',
  },
  'by default 100 fields': { passes: headWith(100), fails: headWith(101), reason: 'too_many_headers' },
  'as many bytes as the cluster says': {
    limits: { maxHeadBytes: 1024, maxFields: 100 },
    passes: headOf(1024),
    fails: headOf(1025),
    reason: 'head_too_large',
  },
  'as many fields as the cluster says': {
    limits: { maxHeadBytes: 60 * 1024, maxFields: 2 },
    passes: headWith(2),
    fails: headWith(3),
    reason: 'too_many_headers',
  },
  'more than by default': {
    limits: { maxHeadBytes: 65_535, maxFields: 1024 },
    passes: headOf(65_535),
    fails: headOf(65_536),
    reason: 'head_too_large',
  },
};

for (const [name, { limits, passes, fails, reason }] of Object.entries(CASES)) {
  test(`the head of a response may have ${name}; beyond it the client gets 502`, async (t) => {
    const upstream = await WireUpstream.start((socket, index) => {
      socket.on('data', () => socket.write(index === 0 ? fails : passes));
      socket.on('end', () => socket.end());
    });
    const { client, proxy } = await httpBench(t, {
      upstream,
      routeFields: { responseEdits: [TELL_FLAGS] },
      cluster: limits === undefined ? {} : { responseHeadLimits: limits },
    });
    const wire = client().write(GET);
    const refused = await wire.response();
    assert.deepEqual(
      [refused.status, refused.body],
      [502, `${RESET_BODY}protocol error, transport failure reason: ${reason}`],
    );
    assert.match(refused.head, /\r\nx-flags: UPE\r\n/);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_tx_reset'), 1);
    wire.write(GET);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
    assertBalanced(proxy);
  });
}

test('a head that trickles in and never ends is cut off at the limit', async (t) => {
  let isGone = false;
  const upstream = await WireUpstream.start((socket) => {
    socket.on('close', () => {
      isGone = true;
    });
    const trickle = (): void => {
      if (!isGone) socket.write('x: y\r\n', () => setImmediate(trickle));
    };
    socket.once('data', () => socket.write(FIRST_LINE, trickle));
  });
  const { client, proxy } = await httpBench(t, {
    upstream,
    cluster: { responseHeadLimits: { maxHeadBytes: 2048, maxFields: 1024 } },
  });
  assert.equal((await client().write(GET).response()).status, 502);
  assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
  assertBalanced(proxy);
});

test('trailers of a response have the limits of its head', async (t) => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n';
  const upstream = await WireUpstream.start((socket, index) => {
    socket.once('data', () => socket.write(`${chunked}${'x: y\r\n'.repeat(index === 0 ? 3 : 2)}\r\n`));
    socket.on('end', () => socket.end());
  });
  const { client, proxy } = await httpBench(t, {
    upstream,
    cluster: { responseHeadLimits: { maxHeadBytes: 2048, maxFields: 2 } },
  });
  const wire = client().write(GET);
  await wire.response().catch(() => undefined);
  assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
  assert.match(await client().write(GET).until('0\r\n\r\n'), /^HTTP\/1\.1 200/);
  assert.equal(proxy.clusterStat('web', 'upstream_cx_protocol_error'), 1);
});

test('a length beside chunks is left out where the cluster bears it, and the connection is not used again', async (t) => {
  const both = 'HTTP/1.1 200 OK\r\ncontent-length: 999\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', () => socket.write(both));
    socket.on('end', () => socket.end());
  });
  const { client, proxy } = await httpBench(t, {
    upstream,
    cluster: { responseHeadLimits: { maxHeadBytes: 2048, maxFields: 10, takesChunkedLength: true } },
  });
  const wire = client();
  for (const connections of [1, 2]) {
    const text = await wire.write(GET).until('0\r\n\r\n');
    assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
    assert.doesNotMatch(text, /content-length/i);
    assert.match(text, /\r\n\r\n2\r\nok\r\n0\r\n\r\n$/);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_total'), connections);
  }
  assertBalanced(proxy);
});

test('a reply in the place of an upstream that fails late tells of its own request, also where nothing is logged', async (t) => {
  const upstream = await WireUpstream.start((socket, index) => {
    // The first request waits until another has come and gone over the same worker.
    socket.on('data', () => index > 0 && socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  });
  const { client } = await httpBench(t, {
    upstream,
    routeFields: {
      responseEdits: [
        {
          remove: [],
          add: [{ ...TELL_FLAGS.add[0]!, name: 'x-told', value: [{ operator: 'REQ', args: ['x-id'], maxLength: 0 }] }],
        },
      ],
    },
  });
  const ask = (id: string): WireClient => client().write(`GET / HTTP/1.1\r\nhost: a\r\nx-id: ${id}\r\n\r\n`);
  const first = ask('first');
  await eventually(() => upstream.sockets.length === 1, 'the first request');
  assert.match((await ask('second').response()).head, /\r\nx-told: second\r\n/);
  upstream.sockets[0]!.destroy();
  const late = await first.response();
  assert.equal(late.status, 503);
  assert.match(late.head, /\r\nx-told: first\r\n/);
});
