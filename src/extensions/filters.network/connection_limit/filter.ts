// The connection limit filter: a bound on the connections of one filter chain over all workers. What is beyond it is
// closed, after a delay when one is set, which slows down clients that come back at once. Worker thread.

import type { NetworkFilterKind } from '../../../data-plane/index.ts';
import type { ConnectionLimitSettings } from './settings.ts';

const UNLIMITED = Number.POSITIVE_INFINITY;

export const CONNECTION_LIMIT_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings, context) {
    const { maxConnections, delayMs, enabled } = settings as ConnectionLimitSettings;
    const limit = context.runtime.derived((values) =>
      (values.flag(enabled.key) ?? enabled.default) ? maxConnections : UNLIMITED,
    );
    const connections = context.sharedCount;
    const active = context.gauge('active_connections');
    const limited = context.counter('limited_connections');
    const refusal = { delayMs };
    return {
      admit() {
        if (connections.tryAdd(limit.value)) {
          active.add(1);
          return null;
        }
        limited.add(1);
        return refusal;
      },
      release() {
        connections.remove();
        active.add(-1);
      },
    };
  },
};
