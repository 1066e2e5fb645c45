// The listener filters of this build, by the kind of their settings.

import type { ListenerFilterSnapshot } from '../../../snapshot/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { ConditionalFilter } from './conditional-filter.ts';
import type { ListenerFilter } from './filter.ts';
import { HttpInspectorFilter } from './http-inspector.ts';
import { LocalRateLimitFilter } from './local-rate-limit.ts';
import { OriginalDstFilter } from './original-dst.ts';
import { ProxyProtocolFilter } from './proxy-protocol.ts';
import { TlsInspectorFilter } from './tls-inspector.ts';

/** @throws as its filter. */
export function createListenerFilter(context: WorkerContext, snapshot: ListenerFilterSnapshot): ListenerFilter {
  const filter = createFilter(context, snapshot);
  const { disabledFor } = snapshot.settings;
  return disabledFor === undefined ? filter : new ConditionalFilter(filter, disabledFor);
}

/** @throws WeirError WEIR_LISTEN when this system cannot do what the filter needs. */
function createFilter(context: WorkerContext, { settings, statBlock }: ListenerFilterSnapshot): ListenerFilter {
  switch (settings.kind) {
    case 'original-dst':
      return new OriginalDstFilter(context);
    case 'proxy-protocol':
      return new ProxyProtocolFilter(context, { settings, statBlock });
    case 'local-rate-limit':
      return new LocalRateLimitFilter(context, { settings, statBlock });
    case 'tls-inspector':
      return new TlsInspectorFilter(context, { settings, statBlock });
    case 'http-inspector':
      return new HttpInspectorFilter(context, { settings, statBlock });
  }
}
