// The listener filters of this build, by the kind of their settings.

import type { ListenerFilterSnapshot, OwnListenerFilterSettings } from '../../../snapshot/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { ListenerFilter } from './filter.ts';
import { HttpInspectorFilter } from './http-inspector.ts';
import { LocalRateLimitFilter } from './local-rate-limit.ts';
import { OriginalDstFilter } from './original-dst.ts';
import { ProxyProtocolFilter } from './proxy-protocol.ts';
import { TlsInspectorFilter } from './tls-inspector.ts';

/** @throws WeirError WEIR_LISTEN when this system cannot do what the filter needs. */
export function createListenerFilter(
  context: WorkerContext,
  { settings, statBlock }: ListenerFilterSnapshot<OwnListenerFilterSettings>,
): ListenerFilter {
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
