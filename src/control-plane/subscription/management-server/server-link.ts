// The way to the management servers of one source: a stream to one of them, and to the next when it is lost, after a pause that
// grows while none of them answers. Main thread.
//
//   WAITING ──pause over──► CONNECTING ──onOpen──► OPEN ──first message──► HEARD
//      ▲                        └──────── lost ───────┴──────────────────────┘ onLost
//
// A stand-in is tried when a server has been lost without a word; after one that was heard the first is tried again.

import { JitteredBackoff } from '../../../base/backoff.ts';
import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { SYSTEM_RANDOM } from '../../../base/random.ts';
import type { Logger } from '../../../log/index.ts';
import type { ManagementServerSettings } from '../../../snapshot/index.ts';
import type { ActiveCluster } from '../../cluster-manager/active-cluster.ts';
import type { DnsResolvers } from '../../dns/resolvers.ts';
import { connectToHost, labelOf } from '../../grpc/cluster-connection.ts';
import { GrpcStream, type OpenConnection } from '../../grpc/grpc-stream.ts';
import { TargetConnections } from '../../grpc/target-connection.ts';
import { HostRotation } from '../../stat-sinks/host-rotation.ts';
import { Complaint } from '../complaint.ts';

export interface ServerLinkListener {
  /** A stream begins: what is sent from now on goes out. */
  onOpen(): void;
  onMessage(bytes: Buffer): void;
  /**
   * The stream is over, or none could be had; another one follows.
   * @param reason undefined where the server has ended it with status 0.
   */
  onLost(reason: string | undefined): void;
  /** The server has taken what it was sent. */
  onDrain?(): void;
  /** Another one is about to be tried. */
  onRetry?(): void;
}

export interface ServerLinkDependencies {
  readonly cluster: (name: string) => ActiveCluster | undefined;
  /** For servers that no cluster names. */
  readonly resolvers: Pick<DnsResolvers, 'hold'>;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
}

/** As loggers know this file. */
const FILE = 'src/control-plane/subscription/management-server/server-link.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** A cluster that warms has hosts soon. */
const HOSTLESS_PAUSE_MS = 50;
const PROTOCOLS = ['h2'];
/** Of a connection to a server that no cluster names, with the look-up of its name. */
const OUTSIDE_TIMEOUT_MS = 20_000;

/** To a server that is asked now. */
interface Way {
  readonly label: string;
  readonly open: OpenConnection;
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number } | null;
  readonly connectTimeoutMs: number;
  /** That a call begins, or ends. */
  readonly count: (isBegin: boolean) => void;
}

export class ServerLink {
  readonly #servers: readonly ManagementServerSettings[];
  readonly #path: string;
  readonly #deps: ServerLinkDependencies;
  readonly #listener: ServerLinkListener;
  readonly #rotation = new HostRotation();
  /** By server: of those that no cluster names. */
  readonly #outside: readonly (TargetConnections | undefined)[];
  readonly #backoff = new JitteredBackoff(SYSTEM_RANDOM, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  #turn = 0;
  #stream: GrpcStream | undefined;
  #generation = 0;
  #isHeard = false;
  #isOpen = false;
  #endPause = (): void => {};
  #isClosed = false;
  readonly #onFinished = Promise.withResolvers<void>();
  /** Of why there is none. */
  readonly #complaint: Complaint;

  /** @param path of the method. */
  constructor(
    servers: readonly ManagementServerSettings[],
    path: string,
    deps: ServerLinkDependencies,
    listener: ServerLinkListener,
  ) {
    this.#servers = servers;
    this.#path = path;
    this.#deps = deps;
    this.#listener = listener;
    this.#outside = servers.map(({ target }) => target && new TargetConnections(target, deps.resolvers, deps.faults));
    this.#complaint = new Complaint(deps.log);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Another one with each stream, and between two: what comes of a former stream concerns no other. */
  get generation(): number {
    return this.#generation;
  }

  /** The server does not take what it is sent. */
  get isBackedUp(): boolean {
    return this.#stream?.isBackedUp ?? false;
  }

  /** Name of the cluster that is spoken to, or would be next. */
  get server(): string {
    return this.#servers[this.#turn]!.cluster;
  }

  /** What is wrong now; empty for nothing. */
  get complaint(): string {
    return this.#complaint.text;
  }

  start(): void {
    this.#connect();
  }

  /** While it is open. */
  send(message: Uint8Array): void {
    this.#stream?.send(message);
  }

  pause(isPaused: boolean): void {
    this.#stream?.pause(isPaused);
  }

  /** Nothing is sent or told any more, nor another stream opened. Resolves when the server has read all and ended the stream, or it is lost. */
  finish(): Promise<void> {
    this.#isClosed = true;
    this.#endPause();
    if (this.#isOpen) this.#stream!.finish();
    else this.#onFinished.resolve();
    return this.#onFinished.promise;
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#generation += 1;
    this.#onFinished.resolve();
    this.#endPause();
    this.#stream?.close();
    this.#stream = undefined;
    this.#isOpen = false;
  }

  #connect(): void {
    const settings = this.#servers[this.#turn]!;
    const outside = this.#outside[this.#turn];
    if (outside !== undefined) {
      const { keepalive } = settings.target!;
      const way = { label: settings.cluster, open: outside.open.bind(outside), keepalive };
      this.#open(settings, { ...way, connectTimeoutMs: OUTSIDE_TIMEOUT_MS, count: () => {} });
      return;
    }
    const cluster = this.#deps.cluster(settings.cluster);
    const host = cluster && this.#rotation.nextHost(cluster);
    if (cluster === undefined || host === undefined) {
      const what = cluster === undefined ? 'is not there yet' : 'has no host';
      const complaint = `cluster ${settings.cluster} ${what}`;
      this.#complain(complaint);
      this.#generation += 1;
      this.#listener.onLost(complaint);
      this.#again(cluster === undefined ? HOSTLESS_PAUSE_MS : this.#pauseMs());
      return;
    }
    const { connectTimeoutMs, http2 } = cluster.settings;
    const { keepalive = null } = http2?.settings ?? {};
    this.#open(settings, {
      label: labelOf(cluster, host),
      open: (owner) => connectToHost(cluster, host, PROTOCOLS, this.#deps.faults, owner),
      keepalive: keepalive !== null && keepalive.intervalMs > 0 ? keepalive : null,
      connectTimeoutMs,
      count: (isBegin) => {
        if (isBegin) cluster.stats.add('upstream_rq_total');
        cluster.stats.add('upstream_rq_active', isBegin ? 1 : -1);
      },
    });
  }

  #open(settings: ManagementServerSettings, { label, open, keepalive, connectTimeoutMs, count }: Way): void {
    const { clock, faults } = this.#deps;
    const log = this.#deps.log.ofFile(FILE);
    count(true);
    const { authority, metadata, maxMessageBytes } = settings;
    this.#isHeard = false;
    this.#stream = new GrpcStream(
      open,
      { path: this.#path, authority, metadata, maxMessageBytes, connectTimeoutMs, keepalive },
      { clock, faults },
      {
        onOpen: () => {
          this.#isOpen = true;
          this.#generation += 1;
          log.debug(`management server ${label}: a stream of ${this.#path} begins`);
          this.#listener.onOpen();
        },
        onMessage: (bytes) => {
          if (this.#isClosed) return;
          this.#isHeard = true;
          this.#complaint.end();
          this.#backoff.reset();
          this.#listener.onMessage(bytes);
        },
        onDrain: () => this.#listener.onDrain?.(),
        onEnd: (reason) => {
          count(false);
          this.#lost(label, reason);
        },
      },
    );
    // One that could not even be begun.
    if (this.#isClosed) this.#stream.close();
  }

  #lost(label: string, reason: string | undefined): void {
    this.#stream = undefined;
    this.#isOpen = false;
    this.#generation += 1;
    if (this.#isClosed) {
      this.#onFinished.resolve();
      return;
    }
    if (reason === undefined) this.#deps.log.info(`management server ${label} has ended the stream`);
    else this.#complain(`${label}: ${reason}`);
    const pauseMs = this.#pauseMs();
    this.#listener.onLost(reason);
    this.#again(pauseMs);
  }

  /** And whose turn is next. */
  #pauseMs(): number {
    if (this.#isHeard) {
      this.#turn = 0;
      return this.#backoff.nextMs();
    }
    this.#turn = (this.#turn + 1) % this.#servers.length;
    // The stand-in is asked at once.
    return this.#turn === 0 ? this.#backoff.nextMs() : 0;
  }

  #again(pauseMs: number): void {
    if (this.#isClosed) return;
    this.#endPause = this.#deps.clock.after(pauseMs, () => {
      this.#listener.onRetry?.();
      this.#connect();
    });
  }

  #complain(complaint: string): void {
    this.#complaint.say(`management server ${complaint}`);
  }
}
