// Says something of connections, for filters behind to read. Worker thread.

import type { NetworkFilterKind } from '../../../data-plane/index.ts';
import type { FilterStateValue } from '../../filter-state/settings.ts';
import { FilterStateValues } from '../../filter-state/values.ts';

export const NETWORK_SET_FILTER_STATE_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: false,
  compile(settings) {
    const values = new FilterStateValues(settings as readonly FilterStateValue[]);
    return {
      create: (callbacks) => ({
        onNewConnection() {
          values.sayTo(callbacks, callbacks.formatFacts());
          return 'continue';
        },
      }),
    };
  },
};
