// Connections of main itself to hosts of clusters, secured as those of the clusters' traffic are. Main thread.

import type { Socket } from 'node:net';
import { formatAddress } from '../../base/address.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { socketMatchOf, type UpstreamTlsSettings, upstreamContextsOf } from '../../snapshot/index.ts';
import { ClientTls } from '../../tls/client-tls.ts';
import { notReadyText } from '../../tls/failure.ts';
import { refusalText } from '../../tls/refusal.ts';
import type { ActiveCluster } from '../cluster-manager/active-cluster.ts';
import type { ActiveHost } from '../cluster-manager/active-host.ts';
import type { ProbeOrigin } from '../cluster-manager/health-check/probe.ts';
import { ProbeSocket, type ProbeSocketOwner } from '../cluster-manager/health-check/probe-socket.ts';
import type { ProbeHandshake, ProbeSecurity } from '../cluster-manager/health-check/probe-tls.ts';

/** With their contexts and sessions, for as long as the settings are in use. */
const clients = new WeakMap<UpstreamTlsSettings, ClientTls>();

/** @param protocols for ALPN, where the settings offer none. */
export function connectToHost(
  cluster: ActiveCluster,
  host: ActiveHost,
  protocols: readonly string[],
  faults: FaultBoundary,
  owner: ProbeSocketOwner,
): { destroy(): void } {
  const origin = originOf(cluster, host);
  return new ProbeSocket({ address: host.address, authority: '' }, origin, protocols, faults, owner);
}

/** Where connections to a host come from, and how they are secured. */
export function originOf(cluster: ActiveCluster, host: ActiveHost): ProbeOrigin {
  const { sourceAddress } = cluster.settings;
  const security = securityFor(cluster, host);
  return { sourceAddress, systemCalls: undefined, ...(security && { security: () => security }) };
}

function securityFor({ settings }: ActiveCluster, host: ActiveHost): ProbeSecurity | undefined {
  const place = 1 + socketMatchOf(settings.transportSocketMatches ?? [], host.snapshot.metadata);
  const tls = [...upstreamContextsOf(settings)][place];
  if (tls === undefined) return undefined;
  return securityBy(tls, host.snapshot.hostname);
}

/** @param hostname of the server, where it has one beside what the settings say. */
export function securityBy(tls: UpstreamTlsSettings, hostname: string): ProbeSecurity {
  const client = clientOf(tls);
  const { missingSecrets } = tls;
  return {
    refuse: () => (missingSecrets.length === 0 ? undefined : notReadyText(missingSecrets)),
    // There is one such connection at a time.
    awaitTurn: (begin) => {
      begin();
      return { end() {} };
    },
    begin: (raw, label, protocols) => begin(client, raw, hostname, label, protocols),
  };
}

function begin(
  client: ClientTls,
  raw: Socket,
  hostname: string,
  label: string,
  protocols: readonly string[],
): ProbeHandshake {
  const own = client.settings.alpnProtocols;
  const alpnProtocols = own.length === 0 ? protocols : own;
  const target = { label, sentName: '', verifiedName: '', hostname, alpnProtocols };
  const socket = client.begin(raw, target);
  return {
    socket,
    judge: () => {
      const peer = client.judge(socket, target);
      return peer.fault === null ? undefined : refusalText(peer.fault, peer);
    },
    noteFailure: () => {},
  };
}

function clientOf(tls: UpstreamTlsSettings): ClientTls {
  const known = clients.get(tls) ?? new ClientTls(tls);
  clients.set(tls, known);
  return known;
}

/** As logs name it. */
export function labelOf(cluster: ActiveCluster, host: ActiveHost): string {
  return `${formatAddress(host.address)} of cluster ${cluster.name}`;
}
