// The access loggers of extensions in one worker: one for all logs of the same settings, since each may keep a stream to its
// service. It stays until the last log that holds it has let go: those of a listener and of its successor go on in the same one.

import { serialize } from 'node:v8';
import type { Clock } from '../../base/clock.ts';
import type { ReportedLogSettings } from '../../snapshot/index.ts';
import type { ReportContext } from '../tracing/tracer.ts';
import type { AccessLogger, AccessLoggerRegistry } from './access-logger.ts';

/** What the end waits for services. */
const LAST_ANSWERS_MS = 1000;

export interface HeldLogger {
  readonly logger: AccessLogger;
  readonly key: string;
  holders: number;
}

export class AccessLoggers {
  readonly #registry: AccessLoggerRegistry;
  readonly #clock: Clock;
  readonly #held = new Map<string, HeldLogger>();
  /** Those that nobody holds, while they send what they have. */
  readonly #closing = new Set<Promise<void>>();

  constructor(registry: AccessLoggerRegistry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
  }

  /** The logger of settings, opened with its first holder; each of them calls `release` once. */
  hold({ name, settings }: ReportedLogSettings['logger'], context: () => ReportContext): HeldLogger {
    const key = `${name}\n${serialize(settings).toString('latin1')}`;
    const held = this.#held.get(key) ?? { logger: this.#registry[name]!.open(settings, context()), key, holders: 0 };
    this.#held.set(key, held);
    held.holders += 1;
    return held;
  }

  /** With its last holder a logger is closed. */
  release(held: HeldLogger): void {
    held.holders -= 1;
    if (held.holders > 0 || this.#held.get(held.key) !== held) return;
    this.#held.delete(held.key);
    this.#close(held.logger);
  }

  /** Resolves when all have told what they had, or a second has passed. Whoever holds one still need not release it. */
  async close(): Promise<void> {
    const held = [...this.#held.values()];
    this.#held.clear();
    for (const { logger } of held) this.#close(logger);
    if (this.#closing.size === 0) return;
    let callOff = (): void => {};
    const isLate = new Promise<void>((resolve) => {
      callOff = this.#clock.after(LAST_ANSWERS_MS, resolve);
    });
    await Promise.race([Promise.all(this.#closing), isLate]);
    callOff();
  }

  #close(logger: AccessLogger): void {
    const closed = logger.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
