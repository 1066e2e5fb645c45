// An accepted connection before and beside its protocol: the socket, where it comes from and where it meant to go.
// The terminal filter of its chain owns it from `accept` on, and says when it has ended.

import type { Socket } from 'node:net';
import { type IpNumber, parseIp } from '../../base/ip-number.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Metadata } from '../../snapshot/index.ts';
import type { ClientFingerprints, DownstreamFacts, Endpoint } from '../format/facts.ts';
import { flagBit, NO_FLAGS, type ResponseFlagName } from '../response-flags.ts';
import { FilterState } from './filter-state.ts';
import { plainAddress } from './peer-address.ts';
import type { TlsFacts } from './tls/connection-tls.ts';

/** Both ends of a connection, as a listener filter has learnt them. IP literals. */
export interface RestoredAddresses {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/** What a client speaks, as far as its first bytes have been looked at. */
export type TransportProtocol = 'raw_buffer' | 'tls';

const NO_PROTOCOLS: readonly string[] = [];

export interface DownstreamConnectionOwner {
  onConnectionClosed(connection: DownstreamConnection): void;
}

/** Somebody beside the owner who is told of the end, once. */
export interface DownstreamWatcher {
  onDownstreamClosed(connection: DownstreamConnection): void;
}

export class DownstreamConnection {
  /** Where TLS secures it, the one with clear bytes. */
  #socket: Socket;
  /** Monotonic milliseconds of the accept. */
  readonly startMs: number;
  /** Soft bound of what is kept of this connection in each direction. */
  readonly bufferLimitBytes: number;
  /** What logs and header values know of the connection; null until one asks (connectionFacts). */
  facts: DownstreamFacts | null = null;
  /** Null before a handshake, and where there is none. */
  tls: TlsFacts | null = null;
  /** Monotonic time of the end of its handshake; negative before, and without any. */
  securedMs = -1;
  /** Why it could not be secured; empty where it could, or need not be. */
  transportFailure = '';
  /** What filters have said of it; null for nothing. */
  metadata: Metadata | null = null;
  /** TLVs of PROXY headers that hosts may be told, one behind the other; null for none. */
  passedTlvs: Buffer | null = null;
  /** What kind of program the client is; null where nobody has looked. */
  fingerprints: ClientFingerprints | null = null;
  /** Why a filter has ended it; empty while none has. */
  terminationDetails = '';
  /** Bits of RESPONSE_FLAGS that go with that. */
  terminationFlags = NO_FLAGS;
  /** Null before a filter has set any. */
  #filterState: FilterState | null = null;
  /** It carries several requests at a time. */
  isHttp2 = false;
  /** Another listener has accepted it, and given it to the one that owns the address that it was meant for. */
  isHandedOver = false;
  #transportProtocol: TransportProtocol = 'raw_buffer';
  #requestedServerName = '';
  #applicationProtocols = NO_PROTOCOLS;
  #restored: RestoredAddresses | null = null;
  #destination: Endpoint | null = null;
  #owner: DownstreamConnectionOwner | null = null;
  #isClosed = false;
  /** Null before the first one. */
  #watchers: DownstreamWatcher[] | null = null;

  constructor(socket: Socket, startMs: number, bufferLimitBytes: number) {
    this.#socket = socket;
    this.startMs = startMs;
    this.bufferLimitBytes = bufferLimitBytes;
  }

  get socket(): Socket {
    return this.#socket;
  }

  /** From here on its bytes pass this one. */
  secureWith(socket: Socket): void {
    this.#socket = socket;
  }

  /** Address of the client without port, an IPv4 one in its own notation; empty for a pipe. */
  get remoteAddress(): string {
    return this.#restored?.remoteAddress ?? this.directRemoteAddress;
  }

  /** 0 for a pipe. */
  get remotePort(): number {
    return this.#restored?.remotePort ?? this.directRemotePort;
  }

  /** Address that the client meant to reach; empty for a pipe. */
  get localAddress(): string {
    return this.#destination?.ip ?? plainAddress(this.socket.localAddress ?? '');
  }

  /** 0 for a pipe. */
  get localPort(): number {
    return this.#destination?.port ?? this.socket.localPort ?? 0;
  }

  /** The same where a listener filter has found it out; null when all that is known is where the socket listens. */
  get originalDestination(): Endpoint | null {
    return this.#destination;
  }

  /** Address at the other end of the socket, whatever a PROXY header has said; empty for a pipe. */
  get directRemoteAddress(): string {
    return plainAddress(this.socket.remoteAddress ?? '');
  }

  get directRemotePort(): number {
    return this.socket.remotePort ?? 0;
  }

  /** Undefined for a pipe. Costs a parse: for rules, not for every connection. */
  get remoteIp(): IpNumber | undefined {
    return parseIp(this.remoteAddress);
  }

  get directRemoteIp(): IpNumber | undefined {
    return parseIp(this.directRemoteAddress);
  }

  get localIp(): IpNumber | undefined {
    return parseIp(this.localAddress);
  }

  /** A filter is about to end it. Of several reasons the first one stays. */
  terminate(details: string, flag: ResponseFlagName | '-' = '-'): void {
    if (this.terminationDetails === '') this.terminationDetails = details;
    this.terminationFlags |= flagBit(flag);
  }

  /** Key by key beside what there is under this name. */
  addMetadata(namespace: string, values: JsonObject): void {
    this.metadata = { ...this.metadata, [namespace]: { ...this.metadata?.[namespace], ...values } };
  }

  setState(key: string, value: string, isReadOnly = false): void {
    this.#filterState ??= new FilterState();
    this.#filterState.set(key, value, isReadOnly);
  }

  /** What a filter has set, by the names of filter-state.ts. */
  state(key: string): string | undefined {
    return this.#filterState?.get(key);
  }

  /** Nobody may say it otherwise. */
  isStateFixed(key: string): boolean {
    return this.#filterState?.isFixed(key) ?? false;
  }

  /** As the connection of another listener, before any chain has it. */
  handedOver(bufferLimitBytes: number): DownstreamConnection {
    const copy = new DownstreamConnection(this.socket, this.startMs, bufferLimitBytes);
    copy.isHandedOver = true;
    copy.#restored = this.#restored;
    copy.#destination = this.#destination;
    copy.metadata = this.metadata;
    copy.fingerprints = this.fingerprints;
    copy.passedTlvs = this.passedTlvs;
    copy.announce(this.#transportProtocol, this.#requestedServerName, this.#applicationProtocols);
    return copy;
  }

  /** From here on the connection is between these addresses. */
  restoreAddresses(addresses: RestoredAddresses): void {
    this.#restored = addresses;
    this.#destination = { ip: addresses.localAddress, port: addresses.localPort };
  }

  /** The client meant to reach this address. */
  restoreDestination(destination: Endpoint): void {
    this.#destination = destination;
  }

  /** What the client says of itself before anybody answers. @param serverName in lower case. */
  announce(transport: TransportProtocol, serverName: string, applicationProtocols: readonly string[]): void {
    this.#transportProtocol = transport;
    this.#requestedServerName = serverName;
    this.#applicationProtocols = applicationProtocols;
  }

  get transportProtocol(): TransportProtocol {
    return this.#transportProtocol;
  }

  /** In lower case; empty where the client has named none, or nobody has looked. */
  get requestedServerName(): string {
    return this.#requestedServerName;
  }

  /** In the client's order of preference. */
  get applicationProtocols(): readonly string[] {
    return this.#applicationProtocols;
  }

  /** The connection counts as open until `closed`, and its owner is told of that. */
  open(owner: DownstreamConnectionOwner): void {
    this.#owner = owner;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Of a connection that is not closed. */
  watch(watcher: DownstreamWatcher): void {
    this.#watchers ??= [];
    this.#watchers.push(watcher);
  }

  /** Called at its end by whoever the connection was given to. Idempotent. */
  closed(): void {
    const owner = this.#owner;
    this.#owner = null;
    this.#isClosed = true;
    owner?.onConnectionClosed(this);
    const watchers = this.#watchers;
    this.#watchers = null;
    if (watchers !== null) for (const watcher of watchers) watcher.onDownstreamClosed(this);
  }
}
