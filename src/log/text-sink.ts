// The main thread's sink: formats each record and writes it as one line. Lines that the destination drops are told of
// in the log itself, in their place.

import { escapeLine, lineMessage, rawMessage } from './escape.ts';
import { compileLogFormat, type RenderRecord } from './format.ts';
import type { LogDestination } from './log-destination.ts';
import type { LogRecord, LogSink } from './record.ts';

export interface TextSinkOptions {
  /** Pattern of flags, see compileLogFormat. */
  readonly format: string;
  /** Writes line breaks and other control characters inside of a line as C escape sequences. */
  readonly escaped: boolean;
  readonly destination: Pick<LogDestination, 'write'>;
}

const MAIN_THREAD_ID = 0;

export class TextSink implements LogSink {
  #render: RenderRecord;
  readonly #escaped: boolean;
  readonly #destination: Pick<LogDestination, 'write'>;
  #dropped = 0;
  #lastDroppedMs = 0;

  constructor({ format, escaped, destination }: TextSinkOptions) {
    this.#escaped = escaped;
    this.#destination = destination;
    this.#render = this.#compile(format);
  }

  /** Has all further lines look otherwise. */
  useFormat(format: string): void {
    this.#render = this.#compile(format);
  }

  #compile(format: string): RenderRecord {
    return compileLogFormat(format, this.#escaped ? rawMessage : lineMessage);
  }

  write(record: LogRecord, threadId: number): void {
    const line = this.#render(record, threadId);
    if (this.#destination.write(`${this.#escaped ? escapeLine(line) : line}\n`)) return;
    this.#dropped += 1;
    this.#lastDroppedMs = record.timeMs;
  }

  /** The destination takes lines again: says how many are missing here, with the time of the last of them. */
  reportDropped(): void {
    const dropped = this.#dropped;
    if (dropped === 0) return;
    this.#dropped = 0;
    const message = `${dropped} lines are missing here: they could not be written in time`;
    const place = { stack: '', file: '', line: 0, functionName: '' };
    this.write({ logger: 'main', level: 'warning', message, timeMs: this.#lastDroppedMs, ...place }, MAIN_THREAD_ID);
  }
}
