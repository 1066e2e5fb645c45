// Requests of which others get a copy, and the copies: what they are, when they go out, and how they end.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatFacts } from '../../../../src/data-plane/format/facts.ts';
import { Trailers } from '../../../../src/data-plane/http/trailers.ts';
import { compileHeaderEdits } from '../../../../src/data-plane/route/header-editor.ts';
import type { ForwardedRequest } from '../../../../src/data-plane/router/forwarded-request.ts';
import {
  type MirrorOptions,
  RequestMirror,
  type ShadowTarget,
} from '../../../../src/data-plane/router/request-mirror.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { contextFor } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { Framing, Method } from '../../../../src/wasm/http1.ts';
import { AttemptBench, type AttemptBenchOptions, EMPTY, OK } from '../../../support/attempt-bench.ts';

const { upstream_rq_timeout } = CLUSTER_STATS.index;
const HEAD = 'POST / HTTP/1.1\r\nhost: h:8\r\na: 1\r\n\r\n';
/** Of a copy without edits. */
const COPY = 'POST / HTTP/1.1\r\nhost: h:8\r\na: 1\r\nx-proxy-internal: true\r\n\r\n';
const TICK_MS = 8;
const DEFAULT_TIMEOUT_MS = 15_000;

/** The request itself, which notes what it is asked. */
class NotingRequest implements ForwardedRequest {
  readonly cluster: Cluster;
  readonly head: string;
  host: Host | null = null;
  attempts = 3;
  isSending = false;
  canSend = false;
  heldBytes = 7;
  /** What `send` says. */
  goesOn = true;
  readonly asked: string[] = [];

  constructor(cluster: Cluster, head: string) {
    this.cluster = cluster;
    this.head = head;
  }

  start(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.asked.push(`start ${bytes.toString('latin1', start, end)}${isEnd ? '|' : ''}`);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.asked.push(`send ${bytes.toString('latin1', start, end)}${isEnd ? '|' : ''}`);
    return this.goesOn;
  }

  resumeResponse(): void {
    this.asked.push('resume');
  }

  cancel(isReset: boolean): void {
    this.asked.push(`cancel ${isReset}`);
  }

  timeOut(stat: number): void {
    this.asked.push(`timeOut ${stat}`);
  }
}

/** Copies go to the cluster of the bench. */
class MirrorBench extends AttemptBench {
  readonly origin = {
    methodId: Method.POST as number,
    isGrpc: false,
    isInternal: false,
    requestFraming: Framing.CHUNKED as number,
    requestTrailers: null as Trailers | null,
    get facts(): FormatFacts {
      throw new Error('no fact was to be asked for');
    },
  };
  readonly original: NotingRequest;
  readonly mirror: RequestMirror;

  constructor(
    targets: readonly Partial<ShadowTarget>[] = [{}],
    { head = HEAD, ...options }: Partial<MirrorOptions> & AttemptBenchOptions & { readonly head?: string } = {},
  ) {
    super(options);
    this.original = new NotingRequest(this.cluster, head);
    this.mirror = new RequestMirror(this.context, this.origin, this.original, {
      clusters: this.clusters,
      targets: targets.map((target) => ({
        cluster: 'web',
        hostOf: (host) => host,
        editor: null,
        pickContext: null,
        ...target,
      })),
      limitBytes: 100,
      timeoutMs: 0,
      ...options,
    });
  }

  /** Whole, with its copies accepted. */
  mirrored(body = ''): this {
    this.start(this.mirror, body);
    for (const socket of this.sockets) socket.accept();
    return this;
  }
}

describe('a request that is mirrored', () => {
  test('is asked and told as if it were not', () => {
    const bench = new MirrorBench();
    const { mirror, original } = bench;
    assert.equal(mirror.cluster, original.cluster);
    assert.equal(mirror.head, HEAD);
    for (const flag of [true, false]) {
      Object.assign(original, { host: flag ? bench.cluster.hosts[0] : null, isSending: flag, canSend: flag });
      assert.deepEqual([mirror.host, mirror.isSending, mirror.canSend], [original.host, flag, flag]);
    }
    assert.equal(mirror.attempts, 3);
    bench.start(mirror, 'ab', false);
    for (const goesOn of [true, false]) {
      original.goesOn = goesOn;
      assert.equal(bench.send(mirror, 'cd'), goesOn);
    }
    bench.send(mirror, '', true);
    mirror.resumeResponse();
    assert.deepEqual(original.asked, ['start ab', 'send cd', 'send cd', 'send |', 'resume']);
  });

  for (const end of ['cancel', 'timeOut'] as const) {
    test(`has no copies when it ends early by ${end}`, () => {
      const bench = new MirrorBench();
      bench.start(bench.mirror, 'ab', false);
      if (end === 'cancel') bench.mirror.cancel(true);
      else bench.mirror.timeOut(upstream_rq_timeout);
      assert.equal(bench.original.asked.at(-1), end === 'cancel' ? 'cancel true' : `timeOut ${upstream_rq_timeout}`);
      bench.send(bench.mirror, 'cd', true);
      assert.deepEqual(bench.sockets, []);
      assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
    });
  }

  test('has no copies beyond the limit of its body, which is counted once', () => {
    const bench = new MirrorBench([{}], { limitBytes: 3 });
    bench.start(bench.mirror, 'ab', false);
    bench.send(bench.mirror, 'c');
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
    bench.send(bench.mirror, 'd');
    bench.send(bench.mirror, 'e', true);
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
    assert.deepEqual(bench.sockets, []);
    assert.deepEqual(bench.original.asked, ['start ab', 'send c', 'send d', 'send e|']);
  });
});

describe('a copy', () => {
  test('goes out when the request has come in full', () => {
    const bench = new MirrorBench();
    bench.start(bench.mirror, 'ab', false);
    bench.send(bench.mirror, 'cd');
    assert.deepEqual(bench.sockets, []);
    bench.send(bench.mirror, 'ef', true);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${COPY}abcdef`);
    bench.upstream.send(OK);
    // The request has been sent in full: another can go out on its connection.
    assert.ok(bench.upstream.isOpen);
    bench.send(bench.mirror, '', true);
    assert.equal(bench.sockets.length, 1);
    bench.assertNothingLeft();
  });

  test('goes out at once with a request that comes at once, to each cluster that is there', () => {
    const bench = new MirrorBench([{}, { cluster: 'gone' }, {}]).mirrored('ab');
    assert.deepEqual(
      bench.sockets.map(({ received }) => received),
      [`${COPY}ab`, `${COPY}ab`],
    );
  });

  test('has a head of its own', () => {
    const editor = compileHeaderEdits([
      { remove: ['a'], add: [{ name: 'b', value: ['2'], action: 'append', keepsEmptyValue: false }] },
    ]);
    const bench = new MirrorBench([{ editor, hostOf: (host) => `${host}-copy` }]).mirrored();
    assert.equal(
      bench.upstream.received,
      'POST / HTTP/1.1\r\nhost: h:8-copy\r\nb: 2\r\nx-proxy-internal: true\r\n\r\n',
    );
    assert.equal(bench.mirror.head, HEAD);
  });

  test('of a request without a host has what the mirror makes of none', () => {
    const bench = new MirrorBench([{ hostOf: (host) => `<${host}>` }], { head: 'POST / HTTP/1.1\r\n\r\n' }).mirrored();
    assert.equal(bench.upstream.received, 'POST / HTTP/1.1\r\nhost: <>\r\nx-proxy-internal: true\r\n\r\n');
  });

  for (const enableTrailers of [true, false]) {
    for (const isLater of [true, false]) {
      test(`has ${enableTrailers ? 'the' : 'no'} trailers of the request, ${isLater ? 'later' : 'at once'}`, () => {
        const bench = new MirrorBench([{}], { cluster: { enableTrailers } });
        if (isLater) bench.start(bench.mirror, '1\r\nx\r\n', false);
        bench.origin.requestTrailers = Trailers.parse('a: 1');
        if (isLater) bench.send(bench.mirror, '0\r\n\r\n', true);
        else bench.start(bench.mirror, '1\r\nx\r\n0\r\n\r\n');
        bench.upstream.accept();
        assert.equal(bench.upstream.received, `${COPY}1\r\nx\r\n0\r\n${enableTrailers ? 'a: 1\r\n' : ''}\r\n`);
      });
    }
  }

  test('has none where there are none', () => {
    const bench = new MirrorBench([{}], { cluster: { enableTrailers: true } }).mirrored('1\r\nx\r\n0\r\n\r\n');
    assert.equal(bench.upstream.received, `${COPY}1\r\nx\r\n0\r\n\r\n`);
  });

  test('goes to the host that the request names', () => {
    const pickContext = contextFor({ kind: 'ip', ip: '127.0.0.1', port: 2 });
    const originalDst = { header: null, port: 0 };
    const bench = new MirrorBench([{ pickContext }], { cluster: { originalDst }, hosts: 2 }).mirrored();
    assert.deepEqual(bench.hostCounts(1), { active: 1, total: 1 });
  });

  for (const isInternal of [true, false]) {
    test(`is counted like a request of its own, internal: ${isInternal}`, () => {
      const bench = new MirrorBench();
      bench.origin.isInternal = isInternal;
      bench.mirrored();
      bench.wait(40);
      bench.upstream.send(OK);
      assert.equal(bench.stat('upstream_rq_completed'), 1);
      const origin = isInternal ? 'internal' : 'external';
      assert.ok(bench.workers.dynamicStats().includes(`cluster.web.${origin}.upstream_rq_200`));
      assert.deepEqual(bench.workers.clusterSamples(bench.snapshot, 'upstream_rq_time'), [40]);
      bench.assertNothingLeft();
    });
  }

  test('is sent once more like a request of its own', () => {
    const retries = [Method.GET, Method.POST].map((methodId) => {
      const bench = new MirrorBench();
      bench.origin.methodId = methodId;
      bench.mirrored();
      bench.upstream.send(OK);
      new RequestMirror(bench.context, bench.origin, bench.original, {
        clusters: bench.clusters,
        targets: [{ cluster: 'web', hostOf: (host) => host, editor: null, pickContext: null }],
        limitBytes: 0,
        timeoutMs: 0,
      }).start(EMPTY, 0, 0, true);
      bench.upstream.reset();
      return bench.stat('upstream_rq_retry');
    });
    assert.deepEqual(retries, [1, 0]);
  });

  test('has an answer of any length, which is read to its end', () => {
    const bench = new MirrorBench().mirrored();
    bench.upstream.send('HTTP/1.1 200 X\r\ncontent-length: 200000\r\n\r\n');
    for (let piece = 0; piece < 4; piece++) {
      assert.ok(bench.upstream.isRead);
      assert.equal(bench.upstream.owner.readBuffer().length, 64 * 1024);
      bench.upstream.send('x'.repeat(50_000));
    }
    assert.ok(bench.upstream.isOpen);
    bench.assertNothingLeft();
  });

  test('opens no tunnel', () => {
    const bench = new MirrorBench().mirrored();
    bench.upstream.send('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    assert.equal(bench.stat('upstream_cx_protocol_error'), 1);
    bench.assertNothingLeft();
  });
});

describe('the end of a copy', () => {
  /** The cluster leaves while a copy is under way. @returns how often it was found to be unused. */
  function leaving(bench: MirrorBench): { count: number } {
    const unused = { count: 0 };
    bench.cluster.retire(() => void unused.count++);
    return unused;
  }

  const ends: Readonly<Record<string, (bench: MirrorBench) => void>> = {
    'an answer': (bench) => bench.upstream.send('HTTP/1.1 204 X\r\n\r\n'),
    'an answer with a body': (bench) => {
      bench.upstream.send('HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nab');
      bench.upstream.send('cd');
    },
    'a failure': (bench) => bench.upstream.reset(),
    'its time': (bench) => bench.wait(DEFAULT_TIMEOUT_MS + TICK_MS),
  };
  for (const [what, end] of Object.entries(ends)) {
    test(`by ${what} is the end of its use of the cluster`, async () => {
      const bench = new MirrorBench().mirrored();
      const unused = leaving(bench);
      await bench.settle();
      assert.equal(unused.count, 0);
      end(bench);
      await bench.settle();
      assert.equal(unused.count, 1);
      assert.equal(bench.context.wheel.size, 0);
      bench.wait(2 * DEFAULT_TIMEOUT_MS);
      await bench.settle();
      assert.equal(unused.count, 1);
      assert.equal(bench.stat('upstream_rq_timeout'), what === 'its time' ? 1 : 0);
      bench.assertNothingLeft();
    });
  }

  test('comes with its last byte, not before', async () => {
    const bench = new MirrorBench().mirrored();
    const unused = leaving(bench);
    bench.upstream.send('HTTP/1.1 200 X\r\ncontent-length: 6\r\n\r\nab');
    bench.upstream.send('cd');
    await bench.settle();
    assert.equal(unused.count, 0);
    bench.wait(DEFAULT_TIMEOUT_MS + TICK_MS);
    assert.ok(!bench.upstream.isLive);
    await bench.settle();
    assert.equal(unused.count, 1);
  });

  test('comes at once where there is no host', async () => {
    const bench = new MirrorBench([{}], { hosts: 0 }).mirrored();
    const unused = leaving(bench);
    await bench.settle();
    assert.equal(unused.count, 1);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 1);
  });

  for (const [timeoutMs, maxStreamDurationMs, endMs, stat] of [
    [0, 0, DEFAULT_TIMEOUT_MS, 'upstream_rq_timeout'],
    [1000, 0, 1000, 'upstream_rq_timeout'],
    [20_000, 0, 20_000, 'upstream_rq_timeout'],
    [1000, 400, 400, 'upstream_rq_max_duration_reached'],
    [1000, 1000, 1000, 'upstream_rq_timeout'],
    [1000, 2000, 1000, 'upstream_rq_timeout'],
    [0, 16_000, DEFAULT_TIMEOUT_MS, 'upstream_rq_timeout'],
  ] as const) {
    test(`comes after ${endMs} ms, of ${timeoutMs} that the route has and ${maxStreamDurationMs} that its cluster has`, () => {
      const bench = new MirrorBench([{}], { timeoutMs, cluster: { maxStreamDurationMs } }).mirrored();
      bench.wait(endMs - TICK_MS);
      assert.ok(bench.upstream.isOpen);
      bench.wait(2 * TICK_MS);
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.stat(stat), 1);
      bench.assertNothingLeft();
    });
  }
});
