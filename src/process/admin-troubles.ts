// What the home page of the admin interface warns of beside clusters: listeners that are not open, and what the process has had
// to do without. All of it is read from what others count; nothing is kept here.

import type { TroubleView } from '../admin/index.ts';
import type { Server } from '../control-plane/index.ts';
import type { Loggers } from '../log/index.ts';
import { LISTENER_STATS } from '../stats/index.ts';

const { downstream_cx_accept_paused, downstream_cx_accept_resumed } = LISTENER_STATS.index;

interface Counted {
  readonly prefix: string;
  readonly name: string;
  readonly text: (count: number) => string;
}

/** Since the start of the process. */
const COUNTED: readonly Counted[] = [
  {
    prefix: 'server.',
    name: 'worker_restarts',
    text: (count) => `workers crashed and were started again: ${times(count)}`,
  },
  {
    prefix: 'server.',
    name: 'contained_faults',
    text: (count) => `faults of the proxy itself were caught: ${times(count)}; the log has them`,
  },
  {
    prefix: 'server.',
    name: 'dropped_stat_flushes',
    text: (count) => `flushes of statistics were left out, because the one before still ran: ${times(count)}`,
  },
  {
    prefix: 'stats.',
    name: 'overflow',
    text: (count) => `stats or samples found no room in the shared memory: ${times(count)}`,
  },
  {
    prefix: 'stats.',
    name: 'histogram_values_dropped',
    text: (count) => `samples of histograms were lost: ${count}`,
  },
  {
    prefix: 'main_thread.',
    name: 'watchdog_miss',
    text: (count) => `the main thread was silent for longer than its watchdog allows: ${times(count)}`,
  },
  {
    prefix: 'workers.',
    name: 'watchdog_miss',
    text: (count) => `workers were silent for longer than their watchdog allows: ${times(count)}`,
  },
];

/** What is asked of the server. */
export interface TroubledServer {
  readonly bootstrap: {
    readonly statSinks: Iterable<{ readonly name: string }>;
    readonly overload:
      | {
          readonly actions: Iterable<{ readonly name: string }>;
          readonly shedPoints: Iterable<{ readonly name: string }>;
        }
      | undefined;
  };
  readonly stats: Pick<Server['stats'], 'cells' | 'counterCell' | 'gaugeCell'>;
  readonly clusterManager: Pick<Server['clusterManager'], 'failures'>;
  readonly routeTables: Pick<Server['routeTables'], 'failures'>;
  readonly scopeSets: Pick<Server['scopeSets'], 'failures'>;
  readonly secrets: Pick<Server['secrets'], 'failures'>;
  readonly filterConfigs: Pick<Server['filterConfigs'], 'failures'>;
  readonly listenerManager: Pick<Server['listenerManager'], 'failures'> & {
    listeners(): Iterable<{
      readonly name: string;
      readonly accepting: 'yes' | 'draining' | 'stopped';
      readonly snapshot: { readonly statBlock: number };
    }>;
  };
}

export function troublesOf(server: TroubledServer, loggers: Pick<Loggers, 'dropped'>): TroubleView[] {
  const count = ({ prefix, name }: Pick<Counted, 'prefix' | 'name'>): number => counted(server, prefix, name);
  const sums = COUNTED.map((each) => [count(each), each.text] as const);
  const notes = sums.filter(([value]) => value > 0).map(([value, text]) => text(value));
  if (loggers.dropped > 0) notes.push(`lines of the log were not written: ${loggers.dropped}`);
  const ofServer = [
    ...overloadTroubles(server),
    ...listenerTroubles(server),
    ...clusterTroubles(server),
    ...routeTroubles(server),
    ...secretTroubles(server),
    ...filterTroubles(server),
  ];
  return [...ofServer, ...[...notes, ...sinkTroubles(server)].map(note)];
}

/** What is done against overload now takes something from clients; what was turned away is gone. */
function* overloadTroubles({ bootstrap, stats }: TroubledServer): Generator<TroubleView> {
  const { actions = [], shedPoints = [] } = bootstrap.overload ?? {};
  const strength = (prefix: string): number => {
    const cell = stats.gaugeCell(prefix, 'scale_percent');
    return cell === undefined ? 0 : stats.cells.total(cell);
  };
  for (const { name } of actions) {
    const percent = strength(`overload.proxy.overload_actions.${name}.`);
    if (percent > 0) yield { isGrave: percent === 100, text: `overload: ${name} is on, by ${percent} %` };
  }
  for (const { name } of shedPoints) {
    const prefix = `overload.proxy.load_shed_points.${name}.`;
    const percent = strength(prefix);
    const count = counted({ stats }, prefix, 'shed_load_count');
    const now = percent > 0 ? `, and does so now, by ${percent} %` : '';
    if (count > 0 || percent > 0) {
      yield { isGrave: percent > 0, text: `overload: ${name} has turned clients away ${times(count)}${now}` };
    }
  }
}

function* listenerTroubles({ listenerManager, stats }: TroubledServer): Generator<TroubleView> {
  for (const { name, error } of listenerManager.failures()) {
    yield { isGrave: true, text: `listener ${name} could not be opened: ${error}` };
  }
  for (const { name, accepting, snapshot } of listenerManager.listeners()) {
    const total = (row: number): number => stats.cells.total(snapshot.statBlock + row);
    if (accepting === 'stopped') yield note(`listener ${name} accepts no more connections: it was stopped`);
    if (accepting === 'draining') yield note(`listener ${name} drains`);
    if (total(downstream_cx_accept_paused) > total(downstream_cx_accept_resumed)) {
      yield { isGrave: true, text: `listener ${name} lets clients wait: descriptors run short` };
    }
  }
}

function* clusterTroubles({ clusterManager }: TroubledServer): Generator<TroubleView> {
  for (const { name, error } of clusterManager.failures()) {
    yield note(`cluster ${name} could not be taken in: ${error}`);
  }
}

function* routeTroubles({ routeTables, scopeSets }: TroubledServer): Generator<TroubleView> {
  for (const { name, error } of scopeSets.failures()) {
    yield note(`scoped routes ${name} could not be taken over in full: ${error}`);
  }
  for (const { name, error } of routeTables.failures()) {
    yield note(`route configuration ${name} could not be taken in: ${error}`);
  }
}

function* secretTroubles({ secrets }: TroubledServer): Generator<TroubleView> {
  for (const { name, error } of secrets.failures()) yield note(`secret ${name} could not be taken in: ${error}`);
}

function* filterTroubles({ filterConfigs }: TroubledServer): Generator<TroubleView> {
  for (const { name, error } of filterConfigs.failures()) {
    yield note(`extension configuration ${name} could not be taken in: ${error}`);
  }
}

/** Two sinks of a kind count together. */
function sinkTroubles(server: TroubledServer): string[] {
  const kinds = new Set([...server.bootstrap.statSinks].map(({ name }) => name.slice(name.indexOf('.') + 1)));
  return [...kinds].flatMap((kind) => {
    const count = (name: string): number => counted(server, `stat_sinks.${kind}.`, name);
    const [failures, dropped] = [count('send_failures'), count('metrics_dropped')];
    if (failures + dropped === 0) return [];
    return [`the stats sink ${kind} has failed ${times(failures)}, and given up ${dropped} metrics`];
  });
}

function counted({ stats }: Pick<TroubledServer, 'stats'>, prefix: string, name: string): number {
  const cell = stats.counterCell(prefix, name);
  return cell === undefined ? 0 : stats.cells.total(cell);
}

function note(text: string): TroubleView {
  return { isGrave: false, text };
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
