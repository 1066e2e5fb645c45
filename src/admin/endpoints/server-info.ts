// GET /server_info: version, state, uptime, options and node.

import { type JsonObject, jsonDuration } from '../../base/json.ts';
import { buildVersion, USER_AGENT_NAME } from '../../base/software.ts';
import { formatVersion, type Version } from '../../base/version.ts';
import { redactedJson } from '../../config/index.ts';
import { endpoint } from '../endpoint.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse } from '../response.ts';
import type { LocalityView, NodeView } from '../views/index.ts';

export const SERVER_INFO = endpoint({
  path: '/server_info',
  help: 'Version, state, uptime, command line options and node',
  handle: ({ server }) =>
    jsonResponse(
      jsonBody({
        version: formatVersion(server.version),
        state: server.state(),
        uptime_current_epoch: jsonDuration(server.uptimeCurrentEpochSeconds() * 1000),
        uptime_all_epochs: jsonDuration(server.uptimeAllEpochsSeconds() * 1000),
        hot_restart_version: server.hotRestartVersion,
        command_line_options: server.commandLineOptions,
        node: nodeJson(server.node, server.version),
      }),
    ),
});

/** Defaults are printed; sub-messages that are not set are not. */
function nodeJson(node: NodeView, version: Version): JsonObject {
  const hasMetadata = Object.keys(node.metadata).length > 0;
  return {
    id: node.id,
    cluster: node.cluster,
    ...(hasMetadata ? { metadata: redactedJson(node.metadata as JsonObject) } : {}),
    ...localityJson(node.locality),
    user_agent_name: USER_AGENT_NAME,
    user_agent_build_version: buildVersionJson(version),
    extensions: node.extensions.map(({ name, category, disabled }) => ({ name, category, disabled })),
    client_features: [],
    listening_addresses: [],
  };
}

function localityJson({ region, zone, subZone }: LocalityView): JsonObject {
  return region === '' && zone === '' && subZone === '' ? {} : { locality: { region, zone, sub_zone: subZone } };
}

function buildVersionJson(version: Version): JsonObject {
  const { major, minor, patch, metadata } = buildVersion(version);
  return { version: { major_number: major, minor_number: minor, patch }, metadata };
}
