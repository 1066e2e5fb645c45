// A question of the proxy's own to a cluster, whose whole answer it waits for: filters ask so whether a request may go on.
//
//   begin ──► waiting ──whole answer, failure──► told, once
//                └──────cancel─────────────────► nothing is told

import { Framing, Method } from '../../wasm/http1.ts';
import { Dechunker } from '../http/chunk-framing.ts';
import type { CallFailure, CallReceiver, CallRequest } from '../http/filter-call.ts';
import type { OutgoingStream, StreamReceiver, StreamRequest } from '../http/outgoing-stream.ts';
import { TextHead } from '../http/text-head.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { beginStream } from './open-request.ts';
import { addSender, OwnRequest, type OwnRetries } from './own-request.ts';

/** A call under way. */
export interface UpstreamCall {
  /** Its receiver hears no more. Does nothing to one that is over. */
  cancel(): void;
}

/** Calls of one connection manager's filters. */
export class UpstreamCalls {
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;

  constructor(context: WorkerContext, clusters: ClusterMap) {
    this.#context = context;
    this.#clusters = clusters;
  }

  /** Null for one that this worker does not know. */
  clusterNamed(name: string): Cluster | null {
    return this.#clusters.get(name) ?? null;
  }

  /** @returns null for one that has ended at once. */
  begin(request: CallRequest, receiver: CallReceiver): UpstreamCall | null {
    const cluster = this.#clusters.get(request.cluster);
    if (cluster === undefined) {
      receiver.onCallFailure('unknown cluster');
      return null;
    }
    const { retry } = request;
    const retries = retry === undefined ? undefined : { policy: retry, clusters: this.#clusters };
    const call = new Call(this.#context, cluster, request, receiver, retries);
    call.start();
    return call.isOver ? null : call;
  }

  /** @returns null for one that has ended at once. */
  stream(request: StreamRequest, receiver: StreamReceiver): OutgoingStream | null {
    return beginStream(this.#context, this.#clusters, request, receiver);
  }
}

class Call extends OwnRequest implements UpstreamCall {
  readonly #receiver: CallReceiver;
  readonly #maxAnswerBytes: number;
  #status = 0;
  /** Null as long as there is none, or none that can be read. */
  #head: TextHead | null = null;
  /** Of an answer in chunks. */
  #dechunker: Dechunker | null = null;
  readonly #parts: Buffer[] = [];
  #length = 0;
  #isOver = false;

  constructor(
    context: WorkerContext,
    cluster: Cluster,
    request: CallRequest,
    receiver: CallReceiver,
    retry: OwnRetries | undefined,
  ) {
    const { method, body, isGrpc, timeoutMs } = request;
    const framing = body.length === 0 && !hasBodyByNature(method) ? Framing.NONE : Framing.LENGTH;
    super(context, cluster, {
      methodId: Object.hasOwn(Method, method) ? Method[method as keyof typeof Method] : Method.OTHER,
      isGrpc,
      isInternal: true,
      head: headOf(context, request, framing),
      pickContext: null,
      body,
      framing,
      trailers: null,
      timeoutMs,
      retry,
    });
    this.#receiver = receiver;
    this.#maxAnswerBytes = request.maxAnswerBytes;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.abandon();
  }

  protected override onHead(): void {
    const { codec } = this.context;
    const { status, framing } = codec.response;
    this.#status = status;
    if (framing === Framing.CHUNKED) this.#dechunker = new Dechunker();
    const length = codec.writeResponse();
    if (length >= 0) this.#head = TextHead.of(codec.responseText(length));
  }

  protected override onBody(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    const part = this.#dechunker?.decode(bytes, start, end) ?? bytes.subarray(start, end);
    this.#length += part.length;
    if (this.#length > this.#maxAnswerBytes) {
      if (!isEnd) this.abandon();
      this.onFailure('answer too large');
      return;
    }
    if (part.length > 0) this.#parts.push(Buffer.from(part));
    if (isEnd) this.#answer();
  }

  protected override onFailure(failure: CallFailure): void {
    this.#isOver = true;
    this.#receiver.onCallFailure(failure);
  }

  #answer(): void {
    if (this.#head === null) {
      this.onFailure('answer unreadable');
      return;
    }
    this.#isOver = true;
    this.#receiver.onAnswer({
      status: this.#status,
      head: this.#head,
      body: this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts),
      trailers: this.responseTrailers,
    });
  }
}

/** A POST without a body says so (RFC 9110 section 8.6). */
function hasBodyByNature(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH';
}

function headOf(context: WorkerContext, request: CallRequest, framing: number): string {
  const { method, path, host, fields, body, timeoutMs } = request;
  const head = new TextHead(`${method} ${path} HTTP/1.1`, '');
  for (const [name, value] of fields) head.append(name, value);
  head.replaceHost(host);
  if (framing === Framing.LENGTH) head.append('content-length', String(body.length));
  addSender(context, head);
  const { expectedTimeoutMs } = context.proxyHeaders;
  head.removeField(expectedTimeoutMs);
  if (timeoutMs > 0) head.append(expectedTimeoutMs, String(Math.trunc(timeoutMs)));
  return head.text();
}
