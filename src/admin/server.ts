// The admin interface's HTTP server. Main thread. Every request goes through one dispatch: admission, exact path match
// against the endpoint table, handler. fastify carries the HTTP.

import { writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Address, formatAddress } from '../base/address.ts';
import type { Clock } from '../base/clock.ts';
import { descriptorOf } from '../base/descriptor-budget.ts';
import { errorMessage, stackFrames, WeirError } from '../base/errors.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import type { SystemCalls } from '../base/system-calls.ts';
import type { Logger } from '../log/index.ts';
import { AccessLog, type AccessLogWriter } from './access-log.ts';
import { AdminSocket } from './admin-socket.ts';
import { Admission, type AdmissionRules, type AdmittedRequest } from './admission.ts';
import { ANSWER_LIMITS, AnswerLimits, type AnswerLimitsOptions } from './answer-limits.ts';
import { isLoopback } from './cross-site.ts';
import type { AdminContext, AdminRequest, Endpoint } from './endpoint.ts';
import { ENDPOINTS } from './endpoints/index.ts';
import { pageEndpoints } from './endpoints/page/index.ts';
import { malformedRequestAnswer } from './malformed-request.ts';
import { type PageFiles, pageFileEndpoints, readPageFiles } from './page-files.ts';
import { AdminQuery } from './query.ts';
import { helpText } from './render/help-text.ts';
import { type AdminResponse, TEXT, textResponse } from './response.ts';
import { TrafficWatch } from './traffic.ts';
import type { AdminTraffic } from './views/index.ts';

/** A request that is not complete after this time is given up. */
const REQUEST_TIMEOUT_MS = 60_000;

/** A filter of stats may name thousands of them. */
const MAX_HEAD_BYTES = 256 * 1024;

/** Content type in whose place fastify sees no reason for 415. */
const ANY_BYTES = 'application/octet-stream';

type RawAnswer = readonly [status: string, text: string];

const TOO_LATE: RawAnswer = ['408 Request Timeout', 'the request takes too long\n'];

/** By the code of the parser's error; any other is answered with 400. */
const PARSER_ANSWERS: Readonly<Record<string, RawAnswer>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the head of the request is too large\n'],
  ERR_HTTP_REQUEST_TIMEOUT: TOO_LATE,
};

/** No endpoint has a schema. With compilers of its own fastify does not load two large packages for them. */
const NO_SCHEMAS = { buildValidator: refuseSchemas, buildSerializer: refuseSchemas };

/** Endpoints that this build answers. */
const ANSWERED = ENDPOINTS.filter(({ answer }) => answer !== undefined);

function refuseSchemas(): never {
  throw new Error('the admin interface has no schemas');
}

export interface AdminServerOptions extends AdminContext, AdmissionRules {
  /** Where to listen; port 0 takes a free one. */
  readonly address: Address;
  /** Timers of it fail without harm. */
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly traffic?: AdminTraffic;
  /** Clients from this descriptor on are refused, so that some are left for the rest of the process. */
  readonly acceptBelow?: number;
  /** Without them the socket cannot be handed over. */
  readonly systemCalls?: SystemCalls | undefined;
  /** Is told of requests; its owner reopens and closes it. */
  readonly accessLog?: AccessLogWriter;
  readonly limits?: AnswerLimitsOptions;
  /** The files of the page; null where it is left out, and those of the build when not given. */
  readonly pageFiles?: PageFiles | null;
}

export class AdminServer {
  readonly #context: AdminContext;
  readonly #clock: Clock;
  readonly #faults: FaultBoundary;
  readonly #traffic: TrafficWatch | undefined;
  readonly #accessLog: AccessLog | undefined;
  readonly #admission: Admission;
  readonly #limits: AnswerLimits;
  readonly #pageFiles: PageFiles | undefined;
  readonly #isReadOnly: boolean;
  readonly #routes: ReadonlyMap<string, Endpoint>;
  readonly #log: Logger;
  readonly #app: FastifyInstance;
  readonly #connections = new Set<Socket>();
  /** Connections that a malformed request has come over. */
  readonly #refused = new WeakSet<Socket>();
  readonly #acceptBelow: number;
  readonly #socket: AdminSocket;

  constructor(options: AdminServerOptions) {
    const { clock, faults } = options;
    this.#context = options;
    this.#clock = clock;
    this.#faults = faults;
    this.#traffic = options.traffic && new TrafficWatch(options.traffic, clock, faults);
    this.#accessLog = options.accessLog && new AccessLog(options.accessLog, clock, faults);
    this.#acceptBelow = options.acceptBelow ?? Number.POSITIVE_INFINITY;
    this.#log = options.loggers.get('admin');
    this.#admission = new Admission(options, this.#log);
    this.#limits = new AnswerLimits(options.limits ?? ANSWER_LIMITS, faults);
    this.#pageFiles = options.pageFiles === undefined ? readPageFiles() : (options.pageFiles ?? undefined);
    this.#isReadOnly = options.isReadOnly ?? false;
    const ofPage = this.#pageFiles && [...pageEndpoints(this.#isReadOnly), ...pageFileEndpoints(this.#pageFiles)];
    this.#routes = new Map([...ANSWERED, ...(ofPage ?? [])].map((endpoint) => [endpoint.path, endpoint]));
    this.#app = this.#build();
    this.#socket = new AdminSocket(this.#app, options.address, options.systemCalls, faults);
  }

  /** The bound address once `listen` has returned. */
  get address(): Address {
    return this.#socket.address;
  }

  /**
   * @param inherited a descriptor of a socket that listens on the address already, which becomes this one's.
   * @throws WeirError WEIR_ADMIN_LISTEN when the address cannot be bound.
   */
  async listen(inherited?: number): Promise<Address> {
    try {
      await this.#socket.listen(inherited);
    } catch (error) {
      const text = `cannot bind admin address '${formatAddress(this.address)}': ${errorMessage(error)}`;
      throw new WeirError('WEIR_ADMIN_LISTEN', text, { cause: error });
    }
    // Accepting may fail; without anybody who hears of it, that would end the process.
    const onError = ({ message }: Error): void => this.#log.error(`admin accepting failed: ${message}`);
    this.#app.server.on('error', this.#faults.handler('the admin interface', onError));
    const { address } = this;
    const text = formatAddress(address);
    this.#log.info(`admin address: ${text}`);
    if (!isLoopback(address)) {
      this.#log.warning(`the admin interface at ${text} has no passwords, and other machines may reach it`);
    }
    return address;
  }

  /**
   * Accepts no more for now; connections that are there may go on. @param address of another process's admin interface.
   * @returns a descriptor of the socket for that process, if it has the same address; the caller's.
   */
  yield(address: Address | null): number | undefined {
    return this.#socket.yield(address);
  }

  /** Accepts again. */
  resume(): void {
    this.#socket.resume();
  }

  /** The process that the socket came from has left it to this one. */
  own(): void {
    this.#socket.own();
  }

  /**
   * Writes `<ip>:<port>` to the file of --admin-address-path. A failure is logged and changes nothing else.
   */
  async writeAddressFile(path: string): Promise<void> {
    try {
      await writeFile(path, formatAddress(this.address));
    } catch {
      this.#log.critical(`cannot open admin address output file ${path} for writing.`);
    }
  }

  /** Stops listening, lets answers that are under way finish for `graceMs`, then cuts them off. Idempotent. */
  async close(graceMs = 1000): Promise<void> {
    const callOff = this.#clock.after(graceMs, () => {
      for (const socket of this.#connections) socket.destroy();
    });
    await this.#app.close();
    callOff();
    this.#socket.release();
  }

  #build(): FastifyInstance {
    const app = fastify({
      forceCloseConnections: 'idle',
      requestTimeout: REQUEST_TIMEOUT_MS,
      exposeHeadRoutes: false,
      schemaController: { compilersFactory: NO_SCHEMAS },
      // Judged with the other malformed requests below.
      http: { requireHostHeader: false, maxHeaderSize: MAX_HEAD_BYTES },
      clientErrorHandler: this.#faults.handler('a malformed admin request', refuseUnparsed),
      // A path that cannot be decoded is an unknown one; fastify has no hooks for it.
      frameworkErrors: (_error, request, reply) =>
        this.#faults.run('an admin request', () => this.#answerUndecodable(request, reply)),
    });
    this.#limits.guard(app.server, refuseLate);
    app.server.on('connection', this.#faults.handler('an admin connection', this.#track.bind(this)));
    app.addHook('onRequest', (request, reply, done) => {
      if (this.#admits(request, reply)) done();
    });
    // Any body is taken, whatever its content type says; only forms are read.
    app.removeAllContentTypeParsers();
    app.addHook('onRequest', async ({ raw: { headers } }) => {
      if (headers['content-type'] !== undefined && !isForm(headers)) headers['content-type'] = ANY_BYTES;
    });
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.decorateReply('bodyBytes', 0);
    const dispatch = (request: FastifyRequest, reply: FastifyReply) => this.#dispatch(request, reply);
    app.all('/*', dispatch);
    // Methods that the router does not know end here.
    app.setNotFoundHandler(dispatch);
    app.setErrorHandler((error, request, reply) => this.#sendError(error, request, reply));
    return app;
  }

  #track(socket: Socket): void {
    if (descriptorOf(socket) >= this.#acceptBelow) {
      this.#traffic?.connectionRefused();
      socket.destroy();
      return;
    }
    this.#connections.add(socket);
    const onClose = (): boolean => this.#connections.delete(socket);
    socket.once('close', this.#faults.handler('an admin connection', onClose));
    this.#traffic?.watchConnection(socket);
  }

  /** Runs while the head is parsed, so before that of a request behind it. */
  #admits(request: FastifyRequest, reply: FastifyReply): boolean {
    const { socket } = request.raw;
    // The answer to the malformed one closes the connection; what has come behind it is never looked at.
    if (this.#refused.has(socket)) return false;
    this.#accessLog?.watch(request, reply);
    this.#traffic?.watchRequest(request, reply);
    const refusal = malformedRequestAnswer(request.raw);
    if (refusal === undefined) return true;
    this.#refused.add(socket);
    this.#send(reply, refusal);
    return false;
  }

  async #answerUndecodable(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      if (this.#admits(request, reply)) await this.#dispatch(request, reply);
    } catch (error) {
      this.#sendError(error, request, reply);
    }
  }

  async #dispatch(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return this.#send(reply, await this.#answer(request));
  }

  #answer(request: FastifyRequest): AdminResponse | Promise<AdminResponse> {
    const { path, queryText, host } = splitTarget(request.raw.url ?? '/');
    const asked: AdmittedRequest = { path, method: request.method, headers: request.headers, targetHost: host };
    const notAdmitted = this.#admission.refuse(asked, this.address);
    if (notAdmitted !== undefined) return notAdmitted;
    const endpoint = this.#routes.get(path);
    if (endpoint?.answer === undefined || !endpoint.isServed(this.#context)) {
      return textResponse(`invalid path. ${helpText(this.#listed())}`, 404);
    }
    const refusal = endpoint.mutates ? this.#admission.refuseMutation(asked, this.address) : undefined;
    return refusal ?? endpoint.answer(this.#context, this.#request(request, queryText));
  }

  #listed(): readonly Endpoint[] {
    return ANSWERED.filter(({ isServed }) => isServed(this.#context));
  }

  #request(request: FastifyRequest, queryText: string): AdminRequest {
    return {
      query: new AdminQuery(queryText || formBody(request)),
      headers: request.headers,
      isHead: request.method === 'HEAD',
      body: request.body instanceof Buffer ? request.body : undefined,
      endpoints: this.#listed(),
      pageFiles: this.#pageFiles,
      isReadOnly: this.#isReadOnly,
    };
  }

  #send(reply: FastifyReply, made: AdminResponse): FastifyReply {
    // Also of an answer that is not admitted.
    if (made.afterSent !== undefined) this.#onEnd(reply, made.afterSent);
    // HEAD has no body, so that one without an end must not begin.
    const finite =
      made.isOpenEnded && reply.request.method === 'HEAD' ? { ...made, body: '', isOpenEnded: false } : made;
    const response = this.#limits.admit(finite, reply.raw.req.socket, (end) => this.#onEnd(reply, end));
    const { status, contentType, headers = {}, body, isOpenEnded = false } = response;
    reply.code(status).headers({
      'content-type': contentType,
      'cache-control': 'no-cache, max-age=0',
      'x-content-type-options': 'nosniff',
      ...headers,
    });
    // As bytes, because fastify adds a charset to the type of a JSON string.
    if (typeof body === 'string' || body instanceof Uint8Array) return reply.send(countedBytes(reply, body));
    const stream = Readable.from(countedStream(reply, body));
    const onError = (error: unknown): void => {
      // Before the head is out the error handler answers, and logs.
      if (reply.raw.headersSent) this.#log.error(`admin response failed: ${String(error)}`, stackFrames(error));
    };
    stream.once('error', this.#faults.handler('an admin response', onError));
    if (isOpenEnded) return sendOpenEnded(reply, stream);
    return reply.send(stream);
  }

  /** Its answer has been sent, or its client has gone. */
  #onEnd(reply: FastifyReply, then: () => void): void {
    reply.raw.once('close', this.#faults.handler('the end of an admin request', then));
  }

  /** Requests that fastify refuses (a body that is too large) and failures of our own. */
  #sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
    if (status < 500) return this.#send(reply, textResponse(`${errorMessage(error)}\n`, status));
    this.#log.error(`admin path "${request.url}" failed: ${String(error)}`, stackFrames(error));
    return this.#send(reply, textResponse('internal error\n', 500));
  }
}

/** Not in chunks: some readers of event streams take the framing for data. */
function sendOpenEnded(reply: FastifyReply, stream: Readable): FastifyReply {
  reply.header('connection', 'close');
  reply.raw.removeHeader('transfer-encoding');
  reply.send(stream);
  reply.raw.flushHeaders();
  return reply;
}

/** Answers what the parser did not take for a request. */
function refuseUnparsed(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  endWith(socket, PARSER_ANSWERS[error.code ?? ''] ?? ['400 Bad Request', 'malformed request\n']);
}

/** A client that does not take even this is cut by the next silence: its socket is not writable any more then. */
function refuseLate(socket: Socket): void {
  endWith(socket, TOO_LATE);
}

function endWith(socket: Socket, [status, text]: RawAnswer): void {
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: ${TEXT}\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`,
  );
}

function countedBytes(reply: FastifyReply, body: string | Uint8Array): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.length);
  if (reply.request.method !== 'HEAD') reply.bodyBytes += bytes.length;
  return bytes;
}

async function* countedStream(reply: FastifyReply, pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield countedBytes(reply, piece);
}

/** What stands before the path in the absolute form of a target, as clients send it that take this for their proxy. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(?=[/?]|$)/i;

function splitTarget(target: string): { path: string; queryText: string; host: string | undefined } {
  const host = ABSOLUTE_FORM.exec(target)?.[1];
  const relative = target.replace(ABSOLUTE_FORM, '');
  const mark = relative.indexOf('?');
  const path = mark < 0 ? relative : relative.slice(0, mark);
  return { path: path === '' ? '/' : path, queryText: mark < 0 ? '' : relative.slice(mark + 1), host };
}

/** Parameters that a form sent in the body, as the home page does for commands that mutate. */
function formBody({ headers, body }: FastifyRequest): string {
  // A form writes a blank as +, which a query may mean as it stands.
  return isForm(headers) && body instanceof Buffer ? body.toString().replaceAll('+', '%20') : '';
}

function isForm(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false;
}
