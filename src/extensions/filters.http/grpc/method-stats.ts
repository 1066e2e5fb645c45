// What filters count of calls by service and method, among the stats of their cluster: `grpc.<service>.<method>.success` and the
// like. Names are met with the first call of a method; from then on they are looked up by the path, once a call.

import type { CountedCluster, FilterCounter, FilterTimes } from '../../../data-plane/index.ts';

/** Of gRPC itself, or of what the filter for browsers has made gRPC of. */
export type GrpcTongue = 'grpc' | 'grpc-web';

/** Clients choose the names: of methods beyond these, calls of a cluster are counted together. */
const MAX_METHODS = 1000;
const PATH = /^\/([\w.]{1,200})\/(\w{1,200})(?:\?|$)/;

/** `service.method` as names of stats have it; undefined for a path that is none of gRPC. */
export function methodOf(path: string): string | undefined {
  const match = PATH.exec(path);
  return match === null ? undefined : `${match[1]}.${match[2]}`;
}

/** The counts of one method, or of several together. */
export class MethodStats {
  readonly #cluster: CountedCluster;
  readonly #prefix: string;
  readonly #success: FilterCounter;
  readonly #failure: FilterCounter;
  readonly #total: FilterCounter;
  readonly #byStatus = new Map<string, FilterCounter>();
  #requestMessages: FilterCounter | null = null;
  #responseMessages: FilterCounter | null = null;
  #times: FilterTimes | null = null;

  /** @param prefix with its final dot. */
  constructor(cluster: CountedCluster, prefix: string) {
    this.#cluster = cluster;
    this.#prefix = prefix;
    this.#success = cluster.counter(`${prefix}success`);
    this.#failure = cluster.counter(`${prefix}failure`);
    this.#total = cluster.counter(`${prefix}total`);
  }

  /** A call has ended. @param status as it came; of what is no number only the failure counts. */
  ended(status: string): void {
    if (/^\d{1,3}$/.test(status)) this.#ofStatus(status).add(1);
    (status === '0' ? this.#success : this.#failure).add(1);
    this.#total.add(1);
  }

  messages(requests: number, responses: number): void {
    this.#requestMessages ??= this.#cluster.counter(`${this.#prefix}request_message_count`);
    this.#responseMessages ??= this.#cluster.counter(`${this.#prefix}response_message_count`);
    this.#requestMessages.add(requests);
    this.#responseMessages.add(responses);
  }

  took(ms: number): void {
    this.#times ??= this.#cluster.time(`${this.#prefix}upstream_rq_time`);
    this.#times.record(ms);
  }

  #ofStatus(status: string): FilterCounter {
    let counter = this.#byStatus.get(status);
    if (counter === undefined) {
      counter = this.#cluster.counter(this.#prefix + status);
      this.#byStatus.set(status, counter);
    }
    return counter;
  }
}

/** Those of all clusters that the requests of a filter go to. */
export class GrpcStats {
  readonly #tongue: GrpcTongue;
  readonly #clusters = new WeakMap<CountedCluster, Map<string, MethodStats>>();

  constructor(tongue: GrpcTongue) {
    this.#tongue = tongue;
  }

  /** @param method as methodOf gives it; empty for those that are counted together. */
  of(cluster: CountedCluster, method: string): MethodStats {
    let methods = this.#clusters.get(cluster);
    if (methods === undefined) {
      methods = new Map();
      this.#clusters.set(cluster, methods);
    }
    const name = method === '' || methods.has(method) || methods.size < MAX_METHODS ? method : '';
    let stats = methods.get(name);
    if (stats === undefined) {
      stats = new MethodStats(cluster, name === '' ? `${this.#tongue}.` : `${this.#tongue}.${name}.`);
      methods.set(name, stats);
    }
    return stats;
  }
}
