// A check by HTTP/2: one request, and what its answer says. Main thread.

import type { IncomingHttpHeaders } from 'node:http2';
import type { HttpProbeSettings } from '../../../snapshot/index.ts';
import { checkFields } from './check-fields.ts';
import type { AnswerFacts } from './http-answer.ts';
import { HttpJudge } from './http-judge.ts';
import type { HttpProbeTools } from './http-probe.ts';
import { Http2Connection, type Http2Listener } from './http2-connection.ts';
import { PayloadMatch } from './payload-match.ts';
import { broken, type Probe, type ProbeOrigin, type ProbeResult, type ProbeTarget } from './probe.ts';

export interface Http2ProbeTools extends Pick<HttpProbeTools, 'faults' | 'verifiesService'> {
  /** First part of the names of the proxy's own headers, without its final '-'. */
  readonly headerPrefix: string;
}

export class Http2Probe implements Probe, Http2Listener {
  readonly #settings: HttpProbeSettings;
  readonly #reusesConnection: boolean;
  readonly #headerPrefix: string;
  readonly #connection: Http2Connection;
  readonly #judge: HttpJudge;
  #facts: AnswerFacts | undefined;
  #match = new PayloadMatch([]);
  #unmatchedBytes = 0;
  #onResult: ((result: ProbeResult) => void) | undefined;

  constructor(
    settings: HttpProbeSettings,
    reusesConnection: boolean,
    origin: ProbeOrigin | undefined,
    { faults, verifiesService, headerPrefix }: Http2ProbeTools,
  ) {
    this.#settings = settings;
    this.#reusesConnection = reusesConnection;
    this.#headerPrefix = headerPrefix;
    this.#connection = new Http2Connection(origin, faults, this);
    this.#judge = new HttpJudge(settings, verifiesService);
  }

  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void {
    const { method, path, body, receive, responseBufferBytes } = this.#settings;
    this.#onResult = onResult;
    this.#facts = undefined;
    this.#match = new PayloadMatch(receive);
    this.#unmatchedBytes = responseBufferBytes;
    this.#connection.ask(target, { method, path, body, fields: checkFields(this.#settings, target.authority, body) });
  }

  abort(): void {
    this.#onResult = undefined;
    this.#connection.close();
  }

  onHead(status: number, headers: IncomingHttpHeaders): void {
    const own = (name: string): string | undefined => {
      const value = headers[`${this.#headerPrefix}-${name}`];
      return Array.isArray(value) ? value[0] : value;
    };
    this.#facts = {
      status,
      isDegraded: own('degraded') !== undefined,
      isImmediateFailure: own('immediate-health-check-fail') !== undefined,
      cluster: own('upstream-healthchecked-cluster'),
    };
  }

  /** Only the beginning of a body is looked at. */
  onBytes(bytes: Buffer): void {
    const looked = bytes.subarray(0, this.#unmatchedBytes);
    this.#unmatchedBytes -= looked.length;
    this.#match.read(looked);
  }

  onTrailers(): void {}

  onEnd(): void {
    if (!this.#reusesConnection) this.#connection.close();
    // Before its end an answer has a head.
    this.#tell(this.#judge.judge(this.#facts!, this.#match));
  }

  onBroken(reason: string): void {
    this.#connection.close();
    this.#tell(broken(reason));
  }

  #tell(result: ProbeResult): void {
    const onResult = this.#onResult;
    this.#onResult = undefined;
    // An aborted check has no connection that could bring it here.
    onResult!(result);
  }
}
