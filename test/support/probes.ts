// One check of a server on loopback, from its beginning to its result.

import type { Probe, ProbeResult } from '../../src/control-plane/cluster-manager/health-check/probe.ts';
import { type Behaviour, HealthServer } from './health-server.ts';

export function ask(probe: Probe, port: number, authority = 'web'): Promise<ProbeResult> {
  const target = { address: { kind: 'ip', ip: '127.0.0.1', port }, authority } as const;
  return new Promise((resolve) => probe.check(target, resolve));
}

/** Result of one check of a server that behaves so; the connection is closed afterwards. */
export async function resultOf(probe: Probe, behaviour: Behaviour): Promise<ProbeResult> {
  await using server = await HealthServer.start(behaviour);
  const result = await ask(probe, server.port);
  probe.abort();
  return result;
}
