// TokenBucket messages → buckets that all workers share.

import { systemMonotonicMs } from '../../base/clock.ts';
import { bucketState, MAX_TOKENS, type TokenBucketSettings } from '../../base/token-bucket.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import type { FaultSink } from './fault-sink.ts';
import { durationMsOr, valueOr } from './units.ts';

const TOKENS = 'proxy.type.v3.TokenBucket';
/** As in the reference. */
const LEAST_INTERVAL_MS = 50;

type TokenBucketMessage = MessageTypes[typeof TOKENS];

/** @param message null where a field rule has been broken. */
export function convertTokenBucket(
  message: TokenBucketMessage | null,
  at: string,
  faults: FaultSink,
): TokenBucketSettings {
  const fillIntervalMs = durationMsOr(message?.fill_interval ?? null, LEAST_INTERVAL_MS);
  if (fillIntervalMs < LEAST_INTERVAL_MS) {
    faults.error(`${at}.fill_interval`, `${fillIntervalMs} ms is less than ${LEAST_INTERVAL_MS} ms`);
  }
  const maxTokens = message?.max_tokens ?? 1;
  if (maxTokens > MAX_TOKENS) faults.error(`${at}.max_tokens`, `${maxTokens} exceeds the limit ${MAX_TOKENS}`);
  return {
    maxTokens,
    tokensPerFill: valueOr(message?.tokens_per_fill, 1),
    fillIntervalMs,
    state: bucketState(maxTokens, systemMonotonicMs()),
  };
}
