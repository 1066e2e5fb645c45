// The listener filters of this build, by the kind of their settings.

import type { ListenerFilterSnapshot } from '../../../snapshot/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { ListenerFilter } from './filter.ts';
import { OriginalDstFilter } from './original-dst.ts';
import { ProxyProtocolFilter } from './proxy-protocol.ts';

/** @throws WeirError WEIR_LISTEN when this system cannot do what the filter needs. */
export function createListenerFilter(
  context: WorkerContext,
  { settings, statBlock }: ListenerFilterSnapshot,
): ListenerFilter {
  switch (settings.kind) {
    case 'original-dst':
      return new OriginalDstFilter(context);
    case 'proxy-protocol':
      return new ProxyProtocolFilter(context, { settings, statBlock });
  }
}
