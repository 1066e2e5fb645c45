// The second door of the configuration, behind which lies what only those load who speak with management servers: the front door takes
// all that it names into every start.

export {
  encodeChangesRequest,
  encodeStateRequest,
  NO_NAMES,
  nodeMessage,
  requestNames,
  stateRequestText,
} from './discovery/exchange-requests.ts';
export { openChangesResponse, openStateResponse } from './discovery/exchange-responses.ts';
export {
  encodeCheckOffer,
  encodeClusterHealth,
  encodeHealthReport,
  HEALTH_DISCOVERY_PATH,
  openCheckOrders,
} from './discovery/health-messages.ts';
export {
  encodeClusterLoad,
  encodeReportHead,
  LOAD_REPORTING_PATH,
  openReportRequest,
} from './discovery/load-messages.ts';
export { offerRawResource, readRawResource } from './discovery/read-raw-resource.ts';
export { openTextResponse } from './discovery/response-text.ts';
