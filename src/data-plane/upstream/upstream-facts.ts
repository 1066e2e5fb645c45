// The upstream end of a stream or connection as formats ask about it.

import type { Address } from '../../base/address.ts';
import type { Metadata } from '../../snapshot/index.ts';
import type { Endpoint, UpstreamFacts } from '../format/facts.ts';
import type { TlsFacts } from '../network/tls/connection-tls.ts';

/** Both ends of a connection to an upstream. */
export interface ConnectionEnds {
  /** Of requests, as logs name it: `HTTP/2`; absent where bytes pass as they are. */
  readonly protocol?: string;
  readonly localEndpoint: Endpoint;
  /** The host's address when the connection was made. */
  readonly remoteAddress: Address;
  /** Null for a plain connection. */
  readonly tls: TlsFacts | null;
  /** Absent where nobody keeps them. */
  readonly times?: ConnectionTimes | undefined;
}

/** Which connection it is, and its monotonic times. */
export interface ConnectionTimes {
  /** Among those of all workers, of clients too. */
  readonly connectionId: number;
  readonly startMs: number;
  /** It can be used: it is connected, and secured where it is to be. Negative before. */
  readonly readyMs: number;
}

/** A host, as far as it can be told of. */
interface ToldHost {
  readonly address: Address;
  readonly hostname: string;
  readonly metadata: Metadata | undefined;
}

const UNKNOWN: Endpoint = { ip: '', port: 0 };

export class UpstreamEnd implements UpstreamFacts {
  remote: Endpoint;
  readonly hostname: string;
  readonly metadata: Metadata | undefined;
  /** Empty until there is a connection, which may turn out to be of either. */
  protocol = '';
  local: Endpoint = UNKNOWN;
  tls: TlsFacts | null = null;
  connectionId = 0;
  openedMs = -1;
  connectedMs = -1;
  securedMs = -1;

  constructor({ address, hostname, metadata }: ToldHost) {
    this.remote = endpointOf(address);
    this.hostname = hostname;
    this.metadata = metadata;
  }

  /** Which ends the bytes go through, once there is a connection: an older one may lead to another address. */
  noteConnection({ localEndpoint, remoteAddress, tls, protocol = '', times }: ConnectionEnds): void {
    if (times !== undefined) {
      this.connectionId = times.connectionId;
      this.openedMs = times.startMs;
      this.connectedMs = tls === null ? times.readyMs : tls.connectedMs;
      if (tls !== null) this.securedMs = times.readyMs;
    }
    this.protocol = protocol;
    this.tls = tls;
    this.local = localEndpoint;
    this.remote = endpointOf(remoteAddress);
  }
}

function endpointOf(address: Address): Endpoint {
  return address.kind === 'pipe' ? { ip: address.path, port: 0 } : address;
}
