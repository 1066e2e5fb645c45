// A service that the bootstrap names servers for, and that is no discovery: its code is loaded when the first clusters are warm, for a
// start without it has other things to load. Main thread.

import { type NodeMessage, nodeMessage, type ServiceStreamSettings } from '../../../config/index.ts';
import type { ServerLinkDependencies } from './server-link.ts';

/** What speaks to the servers. */
export interface ServiceClient {
  start(): void;
  /** Nothing is told any more. Idempotent. */
  close(): void;
  /** Tells what is left to be told, within a bound, and closes then. Idempotent; the same as `close` when absent. */
  finish?(): Promise<void>;
}

export interface LateServiceDependencies extends Pick<ServerLinkDependencies, 'faults'> {
  /** The bootstrap in its binary form, with the node in it. */
  readonly bootstrap: Uint8Array;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

export class LateService {
  readonly #what: string;
  readonly #settings: ServiceStreamSettings;
  readonly #deps: LateServiceDependencies;
  readonly #load: () => Promise<(node: NodeMessage) => ServiceClient>;
  #client: ServiceClient | undefined;
  #isClosed = false;

  /** @param what that begins with it, as faults name it. @param load of its code: resolves with what makes the client. */
  constructor(
    what: string,
    settings: ServiceStreamSettings,
    deps: LateServiceDependencies,
    load: () => Promise<(node: NodeMessage) => ServiceClient>,
  ) {
    this.#what = what;
    this.#settings = settings;
    this.#deps = deps;
    this.#load = load;
  }

  /** There are clusters to speak to. */
  start(): void {
    const { faults, bootstrap, buildVersion } = this.#deps;
    faults.run(this.#what, async () => {
      const make = await this.#load();
      if (this.#isClosed) return;
      const isOlder = this.#settings.transportGeneration === 'v2';
      this.#client = make(nodeMessage(bootstrap, isOlder ? buildVersion : undefined));
      this.#client.start();
    });
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#client?.close();
  }
  /** The same behind what is left to be told, within a bound. Idempotent. */
  async finish(): Promise<void> {
    this.#isClosed = true;
    if (this.#client?.finish === undefined) this.#client?.close();
    else await this.#client.finish();
  }
}
