import type { RequestFormSettings } from '../../src/snapshot/index.ts';

/** Of a connection manager that says nothing of the form of requests. */
export const PLAIN_REQUEST_FORM: RequestFormSettings = {
  normalizesPath: null,
  mergesSlashes: false,
  escapedSlashes: null,
  strippedPorts: 'none',
  stripsHostDot: false,
  underscores: 'allow',
};
