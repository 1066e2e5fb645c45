// HealthCheck message → settings of the health check filter.

import {
  type Conversion,
  convertHeaderMatchers,
  durationMsOr,
  type HealthCheckFilterMessage,
  type HttpFilterManifest,
  rejected,
  supported,
  valueOr,
} from '../../../config/index.ts';
import type { HeaderMatch, HttpFilterSettings } from '../../../snapshot/index.ts';
import type { HealthCheckFilterSettings } from './settings.ts';

export const HEALTH_CHECK: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.health_check.v3.HealthCheck': {
      otherwise: rejected(),
      fields: {
        pass_through_mode: supported(),
        endpoint: supported('an exact match of the path'),
        cache_time: supported('each worker has a cache of its own'),
        cluster_min_healthy_percentages: supported(),
        headers: supported(),
      },
    },
  },
  convert: convertHealthCheckFilter,
};

function convertHealthCheckFilter(message: object, at: string, conversion: Conversion): HttpFilterSettings {
  const filter = message as HealthCheckFilterMessage;
  const isPassThrough = valueOr(filter.pass_through_mode, false);
  const clusters = Object.entries(filter.cluster_min_healthy_percentages);
  checkMode(filter, at, conversion);
  for (const [name] of clusters) {
    conversion.clusters.checkReference(name, `${at}.cluster_min_healthy_percentages["${name}"]`, conversion.faults);
  }
  const settings: HealthCheckFilterSettings = {
    headers: [
      ...pathMatch(filter.endpoint),
      ...convertHeaderMatchers(filter.headers, `${at}.headers`, conversion.faults),
    ],
    isPassThrough,
    cacheTimeMs: durationMsOr(filter.cache_time, 0),
    clusters: clusters.map(([name, { value }]) => ({ name, minHealthyPercent: value })),
    localCluster: conversion.localCluster ?? '',
  };
  return { name: 'filters.http.health_check', settings };
}

function checkMode(filter: HealthCheckFilterMessage, at: string, { faults }: Conversion): void {
  const isPassThrough = valueOr(filter.pass_through_mode, false);
  if (!isPassThrough && filter.cache_time !== null) {
    faults.error(`${at}.cache_time`, 'has no meaning without pass_through_mode: there is no answer to keep');
  }
  if (isPassThrough && Object.keys(filter.cluster_min_healthy_percentages).length > 0) {
    faults.error(
      `${at}.cluster_min_healthy_percentages`,
      'has no meaning in pass_through_mode: the upstream decides on the answer',
    );
  }
}

/** The oldest configurations name the path that checks ask for. */
function pathMatch(endpoint: string): readonly HeaderMatch[] {
  if (endpoint === '') return [];
  const test = { kind: 'exact', value: endpoint, ignoresCase: false } as const;
  return [{ name: ':path', test, isInverted: false, treatMissingAsEmpty: false }];
}
