// Copies of requests: what they are, where they go, and that the request itself knows nothing of them.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { HeaderAddition, HeaderEdits, MirrorPolicy } from '../../src/snapshot/index.ts';
import { loopback, retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBench, type HttpBenchOptions, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { unusedPort, WireUpstream } from '../support/wire.ts';

const SILENT = '';

function mirrorTo(cluster: string, overrides: Partial<MirrorPolicy> = {}): MirrorPolicy {
  return {
    cluster,
    clusterHeader: '',
    fraction: { key: '', default: { numerator: 100, denominator: 100 } },
    appendsHostSuffix: true,
    hostRewrite: '',
    headEdits: [],
    ...overrides,
  };
}

interface MirrorBench extends HttpBench {
  /** What the shadow cluster has received. */
  readonly copies: () => string;
}

async function mirrored(
  t: TestContext,
  mirrors: readonly MirrorPolicy[],
  options: HttpBenchOptions & { readonly shadowAnswer?: string } = {},
): Promise<MirrorBench> {
  const received: string[] = [];
  const shadow = await WireUpstream.start((socket) => {
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk.toString('latin1'));
      const answer = options.shadowAnswer ?? OK;
      if (answer !== SILENT) socket.write(answer);
    });
    socket.on('end', () => socket.end());
  });
  const upstream = options.upstream ?? (await WireUpstream.answering(OK));
  const bench = await httpBench(t, { ...options, upstream, route: { mirrors, ...options.route } });
  bench.proxy.cluster('shadow', [loopback(shadow.port)]);
  t.after(() => shadow.close());
  return { ...bench, copies: () => received.join('') };
}

async function copied({ proxy }: HttpBench, count = 1): Promise<void> {
  await eventually(() => proxy.clusterStat('shadow', 'upstream_rq_completed') === count, `${count} copies are done`);
}

describe('a copy of a request', () => {
  test('has a head of its own where the mirror changes it', async (t) => {
    const add = (name: string, value: string, action: HeaderAddition['action']): HeaderEdits => ({
      remove: [],
      add: [{ name, value: [value], action, keepsEmptyValue: false }],
    });
    const headEdits = [
      { remove: ['x-secret'], add: [] },
      add('x-copy', 'one', 'append'),
      add('x-copy', 'two', 'append'),
      add('x-own', 'copy', 'overwrite'),
      add('x-secret', 'none', 'add-if-absent'),
    ];
    const upstream = await WireUpstream.answering(OK);
    const bench = await mirrored(t, [mirrorTo('shadow', { headEdits })], { upstream });
    await bench.client().write('GET / HTTP/1.1\r\nhost: x\r\nX-Secret: s\r\nx-own: 1\r\n\r\n').response();
    await copied(bench);
    const fieldsOf = (head: string): string[] =>
      head.split('\r\n').filter((line) => /^x-(secret|copy|own)/i.test(line));
    assert.deepEqual(fieldsOf(bench.copies()), ['x-copy: one', 'x-copy: two', 'x-own: copy', 'x-secret: none']);
    assert.deepEqual(fieldsOf(upstream.heads[0]!), ['X-Secret: s', 'x-own: 1']);
  });

  test('has this machine behind all whom the request has come through, which is none of the request itself', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const bench = await mirrored(t, [mirrorTo('shadow')], { upstream, localAddress: '192.0.2.7' });
    const client = bench.client();
    await client
      .write('GET / HTTP/1.1\r\nhost: x\r\nX-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 192.0.2.2\r\n\r\n')
      .response();
    await client.write(GET).response();
    await copied(bench, 2);
    const senders = (head: string): string[] => head.split('\r\n').filter((line) => /^x-forwarded-for/i.test(line));
    assert.deepEqual(senders(bench.copies()).sort(), [
      'x-forwarded-for: 192.0.2.1, 192.0.2.2,192.0.2.7',
      'x-forwarded-for: 192.0.2.7',
    ]);
    assert.doesNotMatch(upstream.heads.join(''), /192\.0\.2\.7/);
  });

  test('is a request of the inside, wherever the request came from', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    const headEdits = [{ remove: ['x-proxy-internal'], add: [] }];
    const bench = await mirrored(t, [mirrorTo('shadow', { headEdits })], { upstream });
    const client = bench.client();
    for (const from of ['10.1.1.1', '192.0.2.1', '10.1.1.1']) {
      await client.write(`GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\n\r\n`).response();
    }
    await copied(bench, 3);
    const marks = (heads: string): readonly string[] => heads.match(/^x-[a-z]+-internal:.*$/gim) ?? [];
    const mark = 'x-proxy-internal: true';
    assert.deepEqual(marks(bench.copies()), [mark, mark, mark]);
    assert.deepEqual(marks(upstream.heads.join('')), [mark, mark]);
  });

  test('goes to the cluster of the mirror, with a host of its own', async (t) => {
    const bench = await mirrored(t, [mirrorTo('shadow')]);
    const wire = bench.client().write('GET /path?q HTTP/1.1\r\nHost: a.example:8080\r\nx-own: 1\r\n\r\n');
    assert.equal((await wire.response()).body, 'ok');
    await copied(bench);
    assert.match(bench.copies(), /^GET \/path\?q HTTP\/1\.1\r\n/);
    assert.match(bench.copies(), /\r\nhost: a\.example-shadow:8080\r\n/i);
    assert.match(bench.copies(), /\r\nx-own: 1\r\n/);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_completed'), 1);
    assertBalanced(bench.proxy);
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_active'), 0);
  });

  test('keeps the host, or gets another one, where the mirror says so', async (t) => {
    const mirrors = [
      mirrorTo('shadow', { appendsHostSuffix: false }),
      mirrorTo('shadow', { hostRewrite: 'other.example' }),
    ];
    const bench = await mirrored(t, mirrors);
    await bench.client().write(GET).response();
    await copied(bench, 2);
    assert.match(bench.copies(), /\r\nhost: x\r\n/);
    assert.match(bench.copies(), /\r\nhost: other\.example\r\n/);
  });

  for (const framing of ['content-length: 10', 'transfer-encoding: chunked']) {
    test(`has the same body: ${framing}`, async (t) => {
      const bench = await mirrored(t, [mirrorTo('shadow')]);
      const body = framing.includes('10') ? '0123456789' : '5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n';
      const wire = bench.client().write(`POST / HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n${body.slice(0, 4)}`);
      await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request has begun');
      assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_total'), 0);
      wire.write(body.slice(4));
      await eventually(() => bench.copies().endsWith(body), 'the copy has come');
      await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_completed') === 1, 'the request is done');
    });
  }

  test('is not made of a body beyond the limit, which is counted', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', (chunk: Buffer) => {
        if (chunk.toString('latin1').endsWith('end')) socket.write(OK);
      });
    });
    const bench = await mirrored(t, [mirrorTo('shadow')], { upstream, route: { replayLimitBytes: 9 } });
    const wire = bench.client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n0123456end');
    assert.equal((await wire.response()).status, 200);
    assert.equal(bench.proxy.clusterStat('web', 'retry_or_shadow_abandoned'), 1);
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_total'), 0);
    assertBalanced(bench.proxy);
  });

  test('is made for a share of the requests, which the runtime may change', async (t) => {
    let drawn = 0;
    const fraction = { key: 'mirror.share', default: { numerator: 50, denominator: 100 } };
    const bench = await mirrored(t, [mirrorTo('shadow', { fraction })], { random: { u32: () => drawn } });
    const wire = bench.client();
    for (drawn of [49, 50]) await wire.write(GET).response();
    await copied(bench);
    bench.proxy.dataPlane.updateRuntime(new Map([['mirror.share', '100']]));
    drawn = 99;
    await wire.write(GET).response();
    await copied(bench, 2);
  });

  test('goes to the cluster that a header names, and nowhere when there is none', async (t) => {
    const bench = await mirrored(t, [mirrorTo('', { clusterHeader: 'x-to' }), mirrorTo('unknown')]);
    const wire = bench.client().write('GET / HTTP/1.1\r\nhost: x\r\nx-to: shadow\r\n\r\n');
    assert.equal((await wire.response()).status, 200);
    await copied(bench);
    assert.equal((await wire.write(GET).response()).status, 200);
    assertBalanced(bench.proxy);
  });

  test('that nobody answers ends with its time, and the request has long been answered', async (t) => {
    const clock = new ManualClock();
    const bench = await mirrored(t, [mirrorTo('shadow')], { clock, timeoutMs: 100, shadowAnswer: SILENT });
    assert.equal((await bench.client().write(GET).response()).status, 200);
    await eventually(() => bench.copies() !== '', 'the copy has come');
    clock.turn(120);
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_timeout'), 1);
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_active'), 0);
    assertBalanced(bench.proxy);
  });

  test('that fails changes nothing for the request', async (t) => {
    const bench = await mirrored(t, [mirrorTo('shadow')]);
    bench.proxy.cluster('shadow', [loopback(await unusedPort())]);
    const wire = bench.client();
    assert.equal((await wire.write(GET).response()).status, 200);
    bench.proxy.cluster('shadow', []);
    assert.equal((await wire.write(GET).response()).status, 200);
    await eventually(() => bench.proxy.clusterStat('shadow', 'upstream_cx_connect_fail') === 1, 'the copy has failed');
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_cx_none_healthy'), 1);
    assertBalanced(bench.proxy);
  });

  test('is one for a request that is tried again', async (t) => {
    let count = 0;
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => socket.write(++count === 1 ? 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n' : OK));
    });
    const bench = await mirrored(t, [mirrorTo('shadow')], { upstream, route: { retry: retrySettings() } });
    assert.equal((await bench.client().write(GET).response()).status, 200);
    await copied(bench);
    assert.equal(bench.proxy.clusterStat('shadow', 'upstream_rq_total'), 1);
    assertBalanced(bench.proxy);
  });
});
