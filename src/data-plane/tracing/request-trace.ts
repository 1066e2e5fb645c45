// The trace of one request: its own span, which is told when the request is over, and those of its attempts, each told with
// its attempt.

import type { StreamFacts } from '../format/stream-facts.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { Cluster } from '../upstream/cluster.ts';
import { AttemptTrace } from './attempt-trace.ts';
import type { RequestTracing } from './request-tracing.ts';
import type { RouteTrace } from './route-trace.ts';
import { isFailure, lastOfEach, type ReadTag, requestTags, writePlace } from './span-tags.ts';
import type { FinishedSpan, SpanContext, Tracer } from './tracer.ts';

const INGRESS = 'ingress';
const EGRESS = 'egress';

export class RequestTrace {
  readonly place: SpanContext;
  /** The client is told by this name what has been done; empty for not at all. Byte text. */
  toldOperation = '';
  readonly #tracing: RequestTracing;
  readonly #tracer: Tracer;
  readonly #route: RouteTrace | null;
  /** Monotonic. */
  readonly #startedMs: number;
  /** From monotonic times to those since the Unix epoch. */
  readonly #epochMs: number;
  /** By the other side of the request; empty for none. */
  #name = '';
  /** For spans of attempts. */
  #facts: StreamFacts | null = null;

  constructor(tracing: RequestTracing, place: SpanContext, route: RouteTrace | null, startedMs: number) {
    const { clock } = tracing.context;
    this.#tracing = tracing;
    this.#tracer = tracing.tracer!;
    this.place = place;
    this.#route = route;
    this.#startedMs = startedMs;
    this.#epochMs = clock.wallMs() - clock.monotonicMs();
  }

  /** The span has facts to tell. */
  get isSampled(): boolean {
    return this.place.isSampled;
  }

  get hasUpstreamSpans(): boolean {
    return this.#tracing.settings.hasUpstreamSpans;
  }

  /** What was done is called this by the other side, which knows it better. */
  rename(operation: string): void {
    this.#name = operation;
    this.toldOperation = '';
  }

  /** Tells whoever gets the request of its place in the trace; attempts with spans of their own tell of theirs. */
  carry(head: EditableHead): void {
    if (!this.hasUpstreamSpans) writePlace(head, this.#tracer.carry(this.place));
  }

  /** The response's head on its way to the client. */
  editResponse(head: EditableHead): void {
    const { isEgress } = this.#tracing.settings;
    const { decoratorOperation } = this.#tracing.context.proxyHeaders;
    if (isEgress) {
      const names = this.#tracing.context.proxyHeaders.spellings('decorator-operation');
      for (const name of names) {
        const told = head.headerByName(name);
        if (told === undefined) continue;
        if (told !== '') this.#name = told;
        head.removeField(name);
      }
    } else if (this.toldOperation !== '') {
      head.removeField(decoratorOperation);
      head.append(decoratorOperation, this.toldOperation);
    }
  }

  /** What the client of a reply of the proxy's own is told, with its line end; empty for nothing. */
  replyLine(): string {
    if (this.#tracing.settings.isEgress || this.toldOperation === '') return '';
    return `${this.#tracing.context.proxyHeaders.decoratorOperation}: ${this.toldOperation}\r\n`;
  }

  /** @param number counts from 1. @returns null where attempts have no spans. */
  attempt(cluster: Cluster, number: number): AttemptTrace | null {
    if (!this.hasUpstreamSpans) return null;
    return new AttemptTrace({
      tracer: this.#tracer,
      place: this.#tracer.child(this.place),
      clock: this.#tracing.context.clock,
      epochMs: this.#epochMs,
      cluster: cluster.settings.name,
      number,
      facts: () => this.#facts,
      tags: this.#tags,
      name: this.#route?.upstreamOperation ?? this.#tracing.upstreamOperation,
    });
  }

  /** The request is over. Once. @param endMs monotonic. */
  finish(facts: StreamFacts, endMs: number): void {
    if (facts.isHealthCheck) {
      this.#tracing.countHealthCheck();
      return;
    }
    if (!this.place.isSampled) return;
    const { settings, serviceNames } = this.#tracing;
    const { node, isEgress } = settings;
    const tags = requestTags(facts, settings.maxPathLength, serviceNames);
    if (node.id !== '') tags.push(['node_id', node.id]);
    if (node.zone !== '') tags.push(['zone', node.zone]);
    const isError = isFailure(facts);
    if (isError) tags.push(['error', 'true']);
    for (const read of this.#tags) {
      const tag = read(facts);
      if (tag !== null) tags.push(tag);
    }
    this.#tracer.report({
      context: this.place,
      kind: isEgress ? 'client' : 'server',
      name: this.#name || this.#nameOf(facts),
      startMs: this.#epochMs + this.#startedMs,
      endMs: this.#epochMs + endMs,
      tags: lastOfEach(tags),
      isError,
      events: settings.isVerbose ? this.#events(facts) : [],
    });
  }

  /** The request has facts from now on. */
  noteFacts(facts: StreamFacts): void {
    this.#facts = facts;
  }

  get #tags(): readonly ReadTag[] {
    const { tags } = this.#tracing;
    return this.#route === null || this.#route.tags.length === 0 ? tags : [...tags, ...this.#route.tags];
  }

  #nameOf(facts: StreamFacts): string {
    const format = this.#route?.operation ?? this.#tracing.operation;
    const formatted = format?.render(facts) ?? '';
    if (formatted !== '') return formatted;
    const { decorator = null } = this.#route ?? {};
    if (decorator) return decorator.operation;
    if (!this.#tracing.settings.isEgress) return INGRESS;
    return `${EGRESS} ${facts.requestHeader(':authority') ?? ''}`.trimEnd();
  }

  #events(facts: StreamFacts): FinishedSpan['events'] {
    const moments = [
      ['last_downstream_rx_byte_received', facts.requestEndMs],
      ['last_upstream_tx_byte_sent', facts.requestSentMs],
      ['first_upstream_rx_byte_received', facts.responseStartMs],
      ['last_downstream_tx_byte_sent', facts.endMs],
    ] as const;
    return moments.filter(([, atMs]) => atMs >= 0).map(([name, atMs]) => ({ name, atMs: this.#epochMs + atMs }));
  }
}
