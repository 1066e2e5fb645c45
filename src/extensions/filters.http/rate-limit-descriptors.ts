// What a request is called by those who limit it: the descriptors that its route, its virtual host or the filter itself have
// made of it. Rules are compiled once per snapshot.

import { parseIp } from '../../base/ip-number.ts';
import { jsonAt } from '../../base/json.ts';
import { type FilterCallbacks, type FilterContext, firstQueryValue } from '../../data-plane/index.ts';
import type { RateLimitAction, RateLimitSettings } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';

export interface Descriptor {
  /** As `descriptorKey` has it. */
  readonly key: string;
  readonly hits: number;
}

/** Null ends the descriptor, an empty list adds nothing. */
type Describe = (head: RequestHead, callbacks: FilterCallbacks) => readonly [key: string, value: string] | null | [];

interface CompiledLimit {
  readonly stage: number;
  readonly hits: number;
  readonly actions: readonly Describe[];
}

const NOTHING: [] = [];

/** One text for a list of entries; lists that differ have others. */
export function descriptorKey(entries: readonly (readonly [key: string, value: string])[]): string {
  return JSON.stringify(entries);
}

export class DescriptorRules {
  readonly #context: FilterContext;
  /** Routes that add nothing share a list. */
  readonly #compiled = new Map<readonly RateLimitSettings[], readonly CompiledLimit[]>();

  constructor(context: FilterContext) {
    this.#context = context;
  }

  /** Adds the descriptors that limits of this stage make. @param stage null for all of them. */
  describe(
    limits: readonly RateLimitSettings[],
    stage: number | null,
    head: RequestHead,
    callbacks: FilterCallbacks,
    into: Descriptor[],
  ): void {
    for (const limit of this.#compiledOf(limits)) {
      if (stage !== null && limit.stage !== stage) continue;
      const entries = entriesOf(limit, head, callbacks);
      if (entries !== null) into.push({ key: descriptorKey(entries), hits: limit.hits });
    }
  }

  #compiledOf(limits: readonly RateLimitSettings[]): readonly CompiledLimit[] {
    let compiled = this.#compiled.get(limits);
    if (compiled === undefined) {
      compiled = limits.map(({ stage, hits, actions }) => ({
        stage,
        hits,
        actions: actions.map((action) => compileAction(action, this.#context)),
      }));
      this.#compiled.set(limits, compiled);
    }
    return compiled;
  }
}

function entriesOf(
  { actions }: CompiledLimit,
  head: RequestHead,
  callbacks: FilterCallbacks,
): readonly (readonly [key: string, value: string])[] | null {
  const entries: (readonly [key: string, value: string])[] = [];
  for (const describe of actions) {
    const entry = describe(head, callbacks);
    if (entry === null) return null;
    if (entry.length > 0) entries.push(entry as readonly [key: string, value: string]);
  }
  return entries.length === 0 ? null : entries;
}

function compileAction(action: RateLimitAction, context: FilterContext): Describe {
  switch (action.kind) {
    case 'fixed': {
      const entry = [action.key, action.value] as const;
      return () => (action.value === '' ? NOTHING : entry);
    }
    case 'destination-cluster':
      return (_head, { routeCluster }) => (routeCluster === '' ? null : ['destination_cluster', routeCluster]);
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
      const { key, value, expects, headers, queryParameters } = action;
      const passesHeaders = context.compileHeaders(headers);
      const passesQuery = context.compileQuery(queryParameters);
      const entry = [key, value] as const;
      return (head) => ((passesHeaders(head) && passesQuery(head)) === expects ? entry : null);
    }
    case 'metadata': {
      const { source, namespace, path, byDefault } = action;
      return (_head, callbacks) => {
        const value = jsonAt(callbacks.facts(null).metadata(source)?.[namespace], path);
        return entryOr(action, typeof value === 'string' && value !== '' ? value : byDefault);
      };
    }
  }
}

function entryOr(
  { key, isLeftOutIfAbsent }: { readonly key: string; readonly isLeftOutIfAbsent: boolean },
  value: string | undefined,
): readonly [string, string] | null | [] {
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
      return head.headerByName(name);
  }
}

/** With the length of its prefix; undefined for what is no address. */
export function maskedAddress(address: string, v4Bits: number, v6Bits: number): string | undefined {
  const ip = parseIp(address);
  if (ip === undefined) return undefined;
  const bits = ip.isIpv4 ? v4Bits : v6Bits;
  return `${ip.masked(bits)}/${bits}`;
}
