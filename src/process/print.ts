// Output of the program that is not its log: help, version, verdicts, faults. A reader that has gone or a stream that is
// closed changes neither the course of the program nor its exit code.

import { LogDestination, STANDARD_ERROR, STANDARD_OUTPUT } from '../log/index.ts';

const DESCRIPTORS = { stdout: STANDARD_OUTPUT, stderr: STANDARD_ERROR } as const;

/**
 * Writes all of it before it returns. `ask` waits for a slow reader, such as a pager; `serve` gives up after a second,
 * because a proxy must go on and has to follow signals.
 */
export function print(stream: keyof typeof DESCRIPTORS, text: string, mode: 'ask' | 'serve'): void {
  if (text === '') return;
  const destination = LogDestination.open(DESCRIPTORS[stream]);
  destination.write(text);
  destination.close(mode === 'ask' ? 'endless' : 'second');
}
