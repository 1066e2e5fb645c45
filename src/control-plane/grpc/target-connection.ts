// Connections of main itself to servers that no cluster names: looked up by name each time, and to another of their addresses.
// Main thread.
//
//   LOOKING UP ──address──► as of a ProbeSocket
//       └──none──► onLost

import { isIP, isIPv6 } from 'node:net';
import type { Address } from '../../base/address.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { GrpcTargetSettings } from '../../snapshot/index.ts';
import { ProbeSocket, type ProbeSocketOwner } from '../cluster-manager/health-check/probe-socket.ts';
import type { DnsResolvers, HeldResolver } from '../dns/resolvers.ts';
import { securityBy } from './cluster-connection.ts';

const PROTOCOLS = ['h2'];

export class TargetConnections {
  readonly #target: GrpcTargetSettings;
  readonly #resolvers: Pick<DnsResolvers, 'hold'>;
  readonly #faults: FaultBoundary;
  #turn = 0;

  constructor(target: GrpcTargetSettings, resolvers: Pick<DnsResolvers, 'hold'>, faults: FaultBoundary) {
    this.#target = target;
    this.#resolvers = resolvers;
    this.#faults = faults;
  }

  /** The next one. */
  open(owner: ProbeSocketOwner): { destroy(): void } {
    const { tls, resolver } = this.#target;
    const held = this.#resolvers.hold(resolver);
    let socket: ProbeSocket | undefined;
    let isOver = false;
    this.#faults.run('looking a gRPC server up', async () => {
      const address = await this.#nextAddress(held);
      if (isOver) return;
      if (typeof address === 'string') {
        owner.onLost(address);
        return;
      }
      const security = tls && securityBy(tls, '');
      const origin = {
        sourceAddress: undefined,
        systemCalls: undefined,
        ...(security && { security: () => security }),
      };
      socket = new ProbeSocket({ address, authority: '' }, origin, PROTOCOLS, this.#faults, owner);
    });
    return {
      destroy: () => {
        isOver = true;
        held.release();
        socket?.destroy();
      },
    };
  }

  /** @returns why there is none, where that is so. */
  async #nextAddress(resolver: HeldResolver): Promise<Address | string> {
    const { place } = this.#target;
    if (place.kind === 'pipe') return { kind: 'pipe', path: place.path, mode: 0 };
    const found: Address[] = [];
    let reason = 'the name has no address';
    for (const { host, port } of place.hosts) {
      const ips = await addressesOf(host, resolver);
      if (typeof ips === 'string') reason = ips;
      else for (const ip of ips) found.push({ kind: 'ip', ip, port });
    }
    this.#turn += 1;
    return found[(this.#turn - 1) % Math.max(1, found.length)] ?? reason;
  }
}

async function addressesOf(host: string, resolver: HeldResolver): Promise<readonly string[] | string> {
  if (isIP(host) !== 0) return [host];
  try {
    const answer = await resolver.lookup(host, 'ALL');
    if (answer.kind === 'failure') return answer.reason;
    // Those of the older kind first: hosts without a way for the other one are many.
    return answer.addresses.map(({ ip }) => ip).toSorted((a, b) => Number(isIPv6(a)) - Number(isIPv6(b)));
  } catch (error) {
    return errorMessage(error);
  }
}
