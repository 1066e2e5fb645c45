// What the overload manager asks of this worker, as the places in the path ask for it. Worker thread. While nothing is asked
// for, which is nearly always, an answer costs one comparison.

import type { LoadShedPointName, ScaledTimeoutName } from '../base/overload-names.ts';
import type { Random } from '../base/random.ts';
import { NO_OVERLOAD, type OverloadState } from '../snapshot/index.ts';

const U32_VALUES = 2 ** 32;

/** Where a worker counts. */
interface Counting {
  readonly values: { [cell: number]: number };
  base(block: number): number;
}

export class Overload {
  readonly #random: Random;
  readonly #stats: Counting;
  #state = NO_OVERLOAD;
  #isActive = false;
  #isShortening = false;

  constructor(random: Random, stats: Counting) {
    this.#random = random;
    this.#stats = stats;
  }

  update(state: OverloadState): void {
    this.#state = state;
    this.#isShortening = state.shortenedTimeouts > 0;
    const shares = [state.refusedRequests, state.endedConnections, state.rejectedConnections];
    this.#isActive = shares.some((share) => share > 0) || Object.keys(state.shedding).length > 0;
  }

  /** Clients are to wait in the queue of the kernel. */
  get stopsAccepting(): boolean {
    return this.#state.stopsAccepting;
  }

  rejectsConnection(): boolean {
    return this.#isActive && (this.#happens(this.#state.rejectedConnections) || this.#sheds('tcp_listener_accept'));
  }

  /** Before the first byte of a connection is read. */
  refusesCodec(): boolean {
    return this.#isActive && this.#sheds('hcm_ondata_creating_codec');
  }

  /** Whether a request whose head has come is turned away. */
  refusesRequest(): boolean {
    return (
      this.#isActive &&
      (this.#happens(this.#state.refusedRequests) || this.#sheds('http_connection_manager_decode_headers'))
    );
  }

  /** The same behind the filters. */
  refusesForwarding(): boolean {
    return this.#isActive && this.#sheds('http_downstream_filter_check');
  }

  /** When bytes of a client have come, of which none are read then. */
  abortsDispatch(): boolean {
    return this.#isActive && this.#sheds('http1_server_abort_dispatch');
  }

  /** Whether a request that needs a new connection to its host goes without. */
  refusesUpstreamConnection(): boolean {
    return this.#isActive && this.#sheds('connection_pool_new_connection');
  }

  /** Whether a response ends its connection. */
  endsConnection(): boolean {
    return this.#isActive && this.#happens(this.#state.endedConnections);
  }

  /** A timeout as it is now. @param configuredMs 0 for never, which stays so. */
  timeoutMs(name: ScaledTimeoutName, configuredMs: number): number {
    return this.#isShortening && configuredMs > 0 ? this.#shortened(name, configuredMs) : configuredMs;
  }

  #shortened(name: ScaledTimeoutName, configuredMs: number): number {
    const { shortenedTimeouts, timeoutFloors } = this.#state;
    const floor = timeoutFloors[name];
    if (floor === undefined) return configuredMs;
    const leastMs = Math.min(Math.max(floor.minMs, floor.minScale * configuredMs), configuredMs);
    // None becomes no timeout at all.
    return Math.max(configuredMs - (configuredMs - leastMs) * shortenedTimeouts, 1);
  }

  #happens(share: number): boolean {
    return share > 0 && this.#random.u32() < share * U32_VALUES;
  }

  #sheds(point: LoadShedPointName): boolean {
    const state = this.#state.shedding[point];
    if (state === undefined || !this.#happens(state.share)) return false;
    this.#stats.values[this.#stats.base(state.countCell)]! += 1;
    return true;
  }
}
