// Filters that end their chain and come by discovery: how their configurations are read, what they count, and that one takes effect when its own
// route tables, scopes and filters are there. Without one, and without a default, connections of the chain are closed. Main thread.

import type { ConfiguredTerminal, PublishedTerminal } from '../../snapshot/index.ts';
import { type Companion, nothingBeside, type PublishedKind } from '../discovery/published-kind.ts';
import { type ResourceLease, releaseAll, whenAllReady } from '../discovery/resource-lease.ts';
import { type FilterConfigsDependencies, filterKind, type Wanted } from './filter-kind.ts';
import { ownTerminalNeeds } from './terminal-needs.ts';
import { makeTerminal, type TerminalSources } from './terminal-parts.ts';

interface WantedTerminal extends Wanted<ConfiguredTerminal> {
  /** Of the stats of its listener, with its dot. */
  readonly listenerPrefix: string;
}

type Content = ConfiguredTerminal | null;
type WarmingDependencies = Pick<FilterConfigsDependencies, 'workers' | 'faults'>;

const WHERE = 'what a terminal filter waits for';

export function terminalFilterKind(
  deps: FilterConfigsDependencies,
  sources: TerminalSources,
): PublishedKind<WantedTerminal, Content, PublishedTerminal> {
  const { discoverable, clusterNames } = deps;
  const warming = new WarmingTerminals(deps, sources);
  const kind = filterKind<WantedTerminal, ConfiguredTerminal, PublishedTerminal>(deps, {
    read: (views) => discoverable().terminalFilters(views, clusterNames()),
    prepare: (place, { listenerPrefix }, configured, holdings) => {
      if (configured === null) return { ...place, configured: null };
      const { filter: settings } = configured;
      return {
        ...place,
        configured: { settings, parts: makeTerminal(settings, listenerPrefix, { ...sources, holdings }) },
      };
    },
  });
  return {
    ...kind,
    publish: (terminal, onGone) => warming.publish(terminal, onGone),
    remove: (id, onGone) => warming.remove(id, onGone),
    beside: (resource) => needsBeside(() => resource.checkReady(), deps, sources),
  };
}

/** Whoever waits for a terminal filter waits for what it needs, too. */
function needsBeside(
  checkReady: () => void,
  { faults }: Pick<FilterConfigsDependencies, 'faults'>,
  sources: TerminalSources,
): Companion<WantedTerminal, Content> {
  let needs: readonly ResourceLease[] = [];
  const need = (next: readonly ResourceLease[]): void => {
    const former = needs;
    needs = next;
    releaseAll(former);
    faults.run(WHERE, () => whenAllReady(next).then(checkReady));
  };
  const beside = nothingBeside<WantedTerminal, Content>();
  return {
    ...beside,
    get isReady() {
      return needs.every(({ isReady }) => isReady);
    },
    begin: (contents, message) => ({
      ...beside.begin(contents, message),
      done: () => need([...contents.values()].flatMap((each) => (each ? ownTerminalNeeds(each.filter, sources) : []))),
    }),
    close: () => need([]),
  };
}

interface WarmingTerminal {
  readonly needs: readonly ResourceLease[];
  /** Of it, and of those whose place it has taken before they took effect. */
  readonly onGone: () => void;
}

/** Brings terminal filters to the workers; the one before stays for as long as one lacks what it needs. A worker that starts meanwhile does not wait. */
class WarmingTerminals {
  readonly #deps: WarmingDependencies;
  readonly #sources: TerminalSources;
  /** By id. */
  readonly #warming = new Map<number, WarmingTerminal>();

  constructor(deps: WarmingDependencies, sources: TerminalSources) {
    this.#deps = deps;
    this.#sources = sources;
  }

  publish(terminal: PublishedTerminal, ownOnGone: () => void): void {
    const { id, configured } = terminal;
    const former = this.#warming.get(id);
    const onGone = (): void => {
      former?.onGone();
      ownOnGone();
    };
    const needs = configured === null ? [] : ownTerminalNeeds(configured.settings, this.#sources);
    const warming = { needs, onGone };
    this.#warming.set(id, warming);
    if (former !== undefined) releaseAll(former.needs);
    const publish = (): void => {
      if (this.#warming.get(id) !== warming) return;
      this.#warming.delete(id);
      this.#deps.workers.publishFilter(terminal, onGone);
      releaseAll(needs);
    };
    if (needs.every(({ isReady }) => isReady)) publish();
    else this.#deps.faults.run(WHERE, () => whenAllReady(needs).then(publish));
  }

  remove(id: number, ownOnGone: () => void): void {
    const former = this.#warming.get(id);
    this.#warming.delete(id);
    if (former !== undefined) releaseAll(former.needs);
    this.#deps.workers.removeFilter(id, () => {
      former?.onGone();
      ownOnGone();
    });
  }
}
