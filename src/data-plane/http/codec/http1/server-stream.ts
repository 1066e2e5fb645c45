// The exchange on an HTTP/1.1 connection from a client, as its HTTP stream drives it: one at a time, so that one object
// serves all of a connection. Gives responses what belongs to their connection, above all whether it ends with them.
// Step 5 of the request flow.

import type { Socket } from 'node:net';
import { Framing, Method, type RequestHead } from '../../../../wasm/http1.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import type { Trailers } from '../../trailers.ts';
import type { ConnectionLife } from '../connection-life.ts';
import type { DownstreamStream, RequestReceiver, ResetReason, ResponseNotes } from '../downstream-stream.ts';
import type { CodecOwner } from '../server-connection.ts';
import type { StreamConnection } from '../stream-connection.ts';
import { ResponseWriter } from './response-writer.ts';
import type { ServerDeadlines } from './server-deadlines.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** The connection, as its exchange sees it. */
export interface ServerStreamOwner {
  readonly connection: StreamConnection;
  readonly deadlines: ServerDeadlines;
  /** Null where the connection has none. */
  readonly life: ConnectionLife | null;
  readonly isMessageDone: boolean;
  /** The request asks, or has asked, for a tunnel. */
  readonly isTunnelRequest: boolean;
  /** The response is complete. @param isLast nothing may follow it. */
  endStream(isLast: boolean, nowMs: number): void;
  resetStream(reason: ResetReason): void;
  resumeRequest(): void;
  awaitTunnel(): void;
  openTunnel(): void;
  refuseTunnel(): boolean;
}

export class Http1ServerStream implements DownstreamStream {
  readonly connection: StreamConnection;
  readonly deadlines: ServerDeadlines;
  readonly #writer: ResponseWriter;
  readonly #codecOwner: CodecOwner;
  readonly #owner: ServerStreamOwner;
  /** Null between exchanges. */
  #receiver: RequestReceiver | null = null;
  /** The client lets the connection go on after this exchange. */
  #isPersistent = true;
  #mustClose = false;

  constructor(socket: Socket, context: WorkerContext, codecOwner: CodecOwner, owner: ServerStreamOwner) {
    this.connection = owner.connection;
    this.deadlines = owner.deadlines;
    this.#codecOwner = codecOwner;
    this.#owner = owner;
    this.#writer = new ResponseWriter(socket, context, codecOwner.statBase, codecOwner.responseLines);
  }

  /** An exchange begins. @param startedMs as CodecOwner.newStream. */
  begin(head: RequestHead, startedMs: number, headMs: number): RequestReceiver {
    this.#mustClose = false;
    this.#isPersistent = head.isPersistent && head.methodId !== Method.CONNECT;
    if (this.#owner.life?.onRequest()) this.#isPersistent = false;
    this.#writer.isForHttp10 = head.minorVersion === 0;
    this.#writer.isForHead = head.methodId === Method.HEAD;
    this.#receiver = this.#codecOwner.newStream(this, startedMs, headMs);
    this.#writer.wire = this.#receiver.downstreamWire;
    return this.#receiver;
  }

  /** The kernel has taken everything, or the connection is gone. */
  noteSent(): void {
    this.#writer.noteSent();
  }

  /** Answers what never became an exchange; nothing may follow. @param lines as for `prepareReply`. */
  writeRefusal(lines: string, body: Buffer): void {
    this.#writer.writeReply(this.#writer.prepareReply(lines, true), body);
  }

  // ---- What the HTTP stream asks for ----

  get protocol(): string {
    return this.#writer.isForHttp10 ? 'HTTP/1.0' : 'HTTP/1.1';
  }

  get isMessageDone(): boolean {
    return this.#owner.isMessageDone;
  }

  get takesTrailers(): boolean {
    return this.#writer.isInChunks && this.#codecOwner.settings.enableTrailers;
  }

  set responseTrailers(trailers: Trailers) {
    this.#writer.trailers = trailers;
  }

  writeContinue(): void {
    this.#writer.writeText(CONTINUE);
  }

  writeInterim(): boolean {
    return !this.#writer.isForHttp10 && this.#writer.writeInterim();
  }

  prepareHead(framing: number, isEnd: boolean): number {
    const endsWithClose = this.#writer.isForHttp10 && framing >= Framing.CHUNKED;
    this.#mustClose = this.#isLast(isEnd) || endsWithClose || framing === Framing.TUNNEL;
    return this.#writer.prepareHead(framing, this.#mustClose);
  }

  writeHead(
    notes: ResponseNotes | null,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean {
    return this.#writer.writeHead(notes, bytes, start, end, isEnd, nowMs);
  }

  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    this.deadlines.touchNow();
    return this.#writer.writeBody(bytes, start, end, isEnd, isPinnable);
  }

  prepareReply(lines: string, isLast: boolean): string {
    this.#mustClose = isLast || this.#isLast(true);
    return this.#writer.prepareReply(lines, this.#mustClose);
  }

  writeReply(head: string, body: Buffer): void {
    this.#writer.writeReply(head, body);
  }

  endStream(nowMs: number): void {
    const isLast = this.#mustClose || !this.#receiver!.isRequestComplete;
    this.#receiver = null;
    this.#owner.endStream(isLast, nowMs);
  }

  resetStream(reason: ResetReason): void {
    this.#owner.resetStream(reason);
  }

  resumeRequest(): void {
    this.#owner.resumeRequest();
  }

  awaitTunnel(): void {
    this.#owner.awaitTunnel();
  }

  openTunnel(): void {
    this.#owner.openTunnel();
  }

  refuseTunnel(): boolean {
    return this.#owner.refuseTunnel();
  }

  /** Whether the response at hand is the last one. A request that has not arrived in full leaves bytes behind. */
  #isLast(isResponseEnd: boolean): boolean {
    if (!this.#isPersistent || this.#owner.life?.isAged || this.#codecOwner.endsWithResponse()) return true;
    // Behind a refused upgrade such bytes may have come already.
    return !this.#receiver!.isRequestComplete && (isResponseEnd || this.#owner.isTunnelRequest);
  }
}
