// The main thread's sink: formats each record and writes it as one line.

import type { LogDestination } from './destination.ts';
import { escapeLine } from './escape.ts';
import { compileLogFormat } from './format.ts';
import type { LogRecord, LogSink } from './record.ts';

export interface TextSinkOptions {
  /** Pattern of flags, see compileLogFormat. */
  readonly format: string;
  /** Writes line breaks and other control characters inside of a line as C escape sequences. */
  readonly escaped: boolean;
  readonly destination: LogDestination;
}

export function createTextSink({ format, escaped, destination }: TextSinkOptions): LogSink {
  const render = compileLogFormat(format);
  return {
    write(record: LogRecord, threadId: number): void {
      const line = render(record, threadId);
      destination.write(`${escaped ? escapeLine(line) : line}\n`);
    },
  };
}
