// Sends each client the same text and ends the connection. Worker thread.

import type { TerminalFilterKind } from '../../../data-plane/index.ts';
import type { DirectResponseSettings } from './settings.ts';

export const DIRECT_RESPONSE_FILTER: TerminalFilterKind = {
  isTerminal: true,
  compile(settings) {
    const { response } = settings as DirectResponseSettings;
    return (callbacks) => ({
      onNewConnection() {
        callbacks.write(Buffer.from(response));
        callbacks.finish();
        return 'continue';
      },
    });
  },
};
