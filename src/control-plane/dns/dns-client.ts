// Asks a list of servers for the addresses of names: in order, over UDP and, for an answer that was cut off, over TCP,
// or over TCP alone. A server that is silent is asked again after the others, one that refused or answered nonsense is
// not. Main thread. Owns the sockets of the questions under way.

import { randomInt } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { DnsAnswer } from './dns-resolver.ts';
import { type DnsServerAddress, type DnsTransport, type ExchangeOutcome, startExchange } from './exchange.ts';
import { type DnsQuestion, FORMAT_ERROR, type RecordType } from './message.ts';

export interface DnsServerList {
  readonly servers: readonly DnsServerAddress[];
  readonly useTcp: boolean;
  /** Begin with another server each time. */
  readonly rotate: boolean;
}

export interface DnsClientOptions {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** Asked for with each question: the system's list may change. */
  readonly servers: () => Promise<DnsServerList>;
  /** A server that has not answered by then is silent. */
  readonly timeoutMs: number;
  /** Questions to a silent server before its silence is a failure. */
  readonly tries: number;
  /** Of answers over UDP, as servers are told; nothing is said without it. */
  readonly payloadBytes?: number;
}

type Outcome = ExchangeOutcome | { readonly kind: 'silence'; readonly reason: string } | { readonly kind: 'cancelled' };

/** Questions under way; each has a socket. */
const MAX_RUNNING = 256;
const ID_COUNT = 0x1_0000;
const SILENCE: Outcome = { kind: 'silence', reason: 'no answer in time' };
const CANCELLED: DnsAnswer = { kind: 'failure', reason: 'cancelled' };

export class DnsClient {
  readonly #options: DnsClientOptions;
  /** Ends a question under way. */
  readonly #running = new Set<(outcome: Outcome) => void>();
  /** Questions that wait for their turn. */
  #waiting: { readonly begin: () => void; readonly cancel: () => void }[] = [];
  #rotation = 0;
  /** For good: a lookup that has still to read a file, or to ask for the other family, goes no further either. */
  #isCancelled = false;

  constructor(options: DnsClientOptions) {
    this.#options = options;
  }

  /** @param name a valid name in ASCII, without a final dot. */
  async query(name: string, type: RecordType): Promise<DnsAnswer> {
    const { servers, useTcp, rotate } = await this.#options.servers();
    const start = rotate ? this.#rotation++ % Math.max(1, servers.length) : 0;
    let asked = [...servers.slice(start), ...servers.slice(0, start)];
    let reason = 'there is no DNS server';
    for (let round = 0; round < this.#options.tries && asked.length > 0; round++) {
      const silent: DnsServerAddress[] = [];
      for (const server of asked) {
        if (this.#isCancelled) return CANCELLED;
        const outcome = await this.#ask(server, name, type, useTcp);
        if (outcome.kind === 'addresses') return { kind: 'success', addresses: outcome.addresses };
        if (outcome.kind === 'cancelled') return CANCELLED;
        if (outcome.kind === 'silence') silent.push(server);
        // An answer that was cut off has been asked for again.
        if (outcome.kind !== 'truncated') reason = outcome.reason;
      }
      asked = silent;
    }
    return { kind: 'failure', reason };
  }

  /** Ends all questions; they fail, as do those to come. */
  cancel(): void {
    this.#isCancelled = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { cancel } of waiting) cancel();
    for (const end of [...this.#running]) end({ kind: 'cancelled' });
  }

  async #ask(server: DnsServerAddress, name: string, type: RecordType, useTcp: boolean): Promise<Outcome> {
    const { payloadBytes = 0 } = this.#options;
    const outcome = await this.#askOnce(server, { id: randomInt(ID_COUNT), name, type, payloadBytes }, useTcp);
    // It may not know EDNS (RFC 6891 section 7).
    if (payloadBytes === 0 || outcome.kind !== 'refusal' || outcome.reason !== FORMAT_ERROR) return outcome;
    return await this.#askOnce(server, { id: randomInt(ID_COUNT), name, type, payloadBytes: 0 }, useTcp);
  }

  async #askOnce(server: DnsServerAddress, question: DnsQuestion, useTcp: boolean): Promise<Outcome> {
    const outcome = await this.#exchange(useTcp ? 'tcp' : 'udp', server, question);
    if (outcome.kind !== 'truncated') return outcome;
    const second = await this.#exchange('tcp', server, question);
    if (second.kind !== 'refusal' && second.kind !== 'silence') return second;
    // A server that answers over UDP alone is often one behind a firewall that lets no TCP pass.
    return { ...second, reason: `an answer cut off over UDP, and ${second.reason} over TCP` };
  }

  #exchange(transport: DnsTransport, server: DnsServerAddress, question: DnsQuestion): Promise<Outcome> {
    return new Promise((resolve) => {
      const begin = (): void => {
        const end = (outcome: Outcome): void => {
          this.#running.delete(end);
          cancelTimer();
          exchange.close();
          resolve(outcome);
          // After a cancellation nobody waits.
          this.#waiting.shift()?.begin();
        };
        this.#running.add(end);
        const exchange = startExchange(transport, server, question, this.#options.faults, end);
        const cancelTimer = this.#options.clock.after(this.#options.timeoutMs, () => end(SILENCE));
      };
      if (this.#running.size < MAX_RUNNING) begin();
      else this.#waiting.push({ begin, cancel: () => resolve({ kind: 'cancelled' }) });
    });
  }
}
