// Settings of a connection manager that says nothing, by their groups.

import type { ForwardingSettings, HttpLogEntries, NormalizationSettings } from '../../src/snapshot/index.ts';

/** Of a connection manager that says nothing of the form of requests. */
export const PLAIN_NORMALIZATION: NormalizationSettings = {
  normalizesPath: null,
  mergesSlashes: false,
  escapedSlashes: null,
  strippedPorts: 'none',
  stripsHostDot: false,
  acceptsHttp10: false,
  defaultHost: '',
  underscores: 'allow',
};

/** The same of what upstreams are told. */
export const PLAIN_FORWARDING: ForwardingSettings = {
  internalAddresses: null,
  serviceName: null,
  appendsPort: false,
  mapsIpv4: false,
  scheme: null,
  matchesUpstreamScheme: false,
  schemePorts: null,
  answersRequestId: false,
};

export const NO_FURTHER_ENTRIES: HttpLogEntries = { onStart: false, onTunnel: false, intervalMs: 0 };
