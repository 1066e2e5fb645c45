// Limits of circuit breakers as the runtime has them: main shows them, workers hold to them.

import type { RuntimeValues } from './runtime.ts';
import { CIRCUIT_BREAKER_KEYS } from './runtime-values.ts';

type LimitName = keyof typeof CIRCUIT_BREAKER_KEYS;

/** @param limits as configured; those without a key of the runtime stay as they are. */
export function circuitLimits<Limits extends Readonly<Partial<Record<LimitName, number>>>>(
  values: RuntimeValues,
  cluster: string,
  priority: 'default' | 'high',
  limits: Limits,
): Limits {
  if (values.texts.size === 0) return limits;
  const prefix = `circuit_breakers.${cluster}.${priority}.`;
  const found: Partial<Record<LimitName, number>> = {};
  for (const name of Object.keys(CIRCUIT_BREAKER_KEYS) as LimitName[]) {
    const limit = values.integer(prefix + CIRCUIT_BREAKER_KEYS[name]);
    if (limit !== undefined) found[name] = Math.min(limit, UINT32_MAX);
  }
  return Object.keys(found).length === 0 ? limits : { ...limits, ...found };
}

const UINT32_MAX = 2 ** 32 - 1;
