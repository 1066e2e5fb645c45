// Compresses responses for clients that want it, and requests when told. Worker thread; step 3 of the request flow.
//
//   request head ──► what the client accepts, kept for the answer ──► body compressed? ──► upstream
//   client ◄── body compressed? ◄── type, length, status, ETag, Cache-Control ◄── response head
//
// Several in one chain, one for each encoding, choose together: the one that the client likes best compresses, the others
// let the response pass. What is left alone keeps its framing and is looked at by nobody.

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
import { createCompressor } from '../../compression/engines.ts';
import { forbidsTransform } from '../../compression/no-transform.ts';
import { Recoder, type RecodingOwner } from '../../compression/recoder.ts';
import { type CompressorLibrary, ENCODING_OF } from '../../compression/settings.ts';
import { type Candidate, chooseEncoding } from './accept-encoding.ts';
import type {
  CompressorRouteSettings,
  CompressorSettings,
  DirectionCounter,
  DirectionSettings,
  ResponseCounter,
} from './settings.ts';

type CountersOf<Counted extends string> = Readonly<Record<Counted, FilterCounter>>;
type Counters = CountersOf<ResponseCounter>;
type DirectionCounters = CountersOf<DirectionCounter>;

/** What the status header says. */
type Verdict =
  | 'Compressed'
  | 'ContentLengthTooSmall'
  | 'ContentTypeNotAllowed'
  | 'EtagNotAllowed'
  | 'StatusCodeNotAllowed';

const KEY = 'filters.http.compressor';
const PARTIAL_CONTENT = 206;
const DIGITS = /^\d+$/;
const WEAK = /^W\//i;

const COMPRESSION_FAILED: LocalReply = {
  status: 500,
  body: 'compression failed',
  flag: '-',
  details: 'compression_failed',
};

/** What all requests of a connection manager share of one direction. */
class Direction<Counted extends ResponseCounter = DirectionCounter> {
  readonly settings: DirectionSettings<Counted | DirectionCounter>;
  readonly counters: CountersOf<Counted | DirectionCounter>;
  readonly enabled: RuntimeDerived<boolean>;
  readonly #types: ReadonlySet<string>;

  constructor(settings: DirectionSettings<Counted | DirectionCounter>, context: FilterContext) {
    this.settings = settings;
    const counters = Object.entries<string>(settings.counters).map(([key, name]) => [key, context.counter(name)]);
    this.counters = Object.fromEntries(counters) as CountersOf<Counted | DirectionCounter>;
    const { key, default: byDefault } = settings.enabled;
    this.enabled = context.runtime.derived((values) => values.flag(key) ?? byDefault);
    this.#types = new Set(settings.contentTypes);
  }

  /** Of a message that does not say its type nobody knows any better. */
  allowsType(head: EditableHead): boolean {
    const type = head.headerByName('content-type');
    if (type === undefined) return true;
    const end = type.indexOf(';');
    return this.#types.has((end < 0 ? type : type.slice(0, end)).trim().toLowerCase());
  }

  /** @returns true where nobody knows how long it is. */
  isLongEnough(head: EditableHead): boolean {
    const length = head.headerByName('content-length');
    if (length === undefined || !DIGITS.test(length)) return true;
    if (Number(length) >= this.settings.minLength) return true;
    this.counters.content_length_too_small.add(1);
    return false;
  }
}

/** What all requests of a connection manager share. */
class Compressors {
  readonly settings: CompressorSettings;
  readonly request: Direction | null;
  readonly response: Direction<ResponseCounter>;
  readonly exemptStatuses: ReadonlySet<number>;
  readonly statusHeader: string;
  readonly #olderUsed: FilterCounter | null;

  constructor(settings: CompressorSettings, context: FilterContext) {
    this.settings = settings;
    const { request, response, olderUsedCounter } = settings;
    this.request = request && new Direction(request, context);
    this.response = new Direction<ResponseCounter>(response, context);
    this.exemptStatuses = new Set(response.exemptStatuses);
    this.statusHeader = context.headerNames.compressionStatus;
    this.#olderUsed = olderUsedCounter === '' ? null : context.counter(olderUsedCounter);
  }

  countUsed(): void {
    this.response.counters.header_compressor_used.add(1);
    this.#olderUsed?.add(1);
  }
}

/** The compressors that a request has met, with what its client accepts. */
class Negotiation {
  /** As it came: any of them may keep it from those behind. */
  readonly acceptEncoding: string | undefined;
  /** In the order of the chain. */
  readonly filters: CompressorFilter[] = [];

  constructor(acceptEncoding: string | undefined) {
    this.acceptEncoding = acceptEncoding;
  }
}

class CompressorFilter implements HttpFilter, Candidate {
  readonly #compressors: Compressors;
  readonly #callbacks: FilterCallbacks;
  readonly #route: CompressorRouteSettings | undefined;
  #negotiation: Negotiation | null = null;
  #request: Recoder | null = null;
  #response: Recoder | null = null;

  constructor(compressors: Compressors, callbacks: FilterCallbacks) {
    this.#compressors = compressors;
    this.#callbacks = callbacks;
    this.#route = (callbacks.routeSettings as readonly CompressorRouteSettings[])[0];
  }

  get encoding(): string {
    return ENCODING_OF[this.#library.kind];
  }

  get isChosenFirst(): boolean {
    return this.#compressors.settings.isChosenFirst;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const { request, response } = this.#compressors;
    this.#negotiation = this.#callbacks.shared(KEY, () => new Negotiation(head.headerByName('accept-encoding')));
    this.#negotiation.filters.push(this);
    const { removesAcceptEncoding } = this.#compressors.settings.response;
    const removes = this.#route?.removesAcceptEncoding ?? removesAcceptEncoding;
    if (removes && this.#compressesResponses(response)) head.removeField('accept-encoding');
    if (request === null) return 'continue';
    if (isEnd || this.#callbacks.awaitsTunnel || !this.#wantsRequest(request, head)) {
      request.counters.not_compressed.add(1);
      this.#callbacks.leaveRequest();
      return 'continue';
    }
    request.counters.compressed.add(1);
    head.append('content-encoding', this.encoding);
    const { counters } = request;
    this.#request = this.#compress(counters, (...part) => this.#callbacks.exchangeRequest(...part));
    return 'stop-and-pause';
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
    const { response } = this.#compressors;
    const { counters } = response;
    const isOwn = this.#callbacks.isLocalReply;
    if (this.#compressesResponse(response, head, status, isEnd || isOwn)) {
      counters.compressed.add(1);
      this.#response = this.#compress(counters, (...part) => this.#callbacks.exchangeResponse(...part));
      // Its first bytes are on their way, and may be all there are.
      return head.hasField('content-length') ? 'stop-and-pause' : 'continue';
    }
    counters.not_compressed.add(1);
    if (!isOwn) this.#callbacks.leaveResponse();
    return 'continue';
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

  /** Responses of this type may be compressed here. */
  allowsResponse(head: EditableHead): boolean {
    const { response } = this.#compressors;
    return this.#compressesResponses(response) && response.allowsType(head);
  }

  get #library(): CompressorLibrary {
    return this.#route?.library ?? this.#compressors.settings.library;
  }

  #compressesResponses({ enabled }: Direction<ResponseCounter>): boolean {
    return this.#route?.enablesResponses === true || enabled.value;
  }

  #wantsRequest(request: Direction, head: RequestHead): boolean {
    return (
      request.enabled.value &&
      head.hasField('content-length') &&
      !head.hasField('content-encoding') &&
      request.allowsType(head) &&
      request.isLongEnough(head)
    );
  }

  /** Judges the response, and edits its head accordingly. */
  #compressesResponse(
    response: Direction<ResponseCounter>,
    head: EditableHead,
    status: number,
    hasNoBody: boolean,
  ): boolean {
    if (!this.#compressesResponses(response) || this.#callbacks.awaitsTunnel) return false;
    // A part says of the whole where it belongs.
    if (status === PARTIAL_CONTENT || head.hasField('content-range')) return false;
    if (this.#callbacks.isLocalReply) return false;
    const verdict = this.#verdict(response, head, status);
    const isPossible = verdict === 'Compressed' && !head.hasField('content-encoding') && !forbidsTransform(head);
    const isAccepted = verdict !== 'ContentLengthTooSmall' && this.#isAccepted(response.counters, head);
    if (isPossible) addVary(head);
    const isDone = isPossible && isAccepted && !hasNoBody;
    if (isDone) this.#describe(head);
    // A length that the answer to a GET would not have.
    else if (isPossible && isAccepted) head.removeField('content-length');
    if (isDone || verdict !== 'Compressed') this.#tellStatus(head, verdict);
    return isDone;
  }

  #verdict(response: Direction<ResponseCounter>, head: EditableHead, status: number): Verdict {
    const { disablesOnEtag, weakensEtag } = this.#compressors.settings.response;
    if (!response.isLongEnough(head)) return 'ContentLengthTooSmall';
    if (!response.allowsType(head)) return 'ContentTypeNotAllowed';
    if (disablesOnEtag && !weakensEtag && head.hasField('etag')) {
      response.counters.not_compressed_etag.add(1);
      return 'EtagNotAllowed';
    }
    return this.#compressors.exemptStatuses.has(status) ? 'StatusCodeNotAllowed' : 'Compressed';
  }

  #isAccepted(counters: Counters, head: EditableHead): boolean {
    const { acceptEncoding, filters } = this.#negotiation ?? { acceptEncoding: undefined, filters: [] };
    if (acceptEncoding === undefined) {
      counters.no_accept_header.add(1);
      return false;
    }
    const { chosen, by } = chooseEncoding(
      acceptEncoding,
      filters.filter((filter) => filter === this || filter.allowsResponse(head)),
    );
    if (by === 'identity') counters.header_identity.add(1);
    else if (by === 'nothing') counters.header_not_valid.add(1);
    else if (by === 'wildcard') counters.header_wildcard.add(1);
    else if (chosen === this) this.#compressors.countUsed();
    else counters.header_compressor_overshadowed.add(1);
    return chosen === this;
  }

  #describe(head: EditableHead): void {
    head.append('content-encoding', this.encoding);
    // Ranges would be those of what the upstream has sent.
    head.removeField('accept-ranges');
    const etag = head.headerByName('etag');
    if (etag === undefined || WEAK.test(etag)) return;
    if (this.#compressors.settings.response.weakensEtag) replaceField(head, 'etag', `W/${etag}`);
    else head.removeField('etag');
  }

  #tellStatus(head: EditableHead, verdict: Verdict): void {
    if (!this.#compressors.settings.response.hasStatusHeader) return;
    const { statusHeader } = this.#compressors;
    const length = verdict === 'Compressed' ? head.headerByName('content-length') : undefined;
    const said = `${this.encoding};${verdict}${length === undefined ? '' : `;OriginalLength=${length}`}`;
    const before = head.headerByName(statusHeader);
    replaceField(head, statusHeader, before === undefined ? said : `${before},${said}`);
  }

  #compress(counters: DirectionCounters, exchange: RecodingOwner['exchange']): Recoder {
    const library = this.#library;
    return new Recoder(
      {
        create: () => createCompressor(library),
        headBytes: 0,
        limit: null,
        inBytes: counters.total_uncompressed_bytes,
        outBytes: counters.total_compressed_bytes,
        wrapsNothing: true,
      },
      { exchange, onRecodingFailure: () => this.#callbacks.reply(COMPRESSION_FAILED) },
    );
  }
}

/** What is stored of the answer is not for clients that accept something else. */
function addVary(head: EditableHead): void {
  const vary = head.headerByName('vary');
  if (vary === undefined) {
    head.append('vary', 'Accept-Encoding');
    return;
  }
  const names = vary.split(',').map((name) => name.trim().toLowerCase());
  if (!names.includes('*') && !names.includes('accept-encoding'))
    replaceField(head, 'vary', `${vary}, Accept-Encoding`);
}

export const COMPRESSOR_FILTER: HttpFilterKind = {
  requestBody: 'edits',
  encodes: true,
  responseBody: 'edits',
  usesOf: (settings) => ((settings as CompressorSettings).request === null ? { requestBody: 'none' } : {}),
  compile(settings, context) {
    const compressors = new Compressors(settings as CompressorSettings, context);
    return (callbacks) => new CompressorFilter(compressors, callbacks);
  },
};
