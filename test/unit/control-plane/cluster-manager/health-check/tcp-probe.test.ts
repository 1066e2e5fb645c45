// Checks by TCP against servers that answer, answer otherwise, or not at all.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProbeResult, ProbeTarget } from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import { TcpProbe } from '../../../../../src/control-plane/cluster-manager/health-check/tcp-probe.ts';
import type { TcpProbeSettings } from '../../../../../src/snapshot/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { floodOf, HealthServer } from '../../../../support/health-server.ts';
import { ask, resultOf } from '../../../../support/probes.ts';
import { unusedPort } from '../../../../support/wire.ts';

function tcpProbe(settings: Partial<TcpProbeSettings> = {}, reuses = true): TcpProbe {
  return new TcpProbe({ kind: 'tcp', send: Buffer.alloc(0), receive: [], ...settings }, reuses, undefined, NO_FAULTS);
}

function targetAt(port: number): ProbeTarget {
  return { address: { kind: 'ip', ip: '127.0.0.1', port }, authority: '' };
}

describe('a check by TCP', () => {
  it('passes with a connection when nothing has to come back, sends nothing, and closes', async () => {
    await using server = await HealthServer.start(() => {});
    const probe = tcpProbe({ send: Buffer.from('ignored') });
    const result = { kind: 'passed', isDegraded: false, detail: 'connected' };
    assert.deepEqual([await ask(probe, server.port), await ask(probe, server.port)], [result, result]);
    assert.deepEqual(server.received, []);
    assert.equal(server.connections, 2);
    assert.deepEqual(await ask(probe, await unusedPort()), { kind: 'broken', detail: 'ECONNREFUSED' });
  });

  it('sends with every check, and passes when all blocks have come in order, on one connection', async () => {
    await using server = await HealthServer.start((socket) => {
      socket.write('..po', () => socket.write('ng..!'));
    });
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong'), Buffer.from('!')] });
    const result = { kind: 'passed', isDegraded: false, detail: 'answered as expected' };
    for (let count = 0; count < 3; count++) assert.deepEqual(await ask(probe, server.port), result);
    assert.deepEqual(server.received, ['ping', 'ping', 'ping']);
    assert.equal(server.connections, 1);
    probe.abort();
    const once = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('!')] }, false);
    await ask(once, server.port);
    await ask(once, server.port);
    assert.equal(server.connections, 3);
  });

  it('fails when the connection ends before all has come', async () => {
    const receive = [Buffer.from('pong'), Buffer.from('!')];
    const probe = tcpProbe({ send: Buffer.from('ping'), receive });
    const result = await resultOf(probe, (socket) => socket.end('!pong'));
    assert.deepEqual(result, { kind: 'broken', detail: 'closed before the answer' });
  });

  it('tells nothing once it is aborted', async () => {
    await using server = await HealthServer.start((socket) => socket.end('no'));
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong')] });
    const results: ProbeResult[] = [];
    probe.check(targetAt(server.port), (result) => results.push(result));
    probe.abort();
    assert.deepEqual(await ask(probe, server.port), { kind: 'broken', detail: 'closed before the answer' });
    assert.deepEqual(results, []);
  });

  it('is gone with its connection once it is aborted', async () => {
    await using server = await HealthServer.start(() => {});
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong')] });
    const results: ProbeResult[] = [];
    probe.check(targetAt(server.port), (result) => results.push(result));
    await eventually(() => server.received.length === 1, 'the question');
    probe.abort();
    await eventually(() => server.openConnections === 0, 'the end of the connection');
    assert.deepEqual(results, []);
  });

  it('closes a connection on which something comes between checks', async () => {
    await using server = await HealthServer.start((socket) => socket.write('pong'));
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong')] });
    assert.equal((await ask(probe, server.port)).kind, 'passed');
    server.greetAll('?');
    await eventually(() => server.openConnections === 0, 'the end of the connection');
    assert.equal((await ask(probe, server.port)).kind, 'passed');
    assert.equal(server.connections, 2);
    probe.abort();
  });

  it('fails at a gigabyte without what has to come, after the first megabytes, and closes', async () => {
    const { behaviour, isClosed } = floodOf(1024);
    await using server = await HealthServer.start(behaviour);
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong')] });
    const result = { kind: 'broken', detail: 'no end of the answer within 4194304 bytes' };
    assert.deepEqual(await ask(probe, server.port), result);
    assert.ok((await isClosed) < 200);
  });

  it('counts what comes with each check anew, on one connection', async () => {
    const filler = Buffer.alloc(3 * 1024 * 1024);
    await using server = await HealthServer.start((socket) => {
      socket.write(filler);
      socket.write('pong');
    });
    const probe = tcpProbe({ send: Buffer.from('ping'), receive: [Buffer.from('pong')] });
    for (let count = 0; count < 3; count++) assert.equal((await ask(probe, server.port)).kind, 'passed');
    assert.equal(server.connections, 1);
    probe.abort();
  });
});
