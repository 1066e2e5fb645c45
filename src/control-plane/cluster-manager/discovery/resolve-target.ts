// One name of a STRICT_DNS cluster and its timer: looks up, reports, waits, looks up again.
//
//   start ──► LOOKING UP ──answer──► WAITING ──refresh rate, TTL or back-off──► LOOKING UP …
//                  └──────stop───────────┴──────► STOPPED

import { isIP } from 'node:net';
import { JitteredBackoff } from '../../../base/backoff.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { DnsDiscoverySettings, DnsTarget } from '../../../snapshot/index.ts';
import type { DnsAddress, DnsAnswer, DnsResolver } from '../../dns/dns-resolver.ts';
import type { DiscoveryTools } from './discovery.ts';

const NO_ADDRESS: DnsAnswer = { kind: 'failure', reason: 'the name has no address' };

export interface ResolveTargetListener {
  /** Whose names they are, for log lines. */
  readonly clusterName: string;
  onLookup(): void;
  onAnswer(target: ResolveTarget, answer: DnsAnswer): void;
}

export class ResolveTarget {
  readonly target: DnsTarget;
  readonly #settings: DnsDiscoverySettings;
  readonly #tools: DiscoveryTools;
  readonly #resolver: Pick<DnsResolver, 'lookup'>;
  readonly #listener: ResolveTargetListener;
  readonly #backoff: JitteredBackoff | undefined;
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;
  #hasFailed = false;

  constructor(
    target: DnsTarget,
    settings: DnsDiscoverySettings,
    tools: DiscoveryTools,
    resolver: Pick<DnsResolver, 'lookup'>,
    listener: ResolveTargetListener,
  ) {
    this.target = target;
    this.#settings = settings;
    this.#tools = tools;
    this.#resolver = resolver;
    this.#listener = listener;
    const { failureRefresh } = settings;
    this.#backoff = failureRefresh && new JitteredBackoff(tools.random, failureRefresh.baseMs, failureRefresh.maxMs);
  }

  start(): void {
    this.#tools.faults.run('a DNS lookup', () => this.#lookUp());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  async #lookUp(): Promise<void> {
    const { name } = this.target;
    if (isIP(name) !== 0) {
      this.#listener.onLookup();
      // An address is its own answer, for ever.
      this.#listener.onAnswer(this, { kind: 'success', addresses: [{ ip: name, ttlSeconds: 0 }] });
      return;
    }
    // Until the answer says otherwise: whatever fails here, another lookup follows.
    let waitMs = this.#settings.refreshRateMs;
    try {
      this.#listener.onLookup();
      const answer = this.#judge(await this.#ask(name));
      if (this.#isStopped) return;
      waitMs = this.#waitMs(answer);
      this.#logChange(answer);
      this.#listener.onAnswer(this, answer);
    } finally {
      if (!this.#isStopped) this.#cancelTimer = this.#tools.clock.after(waitMs, () => this.#lookUp());
    }
  }

  /** A lookup that throws is a failed one: the next must follow it. */
  async #ask(name: string): Promise<DnsAnswer> {
    try {
      return await this.#resolver.lookup(name, this.#settings.lookupFamily);
    } catch (error) {
      return { kind: 'failure', reason: `${errorMessage(error)} for ${name}` };
    }
  }

  /** A member that is never without an address learns nothing from an answer without one. */
  #judge(answer: DnsAnswer): DnsAnswer {
    const isEmpty = answer.kind === 'success' && answer.addresses.length === 0;
    return isEmpty && this.#settings.kind === 'logical-dns' ? NO_ADDRESS : answer;
  }

  #waitMs(answer: DnsAnswer): number {
    const { refreshRateMs, jitterMs } = this.#settings;
    const jitter = jitterMs > 0 ? this.#tools.random.u32() % jitterMs : 0;
    if (answer.kind === 'failure') return (this.#backoff?.nextMs() ?? refreshRateMs) + jitter;
    this.#backoff?.reset();
    return (this.#timeToLiveMs(answer.addresses) || refreshRateMs) + jitter;
  }

  /** Of the record that expires first; 0 when that does not matter or is not known. */
  #timeToLiveMs(addresses: readonly DnsAddress[]): number {
    if (!this.#settings.respectTtl || addresses.length === 0) return 0;
    return Math.min(...addresses.map(({ ttlSeconds }) => ttlSeconds)) * 1000;
  }

  /** A name that stays unknown is worth one line, not one per lookup. */
  #logChange(answer: DnsAnswer): void {
    const { log } = this.#tools;
    const lookup = `DNS lookup of ${this.target.name} for cluster ${this.#listener.clusterName}`;
    if (answer.kind === 'failure' && !this.#hasFailed) {
      log.warning(`${lookup} failed, its known hosts stay: ${answer.reason}`);
    } else if (answer.kind === 'success' && this.#hasFailed) {
      log.info(`${lookup} works again`);
    }
    this.#hasFailed = answer.kind === 'failure';
  }
}
