// What a bootstrap says of servers that have hosts checked, and that are told of load.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { clusterNamed, faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';

const SERVICES = [{ envoy_grpc: { cluster_name: 'web', authority: 'load' } }];

function bootstrap(fields: JsonObject, others: JsonObject = {}): JsonObject {
  return {
    ...others,
    cluster_manager: { load_stats_config: { api_type: 'GRPC', grpc_services: SERVICES, ...fields } },
    static_resources: { clusters: [clusterNamed('web')] },
  };
}

it('reads the servers of load and of health, in the names of either generation', () => {
  const server = { cluster: 'web', authority: 'load', metadata: [], maxMessageBytes: 0 };
  const settings = { servers: [server], nodeOnFirstMessageOnly: false };
  const v3 = { transport_api_version: 'V3' };
  assert.deepEqual(mustLoad(bootstrap(v3)).loadReporting, { ...settings, transportGeneration: 'v3' });
  const v2 = { transport_api_version: 'V2', set_node_on_first_message_only: true };
  assert.deepEqual(mustLoad(bootstrap(v2)).loadReporting, {
    ...settings,
    transportGeneration: 'v2',
    nodeOnFirstMessageOnly: true,
  });
  assert.equal(mustLoad({}).loadReporting, undefined);
  assert.equal(mustLoad({}).healthDelegation, undefined);
  const hds_config = { api_type: 'GRPC', grpc_services: SERVICES, transport_api_version: 'V2' };
  const { healthDelegation } = mustLoad({ hds_config, static_resources: { clusters: [clusterNamed('web')] } });
  assert.deepEqual(healthDelegation, { ...settings, transportGeneration: 'v2' });
});

it('says what of the server cannot be', () => {
  const at = 'cluster_manager.load_stats_config';
  assert.deepEqual(faultTexts(load(bootstrap({ api_type: 'REST', transport_api_version: 'V3' }))), [
    `${at}.api_type: REST has no streams: use GRPC or DELTA_GRPC`,
  ]);
  const unknown = bootstrap({
    grpc_services: [{ envoy_grpc: { cluster_name: 'nobody' } }],
    transport_api_version: 'V3',
  });
  assert.match(faultTexts(load(unknown)).join(), /grpc_services\[0\]\.envoy_grpc\.cluster_name: .*nobody/);
  const limited = load(bootstrap({ rate_limit_settings: {}, transport_api_version: 'V3' }));
  assert.deepEqual(faultTexts(limited), []);
  assert.deepEqual(faultTexts(limited, 'warning'), [
    `${at}.rate_limit_settings: ignored: the server says how often it is told`,
  ]);
});
