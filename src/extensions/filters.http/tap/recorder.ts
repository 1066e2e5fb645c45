// One exchange while a tap is under way: what is kept of it, and what main is told. Worker thread.
//
//   whole      told of in one trace when it is over, if it matches then
//   streamed   kept as for a whole one until it is settled that it matches; from then on each piece is told of as it comes

import type { Taps } from '../../../data-plane/index.ts';
import type {
  TapFile,
  TapMessage,
  TappedBody,
  TappedFields,
  TappedMessage,
  TappedPiece,
  TapSession,
} from '../../../snapshot/index.ts';
import { TapMatcher } from './matcher.ts';

interface Kept {
  headers: TappedFields;
  readonly chunks: Buffer[];
  keptBytes: number;
  hasBody: boolean;
  isTruncated: boolean;
  trailers: TappedFields;
  receivedMs: number | null;
}

const NO_BYTES = Buffer.alloc(0);

export class TapRecorder {
  readonly #taps: Taps;
  readonly #session: TapSession;
  readonly #onTapped: () => void;
  readonly #matcher: TapMatcher;
  readonly #kept: Partial<Record<TapMessage, Kept>> = {};
  /** Null where there is a reader. */
  readonly #file: TapFile | null;
  /** Of a streamed exchange that matches. */
  #exchangeId = 0;

  constructor(taps: Taps, session: TapSession, onTapped: () => void) {
    this.#taps = taps;
    this.#session = session;
    this.#onTapped = onTapped;
    this.#file = session.files === null ? null : taps.nextFile(session.files);
    this.#matcher = new TapMatcher(session.settings.match);
  }

  headers(of: TapMessage, headers: TappedFields, receivedMs: number | null): void {
    if (!this.#isWanted) return;
    this.#matcher.see({ of, part: 'headers', fields: headers, bytes: NO_BYTES });
    this.#release(of);
    this.#kept[of] = {
      headers,
      chunks: [],
      keptBytes: 0,
      hasBody: false,
      isTruncated: false,
      trailers: [],
      receivedMs,
    };
    this.#tell({ part: `${of}_headers`, fields: headers });
  }

  /** @param bytes borrowed. */
  data(of: TapMessage, bytes: Buffer): void {
    if (bytes.length === 0 || !this.#isWanted) return;
    const isTelling = this.#exchangeId > 0;
    this.#matcher.see({ of, part: 'body', fields: [], bytes });
    if (isTelling) this.#tell({ part: `${of}_body_chunk`, body: this.#cut(of, bytes) });
    else {
      this.#keep(of, bytes);
      this.#tell(null);
    }
  }

  trailers(of: TapMessage, trailers: TappedFields): void {
    if (!this.#isWanted) return;
    this.#matcher.see({ of, part: 'trailers', fields: trailers, bytes: NO_BYTES });
    const kept = this.#kept[of];
    if (kept !== undefined) kept.trailers = trailers;
    this.#tell({ part: `${of}_trailers`, fields: trailers });
  }

  /** The exchange is over, in whatever way. */
  end(): void {
    const { request, response } = this.#kept;
    if (this.#isWanted && request !== undefined && this.#matcher.matches) {
      if (!this.#session.settings.isStreamed) {
        const trace = { kind: 'exchange', request: messageOf(request), response: messageOf(response) } as const;
        this.#taps.send(this.#session, trace, this.#file);
      } else if (this.#exchangeId === 0) this.#tellKept();
      this.#onTapped();
    }
    this.#release('request');
    this.#release('response');
  }

  /** The tap is under way, and may want it. */
  get #isWanted(): boolean {
    if (!this.#taps.isUnderWay(this.#session)) return false;
    return this.#matcher.matches || !this.#matcher.isSettled;
  }

  #limitOf(of: TapMessage): number {
    const { maxRequestBytes, maxResponseBytes } = this.#session.settings;
    return of === 'request' ? maxRequestBytes : maxResponseBytes;
  }

  #keep(of: TapMessage, bytes: Buffer): void {
    const kept = this.#kept[of];
    if (kept === undefined) return;
    kept.hasBody = true;
    const room = this.#taps.keep(Math.min(bytes.length, this.#limitOf(of) - kept.keptBytes));
    if (room > 0) kept.chunks.push(Buffer.from(bytes.subarray(0, room)));
    kept.keptBytes += room;
    if (room < bytes.length) kept.isTruncated = true;
  }

  /** A part of a body that is told of at once. */
  #cut(of: TapMessage, bytes: Buffer): TappedBody {
    const limit = this.#limitOf(of);
    return { bytes: Uint8Array.from(bytes.subarray(0, limit)), isTruncated: bytes.length > limit };
  }

  /** @param piece that has just come; null for a part of a body that has been kept. */
  #tell(piece: TappedPiece | null): void {
    if (!this.#session.settings.isStreamed) return;
    if (this.#exchangeId > 0) {
      if (piece !== null) this.#send(piece);
    } else if (this.#matcher.isSettled && this.#matcher.matches) this.#tellKept();
  }

  /** All that was kept until it was settled. */
  #tellKept(): void {
    this.#exchangeId = this.#file?.exchangeId ?? this.#taps.nextExchange();
    for (const side of ['request', 'response'] as const) {
      const kept = this.#kept[side];
      if (kept === undefined) continue;
      this.#send({ part: `${side}_headers`, fields: kept.headers });
      const body = bodyOf(kept);
      if (body !== null) this.#send({ part: `${side}_body_chunk`, body });
      if (kept.trailers.length > 0) this.#send({ part: `${side}_trailers`, fields: kept.trailers });
      this.#release(side);
    }
  }

  #send(piece: TappedPiece): void {
    this.#taps.send(this.#session, { kind: 'piece', exchangeId: this.#exchangeId, piece }, this.#file);
  }

  #release(of: TapMessage): void {
    const kept = this.#kept[of];
    if (kept === undefined) return;
    this.#taps.release(kept.keptBytes);
    kept.keptBytes = 0;
    kept.chunks.length = 0;
  }
}

function messageOf(kept: Kept): TappedMessage;
function messageOf(kept: Kept | undefined): TappedMessage | null;
function messageOf(kept: Kept | undefined): TappedMessage | null {
  if (kept === undefined) return null;
  const { headers, trailers, receivedMs } = kept;
  return { headers, body: bodyOf(kept), trailers, receivedMs };
}

function bodyOf({ hasBody, chunks, isTruncated }: Kept): TappedBody | null {
  // A copy that is nobody else's memory: it goes to another thread.
  return hasBody ? { bytes: Uint8Array.from(Buffer.concat(chunks)), isTruncated } : null;
}
