// What a test leaves open that fails before it gets to closing it: listening on, it would keep the test process waiting,
// and hide the failure until the time of the whole file is over.

import { after } from 'node:test';

const open = new Set<() => void>();

// Without a test runner, as in the soak, whoever opens something closes it.
if (process.env.NODE_TEST_CONTEXT !== undefined) {
  after(() => {
    for (const close of open) close();
  });
}

/**
 * @param close called when the tests of the file are over.
 * @returns to be called when it is closed: then nothing is done, and nothing kept.
 */
export function closeAtEnd(close: () => void): () => void {
  open.add(close);
  return () => void open.delete(close);
}
