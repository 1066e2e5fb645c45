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
  const changed = values.overriding(prefix, CIRCUIT_BREAKER_KEYS, limits);
  const budget = retryBudget(values, prefix, limits.retryBudget);
  return budget === undefined ? changed : { ...changed, retryBudget: budget };
}

/** Either key makes a budget of what was none; undefined without them. */
function retryBudget(
  values: RuntimeValues,
  prefix: string,
  configured: RetryBudget = DEFAULT_RETRY_BUDGET,
): RetryBudget | undefined {
  const percent = values.number(prefix + RETRY_BUDGET_KEYS.percent);
  const minConcurrency = values.integer(prefix + RETRY_BUDGET_KEYS.minConcurrency);
  if (percent === undefined && minConcurrency === undefined) return undefined;
  return {
    percent: percent ?? configured.percent,
    minConcurrency: minConcurrency ?? configured.minConcurrency,
  };
}
