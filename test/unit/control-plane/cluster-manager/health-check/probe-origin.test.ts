// Checks come from where the connections of their cluster come from, over sockets that begin in the same way.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RawSocketOption } from '../../../../../src/base/own-sockets.ts';
import { SystemCalls } from '../../../../../src/base/system-calls.ts';
import { HttpProbe } from '../../../../../src/control-plane/cluster-manager/health-check/http-probe.ts';
import {
  connectTo,
  type Probe,
  type ProbeOrigin,
} from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import { TcpProbe } from '../../../../../src/control-plane/cluster-manager/health-check/tcp-probe.ts';
import type { HttpProbeSettings } from '../../../../../src/snapshot/index.ts';
import { compileHttp1, Http1Codec } from '../../../../../src/wasm/http1.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { ask } from '../../../../support/probes.ts';

const SOURCE = { kind: 'ip', ip: '127.0.0.9', port: 0 } as const;
const IP_TTL: RawSocketOption = { level: 0, name: 2, value: 7 };
const UNKNOWN_OPTION: RawSocketOption = { level: 6, name: 9999, value: 1 };

function withOption(option: RawSocketOption): ProbeOrigin {
  const source = { address: SOURCE, beforeBind: [option], afterBind: [] };
  return { sourceAddress: undefined, sourcesByFamily: { v4: source, v6: source }, systemCalls: SystemCalls.open() };
}

const ORIGINS: Readonly<Record<string, ProbeOrigin>> = {
  'an address': { sourceAddress: SOURCE, systemCalls: undefined },
  'an address, with options': withOption(IP_TTL),
};

const HTTP: HttpProbeSettings = {
  kind: 'http',
  method: 'GET',
  path: '/up',
  authority: 'web',
  body: Buffer.alloc(0),
  headersToAdd: [],
  headersToRemove: [],
  expectedStatuses: [{ start: 200, end: 201 }],
  retriableStatuses: [],
  receive: [],
  responseBufferBytes: 1024,
  serviceName: undefined,
};
const PROBES: Readonly<Record<string, (origin: ProbeOrigin) => Probe>> = {
  TCP: (origin) => new TcpProbe({ kind: 'tcp', send: Buffer.alloc(0), receive: [] }, true, origin, NO_FAULTS),
  HTTP: (origin) =>
    new HttpProbe(HTTP, true, origin, {
      faults: NO_FAULTS,
      codec: new Http1Codec(compileHttp1()),
      verifiesService: () => false,
    }),
};

describe('a check', () => {
  for (const [name, origin] of Object.entries(ORIGINS)) {
    for (const [protocol, probeFrom] of Object.entries(PROBES)) {
      it(`by ${protocol} comes from ${name}`, async () => {
        await using server = await HealthServer.start(answer(200));
        const probe = probeFrom(origin);
        assert.equal((await ask(probe, server.port)).kind, 'passed');
        await eventually(() => server.clients.length === 1, 'a connection');
        assert.deepEqual(server.clients, ['127.0.0.9']);
        probe.abort();
      });
    }
  }

  it('fails where an option cannot be set', async () => {
    await using server = await HealthServer.start(answer(200));
    assert.deepEqual(await ask(PROBES.TCP!(withOption(UNKNOWN_OPTION)), server.port), {
      kind: 'broken',
      detail: 'ENOPROTOOPT',
    });
    assert.deepEqual(server.clients, []);
  });

  it('of a pipe comes from nowhere', async () => {
    const socket = connectTo({ kind: 'pipe', path: '@weir-test-nobody', mode: 0 }, withOption(UNKNOWN_OPTION));
    const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException>();
    socket.on('error', resolve);
    assert.equal((await promise).code, 'ECONNREFUSED');
  });
});
