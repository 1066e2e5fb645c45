// Which traces are reported, where a sampler decides it and not the connection manager.

import type { ForeignPlace } from '../trace-parent.ts';
import type { SamplerSettings } from './settings.ts';

/** Of the half of an identifier that is random by the rules: as many digits as a number holds exactly. */
const [RANDOM_START, RANDOM_DIGITS] = [16, 13];

/**
 * @param parent what whoever sent the request says of the trace. @param byDefault what was decided here, without a sampler.
 * @param traceId 32 digits.
 */
export function isSampledBy(
  sampler: SamplerSettings,
  parent: ForeignPlace | undefined,
  byDefault: boolean,
  traceId: string,
): boolean {
  if (sampler === null) return parent?.isSampled ?? byDefault;
  switch (sampler.kind) {
    case 'always-on':
      return true;
    case 'ratio': {
      const drawn = Number.parseInt(traceId.slice(RANDOM_START, RANDOM_START + RANDOM_DIGITS), 16);
      const { numerator, denominator } = sampler.share;
      return drawn < (numerator / denominator) * 16 ** RANDOM_DIGITS;
    }
    case 'parent-based':
      return parent?.isSampled ?? isSampledBy(sampler.root, undefined, byDefault, traceId);
  }
}
