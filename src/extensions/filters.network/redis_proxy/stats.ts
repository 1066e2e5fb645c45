// What redis_proxy counts: redis.<stat_prefix>.*, and with enable_command_stats each command.

import type { Clock } from '../../../base/clock.ts';
import type { FilterCounter, FilterTimes, TerminalFilterContext } from '../../../data-plane/index.ts';
import type { RedisCounter, RedisFault, RedisGauge, RedisSettings } from './settings.ts';

interface CommandStats {
  readonly total: FilterCounter;
  readonly success: FilterCounter;
  readonly error: FilterCounter;
  readonly errorFault: FilterCounter;
  readonly delayFault: FilterCounter;
  readonly latency: FilterTimes;
}

const MICROS = 1000;
const NOTHING = (): void => {};

export class RedisStats {
  readonly #counters: Readonly<Record<RedisCounter | RedisGauge, FilterCounter>>;
  readonly #context: TerminalFilterContext;
  readonly #hasCommands: boolean;
  readonly #timeFactor: number;
  readonly #clock: Clock;
  /** As many as there are names of commands that are supported. */
  readonly #commands = new Map<string, CommandStats>();

  constructor({ counters, gauges, hasCommandStats, timesInMicros }: RedisSettings, context: TerminalFilterContext) {
    this.#context = context;
    this.#clock = context.clock;
    this.#hasCommands = hasCommandStats;
    this.#timeFactor = timesInMicros ? MICROS : 1;
    this.#counters = Object.fromEntries([
      ...counters.map((name) => [name, context.counter(name)]),
      ...gauges.map((name) => [name, context.gauge(name)]),
    ]);
  }

  connectionBegan(): void {
    this.#counters.downstream_cx_total.add(1);
    this.#counters.downstream_cx_active.add(1);
  }

  /** @param unanswered commands. */
  connectionEnded(unanswered: number): void {
    this.#counters.downstream_cx_active.add(-1);
    this.#counters.downstream_rq_active.add(-unanswered);
  }

  received(bytes: number): void {
    this.#counters.downstream_cx_rx_bytes_total.add(bytes);
  }

  sent(bytes: number, answers: number): void {
    this.#counters.downstream_cx_tx_bytes_total.add(bytes);
    this.#counters.downstream_rq_active.add(-answers);
  }

  protocolError(): void {
    this.#counters.downstream_cx_protocol_error.add(1);
    // It gets an answer like a command.
    this.#counters.downstream_rq_active.add(1);
  }

  requestBegan(): void {
    this.#counters.downstream_rq_total.add(1);
    this.#counters.downstream_rq_active.add(1);
  }

  connectionRateLimited(): void {
    this.#counters.connection_rate_limited.add(1);
  }

  faultInjected(command: string, { isError, delayMs }: RedisFault): void {
    if (!this.#hasCommands) return;
    const stats = this.#of(command);
    if (isError) stats.errorFault.add(1);
    if (delayMs > 0) stats.delayFault.add(1);
  }

  invalid(): void {
    this.#counters['splitter.invalid_request'].add(1);
  }

  unsupported(): void {
    this.#counters['splitter.unsupported_command'].add(1);
  }

  /** @returns what is to be told of its end. */
  commandBegan(name: string): (isError: boolean) => void {
    if (!this.#hasCommands) return NOTHING;
    const stats = this.#of(name);
    stats.total.add(1);
    const startMs = this.#clock.monotonicMs();
    return (isError) => {
      (isError ? stats.error : stats.success).add(1);
      stats.latency.record((this.#clock.monotonicMs() - startMs) * this.#timeFactor);
    };
  }

  #of(name: string): CommandStats {
    let stats = this.#commands.get(name);
    if (stats === undefined) {
      const counter = (what: string): FilterCounter => this.#context.namedCounter(`command.${name}.${what}`);
      const latency = this.#context.namedTime(`command.${name}.latency`);
      stats = {
        total: counter('total'),
        success: counter('success'),
        error: counter('error'),
        errorFault: counter('error_fault'),
        delayFault: counter('delay_fault'),
        latency,
      };
      this.#commands.set(name, stats);
    }
    return stats;
  }
}
