// GET /ready and /server_info, POST /healthcheck/*, /quitquitquit, /reopen_logs and /reset_counters: the server as a
// whole.

import { type JsonObject, type JsonValue, jsonDuration } from '../../base/json.ts';
import { formatVersion, type Version } from '../../base/version.ts';
import { type AdminContext, type AdminResponse, jsonResponse, textResponse } from '../endpoint.ts';
import { jsonBody } from '../render/json.ts';
import type { LocalityView, NodeView } from '../views.ts';

/** What the node tells management servers of its software, when the bootstrap says nothing else. */
const USER_AGENT_NAME = 'weir';

export function handleReady({ server }: AdminContext): AdminResponse {
  const state = server.state();
  return textResponse(`${state}\n`, state === 'LIVE' ? 200 : 503);
}

export function handleServerInfo({ server }: AdminContext): AdminResponse {
  return jsonResponse(
    jsonBody({
      version: formatVersion(server.version),
      state: server.state(),
      uptime_current_epoch: jsonDuration(server.uptimeCurrentEpochSeconds() * 1000),
      uptime_all_epochs: jsonDuration(server.uptimeAllEpochsSeconds() * 1000),
      command_line_options: server.commandLineOptions,
      node: nodeJson(server.node, server.version),
    }),
  );
}

export function handleQuit({ commands }: AdminContext): AdminResponse {
  return { ...textResponse('OK\n'), afterSent: () => commands.quit() };
}

export function handleReopenLogs({ commands }: AdminContext): AdminResponse {
  commands.reopenLogs();
  return textResponse('OK\n');
}

export function handleResetCounters({ commands }: AdminContext): AdminResponse {
  commands.resetCounters();
  return textResponse('OK\n');
}

export function handleHealthCheckFail({ commands }: AdminContext): AdminResponse {
  commands.failHealthChecks(true);
  return textResponse('OK\n');
}

export function handleHealthCheckOk({ commands }: AdminContext): AdminResponse {
  commands.failHealthChecks(false);
  return textResponse('OK\n');
}

/** Defaults are printed; sub-messages that are not set are not. */
function nodeJson(node: NodeView, version: Version): JsonObject {
  const hasMetadata = Object.keys(node.metadata).length > 0;
  return {
    id: node.id,
    cluster: node.cluster,
    ...(hasMetadata ? { metadata: node.metadata as JsonObject } : {}),
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
  const [major = 0, minor = 0, patch = 0] = version.release.split(/[.-]/, 3).map((part) => Number(part) || 0);
  const label = version.release.split('-').slice(1).join('-');
  const metadata: Record<string, JsonValue> = {
    ...(label === '' ? {} : { 'build.label': label }),
    'build.type': version.buildMode,
    'revision.sha': version.revision,
    'revision.status': version.treeStatus,
    'ssl.version': version.tlsLibrary,
  };
  return { version: { major_number: major, minor_number: minor, patch }, metadata };
}
