// RedirectAction message → RedirectAction of the snapshot.

import type { RedirectAction } from '../../snapshot/index.ts';
import { RedirectAction_RedirectResponseCode as Code } from '../proto/generated/enums.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertPathRewrite } from './forward-action.ts';
import type { RedirectMessage } from './messages.ts';

const STATUSES: Readonly<Record<number, RedirectAction['status']>> = {
  [Code.MOVED_PERMANENTLY]: 301,
  [Code.FOUND]: 302,
  [Code.SEE_OTHER]: 303,
  [Code.TEMPORARY_REDIRECT]: 307,
  [Code.PERMANENT_REDIRECT]: 308,
};

export function convertRedirect(message: RedirectMessage, at: string, faults: FaultSink): RedirectAction {
  return {
    kind: 'redirect',
    status: STATUSES[message.response_code] ?? 301,
    scheme: message.https_redirect ? 'https' : message.scheme_redirect,
    host: message.host_redirect,
    port: message.port_redirect,
    path: message.path_redirect,
    pathRewrite: convertPathRewrite(message, at, faults),
    stripQuery: message.strip_query,
  };
}
