// What a route does: forward to a cluster, redirect, or answer at once. Actions that this build lacks are refused by
// the support table; for them the conversions return undefined.

import type { DirectResponseAction, RouteAction } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { readDataSource } from './data-source.ts';
import { convertForward } from './forward-action.ts';
import { convertReplyFormat } from './local-reply.ts';
import type { DirectResponseMessage, Route } from './messages.ts';
import { convertRedirect } from './redirect-action.ts';
import type { RouteResilience } from './resilience.ts';
import type { AroundClusters } from './weighted-clusters.ts';

/** Settings of the route configuration that its actions depend on. */
export interface RouteScope {
  readonly validateClusters: boolean;
  readonly maxDirectResponseBytes: number;
}

export function convertAction(
  route: Route,
  at: string,
  scope: RouteScope,
  resilience: RouteResilience,
  filtersOfCluster: AroundClusters['filters'],
  conversion: Conversion,
): RouteAction | undefined {
  if (route.route !== null) {
    const around = { validateClusters: scope.validateClusters, filters: filtersOfCluster };
    return convertForward(route.route, route.match, at, around, resilience, conversion);
  }
  if (route.redirect !== null) return convertRedirect(route.redirect, `${at}.redirect`, conversion.faults);
  if (route.direct_response !== null) {
    return convertDirectResponse(route.direct_response, `${at}.direct_response`, scope, conversion);
  }
  return undefined;
}

function convertDirectResponse(
  message: DirectResponseMessage,
  at: string,
  scope: RouteScope,
  conversion: Conversion,
): DirectResponseAction {
  const { faults } = conversion;
  const body = readDataSource(message.body, `${at}.body`, conversion);
  if (body.length > scope.maxDirectResponseBytes) {
    faults.error(`${at}.body`, `${body.length} bytes exceed the limit ${scope.maxDirectResponseBytes}`);
  }
  // A copy of its own: a view would take all of the buffer that it looks at along to every worker.
  const format = convertReplyFormat(message.body_format, `${at}.body_format`, conversion);
  const plain: DirectResponseAction = { kind: 'direct-response', status: message.status, body: new Uint8Array(body) };
  return format === null ? plain : { ...plain, format };
}
