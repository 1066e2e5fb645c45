// A tap under way: what main tells the workers of it, and what they record for it.

import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { HeaderMatch } from './route-table.ts';

/** What of an exchange a condition looks at. */
export type TapMessage = 'request' | 'response';

/** Which exchanges are recorded. */
export type TapMatch =
  | { readonly kind: 'any' }
  | { readonly kind: 'and' | 'or'; readonly rules: readonly TapMatch[] }
  | { readonly kind: 'not'; readonly rule: TapMatch }
  | {
      readonly kind: 'headers' | 'trailers';
      readonly of: TapMessage;
      /** All of them. */
      readonly headers: readonly HeaderMatch[];
    }
  | {
      readonly kind: 'body';
      readonly of: TapMessage;
      /** Bytes of the body that are looked at; 0 for all. */
      readonly limitBytes: number;
      /** All of them; none is empty. */
      readonly patterns: readonly Uint8Array[];
    };

export interface TapSettings {
  /** Of the filters that record. */
  readonly configId: string;
  readonly match: TapMatch;
  /** Of each body, what is kept. */
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  /** Exchanges are told of piece by piece, from the moment on when it is clear that they match. */
  readonly isStreamed: boolean;
  /** Share of exchanges that are looked at; null for all. */
  readonly enabled: RuntimeSetting<Fraction> | null;
}

export interface TapSession {
  /** Another number for each tap: what comes late for one that is over is thrown away. */
  readonly id: number;
  readonly settings: TapSettings;
  /** Of a filter that records by itself, as long as it is there; null for what was asked of the admin interface. */
  readonly files: TapFiles | null;
}

export type TapFormat = 'json-bytes' | 'json-text' | 'binary' | 'binary-delimited' | 'text';

/** A file for each exchange. */
export interface TapFiles {
  /** What their names begin with. */
  readonly pathPrefix: string;
  readonly format: TapFormat;
}

/** The file of an exchange. */
export interface TapFile extends TapFiles {
  readonly exchangeId: number;
}

/** Names in lower case, with values as latin1 text, in order. */
export type TappedFields = readonly (readonly [name: string, value: string])[];

export interface TappedBody {
  readonly bytes: Uint8Array;
  /** There was more of it. */
  readonly isTruncated: boolean;
}

export interface TappedMessage {
  readonly headers: TappedFields;
  /** Null without one. */
  readonly body: TappedBody | null;
  readonly trailers: TappedFields;
  /** When the head was there, in milliseconds since the Unix epoch; null where nobody asks for it. */
  readonly receivedMs: number | null;
}

/** A piece of an exchange that is told of as it happens. */
export type TappedPiece =
  | {
      readonly part: 'request_headers' | 'request_trailers' | 'response_headers' | 'response_trailers';
      readonly fields: TappedFields;
    }
  | { readonly part: 'request_body_chunk' | 'response_body_chunk'; readonly body: TappedBody };

export type TapTrace =
  | {
      readonly kind: 'exchange';
      readonly request: TappedMessage;
      /** Null when there was none. */
      readonly response: TappedMessage | null;
    }
  | { readonly kind: 'piece'; readonly exchangeId: number; readonly piece: TappedPiece };

/** What a trace takes of the bounds on memory, in bytes. */
export function tapTraceCost(trace: TapTrace): number {
  if (trace.kind === 'exchange') return messageCost(trace.request) + messageCost(trace.response);
  const { piece } = trace;
  return OVERHEAD_BYTES + ('fields' in piece ? fieldsCost(piece.fields) : piece.body.bytes.length);
}

const OVERHEAD_BYTES = 256;

function messageCost(message: TappedMessage | null): number {
  if (message === null) return 0;
  const { headers, body, trailers } = message;
  return OVERHEAD_BYTES + fieldsCost(headers) + fieldsCost(trailers) + (body?.bytes.length ?? 0);
}

function fieldsCost(fields: TappedFields): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length + 16, 0);
}
