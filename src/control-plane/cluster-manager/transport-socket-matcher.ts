// Under which of its cluster's transport socket matches a host comes, by the metadata of its endpoint, and how many hosts
// have come under each. Main thread; asked once for each host, when it is made.

import { type HostSettings, socketMatchOf, type TransportSocketMatch } from '../../snapshot/index.ts';
import { cleanStatName, type Scope, type StatsStore, TRANSPORT_SOCKET_MATCH_STATS } from '../../stats/index.ts';

/** Of hosts that no match takes: the transport socket of the cluster. */
const DEFAULT = 'default';

type Metadata = HostSettings['metadata'];

export class TransportSocketMatcher {
  readonly #matches: readonly TransportSocketMatch[];
  readonly #counters: ReadonlyMap<string, ReturnType<typeof allocate>>;

  constructor(stats: Pick<StatsStore, 'scope'>, statName: string, matches: readonly TransportSocketMatch[]) {
    this.#matches = matches;
    const names = new Set([...matches.map(({ name }) => name), DEFAULT]);
    const prefix = `cluster.${statName}.transport_socket_match.`;
    this.#counters = new Map(
      [...names].map((name) => [name, allocate(stats.scope(`${prefix}${cleanStatName(name)}.`))]),
    );
  }

  /** @returns the name of the first match that takes the host, which counts it. */
  assign({ metadata }: { readonly metadata?: Metadata }): string {
    const name = this.#matches[socketMatchOf(this.#matches, metadata)]?.name ?? DEFAULT;
    this.#counters.get(name)!.add('total_match_count');
    return name;
  }
}

function allocate(scope: Scope) {
  return scope.allocate(TRANSPORT_SOCKET_MATCH_STATS);
}
