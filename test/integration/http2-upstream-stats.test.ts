// What cluster.<name>.http2.* counts of sessions to upstreams, and what their ends count: every name that an upstream can move.

import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, test } from 'node:test';
import { ErrorCode, FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { Http2Settings } from '../../src/snapshot/index.ts';
import type { Http2Stat } from '../../src/stats/index.ts';
import { eventually } from '../support/eventually.ts';
import { data, frame, headers, word } from '../support/http2-session.ts';
import { FrameUpstream, Http2Upstream, http2Proxy } from '../support/http2-upstream.ts';
import { WireClient } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
const HEAD = [[':status', '200']] as const;
const PRIORITY = [0, 0, 0, 0, 16];

interface Case {
  readonly stat: Http2Stat;
  readonly by: string;
  /** What the upstream says to the first request, on this stream. */
  readonly said: (streamId: number) => Buffer | readonly Buffer[];
  readonly http2?: Partial<Http2Settings>;
  /** The session ends, too. */
  readonly isFatal?: true;
}

const CASES: readonly Case[] = [
  { stat: 'rx_reset', by: 'a reset', said: (id) => frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.INTERNAL_ERROR)) },
  { stat: 'tx_reset', by: 'an answer before the end of its request', said: (id) => headers(id, HEAD) },
  {
    stat: 'trailers',
    by: 'trailers',
    said: (id) => [headers(id, HEAD, 0), data(id, 'body'), headers(id, [['x-end', 'yes']])],
  },
  { stat: 'rx_messaging_error', by: 'a head without a status', said: (id) => headers(id, [['x', 'y']]) },
  {
    stat: 'header_overflow',
    by: 'a head of too many fields',
    said: (id) => headers(id, [...HEAD, ...Array.from({ length: 200 }, (_, n) => [`x-${n}`, 'y'] as const)]),
  },
  {
    stat: 'inbound_empty_frames_flood',
    by: 'frames without content',
    said: (id) => [headers(id, HEAD, 0), ...Array.from({ length: 6 }, () => data(id, ''))],
    http2: { maxConsecutiveEmptyFrames: 3 },
    isFatal: true,
  },
  {
    stat: 'inbound_priority_frames_flood',
    by: 'priorities',
    said: (id) => Array.from({ length: 20 }, () => frame(FrameType.PRIORITY, 0, id, PRIORITY)),
    http2: { maxPriorityFramesPerStream: 2 },
    isFatal: true,
  },
  {
    stat: 'inbound_window_update_frames_flood',
    by: 'updates of windows',
    said: () => Array.from({ length: 200 }, () => frame(FrameType.WINDOW_UPDATE, 0, 0, word(1))),
    http2: { maxWindowUpdatesPerDataFrame: 1 },
    isFatal: true,
  },
  {
    stat: 'outbound_control_flood',
    by: 'pings whose answers wait',
    said: () => Array.from({ length: 50 }, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
    http2: { maxOutboundControlFrames: 10 },
    isFatal: true,
  },
  {
    stat: 'outbound_flood',
    by: 'whatever makes too many frames wait',
    said: () => Array.from({ length: 50 }, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
    http2: { maxOutboundFrames: 10 },
    isFatal: true,
  },
  {
    stat: 'keepalive_timeout',
    by: 'silence',
    said: () => [],
    http2: { keepalive: { intervalMs: 5, timeoutMs: 10, jitterPercent: 0, idleIntervalMs: 0 } },
    isFatal: true,
  },
];

describe('sessions to the hosts of a cluster', () => {
  for (const { stat, by, said, http2, isFatal = false } of CASES) {
    test(`count ${by} in ${stat}`, async (t) => {
      const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
        type === FrameType.HEADERS ? Buffer.concat([said(streamId)].flat()) : null,
      );
      const { proxy, port } = await http2Proxy(t, upstream.port, { http2: http2 ?? {} });
      const request = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n';
      const client = new WireClient(port).write(stat === 'tx_reset' ? request : GET);
      await eventually(() => proxy.clusterHttp2Stat('web', stat) === 1, stat);
      const isOver = (): boolean => proxy.clusterStat('web', 'upstream_rq_active') === 0;
      await eventually(isOver, 'the end of the request');
      assert.equal(proxy.clusterHttp2Stat('web', 'streams_active'), 0);
      assert.equal(proxy.http2Stat(stat), 0, 'what counts sessions of clients');
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), isFatal ? 0 : 1);
      for (const name of ['upstream_cx_destroy_with_active_rq', 'upstream_cx_destroy_local_with_active_rq'] as const) {
        assert.equal(proxy.clusterStat('web', name), isFatal ? 1 : 0, name);
      }
      assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_remote_with_active_rq'), 0);
      client.close();
    });
  }

  for (const [by, said] of Object.entries({
    'a reset': (id: number) => frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.REFUSED_STREAM)),
    'a GOAWAY': () => frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(0), word(0)])),
  })) {
    test(`count streams that are refused by ${by} in stream_refused_errors`, async (t) => {
      let asked = 0;
      const upstream = await FrameUpstream.start(t, ({ type, streamId }) => {
        if (type !== FrameType.HEADERS) return null;
        asked += 1;
        return asked === 1 ? said(streamId) : headers(streamId, HEAD);
      });
      const { proxy, port } = await http2Proxy(t, upstream.port);
      const client = new WireClient(port).write(GET);
      assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 200 /);
      assert.equal(proxy.clusterHttp2Stat('web', 'stream_refused_errors'), 1);
      assert.equal(proxy.clusterHttp2Stat('web', 'rx_reset'), by === 'a reset' ? 1 : 0);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 1);
      assert.equal(proxy.http2Stat('stream_refused_errors'), 0, 'what counts sessions of clients');
      client.close();
    });
  }

  test('that end by a fault end all their streams, and count each', async (t) => {
    let asked = 0;
    const upstream = await FrameUpstream.start(t, ({ type }) => {
      if (type !== FrameType.HEADERS) return null;
      asked += 1;
      return asked < 3 ? null : frame(FrameType.PUSH_PROMISE, FrameFlag.END_HEADERS, 1, word(2));
    });
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const clients = Array.from({ length: 3 }, () => new WireClient(port).write(GET));
    for (const client of clients) assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 502 /);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_local_with_active_rq'), 3);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
    assert.equal(proxy.clusterHttp2Stat('web', 'streams_active'), 0);
    for (const client of clients) client.close();
  });

  test('show the streams that run and the octets for which there is no window', async (t) => {
    const upstream = await Http2Upstream.start(t, () => {});
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const request = http.request({ port, host: '127.0.0.1', agent: false, method: 'POST' });
    request.on('error', () => {});
    request.write(Buffer.alloc(300_000));
    const pending = (): number => proxy.clusterHttp2Stat('web', 'pending_send_bytes');
    await eventually(() => pending() > 0, 'octets that wait');
    assert.equal(proxy.clusterHttp2Stat('web', 'streams_active'), 1);
    upstream.streams[0]!.resume();
    await eventually(() => pending() === 0, 'a window');
    request.destroy();
    await eventually(() => proxy.clusterHttp2Stat('web', 'streams_active') === 0, 'the end');
  });

  test('whose connection is cut leave no octets behind', async (t) => {
    const upstream = await Http2Upstream.start(t, () => {});
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const request = http.request({ port, host: '127.0.0.1', agent: false, method: 'POST' });
    request.on('error', () => {});
    request.write(Buffer.alloc(300_000));
    await eventually(() => proxy.clusterHttp2Stat('web', 'pending_send_bytes') > 0, 'octets that wait');
    upstream.sessions[0]!.destroy();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end');
    assert.equal(proxy.clusterHttp2Stat('web', 'pending_send_bytes'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_remote_with_active_rq'), 1);
    request.destroy();
  });
});
