// The example of connections that are asked whether they are still there, with shorter times than it has.

import assert from 'node:assert/strict';
import { connect } from 'node:http2';
import { it } from 'node:test';
import { FrameType } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { eventually } from '../../support/eventually.ts';
import { startExample } from '../../support/examples.ts';
import { FrameClient } from '../../support/http2-clients.ts';
import { frame, headers } from '../../support/http2-session.ts';
import { FrameUpstream, Http2Upstream } from '../../support/http2-upstream.ts';

const ACK = 1;

it('a client that does not answer is given up with its stream', async (t) => {
  const upstream = await Http2Upstream.start(t, (stream) => stream.respond({ ':status': 200 }));
  const times = { 'interval: 60s': 'interval: 0.1s', 'timeout: 20s': 'timeout: 0.3s' };
  await using weir = await startExample('http2-keepalive.yaml', { 9090: upstream.port }, undefined, times);
  const { port } = (await weir.listeners()).get('subscribers')!;
  const client = new FrameClient(t, port);
  client.send(headers(1));
  assert.equal((await client.ofType(FrameType.PING))?.flags, 0);
  await client.ended();
  await weir.untilStat('http2.keepalive_timeout', 1);
  await weir.untilStat('cluster.events.upstream_rq_active', 0);
});

it('a request over a connection whose upstream has gone without a word fails soon', async (t) => {
  let answersPings = true;
  const upstream = await FrameUpstream.start(t, ({ type, flags, payload }) => {
    if (type !== FrameType.PING || flags === ACK || !answersPings) return null;
    return frame(FrameType.PING, ACK, 0, payload);
  });
  const times = {
    'interval: 60s': 'interval: 0.1s',
    'interval: 30s': 'interval: 0.1s',
    // A crowded machine needs some time to answer what is to be answered.
    'timeout: 5s': 'timeout: 2s',
  };
  await using weir = await startExample('http2-keepalive.yaml', { 9090: upstream.port }, undefined, times);
  const { port } = (await weir.listeners()).get('subscribers')!;
  const session = connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  const status = new Promise<unknown>((resolve, reject) => {
    const stream = session.request({ ':path': '/' });
    stream.on('response', (fields) => resolve(fields[':status'])).on('error', reject);
  });
  await eventually(() => upstream.of(FrameType.PING).length >= 3, 'three questions');
  assert.equal(await weir.stat('cluster.events.http2.keepalive_timeout'), 0);
  answersPings = false;
  assert.equal(await status, 503);
  await weir.untilStat('cluster.events.http2.keepalive_timeout', 1);
  // The client was asked in the meantime, and has answered.
  assert.equal(await weir.stat('http2.keepalive_timeout'), 0);
  assert.equal(session.destroyed, false);
});
