// The whole support table. To implement a field: flip its row here, in the same change that implements it.

import { FILTER_CHAIN_ACTIONS } from '../../resources/filter-chain-matcher.ts';
import { type SupportTable, supported } from '../verdict.ts';
import { ACCESS_LOG_SUPPORT } from './access-log.ts';
import { BALANCING_POLICY_SUPPORT } from './balancing-policy.ts';
import { BOOTSTRAP_SUPPORT } from './bootstrap.ts';
import { CLUSTER_SUPPORT } from './cluster.ts';
import { CLUSTER_CONNECTIONS_SUPPORT } from './cluster-connections.ts';
import { CLUSTER_HEALTH_SUPPORT } from './cluster-health.ts';
import { CLUSTER_HOSTS_SUPPORT } from './cluster-hosts.ts';
import { ACCESS_ACTION, FORWARD_CLIENT_CERT, UDP_ROUTE } from './extensions.ts';
import { GRPC_SERVICE_SUPPORT } from './grpc-service.ts';
import { HTTP_SUPPORT } from './http.ts';
import { LISTENER_SUPPORT } from './listener.ts';
import { matchingSupport } from './matching.ts';
import { OVERLOAD_SUPPORT } from './overload.ts';
import { ROUTE_ACTIONS_OF_MATCHERS, ROUTE_SUPPORT } from './route.ts';
import { ROUTE_ACTION_SUPPORT } from './route-action.ts';
import { ROUTE_MATCH_SUPPORT } from './route-match.ts';
import { ROUTE_RATE_LIMIT_SUPPORT } from './route-rate-limits.ts';
import { TAP_CONFIG_SUPPORT } from './tap.ts';
import { SECRET_SUPPORT, TLS_CONTEXT_SUPPORT } from './tls.ts';
import { TRACING_SUPPORT } from './tracing.ts';
import { UDP_SUPPORT } from './udp.ts';

export const SUPPORT: SupportTable = {
  'google.protobuf.StringValue': { otherwise: supported(), fields: {} },
  ...BOOTSTRAP_SUPPORT,
  ...LISTENER_SUPPORT,
  ...UDP_SUPPORT,
  ...HTTP_SUPPORT,
  ...ROUTE_SUPPORT,
  ...ROUTE_MATCH_SUPPORT,
  ...ROUTE_ACTION_SUPPORT,
  ...ROUTE_RATE_LIMIT_SUPPORT,
  ...matchingSupport([
    ...ROUTE_ACTIONS_OF_MATCHERS,
    ...FILTER_CHAIN_ACTIONS,
    UDP_ROUTE,
    ACCESS_ACTION,
    FORWARD_CLIENT_CERT,
  ]),
  ...CLUSTER_SUPPORT,
  ...CLUSTER_HOSTS_SUPPORT,
  ...CLUSTER_CONNECTIONS_SUPPORT,
  ...CLUSTER_HEALTH_SUPPORT,
  ...BALANCING_POLICY_SUPPORT,
  ...ACCESS_LOG_SUPPORT,
  ...TRACING_SUPPORT,
  ...GRPC_SERVICE_SUPPORT,
  ...OVERLOAD_SUPPORT,
  ...TAP_CONFIG_SUPPORT,
  ...SECRET_SUPPORT,
  ...TLS_CONTEXT_SUPPORT,
};
