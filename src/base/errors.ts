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
  override readonly name = 'WeirError';
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

/** What helps to find a bug: the stack of an error, the message of anything else that can be thrown. */
export function errorStack(error: unknown): string {
  return (error instanceof Error ? error.stack : undefined) ?? errorMessage(error);
}

/** The message of anything that can be thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
