// How long a retry waits: by chance, from a range that grows, so that those who failed together do not come back
// together; or as long as the upstream has asked for.

import type { RuntimeValues } from '../../base/runtime.ts';
import { BASE_RETRY_BACKOFF } from '../../base/runtime-values.ts';
import type { BackOffSettings, RateLimitedBackOffSettings } from '../../snapshot/index.ts';
import type { ResponseHead } from '../../wasm/http1.ts';

/** Where neither the policy nor the runtime names a base. */
const DEFAULT_BASE_MS = 25;
const DEFAULT_MAX_FACTOR = 10;
/** The shortest wait that an upstream can ask for. */
const MIN_REQUESTED_MS = 1;
const SECONDS = /^\d{1,12}$/;

/** Of policies that name none. */
export function defaultBackOff(runtime: RuntimeValues): BackOffSettings {
  const baseMs = Math.max(1, runtime.integer(BASE_RETRY_BACKOFF) ?? DEFAULT_BASE_MS);
  return { baseMs, maxMs: baseMs * DEFAULT_MAX_FACTOR };
}

/**
 * Milliseconds before the retry of this number, from 1: below (2^number - 1) times the base, and at most the longest.
 * @param random an unsigned number of 32 bits.
 */
export function backOffMs({ baseMs, maxMs }: BackOffSettings, number: number, random: number): number {
  return Math.min(random % ((2 ** number - 1) * baseMs), maxMs);
}

/** What a response asks for; 0 for nothing, or for more than is obeyed. @param wallMs the time of day. */
export function requestedBackOffMs(
  head: ResponseHead,
  { headers, maxMs }: RateLimitedBackOffSettings,
  wallMs: number,
): number {
  for (const { name, format } of headers) {
    const text = head.headerByName(name);
    if (text === undefined || !SECONDS.test(text)) continue;
    const ms = Number(text) * 1000 - (format === 'unix-timestamp' ? wallMs : 0);
    if (ms > MIN_REQUESTED_MS && ms <= maxMs) return ms;
  }
  return 0;
}
