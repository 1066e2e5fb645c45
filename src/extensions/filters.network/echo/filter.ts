// Sends back what it receives. A client that takes nothing of it is not read any further. Worker thread.

import type { TerminalFilterKind } from '../../../data-plane/index.ts';

export const ECHO_FILTER: TerminalFilterKind = {
  isTerminal: true,
  compile: () => (callbacks) => ({
    onData(bytes, isEnd) {
      const goesOn = callbacks.write(Buffer.copyBytesFrom(bytes));
      if (isEnd) callbacks.end();
      return goesOn ? 'continue' : 'stop';
    },
    onWritable: () => callbacks.continueReading(),
  }),
};
