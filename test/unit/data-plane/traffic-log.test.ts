// Lines about connections and requests: whose they are, and that nothing is made for them while nobody sees them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DownstreamConnection } from '../../../src/data-plane/network/downstream-connection.ts';
import { ResponseFlag } from '../../../src/data-plane/response-flags.ts';
import { TrafficLog } from '../../../src/data-plane/traffic-log.ts';
import type { WorkerContext } from '../../../src/data-plane/worker-context.ts';
import type { RequestHead } from '../../../src/wasm/http1.ts';

const HEAD = { method: 'GET', target: () => '/', minorVersion: 1, authority: () => 'a' } as unknown as RequestHead;

function logAt(isOn: boolean) {
  const lines: string[] = [];
  const logger = { enabled: () => isOn, debug: (line: string) => lines.push(line), ofFile: () => logger };
  const logs = { connection: logger, filter: logger, http: logger, router: logger };
  const given = { connections: 0, streams: 0 };
  const context = {
    nextConnectionId: () => ++given.connections,
    nextStreamId: () => ++given.streams,
    logs,
  };
  return { lines, given, log: new TrafficLog(context as unknown as WorkerContext) };
}

function connectionFrom(remoteAddress: string, remotePort: number): DownstreamConnection {
  return { remoteAddress, remotePort, startMs: 100, facts: null, socket: {} } as unknown as DownstreamConnection;
}

function everything(log: TrafficLog, connection: DownstreamConnection): void {
  const stream = {};
  log.connectionOpened(connection);
  log.requestBegun(stream, connection, 'HTTP/1.1', HEAD);
  log.requestRouted(stream, connection, 'web');
  log.requestAttempted(stream, connection, 2, '10.0.0.1:80');
  log.requestEnded(stream, connection, { status: 503, flags: ResponseFlag.UF, details: 'why' }, 2.6);
  log.connectionForwarded(connection, 'web', '10.0.0.1:80');
  log.connectionClosed(connection, 103.4);
}

describe('what is logged of connections and requests', () => {
  it('is a line for each event, by numbers of their own', () => {
    const { log, lines } = logAt(true);
    everything(log, connectionFrom('10.0.0.9', 5));
    log.requestRouted({}, connectionFrom('10.0.0.9', 6), '');
    log.requestEnded({}, connectionFrom('10.0.0.9', 7), { status: 200, flags: 0, details: 'fine' }, 1);
    assert.deepEqual(lines, [
      '[C1] new connection from 10.0.0.9:5',
      "[C1][S1] GET / HTTP/1.1, host 'a'",
      "[C1][S1] goes to cluster 'web'",
      '[C1][S1] attempt 2 goes to 10.0.0.1:80',
      '[C1][S1] 503 after 3 ms, UF, why',
      "[C1] goes to 10.0.0.1:80 of cluster 'web'",
      '[C1] closed after 3 ms',
      '[C2][S2] no route matches',
      '[C3][S3] 200 after 1 ms, fine',
    ]);
  });

  it('names clients by IPv6 and by unix sockets', () => {
    const { log, lines } = logAt(true);
    log.connectionOpened(connectionFrom('fe80::1', 5));
    log.connectionOpened(connectionFrom('', 0));
    assert.deepEqual(lines, ['[C1] new connection from [fe80::1]:5', '[C2] new connection from a pipe']);
  });

  it('says nothing of the end of a connection that no line has named: nobody knows any more whose it was', () => {
    const { log, lines } = logAt(true);
    log.connectionClosed(connectionFrom('10.0.0.9', 5), 200);
    assert.deepEqual(lines, []);
  });

  it('costs no number and no facts while its level is off', () => {
    const { log, lines, given } = logAt(false);
    const connection = connectionFrom('10.0.0.9', 5);
    everything(log, connection);
    assert.deepEqual([lines, given, connection.facts], [[], { connections: 0, streams: 0 }, null]);
  });
});
