// Decompresses requests before the upstream gets them, and responses before the client does. Worker thread; step 3 of the
// request flow. Bodies in other encodings, and without any, pass by. What comes out may be no more than so many times what has
// come in, and goes on only as fast as it is taken, so that a bomb costs its sender more than this proxy.

import type { RuntimeDerived } from '../../../base/runtime.ts';
import {
  type BodyData,
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { createDecompressor, ZSTD_HEAD_BYTES } from '../../compression/engines.ts';
import { forbidsTransform } from '../../compression/no-transform.ts';
import { Recoder, type RecodingFailure, type RecodingOwner } from '../../compression/recoder.ts';
import { type DecompressorLibrary, ENCODING_OF } from '../../compression/settings.ts';
import type { DecompressorSettings, DirectionCounter, DirectionSettings } from './settings.ts';

const PARTIAL_CONTENT = 206;
const WEAK = /^W\//i;
const REFUSED = /;[ \t]*q[ \t]*=[ \t]*0(?:\.0*)?[ \t]*$/i;

const REQUEST_FAILURES: Readonly<Record<RecodingFailure, LocalReply>> = {
  broken: { status: 400, body: 'request cannot be decompressed', flag: '-', details: 'request_decompression_failed' },
  bomb: { status: 400, body: 'request grows too much', flag: '-', details: 'request_decompression_ratio' },
};
const RESPONSE_FAILURES: Readonly<Record<RecodingFailure, LocalReply>> = {
  broken: {
    status: 502,
    body: 'response cannot be decompressed',
    flag: 'UPE',
    details: 'response_decompression_failed',
  },
  bomb: { status: 502, body: 'response grows too much', flag: 'UPE', details: 'response_decompression_ratio' },
};

/** What all requests of a connection manager share of one direction. */
class Direction {
  readonly ignoresNoTransform: boolean;
  readonly counters: Readonly<Record<DirectionCounter, FilterCounter>>;
  readonly enabled: RuntimeDerived<boolean>;

  constructor({ enabled, ignoresNoTransform, counters }: DirectionSettings, context: FilterContext) {
    this.ignoresNoTransform = ignoresNoTransform;
    this.counters = Object.fromEntries(
      Object.entries(counters).map(([key, name]) => [key, context.counter(name)]),
    ) as Direction['counters'];
    this.enabled = context.runtime.derived((values) => values.flag(enabled.key) ?? enabled.default);
  }
}

/** What all requests of a connection manager share. */
class Decompressors {
  readonly library: DecompressorLibrary;
  readonly encoding: string;
  readonly advertises: boolean;
  readonly request: Direction;
  readonly response: Direction;
  readonly #bombs: FilterCounter;
  readonly #others: FilterCounter;
  readonly #byCode: ReadonlyMap<string, FilterCounter>;

  constructor({ library, advertises, request, response, failures }: DecompressorSettings, context: FilterContext) {
    this.library = library;
    this.encoding = ENCODING_OF[library.kind];
    this.advertises = advertises;
    this.request = new Direction(request, context);
    this.response = new Direction(response, context);
    this.#bombs = context.counter(failures.bombs);
    this.#others = context.counter(failures.others);
    this.#byCode = new Map(Object.entries(failures.byCode).map(([code, name]) => [code, context.counter(name)]));
  }

  countFailure(failure: RecodingFailure, code: string): void {
    const counter = failure === 'bomb' ? this.#bombs : (this.#byCode.get(code) ?? this.#others);
    counter.add(1);
  }
}

class DecompressorFilter implements HttpFilter {
  readonly #decompressors: Decompressors;
  readonly #callbacks: FilterCallbacks;
  #request: Recoder | null = null;
  #response: Recoder | null = null;

  constructor(decompressors: Decompressors, callbacks: FilterCallbacks) {
    this.#decompressors = decompressors;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const { request, response, advertises, encoding } = this.#decompressors;
    if (advertises && response.enabled.value) advertise(head, encoding);
    if (isEnd || !this.#wants(request, head)) {
      request.counters.not_decompressed.add(1);
      this.#callbacks.leaveRequest();
      return 'continue';
    }
    this.#request = this.#decompress(request, (...part) => this.#callbacks.exchangeRequest(...part), REQUEST_FAILURES);
    return begin(head);
  }

  decodeData({ bytes, isEnd }: BodyData): FilterStatus {
    return this.#request?.see(bytes, isEnd) ?? 'continue';
  }

  decodeTrailers(): FilterStatus {
    return this.#request?.seeTrailers() ?? 'continue';
  }

  onRequestRoom(): void {
    this.#request?.onRoom();
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    const { response } = this.#decompressors;
    const { isLocalReply } = this.#callbacks;
    const isPart = status === PARTIAL_CONTENT || head.hasField('content-range');
    if (isLocalReply || isPart || !this.#wants(response, head) || isEnd) {
      response.counters.not_decompressed.add(1);
      if (!isLocalReply) this.#callbacks.leaveResponse();
      return 'continue';
    }
    this.#response = this.#decompress(
      response,
      (...part) => this.#callbacks.exchangeResponse(...part),
      RESPONSE_FAILURES,
    );
    const etag = head.headerByName('etag');
    if (etag !== undefined && !WEAK.test(etag)) replaceField(head, 'etag', `W/${etag}`);
    // Ranges would be those of what the upstream has sent.
    head.removeField('accept-ranges');
    return begin(head);
  }

  encodeData({ bytes, isEnd }: BodyData): FilterStatus {
    return this.#response?.see(bytes, isEnd) ?? 'continue';
  }

  encodeTrailers(): FilterStatus {
    return this.#response?.seeTrailers() ?? 'continue';
  }

  onResponseRoom(): void {
    this.#response?.onRoom();
  }

  onDestroy(): void {
    this.#request?.destroy();
    this.#response?.destroy();
  }

  #wants({ enabled, ignoresNoTransform }: Direction, head: EditableHead): boolean {
    return (
      enabled.value &&
      !this.#callbacks.awaitsTunnel &&
      isEncodedBy(this.#decompressors.encoding, head) &&
      (ignoresNoTransform || !forbidsTransform(head))
    );
  }

  #decompress(
    { counters }: Direction,
    exchange: RecodingOwner['exchange'],
    replies: Readonly<Record<RecodingFailure, LocalReply>>,
  ): Recoder {
    const { library } = this.#decompressors;
    counters.decompressed.add(1);
    return new Recoder(
      {
        create: (first) => createDecompressor(library, first),
        headBytes: library.kind === 'zstd' && library.dictionaries.length > 0 ? ZSTD_HEAD_BYTES : 0,
        limit: library.limit,
        inBytes: counters.total_compressed_bytes,
        outBytes: counters.total_uncompressed_bytes,
        wrapsNothing: false,
      },
      {
        exchange,
        onRecodingFailure: (failure, code) => {
          this.#decompressors.countFailure(failure, code);
          this.#callbacks.reply(replies[failure]);
        },
      },
    );
  }
}

/** The head loses the encoding that was put on last. */
function begin(head: EditableHead): FilterStatus {
  const codings = codingsOf(head);
  const rest = codings.slice(0, -1).join(', ');
  if (rest === '') head.removeField('content-encoding');
  else replaceField(head, 'content-encoding', rest);
  // Its first bytes are on their way, and may be all there are.
  return head.hasField('content-length') ? 'stop-and-pause' : 'continue';
}

/** In the order in which they were put on (RFC 9110 section 8.4). */
function codingsOf(head: EditableHead): readonly string[] {
  const codings = head.headerByName('content-encoding')?.split(',') ?? [];
  return codings.map((coding) => coding.trim()).filter((coding) => coding !== '');
}

function isEncodedBy(encoding: string, head: EditableHead): boolean {
  const last = codingsOf(head).at(-1)?.toLowerCase();
  return last === encoding || (last === 'x-gzip' && encoding === 'gzip');
}

/** Adds the encoding to what the client accepts, unless it accepts it itself. */
function advertise(head: EditableHead, encoding: string): void {
  const accepted = head.headerByName('accept-encoding');
  const elements = accepted?.split(',').filter((element) => element.trim() !== '') ?? [];
  const named = elements.filter((element) => element.split(';')[0]!.trim().toLowerCase() === encoding);
  if (named.length > 0 && !named.some((element) => REFUSED.test(element))) return;
  const others = elements.filter((element) => !named.includes(element)).map((element) => element.trim());
  replaceField(head, 'accept-encoding', [...others, encoding].join(', '));
}

export const DECOMPRESSOR_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  compile(settings, context) {
    const decompressors = new Decompressors(settings as DecompressorSettings, context);
    return (callbacks) => new DecompressorFilter(decompressors, callbacks);
  },
};
