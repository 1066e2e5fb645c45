// The HTTP/2 connection of a probe, under the same rules as that of HTTP/1: made when a check needs one, kept for the next if the
// probe allows, replaced once when a kept one turns out to have ended. Framing is Node's: a check a second and host is no traffic, and
// main keeps the codec of workers out of its memory. RFC 9113. Main thread.
//
// A GOAWAY without an error lets the check under way end, and nothing is kept; one with an error ends it.

import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { CheckField } from './check-fields.ts';
import { faultOf, type ProbeOrigin, type ProbeTarget } from './probe.ts';
import { answerTooLong, MAX_ANSWER_BYTES } from './probe-connection.ts';
import { ProbeSocket } from './probe-socket.ts';

const WHERE = 'the HTTP/2 connection of a health check';
const PROTOCOLS = ['h2'];
const NO_ERROR = 0;
const CANCEL = 8;

export interface Http2Request {
  readonly method: string;
  readonly path: string;
  /** `host` becomes the authority. */
  readonly fields: readonly CheckField[];
  readonly body: Buffer;
}

/** How an answer has ended: complete, or why it is none. */
export interface Http2Listener {
  /** The request is on its way over a connection that is there. */
  onSent?(): void;
  /** @param status of a final answer. */
  onHead(status: number, headers: IncomingHttpHeaders): void;
  onBytes(bytes: Buffer): void;
  onTrailers(trailers: IncomingHttpHeaders): void;
  /** The answer is complete. */
  onEnd(): void;
  onBroken(reason: string): void;
}

export class Http2Connection {
  readonly #origin: ProbeOrigin | undefined;
  readonly #faults: FaultBoundary;
  readonly #listener: Http2Listener;
  readonly #maxAnswerBytes: number;
  #connection: ProbeSocket | undefined;
  #session: ClientHttp2Session | undefined;
  #label: string | undefined;
  #target: ProbeTarget | undefined;
  #request: Http2Request | undefined;
  #stream: ClientHttp2Stream | undefined;
  /** Why the connection ends, where somebody has said. */
  #reason: string | undefined;
  #isLeaving = false;
  /** An earlier check has used it, and nothing has come back in this one. */
  #isUntried = false;

  constructor(
    origin: ProbeOrigin | undefined,
    faults: FaultBoundary,
    listener: Http2Listener,
    maxAnswerBytes = MAX_ANSWER_BYTES,
  ) {
    this.#maxAnswerBytes = maxAnswerBytes;
    this.#origin = origin;
    this.#faults = faults;
    this.#listener = listener;
  }

  ask(target: ProbeTarget, request: Http2Request): void {
    const label = formatAddress(target.address);
    if (label !== this.#label || this.#isLeaving) this.close();
    this.#label = label;
    this.#target = target;
    this.#request = request;
    this.#isUntried = this.#session !== undefined;
    if (this.#session === undefined) this.#connect();
    else this.#send(this.#session);
  }

  /** Idempotent. */
  close(): void {
    const [session, connection] = [this.#session, this.#connection];
    this.#session = undefined;
    this.#connection = undefined;
    this.#stream = undefined;
    this.#reason = undefined;
    this.#isLeaving = false;
    session?.destroy();
    connection?.destroy();
  }

  #connect(): void {
    const onOpen = (socket: Socket): void => this.#begin(socket);
    const onLost = (reason: string | undefined): void => this.#lost(reason);
    this.#connection = new ProbeSocket(this.#target!, this.#origin, PROTOCOLS, this.#faults, { onOpen, onLost });
  }

  #begin(socket: Socket): void {
    // Loaded with the first check by HTTP/2.
    const { connect } = process.getBuiltinModule('node:http2');
    const session = connect('http://localhost', { createConnection: () => socket, settings: { enablePush: false } });
    this.#session = session;
    // What a former connection has to say is nothing to this one.
    const isCurrent = (): boolean => session === this.#session;
    const onGoaway = (code: number): void => {
      if (!isCurrent()) return;
      this.#isLeaving = true;
      if (code !== NO_ERROR) this.#reason ??= `GOAWAY with error ${code}`;
    };
    const onError = (error: Error): void => {
      if (isCurrent()) this.#reason ??= faultOf(error);
    };
    const onClose = (): void => {
      if (isCurrent()) this.#lost(undefined);
    };
    session.on('goaway', this.#faults.handler(WHERE, onGoaway));
    session.on('error', this.#faults.handler(WHERE, onError));
    session.on('close', this.#faults.handler(WHERE, onClose));
    this.#send(session);
  }

  #send(session: ClientHttp2Session): void {
    const { body, ...head } = this.#request!;
    const stream = session.request(headersOf(head, session.encrypted === true), { endStream: body.length === 0 });
    this.#stream = stream;
    this.#listener.onSent?.();
    const isCurrent = (): boolean => stream === this.#stream;
    let allowance = this.#maxAnswerBytes;
    let isEnded = false;
    let reason: string | undefined;
    const onHead = (headers: IncomingHttpHeaders & { readonly ':status'?: number }): void => {
      if (!isCurrent()) return;
      this.#isUntried = false;
      this.#listener.onHead(headers[':status'] ?? 0, headers);
    };
    const onData = (bytes: Buffer): void => {
      if (!isCurrent()) return;
      allowance -= bytes.length;
      if (allowance >= 0) this.#listener.onBytes(bytes);
      else {
        stream.close(CANCEL);
        this.#end(() => this.#listener.onBroken(answerTooLong(this.#maxAnswerBytes)));
      }
    };
    const onTrailers = (trailers: IncomingHttpHeaders): void => {
      if (isCurrent()) this.#listener.onTrailers(trailers);
    };
    const onEnd = (): void => {
      isEnded = true;
    };
    const onError = (error: Error): void => {
      reason = faultOf(error);
    };
    const onClose = (): void => {
      if (!isCurrent()) return;
      if (isEnded && stream.rstCode === NO_ERROR && reason === undefined) this.#end(() => this.#listener.onEnd());
      // The connection ends with it: that is told, or another one made.
      else if (this.#session?.destroyed !== false) this.#lost(reason);
      else if (this.#isLeaving && this.#isUntried) this.#lost(reason);
      else this.#end(() => this.#listener.onBroken(reason ?? `stream reset with error ${stream.rstCode}`));
    };
    stream.on('response', this.#faults.handler(WHERE, onHead));
    stream.on('data', this.#faults.handler(WHERE, onData));
    stream.on('trailers', this.#faults.handler(WHERE, onTrailers));
    stream.on('end', this.#faults.handler(WHERE, onEnd));
    stream.on('error', this.#faults.handler(WHERE, onError));
    stream.on('close', this.#faults.handler(WHERE, onClose));
    if (body.length > 0) stream.end(body);
  }

  #end(tell: () => void): void {
    this.#stream = undefined;
    this.#request = undefined;
    tell();
  }

  #lost(streamReason: string | undefined): void {
    const reason = this.#reason ?? streamReason ?? 'closed before the answer';
    this.close();
    if (this.#request === undefined) return;
    if (this.#isUntried) {
      this.#isUntried = false;
      this.#connect();
    } else this.#end(() => this.#listener.onBroken(reason));
  }
}

/** Fields of one name are one field (RFC 9110 section 5.3). */
function headersOf({ method, path, fields }: Omit<Http2Request, 'body'>, isSecured: boolean): OutgoingHttpHeaders {
  const scheme = isSecured ? 'https' : 'http';
  const headers: Record<string, string> = { ':method': method, ':path': path, ':scheme': scheme };
  for (const [written, value] of fields) {
    const name = written === 'host' ? ':authority' : written;
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return headers;
}
