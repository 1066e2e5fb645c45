// Waiting for what has no event of its own. A test that waits has either succeeded long before the limit or failed:
// the limit is far beyond what a crowded machine needs, so that it never decides by itself.

import { setTimeout as delay } from 'node:timers/promises';

const LIMIT_MS = 60_000;
/** Between two looks at another thread or process: long enough to leave it the processor. */
const POLL_MS = 5;

/** Turns of this thread's event loop, until the condition holds. For what happens in this thread. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const giveUpAt = performance.now() + LIMIT_MS;
  while (!condition()) {
    if (performance.now() > giveUpAt) throw new Error(`never: ${what}`);
    await new Promise(setImmediate);
  }
}

/** Looks again and again, until the value is the expected one. For what happens in another thread or process. */
export async function untilEqual<Value>(
  expected: Value,
  read: () => Value | Promise<Value>,
  what: string,
): Promise<void> {
  let last = await read();
  const giveUpAt = performance.now() + LIMIT_MS;
  while (last !== expected) {
    if (performance.now() > giveUpAt) throw new Error(`${what} is ${last}, expected ${expected}`);
    await delay(POLL_MS);
    last = await read();
  }
}

/**
 * Waits for an event that may never come. @param state what is waited for, and what has come instead, for the message.
 * Whoever gives up waiting need not say so: nothing is kept alive.
 */
export async function within<Value>(awaited: Promise<Value>, state: () => string): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const limit = setTimeout(() => late.reject(new Error(`never: ${state()}`)), LIMIT_MS).unref();
  try {
    return await Promise.race([awaited, late.promise]);
  } finally {
    clearTimeout(limit);
  }
}
