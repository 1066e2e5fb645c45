// The tracing of one connection manager: which requests are traced, and how their traces begin. A request is chosen once, when
// its route is known and before filters see it; what was decided goes on in its x-request-id.

import { isWithin } from '../../base/runtime.ts';
import type { TracingSettings } from '../../snapshot/index.ts';
import { HTTP_STATS } from '../../stats/index.ts';
import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import type { UpstreamCalls } from '../router/upstream-call.ts';
import type { WorkerContext } from '../worker-context.ts';
import { reportContext } from './report-context.ts';
import { RequestTrace } from './request-trace.ts';
import type { RouteTrace } from './route-trace.ts';
import { type SamplingShares, sharesOf } from './sampling-shares.ts';
import { compileTags, type ReadTag } from './span-tags.ts';
import { TraceIds } from './trace-ids.ts';
import { drawnBy, type TraceReason, traceReason, withTraceReason } from './trace-reason.ts';
import type { Tracer } from './tracer.ts';

const REQUEST_ID = 'x-request-id';
const CLIENT_TRACE = HEADER_ID['x-client-trace-id'];
const FORCE_TRACE = HEADER_ID['x-proxy-force-trace'];
const DECORATOR = HEADER_ID['x-proxy-decorator-operation'];

/** What is counted of a request, by why it is traced. */
const STAT_OF_REASON: Readonly<Record<TraceReason, number>> = {
  none: HTTP_STATS.index['tracing.not_traceable'],
  sampled: HTTP_STATS.index['tracing.random_sampling'],
  forced: HTTP_STATS.index['tracing.service_forced'],
  client: HTTP_STATS.index['tracing.client_enabled'],
};
const HEALTH_CHECK = HTTP_STATS.index['tracing.health_check'];

/** Who sent a request, as far as its tracing goes. */
export interface TracedOrigin {
  readonly isInternal: boolean;
  /** It came from outside, straight to this proxy: what it says of its tracing counts for nothing. */
  readonly isFromEdge: boolean;
}

export class RequestTracing {
  readonly settings: TracingSettings;
  readonly context: WorkerContext;
  /** Null where nobody is told. */
  readonly tracer: Tracer | null;
  readonly tags: readonly ReadTag[];
  readonly operation: TextFormatter | null;
  readonly upstreamOperation: TextFormatter | null;
  /** Headers by which a client says which service it is. */
  readonly serviceNames: readonly string[];
  /** First cell of HTTP_STATS in this worker's slab. */
  readonly #statBase: number;
  readonly #shares: SamplingShares;

  constructor(context: WorkerContext, calls: UpstreamCalls, settings: TracingSettings, statBase: number) {
    this.context = context;
    this.settings = settings;
    this.#statBase = statBase;
    this.#shares = sharesOf(settings.sampling, context.runtime);
    this.tags = compileTags(settings.tags);
    this.operation = settings.operation && new TextFormatter(settings.operation, { missing: '' });
    this.upstreamOperation =
      settings.upstreamOperation && new TextFormatter(settings.upstreamOperation, { missing: '' });
    this.serviceNames = context.proxyHeaders.spellings('downstream-service-cluster');
    const { tracer } = settings;
    this.tracer =
      tracer &&
      context.tracers[tracer.name]!.open(tracer.settings, {
        ...reportContext(context, calls),
        ids: new TraceIds(),
        node: settings.node,
      });
  }

  /**
   * Decides on a request whose head has been prepared, and writes into it what was decided.
   * @param startedMs monotonic. @returns null where nobody is told of it.
   */
  begin(head: RequestHead, route: RouteTrace | null, origin: TracedOrigin, startedMs: number): RequestTrace | null {
    const reason = this.#reasonFor(head, route, origin);
    this.context.stats.values[this.#statBase + STAT_OF_REASON[reason]]! += 1;
    const isSampled = reason !== 'none';
    const place = this.tracer?.begin(head, isSampled, this.settings.isEgress) ?? null;
    if (place === null) return null;
    const trace = new RequestTrace(this, place, route, startedMs);
    this.#decorate(head, route, trace);
    return trace;
  }

  countHealthCheck(): void {
    this.context.stats.values[this.#statBase + HEALTH_CHECK]! += 1;
  }

  close(): void {
    this.tracer?.close();
  }

  #reasonFor(head: RequestHead, route: RouteTrace | null, origin: TracedOrigin): TraceReason {
    const id = head.headerByName(REQUEST_ID);
    const before = origin.isFromEdge ? 'none' : traceReason(id);
    const { packsReason, drawsById } = this.settings;
    const random = (drawsById ? drawnBy(id) : undefined) ?? this.context.random.u32();
    const shares = route?.sampling ?? this.#shares;
    const wanted = before === 'none' ? this.#chosen(head, origin, shares, random) : before;
    const reason = wanted !== 'none' && isWithin(shares.overall.value, this.context.random.u32()) ? wanted : 'none';
    if (packsReason && reason !== traceReason(id)) {
      const changed = withTraceReason(id, reason);
      if (changed !== undefined) {
        head.removeField(REQUEST_ID);
        head.append(REQUEST_ID, changed);
      }
    }
    return reason;
  }

  #chosen(
    head: RequestHead,
    origin: TracedOrigin,
    { client, random: share }: SamplingShares,
    random: number,
  ): TraceReason {
    if (head.has(CLIENT_TRACE) && isWithin(client.value, this.context.random.u32())) return 'client';
    if (origin.isInternal && head.has(FORCE_TRACE)) return 'forced';
    return isWithin(share.value, random) ? 'sampled' : 'none';
  }

  /** The name of the operation goes with the request, or comes with it. */
  #decorate(head: RequestHead, route: RouteTrace | null, trace: RequestTrace): void {
    const told = standing(head, DECORATOR);
    if (told !== undefined) head.dropKnown(DECORATOR);
    const decorator = route?.decorator ?? null;
    if (this.settings.isEgress) {
      if (decorator?.isPropagated) head.append(this.context.proxyHeaders.decoratorOperation, decorator.operation);
    } else if (told) trace.rename(told);
    else if (decorator?.isPropagated) trace.toldOperation = decorator.operation;
  }
}

/** The value of a header that nobody has taken away; undefined without one. */
function standing(head: RequestHead, id: number): string | undefined {
  for (let index = head.indexOf(id); index >= 0; index = head.nextIndexOf(index)) {
    if (!head.isDropped(index)) return head.valueAt(index);
  }
  return undefined;
}
