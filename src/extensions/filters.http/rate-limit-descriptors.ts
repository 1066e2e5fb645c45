// What a request is called by those who limit it: the descriptors that its route, its virtual host or the filter itself have
// made of it. Rules are compiled once per snapshot.

import { utf8Bytes } from '../../base/byte-text.ts';
import { parseIp } from '../../base/ip-number.ts';
import { isJsonObject, jsonAt } from '../../base/json.ts';
import { type FilterCallbacks, type FilterContext, firstQueryValue, TextFormatter } from '../../data-plane/index.ts';
import type { DescribedValue, RateLimitAction, RateLimitSettings } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';

/** Of byte text. */
type Entry = readonly [key: string, value: string];

/** In place of the limit that a service has for a descriptor. */
export interface OwnLimit {
  readonly requests: number;
  /** Number of a RateLimitUnit. */
  readonly unit: number;
}

export interface Descriptor {
  /** At least one. */
  readonly entries: readonly Entry[];
  readonly limit: OwnLimit | null;
  /** Null where the filter decides. */
  readonly tellsLimits: boolean | null;
  readonly hits: Hits;
}

/** Null ends the descriptor, an empty list adds nothing. */
type Describe = (head: RequestHead, callbacks: FilterCallbacks) => Entry | null | [];

interface CompiledLimit {
  readonly settings: RateLimitSettings;
  /** The runtime leaves it on. */
  readonly isOn: () => boolean;
  readonly hits: Hits;
  readonly actions: readonly Describe[];
}

const NOTHING: [] = [];
const ALWAYS = (): boolean => true;
const ALL = { numerator: 100, denominator: 100 };
/** As the configuration may set; more is a mistake, or somebody's trick. */
const MAX_HITS = 1_000_000_000;
/** Numbers of RateLimitUnit by their names in metadata. */
const UNITS: ReadonlyMap<string, number> = new Map(
  ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR'].map((name, index) => [name, index]),
);
const MAX_UINT32 = 2 ** 32 - 1;

/** One text for a list of entries; lists that differ have others. */
export function descriptorKey(entries: readonly Entry[]): string {
  return JSON.stringify(entries);
}

/** What a request counts for. */
export class Hits {
  readonly #fixed: number | null;
  readonly #format: TextFormatter | null;

  constructor(said: RateLimitSettings['hits']) {
    const isFormat = said !== null && typeof said !== 'number';
    this.#fixed = isFormat ? null : said;
    this.#format = isFormat ? new TextFormatter(said, { missing: '' }) : null;
  }

  /** @returns null where nothing is said, undefined where a format says no such number: the descriptor does not count then. */
  of(callbacks: FilterCallbacks): number | null | undefined {
    if (this.#format === null) return this.#fixed;
    const text = this.#format.render(callbacks.facts(null));
    const value = Number(text);
    return text.trim() === '' || !(value >= 0 && value <= MAX_HITS) ? undefined : Math.trunc(value);
  }
}

/** Makes descriptors by the limits of one stage. */
export class DescriptorRules {
  readonly #context: FilterContext;
  readonly #stage: number | null;
  /** Routes that add nothing share a list. */
  readonly #compiled = new WeakMap<readonly RateLimitSettings[], readonly CompiledLimit[]>();

  /** @param stage null for all of them. */
  constructor(context: FilterContext, stage: number | null) {
    this.#context = context;
    this.#stage = stage;
  }

  /** Adds what the limits make of a request. @param isAtEnd those that count when it is over, else the others. */
  describe(
    limits: readonly RateLimitSettings[],
    isAtEnd: boolean,
    head: RequestHead,
    callbacks: FilterCallbacks,
    into: Descriptor[],
  ): void {
    for (const limit of this.#compiledOf(limits)) {
      const { settings, hits } = limit;
      if (settings.isAtEnd !== isAtEnd || !limit.isOn()) continue;
      const entries = entriesOf(limit, head, callbacks);
      if (entries === null) continue;
      into.push({ entries, limit: ownLimit(settings, callbacks), tellsLimits: settings.tellsLimits, hits });
    }
  }

  #compiledOf(limits: readonly RateLimitSettings[]): readonly CompiledLimit[] {
    let compiled = this.#compiled.get(limits);
    if (compiled === undefined) {
      const own = limits.filter(({ stage }) => this.#stage === null || this.#stage === stage);
      compiled = own.map((settings) => ({
        settings,
        isOn: settings.disableKey === '' ? ALWAYS : this.#context.share({ key: runtimeKeyOf(settings), default: ALL }),
        hits: new Hits(settings.hits),
        actions: settings.actions.map((action) => compileAction(action, this.#context)),
      }));
      this.#compiled.set(limits, compiled);
    }
    return compiled;
  }
}

function runtimeKeyOf({ disableKey }: RateLimitSettings): string {
  return `ratelimit.${disableKey}.http_filter_enabled`;
}

/** Null where the metadata has none, or none that makes sense. */
function ownLimit({ limitAt }: RateLimitSettings, callbacks: FilterCallbacks): OwnLimit | null {
  if (limitAt === null) return null;
  const said = jsonAt(callbacks.facts(null).metadata('DYNAMIC')?.[limitAt.namespace], limitAt.path);
  if (!isJsonObject(said)) return null;
  const { requests_per_unit: requests, unit: name } = said;
  if (typeof requests !== 'number' || !(requests >= 0 && requests <= MAX_UINT32)) return null;
  const unit = typeof name === 'string' ? UNITS.get(name) : undefined;
  return unit === undefined ? null : { requests: Math.trunc(requests), unit };
}

function entriesOf({ actions }: CompiledLimit, head: RequestHead, callbacks: FilterCallbacks): readonly Entry[] | null {
  const entries: Entry[] = [];
  for (const describe of actions) {
    const entry = describe(head, callbacks);
    if (entry === null) return null;
    if (entry.length > 0) entries.push(entry as Entry);
  }
  return entries.length === 0 ? null : entries;
}

function compileAction(action: RateLimitAction, context: FilterContext): Describe {
  switch (action.kind) {
    case 'fixed': {
      // A node without a cluster says nothing of it.
      if (action.value.length === 0 && action.byDefault === '') return () => NOTHING;
      const describe = compileEntry(action.key, action);
      return (_head, callbacks) => describe(callbacks);
    }
    case 'destination-cluster':
      return (_head, { routeCluster }) =>
        routeCluster === '' ? null : ['destination_cluster', utf8Bytes(routeCluster)];
    case 'request-header': {
      const { name } = action;
      return (head) => entryOr(action, name === ':path' ? head.path() : headerOf(head, name));
    }
    case 'query-parameter': {
      const { name } = action;
      return (head) => {
        const path = head.path();
        const mark = path.indexOf('?');
        return entryOr(action, mark === -1 ? undefined : firstQueryValue(path.slice(mark + 1), name));
      };
    }
    case 'remote-address':
      return (_head, { clientAddress }) => (clientAddress === '' ? null : ['remote_address', clientAddress]);
    case 'masked-remote-address':
      return (_head, { clientAddress }) => {
        const network = maskedAddress(clientAddress, action.v4Bits, action.v6Bits);
        return network === undefined ? null : ['masked_remote_address', network];
      };
    case 'match': {
      const { expects, headers, queryParameters } = action;
      const passesHeaders = context.compileHeaders(headers);
      const passesQuery = context.compileQuery(queryParameters);
      const describe = compileEntry(action.key, action);
      return (head, callbacks) => ((passesHeaders(head) && passesQuery(head)) === expects ? describe(callbacks) : null);
    }
    case 'metadata': {
      const { source, namespace, path, byDefault } = action;
      return (_head, callbacks) => {
        const value = jsonAt(callbacks.facts(null).metadata(source)?.[namespace], path);
        return entryOr(action, utf8Bytes(typeof value === 'string' && value !== '' ? value : byDefault));
      };
    }
  }
}

/** A text that is always the same makes one entry for all requests. */
function compileEntry(key: string, { value, byDefault }: DescribedValue): (callbacks: FilterCallbacks) => Entry | null {
  const format = new TextFormatter(value, { missing: '' });
  if (format.isLiteral) {
    const text = typeof value[0] === 'string' ? value[0] : byDefault;
    const entry = text === '' ? null : ([key, text] as const);
    return () => entry;
  }
  return (callbacks) => {
    const text = format.render(callbacks.facts(null)) || byDefault;
    return text === '' ? null : [key, text];
  };
}

function entryOr(
  { key, isLeftOutIfAbsent }: { readonly key: string; readonly isLeftOutIfAbsent: boolean },
  value: string | undefined,
): Entry | null | [] {
  if (value) return [key, value];
  return isLeftOutIfAbsent ? NOTHING : null;
}

function headerOf(head: RequestHead, name: string): string | undefined {
  switch (name) {
    case ':method':
      return head.method;
    case 'host':
    case ':authority':
      return head.authority();
    default:
      // The first one counts: whoever adds another is called the same.
      return head.valuesByName(name)[0];
  }
}

/** With the length of its prefix; undefined for what is no address. */
export function maskedAddress(address: string, v4Bits: number, v6Bits: number): string | undefined {
  const ip = parseIp(address);
  if (ip === undefined) return undefined;
  const bits = ip.isIpv4 ? v4Bits : v6Bits;
  return `${ip.masked(bits)}/${bits}`;
}
