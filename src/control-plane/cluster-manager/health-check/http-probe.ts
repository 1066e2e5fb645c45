// A check by HTTP/1: one request, and what its answer says. Main thread.

import type { Socket } from 'node:net';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { HttpProbeSettings } from '../../../snapshot/index.ts';
import { type Http1Codec, Method } from '../../../wasm/http1.ts';
import { checkFields } from './check-fields.ts';
import { type AnswerState, HttpAnswer } from './http-answer.ts';
import { HttpJudge } from './http-judge.ts';
import { PayloadMatch } from './payload-match.ts';
import { broken, type Probe, type ProbeOrigin, type ProbeResult, type ProbeTarget } from './probe.ts';
import { type ConnectionListener, ProbeConnection } from './probe-connection.ts';

export interface HttpProbeTools {
  readonly codec: Http1Codec;
  readonly faults: FaultBoundary;
  /** Asked before a check looks at the name of the service; counts that it does. */
  readonly verifiesService: () => boolean;
}

export class HttpProbe implements Probe, ConnectionListener {
  readonly #settings: HttpProbeSettings;
  readonly #reusesConnection: boolean;
  readonly #tools: HttpProbeTools;
  readonly #connection: ProbeConnection;
  readonly #judge: HttpJudge;
  #request: Buffer = Buffer.alloc(0);
  #authority: string | undefined;
  #answer: HttpAnswer | undefined;
  #match = new PayloadMatch([]);
  #unmatchedBytes = 0;
  #onResult: ((result: ProbeResult) => void) | undefined;

  constructor(
    settings: HttpProbeSettings,
    reusesConnection: boolean,
    origin: ProbeOrigin | undefined,
    tools: HttpProbeTools,
  ) {
    this.#settings = settings;
    this.#reusesConnection = reusesConnection;
    this.#tools = tools;
    this.#connection = new ProbeConnection(origin, ['http/1.1'], tools.faults, this);
    this.#judge = new HttpJudge(settings, tools.verifiesService);
  }

  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void {
    this.#onResult = onResult;
    if (target.authority !== this.#authority) {
      this.#authority = target.authority;
      this.#request = writeCheck(this.#settings, target.authority, this.#reusesConnection);
    }
    this.#connection.open(target);
  }

  abort(): void {
    this.#onResult = undefined;
    this.#connection.close();
  }

  onOpen(socket: Socket): void {
    const { method, receive, responseBufferBytes } = this.#settings;
    this.#match = new PayloadMatch(receive);
    this.#unmatchedBytes = responseBufferBytes;
    this.#answer = new HttpAnswer(this.#tools.codec, Method[method], (bytes) => this.#onBody(bytes));
    socket.write(this.#request);
  }

  onBytes(bytes: Buffer): void {
    this.#proceed(this.#answer!.read(bytes));
  }

  onLost(reason: string | undefined): void {
    if (reason !== undefined) this.#proceed({ kind: 'broken', reason });
    // The peer can only end what has been opened.
    else this.#proceed(this.#answer!.end());
  }

  /** Only the beginning of a body is looked at. */
  #onBody(bytes: Buffer): void {
    const looked = bytes.subarray(0, this.#unmatchedBytes);
    this.#unmatchedBytes -= looked.length;
    this.#match.read(looked);
  }

  #proceed(state: AnswerState): void {
    if (state.kind === 'reading') return;
    const result =
      state.kind === 'broken' ? broken(state.reason) : this.#judge.judge(this.#answer!.facts!, this.#match);
    if (state.kind === 'complete' && state.isReusable && this.#reusesConnection) this.#connection.keep();
    else this.#connection.close();
    const onResult = this.#onResult;
    this.#onResult = undefined;
    this.#answer = undefined;
    // An aborted check has no connection that could bring it here.
    onResult!(result);
  }
}

function writeCheck(settings: HttpProbeSettings, authority: string, reusesConnection: boolean): Buffer {
  const { method, path, body } = settings;
  const fields = checkFields(settings, authority, body, reusesConnection ? [] : [['connection', 'close']]);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), body]);
}
