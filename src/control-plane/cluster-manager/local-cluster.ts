// The cluster that this proxy and its like are members of: it says how many of them are in which locality. Main thread.

import type { Locality } from '../../snapshot/index.ts';
import type { ActiveHost } from './active-host.ts';

export class LocalCluster {
  /** Empty when there is none. */
  readonly name: string;
  /** Of this proxy. */
  readonly locality: Locality;
  /** Undefined until the cluster is there. */
  members: (() => readonly ActiveHost[]) | undefined;

  constructor(name: string, locality: Locality) {
    this.name = name;
    this.locality = locality;
  }
}
