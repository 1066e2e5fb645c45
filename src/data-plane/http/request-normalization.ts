// Brings requests to the form in which routes, filters and upstreams are to see them, or turns them away: paths that may be
// written in several ways, hosts with ports, names with underscores. What is checked by one reader must not mean something
// else to the next. Before the request's origin is found out.

import type { RuntimeDerived, RuntimeValues } from '../../base/runtime.ts';
import { type Fraction, isWithin } from '../../base/runtime.ts';
import type { EscapedSlashesAction, NormalizationSettings } from '../../snapshot/index.ts';
import { HTTP_STATS, HTTP1_STATS, HTTP2_STATS } from '../../stats/index.ts';
import { HeadFlag, Method, PathChange, PathStep, type RequestHead } from '../../wasm/http1.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type LocalReply, PATH_INVALID, pathRedirect, UNDERSCORE } from './local-reply.ts';
import type { Trailers } from './trailers.ts';

const { downstream_rq_failed_path_normalization, downstream_rq_redirected_with_normalized_path } = HTTP_STATS.index;

const NORMALIZE_PATH = 'http_connection_manager.normalize_path';
const ESCAPED_SLASHES = 'http_connection_manager.path_with_escaped_slashes_action';
const ESCAPED_SLASHES_SHARE = 'http_connection_manager.path_with_escaped_slashes_action_enabled';
/** By the numbers that the runtime has for them; others keep paths as they are. */
const ACTIONS: Readonly<Record<number, EscapedSlashesAction>> = { 2: 'reject', 3: 'redirect', 4: 'forward' };

const ALWAYS: Fraction = { numerator: 100, denominator: 100 };
const NEVER: Fraction = { numerator: 0, denominator: 100 };

/** Settings with what the runtime says of them. */
interface Plan {
  readonly normalizes: Fraction;
  readonly merges: boolean;
  readonly action: EscapedSlashesAction;
  readonly acts: Fraction;
  readonly settings: NormalizationSettings;
}

/** First cells of what each codec counts. */
interface CodecStatBases {
  readonly http1: number;
  readonly http2: number;
}

export class RequestNormalization {
  readonly #context: WorkerContext;
  readonly #plan: RuntimeDerived<Plan | null>;
  /** First cell of HTTP_STATS. */
  readonly #statBase: number;
  readonly #codecBases: CodecStatBases;

  constructor(context: WorkerContext, settings: NormalizationSettings, statBase: number, codecBases: CodecStatBases) {
    this.#context = context;
    this.#plan = context.runtime.derived((values) => planOf(settings, values));
    this.#statBase = statBase;
    this.#codecBases = codecBases;
  }

  /**
   * Hot: one comparison where nothing is configured.
   * @returns the answer to a request that goes no further, or null.
   */
  apply(head: RequestHead, downstream: DownstreamConnection): LocalReply | null {
    const plan = this.#plan.value;
    if (plan === null) return null;
    const { settings } = plan;
    if (settings.underscores !== 'allow' && (head.flags & HeadFlag.UNDERSCORE) !== 0) {
      if (settings.underscores === 'reject') return this.#refuseUnderscore(downstream.isHttp2);
      for (let index = 0; index < head.fieldCount; index += 1) {
        if (!head.hasUnderscore(index)) continue;
        head.drop(index);
        this.#countUnderscore(downstream.isHttp2, 'dropped_headers_with_underscores');
      }
    }
    if (settings.stripsHostDot) head.stripHostDot();
    if (settings.strippedPorts !== 'none' && head.methodId !== Method.CONNECT) {
      const isStripped = settings.strippedPorts === 'all' || head.authorityPort === downstream.localPort;
      if (isStripped) head.stripPort();
    }
    return this.#applyPath(head, plan);
  }

  /** The same for trailers. */
  applyTrailers(trailers: Trailers, downstream: DownstreamConnection): LocalReply | null {
    const underscores = this.#plan.value?.settings.underscores ?? 'allow';
    if (underscores === 'allow') return null;
    for (const [name] of trailers.entries()) {
      if (!name.includes('_')) continue;
      if (underscores === 'reject') return this.#refuseUnderscore(downstream.isHttp2);
      trailers.remove(name);
      this.#countUnderscore(downstream.isHttp2, 'dropped_headers_with_underscores');
    }
    return null;
  }

  #applyPath(head: RequestHead, { normalizes, merges, action, acts }: Plan): LocalReply | null {
    const { random } = this.#context;
    let steps = merges ? PathStep.mergeSlashes : 0;
    if (normalizes === ALWAYS || (normalizes !== NEVER && isWithin(normalizes, random.u32())))
      steps |= PathStep.normalize;
    const takesAction = action !== 'keep' && (acts === ALWAYS || isWithin(acts, random.u32()));
    if (takesAction) steps |= PathStep.unescapeSlashes;
    if (steps === 0) return null;
    const change = head.rewritePath(steps);
    if (change === PathChange.invalid || (change === PathChange.unescaped && action === 'reject')) {
      this.#context.stats.values[this.#statBase + downstream_rq_failed_path_normalization]! += 1;
      return PATH_INVALID;
    }
    if (change !== PathChange.unescaped || action !== 'redirect') return null;
    this.#context.stats.values[this.#statBase + downstream_rq_redirected_with_normalized_path]! += 1;
    return pathRedirect(head.path());
  }

  #refuseUnderscore(isHttp2: boolean): LocalReply {
    this.#countUnderscore(isHttp2, 'requests_rejected_with_underscores_in_headers');
    return isHttp2 ? UNDERSCORE.http2 : UNDERSCORE.http1;
  }

  #countUnderscore(
    isHttp2: boolean,
    stat: 'dropped_headers_with_underscores' | 'requests_rejected_with_underscores_in_headers',
  ): void {
    const { http1, http2 } = this.#codecBases;
    const cell = isHttp2 ? http2 + HTTP2_STATS.index[stat] : http1 + HTTP1_STATS.index[stat];
    this.#context.stats.values[cell]! += 1;
  }
}

/** Null where nothing is done with any request. */
function planOf(settings: NormalizationSettings, values: RuntimeValues): Plan | null {
  const { normalizesPath, mergesSlashes, escapedSlashes, strippedPorts, stripsHostDot, underscores } = settings;
  const byRuntime = normalizesPath === null ? values.fraction(NORMALIZE_PATH) : undefined;
  const normalizes = whole(byRuntime ?? (normalizesPath ? ALWAYS : NEVER));
  const action = escapedSlashes ?? ACTIONS[values.integer(ESCAPED_SLASHES) ?? 0] ?? 'keep';
  const acts = whole(values.fraction(ESCAPED_SLASHES_SHARE) ?? ALWAYS);
  const isIdle = normalizes === NEVER && !mergesSlashes && (action === 'keep' || acts === NEVER);
  if (isIdle && strippedPorts === 'none' && !stripsHostDot && underscores === 'allow') return null;
  return { normalizes, merges: mergesSlashes, action, acts, settings };
}

/** Shares that leave nothing to chance as what they are. */
function whole(share: Fraction): Fraction {
  if (share.numerator === 0) return NEVER;
  return share.numerator >= share.denominator ? ALWAYS : share;
}
