// RateLimit message → settings of the network ratelimit filter.

import {
  type Conversion,
  type MessageTypes,
  type NetworkFilterManifest,
  parseFormat,
  rejected,
  supported,
  toNumber,
} from '../../../config/index.ts';
import type { FormatSegments } from '../../../snapshot/index.ts';
import { convertRateLimitService } from '../../rate-limit-service-config.ts';
import type { ConnectionDescriptor, NetworkRateLimitSettings } from './settings.ts';

const LIMIT = 'proxy.extensions.filters.network.ratelimit.v3.RateLimit';
const DESCRIPTOR = 'proxy.extensions.common.ratelimit.v3.RateLimitDescriptor';
const OVERRIDE = `${DESCRIPTOR}.RateLimitOverride` as const;
/** As in the filter of requests. */
const MAX_HITS = 1_000_000_000;

export const NETWORK_RATE_LIMIT: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    [LIMIT]: {
      otherwise: rejected(),
      fields: {
        stat_prefix: supported(),
        domain: supported(),
        descriptors: supported(),
        timeout: supported(),
        failure_mode_deny: supported(),
        rate_limit_service: supported(),
      },
    },
    [DESCRIPTOR]: {
      otherwise: rejected(),
      fields: { entries: supported('values may hold command operators'), limit: supported(), hits_addend: supported() },
    },
    [OVERRIDE]: { otherwise: rejected(), fields: { requests_per_unit: supported(), unit: supported() } },
  },
  convert(raw, at, conversion) {
    const message = raw as MessageTypes[typeof LIMIT];
    const service = convertRateLimitService(message, at, conversion);
    const descriptors = message.descriptors.map((descriptor, index) =>
      convertDescriptor(descriptor, `${at}.descriptors[${index}]`, conversion),
    );
    if (service === undefined) return undefined;
    const settings: NetworkRateLimitSettings = {
      service,
      domain: message.domain,
      descriptors,
      deniesFailure: message.failure_mode_deny,
    };
    return {
      name: 'filters.network.ratelimit',
      settings,
      statScope: `ratelimit.${message.stat_prefix}.`,
      counters: ['total', 'ok', 'over_limit', 'error', 'failure_mode_allowed', 'cx_closed'],
      gauges: ['active'],
    };
  },
};

function convertDescriptor(
  { entries, limit, hits_addend: hits }: MessageTypes[typeof DESCRIPTOR],
  at: string,
  conversion: Conversion,
): ConnectionDescriptor {
  const count = hits === null ? null : toNumber(hits.value);
  if (count !== null && count > MAX_HITS) {
    conversion.faults.error(`${at}.hits_addend`, `${count} exceeds the limit ${MAX_HITS}`);
  }
  return {
    entries: entries.map(({ key, value }, index) => ({
      key: Buffer.from(key).toString('latin1'),
      value: formatOf(value, `${at}.entries[${index}].value`, conversion),
    })),
    limit: limit && { requests: limit.requests_per_unit, unit: limit.unit },
    hits: count,
  };
}

function formatOf(text: string, at: string, { faults, environment }: Conversion): FormatSegments {
  const { segments, error } = parseFormat(Buffer.from(text).toString('latin1'), environment);
  if (error !== undefined) faults.error(at, error);
  return segments ?? [];
}
