// What a network filter is: a step between the accept of a connection and the terminal filter of its chain, or such a terminal
// filter itself. The chain that runs them is network-filter-chain.ts; one that ends a chain is run by extension-terminal.ts.
//
//   accepted ── admit, of each filter ──► handshake ── onNewConnection, in order ──► terminal filter
//   bytes of the client ── onData, in order ──► terminal filter
//
// What terminal filters write passes no other filter.

import type { Clock } from '../../base/clock.ts';
import type { JsonObject } from '../../base/json.ts';
import type { RuntimeSetting, RuntimeValues } from '../../base/runtime.ts';
import type { Fraction, MatchTree, Metadata, ServerCredentials } from '../../snapshot/index.ts';
import type { DownstreamFacts, FormatFacts } from '../format/facts.ts';
import type { FilterCounter, FilterGauge, FilterTimes, SharedCount } from '../http/filter.ts';
import type { CallReceiver, CallRequest } from '../http/filter-call.ts';
import type { ResponseFlagName } from '../response-flags.ts';

/**
 * A stop holds the connection until the filter has its callbacks go on. While a new connection is held the filters behind know
 * nothing of it; nothing more is read of it than one read may bring.
 */
export type NetworkFilterStatus = 'continue' | 'stop';

/** The filter of one connection. All methods are optional; one that is missing lets everything through. */
export interface NetworkFilter {
  /** The connection is there, secured where it is to be. */
  onNewConnection?(): NetworkFilterStatus;
  /**
   * Bytes of the client, for filters whose kind reads them. A terminal filter has them to itself; it may stop reading. What
   * another filter stops is held, and goes to the filters behind it when it goes on; it is not shown to this one again.
   * @param bytes borrowed until return; empty for an end without any. @param isEnd the client has sent its last byte.
   */
  onData?(bytes: Buffer, isEnd: boolean): NetworkFilterStatus;
  /** For a terminal filter: more may be written after a write that has returned false. */
  onWritable?(): void;
  /** The connection is over, in whatever way; called once. */
  onClosed?(): void;
}

/** What a filter may ask of its connection. None of it does anything once the connection is over. */
export interface NetworkFilterCallbacks {
  /** The one object of the connection. */
  readonly connection: DownstreamFacts;
  /** Goes on after a stop; from an event of the filter's own, or from within its methods. */
  continueReading(): void;
  /** What formats may ask of the connection now. Made anew each time. */
  formatFacts(): FormatFacts;
  /** Ends the connection now. @param why for logs. */
  close(why?: Termination): void;
  /** What filters and logs may read of it from now on, key by key beside what there is under this name. */
  addMetadata(namespace: string, values: JsonObject): void;
  /** What filters have said of it so far. */
  readonly metadata: Metadata | null;
  /**
   * Says something to the filters behind, by the names of filter state that they read (filter-state.ts).
   * @param isReadOnly what anybody says later under this name does not count.
   */
  setState(key: string, value: string, isReadOnly?: boolean): void;
  state(key: string): string | undefined;
  /**
   * Asks a cluster something for this connection, and goes on without waiting. The receiver is told once, unless the connection is
   * over before; perhaps from within this call. What it throws ends the connection.
   */
  call(request: CallRequest, receiver: CallReceiver): void;
}

/** The same for a terminal filter. */
export interface TerminalCallbacks extends NetworkFilterCallbacks {
  /** @param bytes given away. @returns false when nothing should follow before `onWritable`. */
  write(bytes: Buffer): boolean;
  /** Sends the end behind what was written. The connection is over when both sides have ended. */
  end(): void;
  /** The same, but the client's end is not waited for: the connection is over when it has everything, or when it takes none of it for a while. */
  finish(): void;
}

/** Why a filter ends a connection, as logs show it. */
export interface Termination {
  /** %CONNECTION_TERMINATION_DETAILS%. */
  readonly details?: string;
  readonly flag?: ResponseFlagName;
}

/** A connection that is not let in. */
export interface Refusal extends Termination {
  /** It is kept for so long, unread, before it is closed; 0 for not at all. */
  readonly delayMs: number;
}

/** What filters are made with, once per snapshot. */
export interface NetworkFilterContext {
  readonly clock: Clock;
  /** The values in force. */
  readonly runtime: RuntimeValues;
  /** One of those that the filter's settings name. @throws WeirError WEIR_UNKNOWN_COUNTER for any other. */
  counter(name: string): FilterCounter;
  /** The same of gauges. */
  gauge(name: string): FilterGauge;
  /** One behind the filter's stat scope that is named at run time; whoever asks bounds how many there may be, and keeps it. */
  namedCounter(name: string): FilterCounter;
  /** The same of times. */
  namedTime(name: string): FilterTimes;
  /** What it counts over all workers. @throws WeirError WEIR_UNKNOWN_COUNTER unless its settings have said that it does. */
  readonly sharedCount: SharedCount;
  /** A u32. */
  random(): number;
  /** Draws by a share that the runtime may override: true in as many of all cases. */
  share(setting: RuntimeSetting<Fraction>): () => boolean;
  /**
   * Where a tree leads for a connection; nowhere is undefined.
   * @param resultOf called once for each action.
   */
  compileTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): (connection: DownstreamFacts) => Result | undefined;
  /** Milliseconds of the system's monotonic clock, which is the same for all workers. */
  sharedNowMs(): number;
}

/** A member of a cluster; the same object as long as it is one. */
export interface FilterHost {
  /** Its address as text. */
  readonly label: string;
  /** What its connections begin with, as its cluster says; null where it asks for none. */
  readonly credentials: ServerCredentials | null;
  readonly metadata: Metadata | undefined;
  readonly isHealthy: boolean;
}

/** What becomes of a connection to a host that a filter has opened; each perhaps from within a call of its link. */
export interface LinkReceiver {
  onConnected(): void;
  /** @param bytes borrowed until return. */
  onBytes(bytes: Buffer): void;
  /** More may be written after a write that has returned false. */
  onWritable(): void;
  /** The host has left its cluster: the connection should end when it has nothing more to do. */
  onHostLeft(): void;
  /** The connection is over, or has not come to be. Once, and not behind a close of the filter's own. */
  onClosed(): void;
}

/** A connection to a host. What is counted of it stands among the host's stats and those of its cluster. */
export interface FilterLink {
  /** @param bytes given away. @returns false when nothing should follow before `onWritable`. */
  write(bytes: Buffer): boolean;
  /** A request goes over it, until one of the others is told. */
  requestBegan(): void;
  requestEnded(outcome: 'answered' | 'failed' | 'timeout'): void;
  /** Its answer says that another host is to be asked. @param isFollowed it will be. */
  redirected(isFollowed: boolean): void;
  close(): void;
}

/** Connections to hosts that speak what the filter speaks. */
export interface FilterUpstreams {
  /**
   * The host of a cluster for this key: where it is hashed, the same one for the same key.
   * @returns null where there is none, or no such cluster.
   */
  hostFor(cluster: string, key: Buffer): FilterHost | null;
  /**
   * The host of the same cluster at this address, or of this configured name; without a name, where `beside` is, at another port.
   * Looks through all of them. @returns null where there is none, whoever else listens there.
   */
  hostAt(beside: FilterHost, name: string, port: number): FilterHost | null;
  /** All members of a cluster: the same list as long as none of them comes, goes or changes. Empty where there is no such cluster. */
  members(cluster: string): readonly FilterHost[];
  /** Main is told that a server at this address was named which is no member of the same cluster. */
  reportStranger(beside: FilterHost, ip: string, port: number): void;
  /** @returns null when circuit breakers leave no place for it. */
  connect(host: FilterHost, receiver: LinkReceiver): FilterLink | null;
}

/** What terminal filters are made with beside. */
export interface TerminalFilterContext extends NetworkFilterContext {
  readonly upstreams: FilterUpstreams;
  /** Has somebody told when the chain goes, behind its last connection. */
  onClose(callback: () => void): void;
}

/** A filter as its settings have made it, for all connections of one chain in one worker. */
export interface NetworkFilterStep {
  /** Before anything is read of a new connection, and before its handshake. @returns null for one that may go on. */
  admit?(): Refusal | null;
  /** A connection that was admitted is over, or another filter has refused it. */
  release?(): void;
}

/** What stands before a terminal filter. */
export interface NetworkFilterKind {
  readonly isTerminal: false;
  /** Its filters have onData. */
  readonly readsData: boolean;
  compile(settings: unknown, context: NetworkFilterContext): CompiledNetworkFilter;
}

export interface CompiledNetworkFilter extends NetworkFilterStep {
  /** Makes the filter of one connection; absent where admitting is all. */
  readonly create?: (callbacks: NetworkFilterCallbacks) => NetworkFilter;
  /** With these settings; as its kind says when absent. */
  readonly readsData?: boolean;
}

export interface TerminalFilterKind {
  readonly isTerminal: true;
  /** @returns what makes the filter of one connection. */
  compile(settings: unknown, context: TerminalFilterContext): (callbacks: TerminalCallbacks) => NetworkFilter;
}

/** The network filters of a build, by their names in snapshots. */
export type NetworkFilterRegistry = Readonly<Record<string, NetworkFilterKind | TerminalFilterKind>>;
