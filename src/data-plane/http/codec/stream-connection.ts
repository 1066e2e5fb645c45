// A client's connection as the streams know it that came by it, whatever their protocol.

import type { DownstreamFacts } from '../../format/facts.ts';
import { connectionFacts } from '../../network/connection-facts.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { forwardedAddress } from '../../network/peer-address.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { InternalAddresses } from '../internal-addresses.ts';

export class StreamConnection {
  readonly downstream: DownstreamConnection;
  /** Peer's address without port; an IPv4 one in its own notation also when it came by IPv6. Empty for a pipe. */
  readonly peerAddress: string;
  /** The peer is inside. */
  readonly isPeerInternal: boolean;
  /** What x-forwarded-for says of the peer. */
  readonly forwardedAddress: string;
  readonly #context: WorkerContext;

  /** @param internal who is inside, for the connection manager that has it. */
  constructor(context: WorkerContext, downstream: DownstreamConnection, internal: InternalAddresses) {
    this.#context = context;
    this.downstream = downstream;
    this.peerAddress = downstream.remoteAddress;
    this.isPeerInternal = internal.has(this.peerAddress);
    this.forwardedAddress = forwardedAddress(this.peerAddress, context.localAddress);
  }

  /** Soft bound of what waits to be sent to the client; in steps of a read. */
  get bufferLimitBytes(): number {
    return this.downstream.bufferLimitBytes;
  }

  /** The connection, for logs and header values; made at the first question. */
  get facts(): DownstreamFacts {
    return connectionFacts(this.#context, this.downstream);
  }
}
