// A request of the proxy's own to a cluster whose body goes on for as long as both sides like: reporters tell services so what
// happens. It has no time limit but its cluster's, until this side has ended it.
//
//   begin ──► waiting for a connection ──► open ──end──► awaiting the answer ──answer, failure, time──► told, once
//                        └──────────────────┴──cancel──────────┴──► nothing is told

import { Framing, Method } from '../../wasm/http1.ts';
import type { CallFailure } from '../http/filter-call.ts';
import type { OutgoingStream, StreamReceiver, StreamRequest } from '../http/outgoing-stream.ts';
import { TextHead } from '../http/text-head.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { addSender, OwnRequest } from './own-request.ts';

/** @returns null for one that has ended at once. */
export function beginStream(
  context: WorkerContext,
  clusters: ClusterMap,
  request: StreamRequest,
  receiver: StreamReceiver,
): OutgoingStream | null {
  const cluster = clusters.get(request.cluster);
  if (cluster === undefined) {
    receiver.onStreamFailure('unknown cluster');
    return null;
  }
  const stream = new OpenRequest(context, cluster, clusters, request, receiver);
  stream.start();
  return stream.isOver ? null : stream;
}

class OpenRequest extends OwnRequest implements OutgoingStream {
  readonly #clusters: ClusterMap;
  readonly #ownCluster: Cluster;
  readonly #receiver: StreamReceiver;
  #status = 0;
  #head: TextHead | null = null;
  #isOver = false;

  constructor(
    context: WorkerContext,
    cluster: Cluster,
    clusters: ClusterMap,
    request: StreamRequest,
    receiver: StreamReceiver,
  ) {
    super(context, cluster, {
      methodId: Method.POST,
      isGrpc: true,
      isInternal: true,
      head: headOf(context, request),
      pickContext: null,
      body: Buffer.alloc(0),
      // Codecs find a form of their own for it.
      framing: Framing.UNTIL_CLOSE,
      trailers: null,
      timeoutMs: 0,
      isOpen: true,
    });
    this.#clusters = clusters;
    this.#ownCluster = cluster;
    this.#receiver = receiver;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get canSend(): boolean {
    return this.attempt.canSend;
  }

  get isStale(): boolean {
    return this.attempt.host?.isRetired === true || this.#clusters.get(this.#ownCluster.name) !== this.#ownCluster;
  }

  send(bytes: Buffer): void {
    if (!this.#isOver) this.attempt.send(bytes, 0, bytes.length, false);
  }

  end(timeoutMs: number): void {
    if (!this.#isOver) this.complete(timeoutMs);
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.abandon();
  }

  override onUpstreamWritable(): void {
    if (!this.#isOver) this.#receiver.onStreamWritable();
  }

  protected override onHead(): void {
    const { codec } = this.context;
    this.#status = codec.response.status;
    const length = codec.writeResponse();
    if (length >= 0) this.#head = TextHead.of(codec.responseText(length));
  }

  protected override onBody(_bytes: Buffer, _start: number, _end: number, isEnd: boolean): void {
    if (!isEnd) return;
    this.#isOver = true;
    this.#receiver.onStreamAnswer({ status: this.#status, head: this.#head, trailers: this.responseTrailers });
  }

  protected override onFailure(failure: CallFailure): void {
    this.#isOver = true;
    this.#receiver.onStreamFailure(failure);
  }
}

function headOf(context: WorkerContext, { path, host, fields }: StreamRequest): string {
  const head = new TextHead(`POST ${path} HTTP/1.1`, '');
  for (const [name, value] of fields) head.append(name, value);
  head.replaceHost(host);
  addSender(context, head);
  return head.text();
}
