// What an endpoint answers.

export interface AdminResponse {
  readonly status: number;
  readonly contentType: string;
  /** Headers beyond those of every response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whole, or piece by piece as the client takes it. */
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  /** Goes on until one side has enough: the head leaves at once, and the connection ends with the body. */
  readonly isOpenEnded?: boolean;
  /** Called when the response has been handed to the system, or the client is gone. */
  readonly afterSent?: () => void;
}

export const TEXT = 'text/plain; charset=UTF-8';
export const HTML = 'text/html; charset=UTF-8';
export const BYTES = 'application/octet-stream';
export const JSON_TYPE = 'application/json';

export function textResponse(body: AdminResponse['body'], status = 200): AdminResponse {
  return { status, contentType: TEXT, body };
}

export function jsonResponse(body: AdminResponse['body']): AdminResponse {
  return { status: 200, contentType: JSON_TYPE, body };
}
