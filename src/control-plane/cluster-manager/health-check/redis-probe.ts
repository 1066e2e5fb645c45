// A check of a server of Redis: it answers a PING, or does not have a key that stands for maintenance. Main thread.

import type { Socket } from 'node:net';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import { integerOf, isRefusal, lineOf, RespError, RespReader, request, requestToAuth } from '../../../base/resp.ts';
import type { RedisProbeSettings } from '../../../snapshot/index.ts';
import { broken, type Probe, type ProbeOrigin, type ProbeResult, type ProbeTarget, passed, wrong } from './probe.ts';
import { type ConnectionListener, ProbeConnection } from './probe-connection.ts';

/** No answer to a check is as long. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Of what a server says that is shown. */
const MAX_SHOWN = 100;

export class RedisProbe implements Probe, ConnectionListener {
  readonly #settings: RedisProbeSettings;
  readonly #reusesConnection: boolean;
  readonly #connection: ProbeConnection;
  readonly #question: Buffer;
  /** Null where servers ask for none. */
  readonly #greeting: Buffer | null;
  #reader = new RespReader(() => MAX_ANSWER_BYTES);
  /** Who has been greeted before: a connection that is kept is not greeted again. */
  #greeted: Socket | null = null;
  #awaitsGreeting = false;
  #onResult: ((result: ProbeResult) => void) | undefined;

  constructor(
    settings: RedisProbeSettings,
    reusesConnection: boolean,
    origin: ProbeOrigin | undefined,
    faults: FaultBoundary,
  ) {
    const { key, credentials } = settings;
    this.#settings = settings;
    this.#reusesConnection = reusesConnection;
    this.#question = request(key === '' ? ['PING'] : ['EXISTS', key]);
    this.#greeting = credentials === undefined ? null : requestToAuth(credentials);
    this.#connection = new ProbeConnection(origin, [], faults, this);
  }

  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void {
    this.#onResult = onResult;
    this.#connection.open(target);
  }

  abort(): void {
    this.#onResult = undefined;
    this.#connection.close();
  }

  onOpen(socket: Socket): void {
    this.#reader = new RespReader(() => MAX_ANSWER_BYTES);
    this.#awaitsGreeting = this.#greeting !== null && this.#greeted !== socket;
    this.#greeted = socket;
    if (this.#awaitsGreeting) socket.write(this.#greeting!);
    socket.write(this.#question);
  }

  onBytes(bytes: Buffer): void {
    this.#reader.push(bytes);
    try {
      for (let answer = this.#reader.next(); answer !== null; answer = this.#reader.next()) {
        const result = this.#judge(answer);
        if (result === undefined) continue;
        this.#finish(result);
        return;
      }
    } catch (error) {
      if (!(error instanceof RespError)) throw error;
      this.#connection.close();
      this.#finish(broken('not an answer of Redis'));
    }
  }

  onLost(reason: string | undefined): void {
    this.#finish(broken(reason ?? 'closed before the answer'));
  }

  /** @returns undefined when the answer of interest is still to come. */
  #judge(answer: Buffer): ProbeResult | undefined {
    if (this.#awaitsGreeting) {
      this.#awaitsGreeting = false;
      return isRefusal(answer) ? this.#refused(answer) : undefined;
    }
    const { key } = this.#settings;
    if (key !== '') {
      const count = integerOf(answer);
      if (count === 0) return passed('has no key of maintenance');
      return count === undefined ? this.#refused(answer) : wrong(`has the key ${JSON.stringify(key)}`);
    }
    return lineOf(answer) === '+PONG' ? passed('answered as expected') : this.#refused(answer);
  }

  /** What follows on this connection is no answer to the next check. */
  #refused(answer: Buffer): ProbeResult {
    this.#connection.close();
    return wrong(`answered ${JSON.stringify(lineOf(answer).slice(0, MAX_SHOWN))}`);
  }

  #finish(result: ProbeResult): void {
    if (this.#reusesConnection) this.#connection.keep();
    else this.#connection.close();
    const onResult = this.#onResult;
    this.#onResult = undefined;
    // An aborted check has no connection that could bring it here.
    onResult!(result);
  }
}
