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
  readonly host: ActiveHost;
  readonly way: RestConnection;
}

export class RestClient implements RestListener {
  readonly #deps: RestClientDependencies;
  #connection: HostConnection | undefined;
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
      this.#drop();
      this.#tell({ kind: 'failed', reason: `no answer within ${timeoutMs} ms` });
    });
    const target = { address: host.address, authority: utf8Bytes(cluster.name) };
    const askOverSome = (): void => this.#wayTo(cluster, host).ask(target, question);
    this.#askAgain = () => {
      this.#drop();
      askOverSome();
    };
    askOverSome();
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    this.#drop();
    this.#ended();
  }

  onBytes(bytes: Buffer): void {
    this.#hash.update(bytes);
    this.#pieces.push(Buffer.from(bytes));
  }

  onEnd(status: number): void {
    const body = Buffer.concat(this.#pieces);
    this.#tell({ kind: 'answered', status, body, fingerprint: this.#hash.digest('base64') });
  }

  onBroken(reason: string, isUnanswered: boolean): void {
    const askAgain = this.#askAgain;
    this.#askAgain = undefined;
    if (isUnanswered && askAgain !== undefined) askAgain();
    else this.#tell({ kind: 'failed', reason });
  }

  /** Another one where the cluster has been replaced, or speaks otherwise now. */
  #wayTo(cluster: ActiveCluster, host: ActiveHost): RestConnection {
    const known = this.#connection;
    if (known !== undefined && known.cluster === cluster && known.host === host) return known.way;
    this.#drop();
    const { codec, faults } = this.#deps;
    const origin = originOf(cluster, host);
    const way =
      cluster.settings.http2?.use === 'always'
        ? new Http2RestConnection(origin, faults, this)
        : new Http1RestConnection(origin, codec, faults, this);
    this.#connection = { cluster, host, way };
    return way;
  }

  #drop(): void {
    this.#connection?.way.close();
    this.#connection = undefined;
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
    this.#asked?.stats.add('upstream_rq_active', -1);
    this.#asked = undefined;
    this.#onAnswer = undefined;
  }
}
