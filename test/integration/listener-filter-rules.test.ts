// What listener filters say of connections, and which connections they leave alone.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import type { ConnectionPredicate, ListenerFilterSettings, TlvRule } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, loopback, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain, PROXY_PROTOCOL, TLS_INSPECTOR } from '../support/listeners.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const ENDS = Buffer.from([192, 0, 2, 1, 198, 51, 100, 2, 0x10, 0, 0x01, 0xbb]);
const NAMESPACE = 'envoy.filters.listener.proxy_protocol';

function tlv(type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, value.length >>> 8, value.length & 0xff]), value]);
}

/** Of version 2, from 192.0.2.1:4096 to 198.51.100.2:443. */
function header(tlvs: readonly Buffer[], command = 0x21): Buffer {
  const content = Buffer.concat([ENDS, ...tlvs]);
  return Buffer.concat([SIGNATURE, Buffer.from([command, 0x11, content.length >>> 8, content.length & 0xff]), content]);
}

function rule(type: number, key: string, namespace = NAMESPACE): TlvRule {
  return { type, namespace, key };
}

async function bench(t: TestContext, listenerFilters: readonly ListenerFilterSettings[], format = '') {
  const upstream = await WireUpstream.start((socket) => {
    socket.write('hello');
    socket.on('end', () => socket.end());
    socket.resume();
  });
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-rules-'));
  const file = path.join(folder, 'access.log');
  const content = { kind: 'text', segments: parseFormat(`${format}\n`).segments! } as const;
  const proxy = new DataPlaneFixture();
  proxy.cluster('raw', [loopback(upstream.port)]);
  const accessLogs = [
    { destination: { kind: 'file', path: file }, format: { content, omitEmptyValues: false }, filter: null },
  ] as const;
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [filterChain(tcpProxy('raw', { accessLogs }))],
    listenerFilters,
  });
  t.after(async () => {
    await proxy.close();
    await upstream.close();
    rmSync(folder, { recursive: true });
  });
  const entry = async (): Promise<string> => {
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
    await proxy.close();
    return readFileSync(file, 'latin1');
  };
  return { proxy, port: port!, entry };
}

describe('a PROXY header with TLVs', () => {
  const rules = [rule(0xea, 'vpce'), rule(0xea, 'again', 'own'), rule(2, 'authority')];
  const filters = [{ ...PROXY_PROTOCOL, rules }];
  const shown = ['vpce', 'authority'].map((key) => `%DYNAMIC_METADATA(${NAMESPACE}:${key})%`);
  const format = `${shown.join(' ')} %DYNAMIC_METADATA(own:again)% %DOWNSTREAM_REMOTE_ADDRESS%`;

  test('becomes metadata of its connection, by rule', async (t) => {
    const { port, entry } = await bench(t, filters, format);
    const tlvs = [
      tlv(9, Buffer.from('nobody asks')),
      tlv(2, Buffer.from('example.com')),
      tlv(0xea, Buffer.from('vpce-1')),
    ];
    const wire = new WireClient(port).write(header(tlvs));
    await wire.until('hello');
    wire.socket.end();
    await wire.rest();
    assert.equal(await entry(), 'vpce-1 example.com vpce-1 192.0.2.1:4096\n');
  });

  test('of the same type counts by the last, and bytes that are no text are replaced', async (t) => {
    const { port, entry } = await bench(t, filters, format);
    const wire = new WireClient(port).write(
      header([tlv(2, Buffer.from('first')), tlv(2, Buffer.from([0x61, 0xff, 0x62]))]),
    );
    await wire.until('hello');
    wire.socket.end();
    await wire.rest();
    assert.equal(await entry(), '- a!b - 192.0.2.1:4096\n');
  });

  test('that do not fit it is broken, where somebody asks for them', async (t) => {
    const broken = [tlv(2, Buffer.from('whole')), Buffer.from([0xea, 0, 9, 1])];
    const asking = await bench(t, filters);
    assert.equal(await new WireClient(asking.port).write(header(broken)).rest(), '');
    assert.equal(asking.proxy.proxyProtocolStat('versions.v2.error'), 1);
    assert.equal(asking.proxy.proxyProtocolStat('versions.v2.found'), 0);
    const short = await bench(t, filters);
    assert.equal(await new WireClient(short.port).write(header([Buffer.from([0xea, 0])])).rest(), '');
    const notAsking = await bench(t, [PROXY_PROTOCOL]);
    await new WireClient(notAsking.port).write(header(broken)).until('hello');
  });

  test('of a connection of the other proxy itself says nothing', async (t) => {
    const { port, entry } = await bench(t, filters, `%DYNAMIC_METADATA(${NAMESPACE}:authority)%`);
    const wire = new WireClient(port).write(header([tlv(2, Buffer.from('example.com'))], 0x20));
    await wire.until('hello');
    wire.socket.end();
    await wire.rest();
    assert.equal(await entry(), '-\n');
  });
});

describe('a listener filter that is disabled for some connections', () => {
  const port = (start: number, end: number): ConnectionPredicate => ({ kind: 'port', start, end });

  test('does not wait for clients that let the server speak first', async (t) => {
    const waiting = await bench(t, [{ ...TLS_INSPECTOR, disabledFor: { kind: 'not', rule: { kind: 'any' } } }]);
    const silent = new WireClient(waiting.port);
    await eventually(() => waiting.proxy.listenerStat('downstream_pre_cx_active') === 1, 'it waits');
    silent.close();
    const passing = await bench(t, [{ ...TLS_INSPECTOR, disabledFor: { kind: 'any' } }]);
    await new WireClient(passing.port).until('hello');
    assert.equal(passing.proxy.listenerStat('downstream_pre_cx_active'), 0);
  });

  test('goes by the port that filters before it have found out', async (t) => {
    const all: ConnectionPredicate = {
      kind: 'all',
      rules: [port(443, 444), { kind: 'one-of', rules: [port(1, 2), port(400, 500)] }],
    };
    const passing = await bench(t, [PROXY_PROTOCOL, { ...TLS_INSPECTOR, disabledFor: all }]);
    await new WireClient(passing.port).write(header([])).until('hello');
    // The end of a range is not in it.
    const waiting = await bench(t, [PROXY_PROTOCOL, { ...TLS_INSPECTOR, disabledFor: port(400, 443) }]);
    const wire = new WireClient(waiting.port).write(header([]));
    await eventually(() => waiting.proxy.proxyProtocolStat('versions.v2.found') === 1, 'the header');
    assert.equal(waiting.proxy.listenerStat('downstream_pre_cx_active'), 1);
    await wire.write('no TLS').until('hello');
  });
});
