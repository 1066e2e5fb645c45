// HTTP filters and upgrades: which ones a request meets, and what they see of a tunnel.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { FilterCallbacks, HttpFilter, HttpFilterKind } from '../../src/data-plane/index.ts';
import { eventually } from '../support/eventually.ts';
import { type ScriptedUpstream, upstreamOf } from '../support/scripted-upstream.ts';
import { SWITCHING, type TunnelBench, tunnelBench, UPGRADE, upgrade } from '../support/tunnel-bench.ts';

const GET = 'GET /plain HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function kindOf(create: (callbacks: FilterCallbacks) => HttpFilter): HttpFilterKind {
  return { requestBody: 'edits', encodes: true, responseBody: 'edits', compile: () => create };
}

/** WebSocket meets the one filter, everything else the other. */
async function benchWith(
  t: TestContext,
  own: (callbacks: FilterCallbacks) => HttpFilter,
): Promise<TunnelBench & { upstream: ScriptedUpstream }> {
  const upstream = await upstreamOf(t);
  const marking = kindOf(() => ({
    decodeHeaders(head) {
      head.append('x-common', 'yes');
      return 'continue';
    },
  }));
  const bench = await tunnelBench(t, {
    upstreamPort: upstream.port,
    httpFilters: { 'test.common': marking, 'test.own': kindOf(own) },
    settings: {
      httpFilters: [{ name: 'test.common', settings: null }],
      upgrades: [upgrade('websocket', { httpFilters: [{ name: 'test.own', settings: null }] }), upgrade('other')],
    },
  });
  return { ...bench, upstream };
}

const upper = (bytes: Buffer): Buffer => Buffer.from(bytes.toString('latin1').toUpperCase(), 'latin1');

describe('the filters of an upgrade', () => {
  test('are its own where it has some, else those of all requests', async (t) => {
    const { client, upstream } = await benchWith(t, () => ({
      decodeHeaders(head) {
        head.append('x-own', 'yes');
        return 'continue';
      },
    }));
    client().write(UPGRADE);
    assert.doesNotMatch(await upstream.received('x-own: yes'), /x-common/);
    client().write(UPGRADE.replace('upgrade: websocket', 'upgrade: other'));
    await upstream.received('x-common: yes');
  });

  test('edit what a tunnel carries, which gets no framing by that', async (t) => {
    const { client, upstream } = await benchWith(t, () => ({
      decodeData(data) {
        data.bytes = upper(data.bytes);
        return 'continue';
      },
      encodeData(data) {
        data.bytes = upper(data.bytes);
        return 'continue';
      },
    }));
    const wire = client().write(UPGRADE);
    const head = await upstream.received('\r\n\r\n');
    assert.match(head, /\r\nupgrade: websocket\r\n/);
    assert.doesNotMatch(head, /transfer-encoding|content-length/);
    upstream.send(`${SWITCHING}hello`);
    assert.doesNotMatch(await wire.until('\r\n\r\n'), /transfer-encoding|content-length/);
    assert.equal((await wire.bytes(5)).toString(), 'HELLO');
    wire.write('there');
    assert.ok((await upstream.received('THERE')).endsWith('\r\n\r\nTHERE'));
  });

  test('may stop it and go on, both ways, and its fields stay', async (t) => {
    let goOn: (() => void) | null = null;
    let goBack: (() => void) | null = null;
    const { client, upstream } = await benchWith(t, (callbacks) => ({
      decodeHeaders() {
        goOn = () => callbacks.continueDecoding();
        return 'stop';
      },
      encodeHeaders() {
        goBack = () => callbacks.continueEncoding();
        return 'stop';
      },
    }));
    const wire = client().write(UPGRADE);
    await eventually(() => goOn !== null, 'the request at its filter');
    // The codec has held another head since.
    const other = client().write(GET);
    await upstream.received('/plain');
    upstream.send(OK);
    await other.response();
    goOn!();
    const received = await upstream.received('sec-websocket-key');
    const head = received.slice(received.indexOf('GET /chat'));
    assert.match(head, /\r\nupgrade: websocket\r\n/);
    assert.equal(head.match(/\r\nconnection: upgrade\r\n/g)?.length, 1);
    upstream.send(`${SWITCHING}first`);
    await eventually(() => goBack !== null, 'the answer at its filter');
    const second = client().write(GET.replace('/plain', '/direct'));
    await upstream.received('/direct');
    upstream.send(OK);
    await second.response();
    goBack!();
    const answer = await wire.until('\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 101 /);
    assert.match(answer, /\r\nupgrade: websocket\r\n/);
    assert.equal(answer.match(/\r\nconnection: upgrade\r\n/g)?.length, 1);
    assert.equal((await wire.bytes(5)).toString(), 'first');
  });
});
