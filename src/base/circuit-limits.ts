// Limits of circuit breakers as the runtime has them: main shows them, workers hold to them.

import type { RuntimeValues } from './runtime.ts';
import { CIRCUIT_BREAKER_KEYS, RETRY_BUDGET_KEYS } from './runtime-values.ts';

type LimitName = keyof typeof CIRCUIT_BREAKER_KEYS;

type ConfiguredLimits = Readonly<Partial<Record<LimitName, number>>> & { readonly retryBudget?: RetryBudget };

/** Retries that may run: a share of the requests that run or wait, and at least so many. */
export interface RetryBudget {
  readonly percent: number;
  readonly minConcurrency: number;
}

/** Of what an operator leaves open. */
export const DEFAULT_RETRY_BUDGET: RetryBudget = { percent: 20, minConcurrency: 3 };

/** @param running requests of the priority that run or wait. */
export function retryLimit(
  { maxRetries, retryBudget }: { readonly maxRetries: number; readonly retryBudget?: RetryBudget },
  running: number,
): number {
  if (retryBudget === undefined) return maxRetries;
  return Math.max(Math.trunc((retryBudget.percent / 100) * running), retryBudget.minConcurrency);
}

/** @param limits as configured; those without a key of the runtime stay as they are. */
export function circuitLimits<Limits extends ConfiguredLimits>(
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
  const changed = { ...found, ...retryBudget(values, prefix, limits.retryBudget) };
  return Object.keys(changed).length === 0 ? limits : { ...limits, ...changed };
}

/** Either key makes a budget of what was none. */
function retryBudget(
  values: RuntimeValues,
  prefix: string,
  configured: RetryBudget | undefined,
): { readonly retryBudget?: RetryBudget } {
  const percent = values.number(prefix + RETRY_BUDGET_KEYS.percent);
  const minConcurrency = values.integer(prefix + RETRY_BUDGET_KEYS.minConcurrency);
  if (percent === undefined && minConcurrency === undefined) return {};
  const otherwise = configured ?? DEFAULT_RETRY_BUDGET;
  return {
    retryBudget: {
      percent: percent ?? otherwise.percent,
      minConcurrency: minConcurrency ?? otherwise.minConcurrency,
    },
  };
}

const UINT32_MAX = 2 ** 32 - 1;
