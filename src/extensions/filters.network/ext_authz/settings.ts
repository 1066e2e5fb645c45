// What main tells the workers of a network ext_authz filter.

import type { MetadataMatch } from '../../../snapshot/index.ts';
import type { Labels } from '../../filters.http/ext_authz/settings.ts';
import type { GrpcTarget } from '../../filters.http/grpc/target.ts';

export interface NetworkExtAuthzSettings {
  readonly service: GrpcTarget;
  readonly generation: 'v2' | 'v3';
  readonly failsOpen: boolean;
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
  /** Of this proxy. */
  readonly labels: Labels;
  /** Of what filters before have said; null for all connections. */
  readonly enabledMetadata: MetadataMatch | null;
}
