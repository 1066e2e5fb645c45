// A request of which others get a copy: hands it on as it is, keeps the body beside, and sends the copies when the
// request has come in full. What becomes of them is of no interest to the request, and never slows it down.

import { CLUSTER_STATS } from '../../stats/index.ts';
import { TextHead } from '../http/text-head.ts';
import type { Trailers } from '../http/trailers.ts';
import type { FactsSource, HeaderEditor } from '../route/header-editor.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { Host } from '../upstream/host.ts';
import type { PickContext } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AttemptClient } from './attempt-client.ts';
import type { ForwardedRequest } from './forwarded-request.ts';
import { addSender } from './own-request.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { Shadow } from './shadow.ts';

const { retry_or_shadow_abandoned } = CLUSTER_STATS.index;

/** Whose request it is. */
type MirroredClient = Pick<AttemptClient, 'methodId' | 'isGrpc' | 'isInternal' | 'requestFraming' | 'requestTrailers'> &
  FactsSource;

/** One copy. */
export interface ShadowTarget {
  /** Looked up when the copy is sent: it may be another by then, or gone. */
  readonly cluster: string;
  /** What the copy has as host in place of `host`. */
  readonly hostOf: (host: string) => string;
  readonly editor: HeaderEditor | null;
  /** The host that the request names, in a cluster where no balancer chooses; null for none. */
  readonly pickContext: PickContext | null;
}

export interface MirrorOptions {
  readonly clusters: ClusterMap;
  readonly targets: readonly ShadowTarget[];
  /** Of the body. */
  readonly limitBytes: number;
  /** Of each copy, 0 for that of copies without one. */
  readonly timeoutMs: number;
}

export class RequestMirror implements ForwardedRequest {
  readonly #context: WorkerContext;
  readonly #client: MirroredClient;
  readonly #request: ForwardedRequest;
  readonly #options: MirrorOptions;
  /** Null when there are no copies any more. */
  #body: ReplayBuffer | null;

  constructor(context: WorkerContext, client: MirroredClient, request: ForwardedRequest, options: MirrorOptions) {
    this.#context = context;
    this.#client = client;
    this.#request = request;
    this.#options = options;
    this.#body = new ReplayBuffer(options.limitBytes);
  }

  get cluster(): Cluster {
    return this.#request.cluster;
  }

  get head(): string {
    return this.#request.head;
  }

  get host(): Host | null {
    return this.#request.host;
  }

  get attempts(): number {
    return this.#request.attempts;
  }

  get isSending(): boolean {
    return this.#request.isSending;
  }

  get canSend(): boolean {
    return this.#request.canSend;
  }

  get heldBytes(): number {
    return this.#request.heldBytes + (this.#body?.length ?? 0);
  }

  start(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    const trailers = this.#client.requestTrailers;
    this.#keep(bytes, start, end);
    this.#request.start(bytes, start, end, isEnd);
    if (isEnd) this.#sendCopies(trailers);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const trailers = this.#client.requestTrailers;
    this.#keep(bytes, start, end);
    const goesOn = this.#request.send(bytes, start, end, isEnd);
    if (isEnd) this.#sendCopies(trailers);
    return goesOn;
  }

  resumeResponse(): void {
    this.#request.resumeResponse();
  }

  cancel(isReset: boolean): void {
    this.#body = null;
    this.#request.cancel(isReset);
  }

  timeOut(stat: number): void {
    this.#body = null;
    this.#request.timeOut(stat);
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    if (this.#body === null || this.#body.add(bytes, start, end)) return;
    this.#body = null;
    this.#context.stats.values[this.cluster.statBase + retry_or_shadow_abandoned]! += 1;
  }

  #sendCopies(trailers: Trailers | null): void {
    const kept = this.#body;
    if (kept === null) return;
    this.#body = null;
    const { methodId, isGrpc, isInternal, requestFraming: framing } = this.#client;
    for (const { cluster: name, hostOf, editor, pickContext } of this.#options.targets) {
      const cluster = this.#options.clusters.get(name);
      if (cluster === undefined) continue;
      new Shadow(this.#context, cluster, {
        methodId,
        isGrpc,
        isInternal,
        head: this.#headOf(hostOf, editor),
        pickContext,
        body: kept.copy(),
        framing,
        trailers,
        timeoutMs: this.#options.timeoutMs,
      }).start();
    }
  }

  #headOf(hostOf: ShadowTarget['hostOf'], editor: HeaderEditor | null): string {
    const head = TextHead.of(this.head);
    editor?.apply(head, this.#client);
    head.replaceHost(hostOf(head.headerByName('host') ?? ''));
    addSender(this.#context, head);
    return head.text();
  }
}
