// A client's connection as formats ask about it. Made at the first question, while the socket still knows its ends.

import type { Metadata } from '../../snapshot/index.ts';
import type { ClientFingerprints, DownstreamFacts, Endpoint, FormatFacts, IngressFacts } from '../format/facts.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamConnection, TransportProtocol } from './downstream-connection.ts';
import { plainAddress } from './peer-address.ts';
import type { TlsFacts } from './tls/connection-tls.ts';

/** The one object of a connection; whoever asks first makes it. */
export function connectionFacts(context: WorkerContext, connection: DownstreamConnection): DownstreamFacts {
  connection.facts ??= new ConnectionFacts(context, connection);
  return connection.facts;
}

/** A connection as formats of network filters ask about it, before anything has become of it. */
export function filterFacts(
  context: WorkerContext,
  connection: DownstreamConnection,
  ingress: IngressFacts,
): FormatFacts {
  const ends = connectionFacts(context, connection);
  const facts = new StreamFacts(context.clock, connection.startMs, ends, 'NotSet', ingress);
  facts.noteFiltered(connection);
  return facts;
}

class ConnectionFacts implements DownstreamFacts {
  readonly connectionId: number;
  readonly remote: Endpoint;
  readonly directRemote: Endpoint;
  readonly local: Endpoint;
  readonly directLocal: Endpoint;
  readonly originalDestination: Endpoint | null;
  readonly #connection: DownstreamConnection;

  constructor(context: WorkerContext, connection: DownstreamConnection) {
    const { socket } = connection;
    this.#connection = connection;
    this.connectionId = context.nextConnectionId();
    this.remote = { ip: connection.remoteAddress, port: connection.remotePort };
    this.directRemote = { ip: connection.directRemoteAddress, port: connection.directRemotePort };
    this.local = { ip: connection.localAddress, port: connection.localPort };
    this.originalDestination = connection.originalDestination;
    this.directLocal = { ip: plainAddress(socket.localAddress ?? ''), port: socket.localPort ?? 0 };
  }

  get startMs(): number {
    return this.#connection.startMs;
  }

  get securedMs(): number {
    return this.#connection.securedMs;
  }

  get requestedServerName(): string {
    return this.#connection.requestedServerName || (this.tls?.serverName ?? '');
  }

  get transportProtocol(): TransportProtocol {
    return this.tls === null ? this.#connection.transportProtocol : 'tls';
  }

  get applicationProtocols(): readonly string[] {
    return this.#connection.applicationProtocols;
  }

  get fingerprints(): ClientFingerprints | null {
    return this.#connection.fingerprints;
  }

  get metadata(): Metadata | undefined {
    return this.#connection.metadata ?? undefined;
  }

  state(key: string): string | undefined {
    return this.#connection.state(key);
  }

  get tls(): TlsFacts | null {
    return this.#connection.tls;
  }

  get transportFailure(): string {
    return this.#connection.transportFailure;
  }
}
