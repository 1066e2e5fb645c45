// Shares of requests that are traced, which the runtime may override.

import type { RuntimeDerived, RuntimeValues } from '../../base/runtime.ts';
import type { Fraction, TraceSampling } from '../../snapshot/index.ts';

export interface SamplingShares {
  readonly client: RuntimeDerived<Fraction>;
  readonly random: RuntimeDerived<Fraction>;
  readonly overall: RuntimeDerived<Fraction>;
}

export function sharesOf({ client, random, overall }: TraceSampling, runtime: RuntimeValues): SamplingShares {
  return { client: runtime.share(client), random: runtime.share(random), overall: runtime.share(overall) };
}
