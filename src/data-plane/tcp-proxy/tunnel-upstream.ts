// The upstream half of a proxied TCP connection whose bytes go through an HTTP proxy: one request, CONNECT or POST, over the
// cluster's HTTP connections, of either version. What the client sends is its body, what the response brings is the client's.
//
//   ASKING ──2xx──► OPEN ──response's end, reset, cancel──► DONE
//      └──another status, no host, no connection, reset──────►┘
//
// A tunnel has no half that stays open behind its response: when the upstream has ended, so has all of it.

import { CLUSTER_STATS } from '../../stats/index.ts';
import { Framing, Method } from '../../wasm/http1.ts';
import { ClusterPriority } from '../../wasm/shared-records.ts';
import { Dechunker } from '../http/chunk-framing.ts';
import type { Trailers } from '../http/trailers.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { type AttemptClient, Verdict } from '../router/attempt-client.ts';
import { UpstreamAttempt } from '../router/upstream-attempt.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { ProxiedUpstream } from './proxied-upstream.ts';
import type { TunnelRequest } from './tunnel-request.ts';

const { upstream_rq_timeout } = CLUSTER_STATS.index;
const ASKING = 0;
const OPEN = 1;
const DONE = 2;
const NO_BYTES = Buffer.alloc(0);

/** The downstream half, as a tunnel sees it. */
export interface TunnelOwner {
  /** How much may wait on its way to the client. */
  readonly bufferLimitBytes: number;
  readonly downstream: DownstreamConnection;
  onTunnelHost(host: Host): void;
  /** The request goes out. */
  onTunnelAsked(): void;
  /** @param head of the response; empty unless the settings ask for it. */
  onTunnelOpened(head: string): void;
  /** Of a response that ends with the next call; told only where the settings ask for them. */
  onTunnelTrailers(trailers: Trailers): void;
  /** There is no host to ask. */
  onTunnelUnavailable(reason: 'none' | 'dns' | 'overflow'): void;
  /** The attempt has failed; another may be made. @param detail why, as far as it is known. */
  onUpstreamConnectFailed(detail: string): void;
  /** @returns false when no more should come before `resume`; a slab stays untouched until then. */
  onUpstreamBytes(bytes: Buffer, length: number, isSlab: boolean): boolean;
  onUpstreamDrain(): void;
  /** @param error null when it ended as it should. */
  onUpstreamClosed(error: Error | null): void;
}

export class TunnelUpstream implements AttemptClient, ProxiedUpstream {
  readonly methodId: number;
  readonly isGrpc = false;
  readonly isInternal = false;
  readonly downstream: DownstreamConnection;
  readonly timeoutMs = 0;
  readonly perTryTimeoutMs = 0;
  readonly bufferLimitBytes: number;
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly isRequestComplete = false;
  readonly requestCompleteMs = 0;
  readonly requestFraming: number;
  readonly requestTrailers = null;
  readonly tally = null;
  readonly overrideHost = null;
  readonly #context: WorkerContext;
  readonly #owner: TunnelOwner;
  readonly #request: TunnelRequest;
  readonly #attempt: UpstreamAttempt;
  #state: number = ASKING;
  #ends: ConnectionEnds | null = null;
  /** Of a response in chunks. */
  #dechunker: Dechunker | null = null;

  /** @param head of the request. @param asks what the choice of a host may go by. */
  constructor(
    context: WorkerContext,
    cluster: Cluster,
    owner: TunnelOwner,
    request: TunnelRequest,
    head: string,
    asks: PickContext | null,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#request = request;
    this.methodId = request.methodId;
    this.requestFraming = request.framing;
    this.downstream = owner.downstream;
    this.bufferLimitBytes = owner.bufferLimitBytes;
    this.#attempt = new UpstreamAttempt(context, this, cluster, ClusterPriority.default, head, null, asks);
  }

  get ends(): ConnectionEnds {
    return this.#ends!;
  }

  get unsentBytes(): number {
    return this.#state === DONE ? 0 : this.#attempt.heldBytes;
  }

  get awaitsTunnel(): boolean {
    return this.#state === ASKING && this.methodId === Method.CONNECT;
  }

  set responseTrailers(trailers: Trailers | null) {
    if (trailers !== null && this.#request.settings.keepsResponseTrailers) this.#owner.onTunnelTrailers(trailers);
  }

  get responseTrailers(): Trailers | null {
    return null;
  }

  /** May tell its owner of the end before it returns. */
  start(): void {
    this.#attempt.start(NO_BYTES, 0, 0, false);
  }

  write(bytes: Buffer, length: number): boolean {
    return this.#state !== OPEN || this.#attempt.send(bytes, 0, length, false);
  }

  end(): void {
    if (this.#state === OPEN) this.#attempt.send(NO_BYTES, 0, 0, true);
  }

  resume(): void {
    if (this.#state === OPEN) this.#attempt.resumeResponse();
  }

  /** The attempt tells of that by the response. */
  noteServed(): void {}

  timeOut(): void {
    this.#state = DONE;
    this.#attempt.timeOut(upstream_rq_timeout);
    this.#owner.onUpstreamConnectFailed('');
  }

  destroy(): void {
    this.#cancel(false);
  }

  reset(): void {
    this.#cancel(true);
  }

  // ---- From the attempt ----

  onUpstreamHost(host: Host): void {
    this.#owner.onTunnelHost(host);
  }

  onUpstreamConnection(connection: ConnectionEnds): void {
    this.#ends = connection;
    this.#owner.onTunnelAsked();
  }

  traceAttempt(): null {
    return null;
  }

  logAttempt(): null {
    return null;
  }

  onUpstreamWritable(): void {
    if (this.#state === OPEN) this.#owner.onUpstreamDrain();
  }

  onInterimHead(): boolean {
    return false;
  }

  judgeResponse(): Verdict {
    return Verdict.pass;
  }

  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const { codec } = this.#context;
    const { status, framing } = codec.response;
    if (status < 200 || status > 299) {
      this.#state = DONE;
      if (!isEnd) this.#attempt.cancel(true);
      this.#owner.onUpstreamConnectFailed(`the tunnel was answered with ${status}`);
      return true;
    }
    this.#state = OPEN;
    if (framing === Framing.CHUNKED) this.#dechunker = new Dechunker();
    this.#owner.onTunnelOpened(this.#request.settings.keepsResponseHeaders ? this.#headText() : '');
    return this.onResponseBody(bytes, start, end, isEnd, false);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean): boolean {
    if (this.#state !== OPEN) return true;
    const part = this.#dechunker?.decode(bytes, start, end) ?? bytes.subarray(start, end);
    const goesOn = part.length === 0 || this.#owner.onUpstreamBytes(part, part.length, isSlab);
    if (isEnd) this.#over(null);
    return goesOn;
  }

  onNoHealthyUpstream(isUnresolved: boolean): void {
    this.#state = DONE;
    this.#owner.onTunnelUnavailable(isUnresolved ? 'dns' : 'none');
  }

  onUpstreamFailure(failure: UpstreamFailure, transport: string): void {
    if (this.#state === OPEN) {
      this.#over(new Error(failure));
      return;
    }
    this.#state = DONE;
    if (failure === 'overflow') this.#owner.onTunnelUnavailable('overflow');
    else this.#owner.onUpstreamConnectFailed(transport);
  }

  // ---- Inside ----

  #over(error: Error | null): void {
    // To be given its last bytes may have ended the owner, and this with it.
    if (this.#state !== OPEN) return;
    this.#state = DONE;
    this.#owner.onUpstreamClosed(error);
  }

  #cancel(isReset: boolean): void {
    if (this.#state === DONE) return;
    this.#state = DONE;
    this.#attempt.cancel(isReset);
  }

  #headText(): string {
    const { codec } = this.#context;
    const length = codec.writeResponse();
    return length < 0 ? '' : codec.responseText(length);
  }
}
