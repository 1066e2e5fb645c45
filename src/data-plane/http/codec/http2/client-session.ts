// The session of a connection to an upstream, and its streams: what they need of it, and what it tells them. Knows no socket.

import type { HeadLimits, Http1Codec } from '../../../../wasm/http1.ts';
import type { WireBytes } from '../../../format/wire-bytes.ts';
import type { ConnectionEnds } from '../../../upstream/upstream-facts.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import type { Trailers } from '../../trailers.ts';
import { Http2ClientStream } from './client-stream.ts';
import { ExchangeList } from './exchange-list.ts';
import { ErrorCode } from './frames.ts';
import type { Http2Options, SessionFault } from './options.ts';
import { Http2Session } from './session.ts';
import type { SessionOwner } from './session-owner.ts';
import type { SessionStream } from './session-stream.ts';

/** As many are tried before a peer has said how many it takes: every server should take these (RFC 9113 section 6.5.2). */
const STREAMS_BEFORE_SETTINGS = 100;
/** A host that has taken none for a while takes some again on a connection that begins. */
const LEAST_STREAMS = 1;

/** The connection, which owns the socket. */
export interface ClientSessionOwner {
  readonly ends: ConnectionEnds;
  /** There is something to write. */
  onDirty(): void;
  /** As in OutputSink. */
  write(slab: Buffer, length: number): boolean;
  /** @param stat of CLUSTER_STATS. */
  count(stat: number): void;
  countSession(stat: string): void;
  /** A stream has ended. */
  onStreamEnd(): void;
  /** The same of one that the end of the session has ended. */
  onStreamCut(): void;
  /** It takes more streams than before, or fewer. */
  onCapacity(): void;
  /** The peer has said how many streams it takes at a time. */
  onPeerStreams(most: number): void;
  onGoaway(): void;
  onPong(): void;
  /** The upstream has broken the protocol; what is written last tells it so. */
  onSessionFault(fault: SessionFault): void;
}

/** Streams that a connection will take, as far as that is known before its settings. @param knownStreams as for ClientSession. */
export function likelyStreams({ maxConcurrentStreams }: Http2Options, knownStreams: number): number {
  return Math.min(maxConcurrentStreams, Math.max(LEAST_STREAMS, knownStreams));
}

export class ClientSession implements SessionOwner {
  readonly #context: WorkerContext;
  readonly #owner: ClientSessionOwner;
  readonly #session: Http2Session;
  readonly #maxStreams: number;
  /** As many as it will take, as far as that is known before its settings. */
  readonly #likelyStreams: number;
  readonly #streams = new ExchangeList<Http2ClientStream>();
  /** Whose head lies in the codec's table, and goes on with the content behind it or before the next event. */
  #held: Http2ClientStream | null = null;

  /** @param knownStreams that the host takes on other connections; infinite when nobody knows. */
  constructor(
    context: WorkerContext,
    owner: ClientSessionOwner,
    options: Http2Options,
    limits: HeadLimits,
    knownStreams: number,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#maxStreams = options.maxConcurrentStreams;
    this.#likelyStreams = likelyStreams(options, knownStreams);
    this.#session = new Http2Session(context.http2, this, false, options, limits);
  }

  get ends(): ConnectionEnds {
    return this.#owner.ends;
  }

  get codec(): Http1Codec {
    return this.#context.codec;
  }

  get nowMs(): number {
    return this.#context.clock.monotonicMs();
  }

  get hasSettings(): boolean {
    return this.#session.hasSettings;
  }

  get takesConnectProtocol(): boolean {
    return this.#session.takesConnectProtocol;
  }

  get isEnded(): boolean {
    return this.#session.isEnded;
  }

  /** Octets of requests for which the upstream has left no window yet. */
  get pendingBytes(): number {
    return this.#session.pendingBytes;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** Streams that it takes now. */
  get freeStreams(): number {
    const most = this.hasSettings ? this.#maxStreams : Math.min(this.#likelyStreams, STREAMS_BEFORE_SETTINGS);
    return Math.max(0, Math.min(most - this.#streams.size, this.#session.freeStreams));
  }

  /** Streams beside those that it may take when it knows its peer. */
  get comingStreams(): number {
    return this.hasSettings ? 0 : Math.max(0, this.#likelyStreams - STREAMS_BEFORE_SETTINGS);
  }

  /** Streams that it takes in all, as far as that is known before there is a connection. */
  get likelyStreams(): number {
    return this.#likelyStreams;
  }

  // ---- From the connection ----

  start(): void {
    this.#session.start();
  }

  receive(bytes: Buffer, length: number): void {
    this.#session.receive(bytes, 0, length);
    this.releaseHeadBut(null);
  }

  openStream(isReused: boolean): Http2ClientStream {
    const stream = new Http2ClientStream(this, isReused);
    this.#streams.add(stream);
    return stream;
  }

  ping(): void {
    this.#session.ping();
  }

  flush(): void {
    this.#session.flush();
  }

  drained(): void {
    this.#session.drained();
  }

  /** Takes its streams away, whose connection has ended. @returns those that hear of it by `lose`. */
  end(): Http2ClientStream[] {
    this.releaseHeadBut(null);
    const streams = this.#streams.all();
    for (const stream of streams) {
      this.#streams.delete(stream);
      stream.detach();
    }
    this.#session.close(ErrorCode.CANCEL, true, '');
    return streams;
  }

  // ---- From the streams ----

  /** A new stream for the request that lies in the codec; null when that cannot be sent. */
  request(flags: number, isEnd: boolean, wire: WireBytes | null): SessionStream | null {
    return this.#session.request(flags, isEnd, wire);
  }

  send(
    stream: SessionStream,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    if (start === end && !isEnd) return true;
    return this.#session.send(stream, bytes, start, end, isEnd, trailers?.text());
  }

  reset(stream: SessionStream, code: number): void {
    this.#session.reset(stream, code);
  }

  release(stream: SessionStream): void {
    this.#session.release(stream);
  }

  consume(stream: SessionStream, octets: number): void {
    this.#session.consume(stream, octets);
  }

  keep(octets: number): void {
    this.#session.keep(octets);
  }

  consumeKept(stream: SessionStream, octets: number): void {
    this.#session.consumeKept(stream, octets);
  }

  hold(stream: Http2ClientStream): void {
    this.#held = stream;
  }

  /** The head that is held goes on, unless it is this stream's, which takes it. */
  releaseHeadBut(stream: Http2ClientStream | null): void {
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    if (held !== stream) held.releaseHead();
  }

  /** Once for each stream, whatever has ended it; not at the end of the connection. */
  onStreamEnd(stream: Http2ClientStream): void {
    if (!this.#streams.delete(stream)) return;
    if (this.#session.isEnded) this.#owner.onStreamCut();
    else this.#owner.onStreamEnd();
  }

  countCluster(stat: number): void {
    this.#owner.count(stat);
  }

  /** Has it run behind whatever runs now. */
  later(action: () => void): void {
    queueMicrotask(() => this.#context.faults.run('an HTTP/2 request', action));
  }

  // ---- From the session ----

  onStream(): void {
    // Upstreams open none.
  }

  onOversizedRequest(): void {
    // Nor do they ask for anything.
  }

  onDirty(): void {
    this.#owner.onDirty();
  }

  write(slab: Buffer, length: number): boolean {
    return this.#owner.write(slab, length);
  }

  onBlock(): void {
    this.releaseHeadBut(null);
  }

  onSettings(): void {
    this.#owner.onPeerStreams(this.#session.peerStreams);
    this.#owner.onCapacity();
    for (const stream of this.#streams.all()) stream.onSettings();
  }

  count(stat: string): void {
    this.#owner.countSession(stat);
  }

  onGoaway(): void {
    this.releaseHeadBut(null);
    this.#owner.onGoaway();
  }

  onPong(): void {
    this.#owner.onPong();
  }

  onDrainRead(): void {
    // Nobody drains towards a server: who opens the streams just opens none.
  }

  onSessionFault(fault: SessionFault): void {
    this.#owner.onSessionFault(fault);
  }

  onIdle(): void {
    // The streams tell of themselves when they have ended.
  }
}
