// Output of the program that is not its log: help, version, verdicts, faults. A reader that has gone or a stream that is
// closed changes neither the course of the program nor its exit code; a document that a disk has not taken whole is a failure.

import { LogDestination, STANDARD_ERROR, STANDARD_OUTPUT } from '../log/index.ts';

/** Of a file that cannot take more; whoever reads it would take a part for the whole. */
const DISK_FAILURES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']);

const DESCRIPTORS = { stdout: STANDARD_OUTPUT, stderr: STANDARD_ERROR } as const;

/**
 * Writes all of it before it returns. `ask` waits for a slow reader, such as a pager; `serve` gives up after a second,
 * because a proxy must go on and has to follow signals.
 * @returns why a disk did not take all of it; empty otherwise.
 */
export function print(stream: keyof typeof DESCRIPTORS, text: string, mode: 'ask' | 'serve'): string {
  if (text === '') return '';
  const destination = LogDestination.open(DESCRIPTORS[stream]);
  destination.write(text);
  destination.close(mode === 'ask' ? 'endless' : 'second');
  const { failure } = destination;
  return failure !== null && DISK_FAILURES.has(failure.code ?? '') ? failure.message : '';
}

/** What was asked for, on standard output. @returns the exit code. */
export function printDocument(text: string): number {
  const failure = print('stdout', text, 'ask');
  if (failure === '') return 0;
  print('stderr', `error: standard output: ${failure}\n`, 'ask');
  return 1;
}
