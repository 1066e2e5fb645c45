// The original destination listener filter: the system has redirected a connection to this listener, and knows where it
// meant to go. That becomes the connection's local address, for matching, logs and ORIGINAL_DST clusters.
//
// A connection that was not redirected has nothing to restore: the address of the listener is no destination, and a proxy
// that took it for one would connect to itself for ever.

import { isIPv4 } from 'node:net';
import { descriptorOf } from '../../../base/descriptor-budget.ts';
import { WeirError } from '../../../base/errors.ts';
import { plainIp } from '../../../base/ip-number.ts';
import type { SystemCalls } from '../../../base/system-calls.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { plainAddress } from '../../network/peer-address.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { ListenerFilter } from './filter.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/listener/listener-filter/original-dst.ts';

export class OriginalDstFilter implements ListenerFilter {
  readonly readsBytes = false;
  readonly #context: WorkerContext;
  readonly #systemCalls: SystemCalls;

  /** @throws WeirError WEIR_LISTEN where the system cannot be asked. */
  constructor(context: WorkerContext) {
    if (context.systemCalls === undefined) {
      const reason = 'the listener filter original_dst needs Linux and a Node with its foreign function interface';
      throw new WeirError('WEIR_LISTEN', reason);
    }
    this.#context = context;
    this.#systemCalls = context.systemCalls;
  }

  inspect(_bytes: Buffer, _start: number, _end: number, connection: DownstreamConnection): number {
    const { socket } = connection;
    const own = plainAddress(socket.localAddress ?? '');
    // A pipe has none.
    if (own === '') return 0;
    const descriptor = descriptorOf(socket);
    const isIpv4 = isIPv4(own);
    if (this.#systemCalls.isTransparent(descriptor, isIpv4)) {
      connection.restoreDestination({ ip: own, port: socket.localPort ?? 0 });
      return 0;
    }
    const meant = this.#systemCalls.originalDestination(descriptor, isIpv4);
    if (meant === undefined) return 0;
    const ip = plainIp(meant.ip);
    if (ip === own && meant.port === socket.localPort) return 0;
    connection.restoreDestination({ ip, port: meant.port });
    const log = this.#context.logs.connection.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`a connection to ${ip}, port ${meant.port}, was redirected here`);
    return 0;
  }
}
