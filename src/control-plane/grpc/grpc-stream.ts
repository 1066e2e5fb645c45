// One call of a gRPC service that stays open, with messages in both directions, over a connection of its own. Framing of HTTP/2 is
// Node's: a control plane is no traffic. Main thread.
//
//   CONNECTING ──connected, secured──► OPEN, onOpen ──▶ messages
//        └──────────failed, ended, in either──────────► onEnd, once, unless it was closed

import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { faultOf } from '../cluster-manager/health-check/probe.ts';
import { frameOf, MessageFrames } from './message-frames.ts';

const WHERE = 'a gRPC stream of this proxy';
const HTTP_OK = 200;
const NO_ERROR = 0;
const CANCEL = 8;
const GRPC_TYPE = /^application\/grpc(?:$|[+;])/;
const STREAM_WINDOW_BYTES = 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
/** Others may be a whole configuration. */
const MOST_MESSAGE_BYTES = 256 * 1024 * 1024;

export interface GrpcStreamRequest {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly authority: string;
  readonly metadata: readonly { readonly key: string; readonly value: string }[];
  /** Of a message that comes; 0 for the most that there may be. */
  readonly maxMessageBytes: number;
  /** Of the connection, until it is secured. */
  readonly connectTimeoutMs: number;
  /** How a peer is told from one that has gone without a word; null for not at all. */
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number } | null;
}

export interface GrpcStreamListener {
  /** What is sent from now on goes out. */
  onOpen(): void;
  onMessage(bytes: Buffer): void;
  /** What was sent is on its way. */
  onDrain(): void;
  /** @param reason undefined where the server has ended it with status 0. */
  onEnd(reason: string | undefined): void;
}

/** Opens what the stream runs over; `onLost` at once or later, unless it is destroyed. */
export type OpenConnection = (owner: { onOpen(socket: Socket): void; onLost(reason: string | undefined): void }) => {
  destroy(): void;
};

export class GrpcStream {
  readonly #request: GrpcStreamRequest;
  readonly #listener: GrpcStreamListener;
  readonly #clock: Clock;
  readonly #faults: FaultBoundary;
  readonly #frames: MessageFrames;
  readonly #connection: { destroy(): void };
  #session: ClientHttp2Session | undefined;
  #stream: ClientHttp2Stream | undefined;
  /** What the answer has said of its end. */
  #status: string | undefined;
  #reason: string | undefined;
  #isOver = false;
  /** Of what it waits for: the connection, the next ping, its answer. */
  #endWait = (): void => {};

  constructor(
    open: OpenConnection,
    request: GrpcStreamRequest,
    { clock, faults }: { readonly clock: Clock; readonly faults: FaultBoundary },
    listener: GrpcStreamListener,
  ) {
    this.#request = request;
    this.#listener = listener;
    this.#clock = clock;
    this.#faults = faults;
    this.#frames = new MessageFrames(request.maxMessageBytes || MOST_MESSAGE_BYTES);
    const onLate = (): void => this.#fail(`no connection within ${request.connectTimeoutMs} ms`);
    this.#endWait = clock.after(request.connectTimeoutMs, onLate);
    this.#connection = open({
      onOpen: (socket) => this.#begin(socket),
      onLost: (reason) => this.#end(reason ?? 'the connection has been closed'),
    });
  }

  /** After `onOpen`. */
  send(message: Uint8Array): void {
    this.#stream?.write(frameOf(message));
  }

  /** More waits to be sent than the connection should hold. */
  get isBackedUp(): boolean {
    return this.#stream?.writableNeedDrain ?? false;
  }

  /** Messages wait where they are, or go on. */
  pause(isPaused: boolean): void {
    if (isPaused) this.#stream?.pause();
    else this.#stream?.resume();
  }

  /** Nothing is sent any more: the server may end it when it has read all. */
  finish(): void {
    this.#stream?.end();
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#endWait();
    this.#stream?.close(CANCEL);
    this.#session?.destroy();
    this.#connection.destroy();
  }

  #begin(socket: Socket): void {
    this.#endWait();
    // Loaded with the first of such calls.
    const { connect } = process.getBuiltinModule('node:http2');
    const settings = { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES };
    const session = connect('http://localhost', { createConnection: () => socket, settings });
    this.#session = session;
    const onConnect = (): void => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    const onError = (error: Error): void => {
      this.#reason ??= faultOf(error);
    };
    const onGoaway = (code: number): void => {
      if (code !== NO_ERROR) this.#reason ??= `GOAWAY with error ${code}`;
    };
    const onClose = (): void => this.#end('the connection has been closed');
    session.on('connect', this.#faults.handler(WHERE, onConnect));
    session.on('error', this.#faults.handler(WHERE, onError));
    session.on('goaway', this.#faults.handler(WHERE, onGoaway));
    session.on('close', this.#faults.handler(WHERE, onClose));
    this.#call(session);
    if (!this.#isOver) this.#listener.onOpen();
    this.#watchPeer(session);
  }

  #call(session: ClientHttp2Session): void {
    const { path, authority, metadata } = this.#request;
    const headers: Record<string, string | string[]> = {
      ':method': 'POST',
      ':path': path,
      ':scheme': session.encrypted === true ? 'https' : 'http',
      ':authority': authority,
      te: 'trailers',
      'content-type': 'application/grpc',
    };
    for (const { key, value } of metadata) {
      const written = key.endsWith('-bin') ? Buffer.from(value).toString('base64') : value;
      const before = headers[key];
      headers[key] = before === undefined ? written : [before, written].flat();
    }
    const stream = session.request(headers, { endStream: false });
    this.#stream = stream;
    const onHead = (head: IncomingHttpHeaders & { readonly ':status'?: number }): void => this.#answered(head);
    const onTrailers = (trailers: IncomingHttpHeaders): void => this.#noteStatus(trailers);
    const onDrain = (): void => {
      if (!this.#isOver) this.#listener.onDrain();
    };
    const onData = (bytes: Buffer): void => this.#read(bytes);
    const onError = (error: Error): void => {
      this.#reason ??= faultOf(error);
    };
    const onClose = (): void =>
      this.#end(stream.rstCode === NO_ERROR ? undefined : `reset with error ${stream.rstCode}`);
    const onEnd = (): void => {
      stream.end();
      // With its status a call is over. A server may read nothing of what is still on its way, so that our side would never end;
      // where it resets the stream as well, that comes in this turn.
      setImmediate(this.#faults.handler(WHERE, onClose));
    };
    stream.on('response', this.#faults.handler(WHERE, onHead));
    stream.on('trailers', this.#faults.handler(WHERE, onTrailers));
    stream.on('drain', this.#faults.handler(WHERE, onDrain));
    stream.on('data', this.#faults.handler(WHERE, onData));
    stream.on('error', this.#faults.handler(WHERE, onError));
    stream.on('end', this.#faults.handler(WHERE, onEnd));
    stream.on('close', this.#faults.handler(WHERE, onClose));
  }

  #answered(head: IncomingHttpHeaders & { readonly ':status'?: number }): void {
    this.#noteStatus(head);
    if (head[':status'] !== HTTP_OK) this.#fail(`HTTP ${head[':status']}, which is no gRPC`);
    else if (!GRPC_TYPE.test(head['content-type'] ?? '')) this.#fail('an answer that is no gRPC');
  }

  #noteStatus(fields: IncomingHttpHeaders): void {
    const { 'grpc-status': status, 'grpc-message': message } = fields;
    if (status === undefined) return;
    this.#status = String(status);
    if (this.#status === '0') return;
    this.#reason ??= `gRPC status ${status}${message === undefined ? '' : ` (${unescaped(String(message))})`}`;
  }

  #read(bytes: Buffer): void {
    try {
      for (const message of this.#frames.add(bytes)) {
        if (this.#isOver) return;
        this.#listener.onMessage(message);
      }
    } catch (error) {
      this.#fail((error as Error).message);
    }
  }

  #fail(reason: string): void {
    this.#reason ??= reason;
    this.#end(reason);
  }

  #end(otherwise: string | undefined): void {
    if (this.#isOver) return;
    this.close();
    this.#listener.onEnd(
      this.#reason ?? (this.#status === undefined ? (otherwise ?? 'it has ended without a status') : undefined),
    );
  }

  #watchPeer(session: ClientHttp2Session): void {
    const { keepalive } = this.#request;
    if (keepalive === null || this.#isOver) return;
    const { intervalMs, timeoutMs } = keepalive;
    const wait = (): void => {
      this.#endWait = this.#clock.after(intervalMs, () => {
        this.#endWait = this.#clock.after(timeoutMs, () => this.#fail('pings are not answered'));
        const onAnswer = (error: Error | null): void => {
          if (error !== null || this.#isOver) return;
          this.#endWait();
          wait();
        };
        session.ping(this.#faults.handler(WHERE, onAnswer));
      });
    };
    wait();
  }
}

/** Of grpc-message, which has what is not printable in percent. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
