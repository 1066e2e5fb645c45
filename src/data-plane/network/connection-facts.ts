// A client's connection as formats ask about it. Made at the first question, while the socket still knows its ends.

import type { DownstreamFacts, Endpoint } from '../format/facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamConnection } from './downstream-connection.ts';
import { plainAddress } from './peer-address.ts';

/** The one object of a connection; whoever asks first makes it. */
export function connectionFacts(context: WorkerContext, connection: DownstreamConnection): DownstreamFacts {
  connection.facts ??= new ConnectionFacts(context, connection);
  return connection.facts;
}

class ConnectionFacts implements DownstreamFacts {
  readonly connectionId: number;
  readonly remote: Endpoint;
  readonly directRemote: Endpoint;
  readonly local: Endpoint;
  readonly directLocal: Endpoint;
  readonly originalDestination: Endpoint | null;
  readonly requestedServerName: string;

  constructor(context: WorkerContext, connection: DownstreamConnection) {
    const { socket } = connection;
    this.connectionId = context.nextConnectionId();
    this.remote = { ip: connection.remoteAddress, port: connection.remotePort };
    this.directRemote = { ip: connection.directRemoteAddress, port: connection.directRemotePort };
    this.local = { ip: connection.localAddress, port: connection.localPort };
    this.originalDestination = connection.originalDestination;
    this.requestedServerName = connection.requestedServerName;
    this.directLocal = { ip: plainAddress(socket.localAddress ?? ''), port: socket.localPort ?? 0 };
  }
}
