// What is not initialized yet, for listings: of the server as a whole, of each listener that is not open in all workers, of each
// cluster that looks for its members or checks them for the first time. Main thread.

import type { RuntimeLayerSettings } from '../../config/index.ts';
import type { ListenerSettings } from '../../snapshot/index.ts';
import type { ClusterManager } from '../cluster-manager/cluster-manager.ts';
import type { ListenerManager } from '../listener-manager/listener-manager.ts';
import type { ResourceRecord } from '../resource-record.ts';
import type { InitManager } from './init-manager.ts';

export interface Unready {
  readonly component: 'cluster' | 'listener' | 'server';
  /** Of the listener or cluster. */
  readonly name: string;
  /** Tells one configuration of the name from another; empty for the server. */
  readonly message: Uint8Array;
  /** What it waits for. */
  readonly targets: readonly string[];
}

export interface UnreadySources {
  readonly init: InitManager;
  readonly clusters: Pick<ClusterManager, 'warming'>;
  readonly listeners: Pick<ListenerManager, 'dump' | 'missing'>;
  /** Of the bootstrap, in its order, with their messages. */
  readonly listenersAtStart: readonly (readonly [settings: ListenerSettings, message: Uint8Array])[];
}

/** As the server names what it waits for of a listener. */
export function listenerTarget(name: string): string {
  return `Listener-init-target ${name}`;
}

/** The same of runtime layers, of which only those are waited for that are not in the bootstrap. */
export function runtimeTargets(layers: readonly RuntimeLayerSettings[]): readonly string[] {
  return layers.flatMap(({ name, kind, discovery }) => {
    if (discovery !== undefined) return `RTDS ${discovery.resource}`;
    return kind === 'files' ? `runtime layer ${name}` : [];
  });
}

export function* unready({ init, clusters, listeners, listenersAtStart }: UnreadySources): Generator<Unready> {
  const waited = new Set(init.unready);
  if (init.phase !== 'initialized') {
    yield { component: 'server', name: '', message: new Uint8Array(0), targets: [...waited] };
    for (const [{ name }, message] of listenersAtStart) {
      if (waited.has(listenerTarget(name))) yield unreadyListener({ name, message }, listeners);
    }
  }
  for (const record of listeners.dump()) {
    const isTold = init.phase !== 'initialized' && !record.addedViaApi;
    if (record.state === 'warming' && !isTold) yield unreadyListener(record, listeners);
  }
  for (const { cluster, message, waitsFor } of clusters.warming()) {
    yield { component: 'cluster', name: cluster.name, message, targets: waitsFor };
  }
}

function unreadyListener(
  { name, message }: Pick<ResourceRecord, 'name' | 'message'>,
  listeners: UnreadySources['listeners'],
): Unready {
  return {
    component: 'listener',
    name,
    message,
    targets: [listenerTarget(name), ...listeners.missing(name)],
  };
}
