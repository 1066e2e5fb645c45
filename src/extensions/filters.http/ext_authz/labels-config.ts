// What an authorization service is told of this proxy: the texts under one key of its node's metadata.

import type { Conversion } from '../../../config/index.ts';
import type { Labels } from './settings.ts';

/** @param key empty for nothing. */
export function labelsOf(key: string, { nodeMetadata = {} }: Conversion): Labels {
  const labels = Object.hasOwn(nodeMetadata, key) ? nodeMetadata[key] : undefined;
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) return {};
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => typeof value === 'string'));
}
