// What a reporter and the stream that it sends to a cluster know of each other; router/open-request.ts makes it.

import type { CallFailure } from './filter-call.ts';
import type { TextHead } from './text-head.ts';
import type { Trailers } from './trailers.ts';

export interface StreamRequest {
  /** By name. */
  readonly cluster: string;
  /** As it stands in the request line; the method is POST. */
  readonly path: string;
  readonly host: string;
  /** A value that cannot stand in a line is left out. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** How a stream has ended: with an answer, whose body nobody keeps, or without. */
export interface StreamAnswer {
  readonly status: number;
  /** Null for one that cannot be read. */
  readonly head: TextHead | null;
  readonly trailers: Trailers | null;
}

export interface StreamReceiver {
  /** More can be sent: there is a connection, or what was sent has left. */
  onStreamWritable(): void;
  // One of these is called, once, perhaps before the stream has been given.
  onStreamAnswer(answer: StreamAnswer): void;
  onStreamFailure(failure: CallFailure): void;
}

export interface OutgoingStream {
  /** There is a connection, and it takes more. */
  readonly canSend: boolean;
  /** Its host has left, or its cluster has been replaced: the places of both are kept for it until it ends. */
  readonly isStale: boolean;
  /** @param bytes given away. Not after `end`. */
  send(bytes: Buffer): void;
  /** This side is done; the other has as long to answer. Once. */
  end(timeoutMs: number): void;
  /** Its receiver hears no more. Does nothing to one that is over. */
  cancel(): void;
}
