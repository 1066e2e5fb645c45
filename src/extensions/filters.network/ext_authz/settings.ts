// What main tells the workers of a network ext_authz filter.

import type { GrpcTarget } from '../../filters.http/grpc/target.ts';

export interface NetworkExtAuthzSettings {
  readonly service: GrpcTarget;
  readonly generation: 'v2' | 'v3';
  readonly failsOpen: boolean;
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
}
