// The span of one attempt of a request, where attempts have spans of their own: told when the attempt is over.

import type { Clock } from '../../base/clock.ts';
import { endpointText } from '../format/endpoint-text.ts';
import type { Endpoint, FormatFacts } from '../format/facts.ts';
import type { TextFormatter } from '../format/text-formatter.ts';
import { TextHead } from '../http/text-head.ts';
import { lastOfEach, type ReadTag, writePlace } from './span-tags.ts';
import type { SpanContext, SpanTag, Tracer } from './tracer.ts';

const FIRST_SERVER_ERROR = 500;

export interface AttemptTraceOptions {
  readonly tracer: Tracer;
  readonly place: SpanContext;
  readonly clock: Clock;
  /** From monotonic times to those since the Unix epoch. */
  readonly epochMs: number;
  readonly cluster: string;
  /** From 1. */
  readonly number: number;
  /** Of the request; null where nobody has asked for any. */
  readonly facts: () => FormatFacts | null;
  readonly tags: readonly ReadTag[];
  readonly name: TextFormatter | null;
}

export class AttemptTrace {
  /** Where it goes; null before that is known. */
  remote: Endpoint | null = null;
  protocol = '';
  /** Of the response; 0 before. */
  status = 0;
  readonly #options: AttemptTraceOptions;
  readonly #startedMs: number;
  #isOver = false;

  constructor(options: AttemptTraceOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
  }

  /** The head as it is sent: it tells of this attempt's place. */
  carry(head: string): string {
    const text = TextHead.of(head);
    writePlace(text, this.#options.tracer.carry(this.#options.place));
    return text.text();
  }

  /** It is over; what comes later is not told. @param failure why there is no whole response; empty where there is one. */
  finish(failure: string): void {
    const { tracer, place, clock, epochMs, cluster, number, facts: factsOf, name } = this.#options;
    if (this.#isOver || !place.isSampled) return;
    this.#isOver = true;
    const tags: SpanTag[] = [
      ['component', 'proxy'],
      ['upstream_cluster', cluster],
      ['upstream_cluster.name', cluster],
    ];
    if (this.protocol !== '') tags.push(['http.protocol', this.protocol]);
    const address = this.remote === null ? undefined : endpointText(this.remote);
    if (address !== undefined) tags.push(['upstream_address', address], ['peer.address', address]);
    if (this.status > 0) tags.push(['http.status_code', String(this.status)]);
    if (number > 1) tags.push(['retry.count', String(number - 1)]);
    const isError = failure !== '' || this.status >= FIRST_SERVER_ERROR;
    if (isError) tags.push(['error', 'true']);
    if (failure !== '') tags.push(['error.reason', failure.replaceAll(' ', '_')]);
    const facts = factsOf();
    if (facts !== null) {
      for (const read of this.#options.tags) {
        const tag = read(facts);
        if (tag !== null) tags.push(tag);
      }
    }
    tracer.report({
      context: place,
      kind: 'client',
      name: (facts !== null && name?.render(facts)) || `router ${cluster} egress`,
      startMs: epochMs + this.#startedMs,
      endMs: epochMs + clock.monotonicMs(),
      tags: lastOfEach(tags),
      isError,
      events: [],
    });
  }
}
