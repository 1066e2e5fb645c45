// ExtAuthz message → settings of the network ext_authz filter.

import {
  convertMetadataMatch,
  durationMsOr,
  type MessageTypes,
  type NetworkFilterManifest,
  rejected,
  supported,
  supportedWhole,
  warned,
} from '../../../config/index.ts';
import { labelsOf } from '../../filters.http/ext_authz/labels-config.ts';
import { convertGrpcTarget } from '../../grpc-service-config.ts';
import type { NetworkExtAuthzSettings } from './settings.ts';

const EXT_AUTHZ = 'proxy.extensions.filters.network.ext_authz.v3.ExtAuthz';
const DEFAULT_TIMEOUT_MS = 200;
/** Number of ApiVersion; a field rule refuses others. */
const V2 = 1;

export const NETWORK_EXT_AUTHZ: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    [EXT_AUTHZ]: {
      otherwise: rejected(),
      fields: {
        filter_enabled_metadata: supportedWhole('of what the filters before have said'),
        bootstrap_metadata_labels_key: supported('labels of the destination'),
        stat_prefix: supported(),
        grpc_service: supported('envoy_grpc only; 200 ms without a timeout'),
        failure_mode_allow: supported(),
        include_peer_certificate: supported(),
        transport_api_version: supported('AUTO is V3'),
        include_tls_session: supported(),
        send_tls_alert_on_denial: warned('connections are closed without one'),
      },
    },
  },
  convert(raw, at, conversion) {
    const message = raw as MessageTypes[typeof EXT_AUTHZ];
    const { grpc_service: service, filter_enabled_metadata: enabled } = message;
    if (service === null) {
      conversion.faults.error(`${at}.grpc_service`, 'is required');
      return undefined;
    }
    const timeoutMs = durationMsOr(service.timeout, DEFAULT_TIMEOUT_MS);
    const target = convertGrpcTarget(service, `${at}.grpc_service`, timeoutMs, conversion);
    if (target === undefined) return undefined;
    const settings: NetworkExtAuthzSettings = {
      service: target,
      generation: message.transport_api_version === V2 ? 'v2' : 'v3',
      failsOpen: message.failure_mode_allow,
      includesCertificate: message.include_peer_certificate,
      includesTlsSession: message.include_tls_session,
      labels: labelsOf(message.bootstrap_metadata_labels_key, conversion),
      enabledMetadata: enabled && convertMetadataMatch(enabled, `${at}.filter_enabled_metadata`, conversion.faults),
    };
    return {
      name: 'filters.network.ext_authz',
      settings,
      statScope: `ext_authz.${message.stat_prefix}.`,
      counters: ['total', 'disabled', 'ok', 'denied', 'error', 'failure_mode_allowed', 'cx_closed'],
      gauges: ['active'],
    };
  },
};
