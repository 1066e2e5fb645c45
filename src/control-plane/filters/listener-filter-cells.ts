// Cells of what a listener filter counts. Main thread.

import type { ListenerFilterSnapshot, OwnListenerFilterSettings } from '../../snapshot/index.ts';
import {
  HTTP_INSPECTOR_STATS,
  LISTENER_RATE_LIMIT_STATS,
  PROXY_PROTOCOL_STATS,
  TLS_INSPECTOR_STATS,
} from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';

/** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
export function makeListenerFilter<Settings extends OwnListenerFilterSettings>(
  settings: Settings,
  holdings: Holdings,
): ListenerFilterSnapshot<Settings> {
  return { settings, statBlock: listenerFilterStatBlock(settings, holdings) };
}

function listenerFilterStatBlock(settings: OwnListenerFilterSettings, holdings: Holdings): number {
  switch (settings.kind) {
    case 'original-dst':
      return 0;
    case 'proxy-protocol': {
      const { statPrefix } = settings;
      const scope = statPrefix === '' ? 'proxy_proto.' : `proxy_proto.${statPrefix}.`;
      return holdings.scope(scope).allocate(PROXY_PROTOCOL_STATS).cell;
    }
    case 'local-rate-limit':
      return holdings.scope(`listener_local_ratelimit.${settings.statPrefix}.`).allocate(LISTENER_RATE_LIMIT_STATS)
        .cell;
    case 'tls-inspector':
      return holdings.scope('tls_inspector.').allocate(TLS_INSPECTOR_STATS).cell;
    case 'http-inspector':
      return holdings.scope('http_inspector.').allocate(HTTP_INSPECTOR_STATS).cell;
  }
}
