// Questions to the hosts of a cluster by HTTP, one at a time, each with a bound of its time. A server may close a connection at any time:
// one that was lost before anything came back is asked once more, which a question for resources allows. Main thread.

import { createHash } from 'node:crypto';
import { utf8Bytes } from '../../../base/byte-text.ts';
import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { Http1Codec } from '../../../wasm/http1.ts';
import type { ActiveCluster } from '../../cluster-manager/active-cluster.ts';
import type { ActiveHost } from '../../cluster-manager/active-host.ts';
import { originOf } from '../../grpc/cluster-connection.ts';
import {
  Http1RestConnection,
  Http2RestConnection,
  type RestConnection,
  type RestListener,
  type RestQuestion,
} from './rest-connection.ts';

export type RestAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly body: Buffer;
      /** Of the body: the same for the same bytes. */
      readonly fingerprint: string;
    }
  | { readonly kind: 'failed'; readonly reason: string };

export interface RestClientDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly codec: Http1Codec;
}

interface HostConnection {
  readonly cluster: ActiveCluster;
  readonly way: RestConnection;
}

/** Hosts in turn are asked over connections that are kept, as long as there are no more than these. */
const MOST_CONNECTIONS = 16;

export class RestClient {
  readonly #deps: RestClientDependencies;
  /** By host; that of the question before last, and so on, first. */
  readonly #connections = new Map<ActiveHost, HostConnection>();
  /** Whose question is under way. */
  #host: ActiveHost | undefined;
  #onAnswer: ((answer: RestAnswer) => void) | undefined;
  /** That of the question under way counts that it is. */
  #asked: ActiveCluster | undefined;
  #pieces: Buffer[] = [];
  /** Made while the answer comes, since a long one would stop other things. */
  #hash = createHash('sha256');
  /** For one that is lost without an answer; undefined when it has been asked again. */
  #askAgain: (() => void) | undefined;
  #endWait = (): void => {};

  constructor(deps: RestClientDependencies) {
    this.#deps = deps;
  }

  /** When nothing is asked. @param timeoutMs for all of it. @param onAnswer told once, unless this is closed before. */
  ask(
    cluster: ActiveCluster,
    host: ActiveHost,
    question: RestQuestion,
    timeoutMs: number,
    onAnswer: (answer: RestAnswer) => void,
  ): void {
    const { stats } = cluster;
    stats.add('upstream_rq_total');
    stats.add('upstream_rq_active');
    this.#pieces = [];
    this.#hash = createHash('sha256');
    this.#asked = cluster;
    this.#onAnswer = onAnswer;
    this.#endWait = this.#deps.clock.after(timeoutMs, () => {
      stats.add('upstream_rq_timeout');
      this.#drop(host);
      this.#tell({ kind: 'failed', reason: `no answer within ${timeoutMs} ms` });
    });
    const target = { address: host.address, authority: utf8Bytes(cluster.name) };
    const askOverSome = (): void => this.#wayTo(cluster, host).ask(target, question);
    this.#host = host;
    this.#askAgain = () => {
      this.#drop(host);
      askOverSome();
    };
    askOverSome();
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    for (const host of [...this.#connections.keys()]) this.#drop(host);
    this.#ended();
  }

  /** What a connection has to say while another host is asked is nothing to anybody. */
  #listenerOf(host: ActiveHost): RestListener {
    return {
      onBytes: (bytes) => {
        if (this.#host === host) this.#onBytes(bytes);
      },
      onEnd: (status) => {
        if (this.#host === host) this.#onEnd(status);
      },
      onBroken: (reason, isUnanswered) => {
        if (this.#host === host) this.#onBroken(reason, isUnanswered);
      },
    };
  }

  #onBytes(bytes: Buffer): void {
    this.#hash.update(bytes);
    this.#pieces.push(Buffer.from(bytes));
  }

  #onEnd(status: number): void {
    const body = Buffer.concat(this.#pieces);
    this.#tell({ kind: 'answered', status, body, fingerprint: this.#hash.digest('base64') });
  }

  #onBroken(reason: string, isUnanswered: boolean): void {
    const askAgain = this.#askAgain;
    this.#askAgain = undefined;
    if (isUnanswered && askAgain !== undefined) askAgain();
    else this.#tell({ kind: 'failed', reason });
  }

  /** Another one where the cluster has been replaced, or speaks otherwise now. */
  #wayTo(cluster: ActiveCluster, host: ActiveHost): RestConnection {
    this.#dropFormer(cluster);
    const known = this.#connections.get(host);
    this.#connections.delete(host);
    const way = known?.way ?? this.#makeWay(cluster, host);
    this.#connections.set(host, { cluster, way });
    const [longestUnused] = this.#connections.keys();
    if (this.#connections.size > MOST_CONNECTIONS) this.#drop(longestUnused!);
    return way;
  }

  /** Those to hosts that are none of the cluster any more. */
  #dropFormer(cluster: ActiveCluster): void {
    const members = new Set(cluster.members());
    for (const [host, connection] of [...this.#connections])
      if (connection.cluster !== cluster || !members.has(host)) this.#drop(host);
  }

  #makeWay(cluster: ActiveCluster, host: ActiveHost): RestConnection {
    const { codec, faults } = this.#deps;
    const origin = originOf(cluster, host);
    const listener = this.#listenerOf(host);
    return cluster.settings.http2?.use === 'always'
      ? new Http2RestConnection(origin, faults, listener)
      : new Http1RestConnection(origin, codec, faults, listener);
  }

  #drop(host: ActiveHost): void {
    this.#connections.get(host)?.way.close();
    this.#connections.delete(host);
  }

  #tell(answer: RestAnswer): void {
    const onAnswer = this.#onAnswer;
    this.#ended();
    onAnswer?.(answer);
  }

  #ended(): void {
    this.#endWait();
    this.#pieces = [];
    this.#askAgain = undefined;
    this.#host = undefined;
    this.#asked?.stats.add('upstream_rq_active', -1);
    this.#asked = undefined;
    this.#onAnswer = undefined;
  }
}
