// Who owns an HTTP/2 session, and what it works with.

import type { Http2Stat } from '../../../../stats/index.ts';
import type { Http2Codec } from './codec.ts';
import type { SessionFault } from './options.ts';
import type { OutputSink } from './session-sender.ts';
import type { SessionStream } from './session-stream.ts';

/** What a session works with, of what all sessions of its worker share. */
export type SessionTools = Pick<Http2Codec, 'codec' | 'heads' | 'slabs'>;

/** Who owns a session. */
export interface SessionOwner extends OutputSink {
  /** A request has come on a new stream: give it a handler, or reset it. Its `onHead` follows. Servers only. */
  onStream(stream: SessionStream): void;
  /** A request goes beyond the bounds of heads: answer it. Nothing else is told of its stream. Servers only. */
  onOversizedRequest(stream: SessionStream, reason: string): void;
  /** There is output, which there was not before. */
  onDirty(): void;
  /** A head is about to be decoded: what the codec holds is lost. */
  onBlock(): void;
  /** The peer has said what it takes, for the first time or anew. */
  onSettings(): void;
  /** A name in `http2.*` counts one more. */
  count(stat: Http2Stat): void;
  /** The peer takes no streams above `lastStreamId`. */
  onGoaway(lastStreamId: number, code: number): void;
  /** The peer has answered the ping of `ping`. */
  onPong(): void;
  /** The peer has read what `drain` announced; it may say so again. */
  onDrainRead(): void;
  /** It has ended by a fault of the peer: its output, which says why, is the last there is. Its streams have been told. */
  onSessionFault(fault: SessionFault): void;
  /** Its last stream has ended. */
  onIdle(): void;
}
