// Network filters whose every answer a test scripts, and that note what they are told.

import type {
  NetworkFilter,
  NetworkFilterCallbacks,
  NetworkFilterKind,
  TerminalCallbacks,
  TerminalFilterKind,
} from '../../src/data-plane/index.ts';
import type { NetworkFilterSettings } from '../../src/snapshot/index.ts';

export interface MadeFilter<Callbacks = NetworkFilterCallbacks> {
  readonly callbacks: Callbacks;
  /** What has come to its onData, ends as `$`. */
  readonly seen: string[];
  closes: number;
}

type Script<Callbacks> = (made: MadeFilter<Callbacks>) => Omit<NetworkFilter, 'onClosed'>;

function filterOf<Callbacks>(
  callbacks: Callbacks,
  filters: MadeFilter<Callbacks>[],
  script: Script<Callbacks>,
): NetworkFilter {
  const made: MadeFilter<Callbacks> = { callbacks, seen: [], closes: 0 };
  filters.push(made);
  const { onData, ...methods } = script(made);
  return {
    ...methods,
    ...(onData === undefined
      ? {}
      : {
          onData(bytes: Buffer, isEnd: boolean) {
            made.seen.push(bytes.toString('latin1') + (isEnd ? '$' : ''));
            return onData(bytes, isEnd);
          },
        }),
    onClosed() {
      made.closes += 1;
    },
  };
}

/** @returns its kind, and the filters that have been made, in order. */
export function scriptedFilter(script: Script<NetworkFilterCallbacks>, readsData = false) {
  const filters: MadeFilter[] = [];
  const kind: NetworkFilterKind = {
    isTerminal: false,
    readsData,
    compile: () => ({ create: (callbacks) => filterOf(callbacks, filters, script) }),
  };
  return { kind, filters };
}

export function scriptedTerminal(script: Script<TerminalCallbacks>) {
  const filters: MadeFilter<TerminalCallbacks>[] = [];
  const kind: TerminalFilterKind = {
    isTerminal: true,
    compile: () => (callbacks) => filterOf(callbacks, filters, script),
  };
  return { kind, filters };
}

export function networkFilter(name: string, fields: Partial<NetworkFilterSettings> = {}): NetworkFilterSettings {
  return { name, settings: null, ...fields };
}
