// The access log of the router itself, which tells of attempts: one entry for each, when it is over, and others on the way
// where that is wanted. An entry's facts are those of the attempt (its time, its host, its status, its bytes), and of the
// request where an attempt has none of its own.

import type { Clock } from '../../base/clock.ts';
import type { UpstreamLogSettings } from '../../snapshot/index.ts';
import type { ResponseHead } from '../../wasm/http1.ts';
import { AccessLog } from '../access-log/access-log.ts';
import { type AccessLogType, NOT_YET } from '../format/stream-facts.ts';
import { newWireBytes, type WireBytes } from '../format/wire-bytes.ts';
import { HttpStreamFacts, type StreamStart } from '../http/http-stream-facts.ts';
import { PeriodicEntries } from '../http/periodic-entries.ts';
import type { Trailers } from '../http/trailers.ts';
import { flagBit, type ResponseFlagName } from '../response-flags.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { Host } from '../upstream/host.ts';
import type { ConnectionEnds } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AttemptEntry } from './attempt-entry.ts';

/** Of one connection manager. */
export class AttemptLog {
  readonly context: WorkerContext;
  readonly settings: UpstreamLogSettings;
  readonly log: AccessLog;

  /** To be closed. @returns null where attempts are not logged. */
  static of(
    context: WorkerContext,
    clusters: ClusterMap,
    settings: UpstreamLogSettings | undefined,
  ): AttemptLog | null {
    const log = settings === undefined ? null : AccessLog.compile(context, clusters, settings);
    return log === null ? null : new AttemptLog(context, settings!, log);
  }

  private constructor(context: WorkerContext, settings: UpstreamLogSettings, log: AccessLog) {
    this.context = context;
    this.settings = settings;
    this.log = log;
  }

  /** An attempt begins. @param request what is known of its request, by then and later. */
  begin(start: StreamStart, request: () => HttpStreamFacts): AttemptEntry {
    return new LoggedAttempt(this, start, request);
  }

  close(): void {
    this.log.close();
  }
}

/** One attempt, as far as it has come. */
class LoggedAttempt implements AttemptEntry {
  readonly #of: AttemptLog;
  readonly #clock: Clock;
  readonly #facts: HttpStreamFacts;
  readonly #request: () => HttpStreamFacts;
  /** Null where there are none. */
  #periodic: PeriodicEntries | null = null;
  #isOver = false;

  constructor(of: AttemptLog, start: StreamStart, request: () => HttpStreamFacts) {
    const { clock } = of.context;
    this.#of = of;
    this.#clock = clock;
    this.#facts = new HttpStreamFacts(clock, start);
    // By then the codec may hold heads of others.
    this.#facts.liveHead = null;
    this.#facts.accessLogType = 'UpstreamEnd';
    this.#facts.upstreamWire = newWireBytes(request().upstreamWire);
    this.#request = request;
  }

  get wire(): WireBytes | null {
    return this.#facts.upstreamWire;
  }

  host(host: Host, attempts: number): void {
    this.#facts.noteHost(host, attempts);
  }

  connected(connection: ConnectionEnds, head: string, bodyBytes: number, isRequestComplete: boolean): void {
    const facts = this.#facts;
    facts.protocol = connection.protocol ?? '';
    facts.noteConnection(connection, head, isRequestComplete);
    facts.bytesSent = bodyBytes;
    const { onConnected, intervalMs } = this.#of.settings;
    const nowMs = this.#clock.monotonicMs();
    if (onConnected) this.#write('UpstreamPoolReady', nowMs);
    if (intervalMs === 0 || this.#periodic !== null) return;
    const write = (atMs: number): void => this.#write('UpstreamPeriodic', atMs);
    this.#periodic = new PeriodicEntries(this.#of.context.wheel, nowMs, intervalMs, write);
  }

  sent(bytes: number, isEnd: boolean): void {
    this.#facts.bytesSent += bytes;
    if (isEnd) this.#facts.requestSentMs = this.#clock.monotonicMs();
  }

  answered(head: ResponseHead, bodyBytes: number, nowMs: number): void {
    const facts = this.#facts;
    facts.status = head.status;
    facts.details = 'via_upstream';
    facts.responseHead = textOf(head);
    facts.responseStartMs = nowMs;
    facts.bytesReceived = bodyBytes;
  }

  received(bytes: number): void {
    this.#facts.bytesReceived += bytes;
  }

  trailers(trailers: Trailers): void {
    this.#facts.responseTrailers = trailers;
    this.#facts.grpcTrailer = trailers.get('grpc-status');
  }

  failed(flag: ResponseFlagName, details: string, transport = ''): void {
    this.#facts.flags |= flagBit(flag);
    this.#facts.details = details;
    this.#facts.upstreamTransportFailure = transport;
  }

  finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#periodic?.end();
    this.#write('UpstreamEnd', this.#clock.monotonicMs());
  }

  #write(type: AccessLogType, nowMs: number): void {
    const facts = this.#facts;
    facts.borrow(this.#request());
    facts.accessLogType = type;
    facts.endMs = nowMs;
    this.#of.log.write(facts);
    facts.endMs = NOT_YET;
  }
}

function textOf(head: ResponseHead): string {
  let text = `HTTP/1.1 ${head.status}\r\n`;
  for (const [name, value] of head.entries()) text += `${name}: ${value}\r\n`;
  return `${text}\r\n`;
}
