// A protocol that exists nowhere, on both sides of the data plane: messages are handed over as the interfaces of codecs
// carry them, many at a time, without connections, chunks or text on a wire. What works with it knows no protocol.

import assert from 'node:assert/strict';
import { ListenerDrain } from '../../src/data-plane/drains.ts';
import { Dechunker } from '../../src/data-plane/http/chunk-framing.ts';
import type {
  DownstreamStream,
  RequestReceiver,
  ResetReason,
  ResponseNotes,
  StreamDeadlines,
  StreamLoss,
} from '../../src/data-plane/http/codec/downstream-stream.ts';
import { StreamConnection } from '../../src/data-plane/http/codec/stream-connection.ts';
import type { ResponseReceiver, UpstreamStream } from '../../src/data-plane/http/codec/upstream-stream.ts';
import { ConnectionManager } from '../../src/data-plane/http/connection-manager.ts';
import { NO_LIMITS } from '../../src/data-plane/http/filtered-stream.ts';
import type { StreamLimit } from '../../src/data-plane/http/stream-limits.ts';
import { Trailers } from '../../src/data-plane/http/trailers.ts';
import type { HttpFilterRegistry } from '../../src/data-plane/index.ts';
import { DownstreamConnection } from '../../src/data-plane/network/downstream-connection.ts';
import { ClusterMap } from '../../src/data-plane/upstream/cluster-map.ts';
import type { ConnectionPool, PoolClient } from '../../src/data-plane/upstream/pool/connection-pool.ts';
import type { UpstreamFailure } from '../../src/data-plane/upstream/pool/failure.ts';
import type { WorkerContext } from '../../src/data-plane/worker-context.ts';
import {
  type HttpConnectionManagerSettings,
  packClusters,
  type RouteSnapshot,
  type TerminalFilterSettings,
} from '../../src/snapshot/index.ts';
import { CLUSTER_STATS, HTTP_STATS, HTTP1_STATS, LISTENER_HTTP_STATS } from '../../src/stats/index.ts';
import { Framing, Method } from '../../src/wasm/http1.ts';
import { BlockFlag, type Http2Heads } from '../../src/wasm/http2.ts';
import { httpManager } from './data-plane.ts';
import { filterChain } from './listeners.ts';
import { UpstreamWorkers } from './upstream-workers.ts';

const PROTOCOL = 'LETTER/1';

/** A field as it is, that goes into no table (RFC 7541 section 6.2.2), of less than 127 bytes each. */
function literal(name: string, value: string): Buffer {
  return Buffer.from([0, name.length, ...Buffer.from(name), value.length, ...Buffer.from(value)]);
}

/** A message as it was handed over. */
export class Letter {
  /** Kept form of the head. */
  head = '';
  /** One of Framing; -1 before the head. */
  framing = -1;
  /** Without framing. */
  body = '';
  trailers = '';
  isEnded = false;
  readonly #dechunker = new Dechunker();

  add(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): void {
    const isChunked = this.framing === Framing.CHUNKED;
    const data = isChunked ? this.#dechunker.decode(bytes, start, end) : bytes.subarray(start, end);
    this.body += data.toString('latin1');
    this.isEnded = isEnd;
    if (isEnd && trailers !== null) this.trailers = trailers.text();
  }

  /** Value of a field of the head. */
  field(name: string): string | undefined {
    return new RegExp(`\r\n${name}: ([^\r]*)`, 'i').exec(this.head)?.[1];
  }
}

/** A client's exchange: sends requests, gets letters. */
export class LetterClient implements DownstreamStream {
  readonly protocol = PROTOCOL;
  readonly answer = new Letter();
  readonly deadlines: StreamDeadlines & { limits: StreamLimit[] };
  receiver!: RequestReceiver;
  isMessageDone = false;
  /** Takes what comes of the response. */
  isFast = true;
  reset: ResetReason | null = null;
  /** The tunnel that was asked for. */
  tunnel: 'none' | 'awaited' | 'open' | 'refused' = 'none';
  continues = 0;
  /** More of the request may come. */
  isWelcome = true;
  readonly #bench: LetterBench;
  readonly #takesTrailers: boolean;
  #responseTrailers: Trailers | null = null;

  constructor(bench: LetterBench, takesTrailers: boolean) {
    this.#bench = bench;
    this.#takesTrailers = takesTrailers;
    const limits: StreamLimit[] = [];
    this.deadlines = {
      limits,
      flushTimeoutMs: 0,
      limitStream: (limit) => void limits.push(limit),
      clearLimits: () => void limits.splice(0),
      setStreamIdleTimeout() {},
    };
  }

  get connection(): StreamConnection {
    return this.#bench.connection;
  }

  get takesTrailers(): boolean {
    return this.#takesTrailers;
  }

  set responseTrailers(trailers: Trailers) {
    this.#responseTrailers = trailers;
  }

  // ---- The client's side ----

  /** Its head is decoded by another codec than that of HTTP/1.1. */
  request(method: string, path: string, body = '', isEnd = true): this {
    const fields = { ':method': method, ':scheme': 'http', ':path': path, ':authority': 'h' };
    this.#bench.decode(fields, isEnd && body === '');
    return this.#begin(body, isEnd);
  }

  /** It comes in chunks, as from HTTP/1.1. */
  requestInChunks(chunks: string): this {
    const head = Buffer.from('POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n', 'latin1');
    assert.ok(this.#bench.context.codec.parseRequest(head, 0, head.length, NO_LIMITS) > 0);
    return this.#begin(chunks, true);
  }

  #begin(body: string, isEnd: boolean): this {
    const { clock } = this.#bench.context;
    this.isMessageDone = isEnd;
    this.receiver = this.#bench.manager.newStream(this, clock.monotonicMs(), clock.monotonicMs());
    const data = Buffer.from(body, 'latin1');
    this.isWelcome = this.receiver.begin(data, 0, data.length, isEnd);
    return this;
  }

  send(body: string, isEnd = false, trailers = ''): void {
    const data = Buffer.from(body, 'latin1');
    this.isMessageDone = isEnd;
    if (trailers !== '') this.receiver.requestTrailers = Trailers.parse(trailers);
    this.isWelcome = this.receiver.onRequestBody(data, 0, data.length, isEnd, this.#bench.nowMs);
  }

  /** It has taken all, and takes more. */
  drain(): void {
    this.isFast = true;
    this.receiver.onDownstreamDrain();
  }

  lose(loss: Partial<StreamLoss> = {}): void {
    this.receiver.onDownstreamGone({ isLocal: false, isReset: true, flag: 0, details: 'letter_torn', ...loss });
  }

  // ---- The proxy's side ----

  writeInterim(): boolean {
    return false;
  }

  writeContinue(): void {
    this.continues += 1;
  }

  prepareHead(framing: number): number {
    const { codec } = this.#bench.context;
    const length = codec.writeResponse();
    if (length < 0) return length;
    this.answer.head = codec.responseText(length);
    this.answer.framing = framing;
    return 0;
  }

  writeHead(
    notes: ResponseNotes | null,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean {
    notes?.noteResponse(this.answer.head, end - start, nowMs);
    return this.writeBody(bytes, start, end, isEnd);
  }

  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.answer.add(bytes, start, end, isEnd, this.#responseTrailers);
    return this.isFast;
  }

  prepareReply(lines: string, _isLast: boolean): string {
    return `${lines}\r\n`;
  }

  writeReply(head: string, body: Buffer): void {
    this.answer.head = head;
    this.answer.framing = Framing.LENGTH;
    this.answer.add(body, 0, body.length, true, null);
  }

  endStream(): void {}

  resetStream(reason: ResetReason): void {
    this.reset = reason;
  }

  resumeRequest(): void {
    this.isWelcome = true;
  }

  awaitTunnel(): void {
    this.tunnel = 'awaited';
  }

  openTunnel(): void {
    this.tunnel = 'open';
  }

  refuseTunnel(): boolean {
    this.tunnel = 'refused';
    return this.isMessageDone;
  }
}

/** An exchange with an upstream: gets letters, sends answers. */
export class LetterUpstream implements UpstreamStream {
  readonly protocol = PROTOCOL;
  readonly isReused = false;
  readonly wasLeftBehind = false;
  readonly wereOthersTaken = false;
  readonly unsentBytes = 0;
  readonly localEndpoint = { ip: '127.0.0.1', port: 1 };
  readonly remoteAddress = { kind: 'ip', ip: '127.0.0.1', port: 1 } as const;
  readonly tls = null;
  readonly request = new Letter();
  hasResponseBytes = false;
  /** Takes what comes of the request. */
  isFast = true;
  /** Null while it runs; else whether it was broken off. */
  aborted: boolean | null = null;
  resumed = 0;
  /** More of the answer may come. */
  isWelcome = true;
  #receiver!: ResponseReceiver;
  #hasHead = false;
  readonly #bench: LetterBench;

  constructor(bench: LetterBench) {
    this.#bench = bench;
  }

  // ---- The proxy's side ----

  start(
    receiver: ResponseReceiver,
    _method: number,
    head: string,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
  ): boolean {
    this.#receiver = receiver;
    this.request.head = head;
    this.request.framing = receiver.requestFraming;
    return this.send(bytes, start, end, isEnd);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.request.add(bytes, start, end, isEnd, this.#bench.takesTrailers ? this.#receiver.requestTrailers : null);
    return this.isFast;
  }

  resume(): void {
    this.resumed += 1;
    this.isWelcome = true;
  }

  abort(isReset: boolean): void {
    this.aborted = isReset;
  }

  // ---- The upstream's side ----

  /** @param head without a word of where its body ends, unless the test says one. */
  answer(head: string, body = '', isEnd = true, trailers = ''): void {
    const { codec } = this.#bench.context;
    const bytes = Buffer.from(`${head}\r\n\r\n`, 'latin1');
    assert.ok(codec.parseResponse(bytes, 0, bytes.length, NO_LIMITS, Method.GET) > 0);
    this.hasResponseBytes = true;
    this.more(body, isEnd, trailers);
  }

  more(body: string, isEnd = false, trailers = ''): void {
    const data = Buffer.from(body, 'latin1');
    const receiver = this.#receiver;
    if (trailers !== '') receiver.onResponseTrailers(Trailers.parse(trailers));
    const isFirst = !this.#hasHead;
    this.#hasHead = true;
    this.isWelcome = isFirst
      ? receiver.onResponseHead(data, 0, data.length, isEnd, false, this.#bench.nowMs)
      : receiver.onResponseBody(data, 0, data.length, isEnd, false, this.#bench.nowMs);
  }

  /** The upstream has taken what it was sent. */
  drain(): void {
    this.isFast = true;
    this.#receiver.onUpstreamDrain();
  }

  reset(failure: UpstreamFailure): void {
    this.#receiver.onUpstreamReset(failure, '');
  }
}

class LetterPool implements ConnectionPool {
  readonly isUsed = false;
  readonly #bench: LetterBench;

  constructor(bench: LetterBench) {
    this.#bench = bench;
  }

  newStream(client: PoolClient): void {
    const upstream = new LetterUpstream(this.#bench);
    upstream.isFast = this.#bench.hasFastUpstreams;
    this.#bench.upstreams.push(upstream);
    if (this.#bench.isReady) client.onStream(upstream);
    else this.#bench.waiting.push(() => client.onStream(upstream));
  }

  cancel(): boolean {
    this.#bench.cancelled += 1;
    return true;
  }

  openForNext(): boolean {
    return false;
  }

  closeUnused(): boolean {
    return false;
  }

  renew(): void {}
  drain(): void {}
  close(): void {}
}

export interface LetterBenchOptions {
  readonly settings?: Partial<HttpConnectionManagerSettings>;
  /** Of both sides. */
  readonly enableTrailers?: boolean;
  /** That the settings may name. */
  readonly httpFilters?: HttpFilterRegistry;
}

/** A connection manager with a cluster, `web`, that both speak in letters. */
export class LetterBench {
  readonly workers: UpstreamWorkers;
  readonly context: WorkerContext;
  readonly manager: ConnectionManager;
  readonly connection: StreamConnection;
  /** Exchanges, in order. */
  readonly upstreams: LetterUpstream[] = [];
  /** Requests get their upstreams at once. */
  isReady = true;
  hasFastUpstreams = true;
  /** Its upstreams can have trailers behind requests. */
  readonly takesTrailers: boolean;
  readonly waiting: (() => void)[] = [];
  cancelled = 0;
  readonly #httpBlock: number;
  readonly #clusterBlock: number;
  readonly #heads: Http2Heads;
  readonly #decoder: number;

  constructor(
    routes: readonly RouteSnapshot[],
    { settings = {}, enableTrailers = true, httpFilters = {} }: LetterBenchOptions = {},
  ) {
    this.takesTrailers = enableTrailers;
    const onSocket = (): never => assert.fail('nobody opens a socket');
    this.workers = new UpstreamWorkers(1, onSocket, httpFilters);
    this.context = this.workers.contexts[0]!;
    this.#heads = this.context.http2.heads;
    this.#decoder = this.#heads.createDecoder(0);
    this.#httpBlock = this.workers.statBlock(HTTP_STATS);
    const clusters = new ClusterMap(this.context, () => new LetterPool(this));
    const snapshot = this.workers.balanced(this.workers.cluster(1, { enableTrailers }));
    this.#clusterBlock = snapshot.statBlock;
    clusters.update(packClusters([snapshot]), [], () => {});
    const filter = httpManager(routes, { enableTrailers, ...settings });
    const chain = {
      id: 1,
      settings: filterChain(filter as TerminalFilterSettings),
      filterStatBlock: this.#httpBlock,
      listenerHttpStatBlock: this.workers.statBlock(LISTENER_HTTP_STATS),
      http1StatBlock: this.workers.statBlock(HTTP1_STATS),
      networkFilters: [],
    };
    const ingress = { chainName: '', chainMetadata: undefined, listenerMetadata: undefined };
    const drain = new ListenerDrain(this.context, { trafficDirection: 'UNSPECIFIED', drainType: 'default' });
    const orders = { drain, overload: this.context.overload };
    this.manager = new ConnectionManager(this.context, clusters, chain, ingress, orders, filter);
    const socket = { remoteAddress: '10.1.2.3', remotePort: 1, localAddress: '10.1.2.4', localPort: 2 };
    const downstream = new DownstreamConnection(socket as never, this.nowMs, 1024 * 1024);
    this.connection = new StreamConnection(this.context, downstream, this.manager.internalAddresses);
  }

  /** Has the head of a request in the worker's table. */
  decode(fields: Readonly<Record<string, string>>, isEnd: boolean): void {
    const block = Buffer.concat(Object.entries(fields).map(([name, value]) => literal(name, value)));
    const flags = isEnd ? BlockFlag.END_STREAM : 0;
    assert.ok(this.#heads.decodeRequest(this.#decoder, block, 0, block.length, NO_LIMITS, flags) > 0);
  }

  get nowMs(): number {
    return this.workers.clock.monotonicMs();
  }

  client(takesTrailers = true): LetterClient {
    return new LetterClient(this, takesTrailers);
  }

  get upstream(): LetterUpstream {
    return this.upstreams.at(-1)!;
  }

  httpStat(name: keyof typeof HTTP_STATS.index): number {
    return this.context.stats.values[this.context.stats.base(this.#httpBlock) + HTTP_STATS.index[name]]! + 0;
  }

  clusterStat(name: keyof typeof CLUSTER_STATS.index): number {
    return this.context.stats.values[this.context.stats.base(this.#clusterBlock) + CLUSTER_STATS.index[name]]! + 0;
  }
}
