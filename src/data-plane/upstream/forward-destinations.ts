// The hosts of a forward proxy's cluster in this worker: a request names its host by what it takes for its authority, a
// connection by SNI. Main looks names up (control-plane/dns-cache/); how many may wait for that is limited over all workers.

import { isIP } from 'node:net';
import { isHostName } from '../../base/host-name.ts';
import { plainIp } from '../../base/ip-number.ts';
import type { ForwardProxySettings, LookupLimit } from '../../snapshot/index.ts';
import { DNS_CACHE_STATS } from '../../stats/index.ts';
import { stateNumber, UPSTREAM_HOST, UPSTREAM_PORT } from '../network/filter-state.ts';
import type { NamedDestination, RouteRequest } from '../route/route-request.ts';
import type { WorkerContext } from '../worker-context.ts';
import { Destinations, type DestinationsOwner, type MeantDestination, type NamedHost } from './destinations.ts';
import type { PickContext } from './load-balancer/pick-context.ts';

const { dns_rq_pending_overflow } = DNS_CACHE_STATS.index;

/** Host, or address in brackets, and a port. */
const AUTHORITY = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/;
const MAX_PORT = 65_535;

export class ForwardDestinations<Host extends NamedHost> extends Destinations<Host> {
  readonly #defaultPort: number;

  constructor(context: WorkerContext, owner: DestinationsOwner, settings: ForwardProxySettings, lookups: LookupLimit) {
    super(context, owner, {
      tryAcquire() {
        if (context.records.tryAcquireCount(lookups.record, lookups.max)) return true;
        context.stats.values[context.stats.base(lookups.statBlock) + dns_rq_pending_overflow]! += 1;
        return false;
      },
      release: () => context.records.addCount(lookups.record, -1),
    });
    this.#defaultPort = settings.defaultPort;
  }

  /** Null for what is no host: nobody is asked for that. */
  override contextOf(request: RouteRequest | null, meant: MeantDestination | null): PickContext | null {
    const named = request === null ? ofConnection(meant) : (request.sender?.namedHost ?? null);
    const authority = named?.host ?? request?.authority ?? '';
    const [, bracketed, plain = '', digits] = AUTHORITY.exec(authority) ?? [];
    const port = digits === undefined ? (named?.port ?? this.#defaultPort) : Number(digits);
    if (port === 0 || port > MAX_PORT) return null;
    if (bracketed !== undefined) return isIP(bracketed) === 6 ? this.contextAt(plainIp(bracketed), port) : null;
    const name = plain.toLowerCase();
    if (isIP(name) === 4) return this.contextAt(plainIp(name), port);
    return isHostName(name) ? this.contextAt(name, port) : null;
  }

  /** Main counts it, where it is a matter of its limits. */
  protected override noteOverflow(): void {}
}

/** What network filters have said of it, else the name that its client asks for. */
function ofConnection(meant: MeantDestination | null): NamedDestination {
  const host = meant?.state?.(UPSTREAM_HOST) ?? meant?.requestedServerName ?? '';
  return { host, port: stateNumber(meant?.state?.(UPSTREAM_PORT), MAX_PORT) ?? null };
}
