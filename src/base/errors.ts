// The one error class of weir. Whose fault it was and whether trying again may help are part of the
// error, so that no catcher has to guess.

export type ErrorSource = 'downstream' | 'upstream' | 'internal' | 'config';
export type RetryAdvice = 'no' | 'yes' | 'reused-connection-only';

export interface WeirErrorOptions {
  readonly source?: ErrorSource;
  readonly retry?: RetryAdvice;
  readonly detail?: string;
  readonly cause?: unknown;
}

/** An expected failure with a stable `code` such as `WEIR_CONFIG_INVALID`; anything else thrown is a bug. */
export class WeirError extends Error {
  override readonly name: string = 'WeirError';
  readonly code: string;
  readonly source: ErrorSource;
  readonly retry: RetryAdvice;
  readonly detail: string;

  constructor(code: string, message: string, options: WeirErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.source = options.source ?? 'internal';
    this.retry = options.retry ?? 'no';
    this.detail = options.detail ?? '';
  }
}

const FRAME = '\n    at ';

/**
 * Where an error came from: the frames of its stack, one a line, without the message before them, which may hold
 * anything. Empty when there are none.
 */
export function stackFrames(error: unknown): string {
  if (!(error instanceof Error) || error.stack === undefined) return '';
  const messageAt = error.stack.indexOf(error.message);
  const framesAt = error.stack.indexOf(FRAME, messageAt === -1 ? 0 : messageAt + error.message.length);
  return framesAt === -1 ? '' : error.stack.slice(framesAt + 1);
}

/** The message of anything that can be thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
