// One direction of a stream through filters that do what a script says, without a codec and a connection. Notes what
// filters see, and what leaves.

import fc from 'fast-check';
import { BodyPlan } from '../../src/data-plane/http/body-uses.ts';
import type { BodyUse, FilterStatus } from '../../src/data-plane/http/filter.ts';
import { FilterPass } from '../../src/data-plane/http/filter-pass.ts';
import type { MessagePart } from '../../src/data-plane/http/message-part.ts';
import { Trailers } from '../../src/data-plane/http/trailers.ts';
import { Framing } from '../../src/wasm/http1.ts';

const NO_BYTES = Buffer.alloc(0);

/** What a filter does when it sees a part, before it returns the status. */
const DEEDS = [
  'nothing',
  'go on',
  'go on for another',
  'leave',
  'only read',
  'add',
  'edit',
  'aside',
  'abandon',
] as const;

interface Visit {
  readonly deed: (typeof DEEDS)[number];
  readonly status: FilterStatus;
}

export interface FilterScript {
  readonly use: BodyUse;
  /** Of the head, and of what follows in turn; behind the last it lets all go on. */
  readonly visits: readonly Visit[];
}

type Event =
  | { readonly type: 'data'; readonly size: number; readonly isEnd: boolean; readonly hasTrailers: boolean }
  | { readonly type: 'go on' | 'edit head' | 'add late'; readonly index: number }
  | { readonly type: 'release'; readonly index: number; readonly bytes: number }
  | {
      readonly type: 'exchange';
      readonly index: number;
      readonly taken: number;
      readonly size: number;
      readonly isLast: boolean;
    }
  | { readonly type: 'drain' | 'collect' | 'abandon' };

export interface PassScript {
  readonly filters: readonly FilterScript[];
  readonly limitBytes: number;
  readonly isChunked: boolean;
  readonly isTunnel: boolean;
  /** What comes with the head. */
  readonly first: Extract<Event, { type: 'data' }>;
  readonly events: readonly Event[];
  /** Whether the receiver takes more, of each delivery in turn; behind the last it does. */
  readonly room: readonly boolean[];
}

const status = fc.oneof(
  { weight: 5, arbitrary: fc.constant<FilterStatus>('continue') },
  { weight: 2, arbitrary: fc.constantFrom<FilterStatus>('stop', 'stop-and-pause') },
);
const visit = fc.record({
  deed: fc.oneof({ weight: 6, arbitrary: fc.constant('nothing' as const) }, fc.constantFrom(...DEEDS)),
  status,
});
const filter = fc.record({
  use: fc.constantFrom<BodyUse>('none', 'none', 'reads', 'edits'),
  visits: fc.array(visit, { maxLength: 4 }),
});
const data = fc.record({
  type: fc.constant('data' as const),
  size: fc.constantFrom(0, 1, 5, 40),
  isEnd: fc.boolean(),
  hasTrailers: fc.boolean(),
});
const index = fc.integer({ min: 0, max: 3 });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: data },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('go on', 'edit head', 'add late'), index }) },
  fc.record({ type: fc.constant('release' as const), index, bytes: fc.nat(20) }),
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('exchange' as const),
      index,
      taken: fc.nat(20),
      size: fc.constantFrom(0, 3, 60),
      isLast: fc.boolean(),
    }),
  },
  fc.record({ type: fc.constantFrom('drain', 'collect', 'abandon') }),
);

export const passScript: fc.Arbitrary<PassScript> = fc.record({
  filters: fc.array(filter, { minLength: 1, maxLength: 4 }),
  limitBytes: fc.constantFrom(10, 1000),
  isChunked: fc.boolean(),
  isTunnel: fc.boolean(),
  first: data,
  events: fc.array(event, { maxLength: 12 }),
  room: fc.array(fc.boolean(), { maxLength: 3 }),
});

/** @param held the parts of every message queue: a filter before all others holds the head until what came with it has come. */
export function runPass(script: PassScript, held = false): string[] {
  const pass = new ScriptedPass(script, held);
  pass.run();
  return pass.notes;
}

class ScriptedPass extends FilterPass {
  protected readonly isCopiedOnDelivery = false;
  readonly notes: string[] = [];
  readonly #script: PassScript;
  readonly #isHeld: boolean;
  /** Visits so far, of each filter. */
  readonly #turns: number[];
  #deliveries = 0;
  #hasEnded = false;
  #letter = 0;

  constructor(script: PassScript, isHeld: boolean) {
    const uses = script.filters.map(({ use }) => use);
    super(new BodyPlan(isHeld ? ['none', ...uses] : uses), script.limitBytes);
    this.#script = script;
    this.#isHeld = isHeld;
    this.#turns = script.filters.map(() => 0);
  }

  run(): void {
    const { first, events } = this.#script;
    this.#come(first);
    if (this.#isHeld) this.goOn(0);
    this.#noteState();
    for (const event of events) {
      this.#attempt(() => this.#act(event));
      this.#noteState();
    }
  }

  /** A filter of the script, as the pass counts them. */
  #placeOf(scripted: number): number {
    return this.#isHeld ? scripted + 1 : scripted;
  }

  #note(...words: readonly unknown[]): void {
    this.notes.push(words.join(' '));
  }

  #noteState(): void {
    const { heldBytes, headSeenBy, holdsHead, isTransparent } = this;
    this.#note('state', heldBytes, headSeenBy - this.#placeOf(0), holdsHead, isTransparent);
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#note('refused', (error as Error).message);
    }
  }

  #come({ size, isEnd, hasTrailers }: Extract<Event, { type: 'data' }>): void {
    const { isChunked, isTunnel } = this.#script;
    if (this.#hasEnded) return;
    this.#hasEnded = isEnd;
    const text = this.#text(size);
    const hasChunks = isChunked && !isTunnel;
    const chunk = size === 0 ? '' : `${size.toString(16)};a=b\r\n${text}\r\n`;
    const last = isEnd ? '0\r\n\r\n' : '';
    const bytes = Buffer.from(hasChunks ? chunk + last : text);
    const isBegun = this.hasBegun;
    // None come with a head alone: those of HTTP/2 come behind it.
    const withTrailers = isEnd && hasTrailers && !isTunnel && (isBegun || bytes.length > 0);
    const trailers = withTrailers ? new Trailers() : null;
    trailers?.append('x-sum', '7');
    const framing = isTunnel ? Framing.TUNNEL : hasChunks ? Framing.CHUNKED : Framing.LENGTH;
    if (!isBegun) this.begin(bytes, 0, bytes.length, isEnd, framing, trailers, isTunnel);
    else this.#note('wants more', this.push(bytes, 0, bytes.length, isEnd, trailers));
  }

  #act(event: Event): void {
    switch (event.type) {
      case 'data':
        this.#come(event);
        return;
      case 'go on':
        this.goOn(this.#placeOf(event.index % this.#turns.length));
        return;
      case 'edit head':
        this.reviveHeadFor(this.#placeOf(event.index % this.#turns.length));
        return;
      case 'add late':
        this.addData(this.#placeOf(event.index % this.#turns.length), Buffer.from('late'));
        return;
      case 'release':
        this.#note('still held', this.release(this.#placeOf(event.index % this.#turns.length), event.bytes));
        return;
      case 'exchange': {
        const place = this.#placeOf(event.index % this.#turns.length);
        const bytes = Buffer.from(this.#text(event.size).toUpperCase());
        this.#note('has room', this.exchange(place, event.taken, bytes, event.isLast));
        return;
      }
      case 'drain':
        this.onReceiverDrain();
        return;
      case 'abandon':
        this.abandon();
        return;
      case 'collect': {
        const { bytes, isEnd, trailers } = this.collectHeld() ?? {};
        this.#note('collected', bytes, isEnd, trailers?.size);
        return;
      }
    }
  }

  #text(size: number): string {
    this.#letter += 1;
    return String.fromCharCode(97 + (this.#letter % 26)).repeat(size);
  }

  protected override visitHead(place: number, isEnd: boolean): FilterStatus {
    if (this.#isHeld && place === 0) return 'stop-and-pause';
    this.#note('filter', place - this.#placeOf(0), 'sees the head', isEnd);
    return this.#do(place, null);
  }

  protected override visitData(place: number, part: MessagePart): FilterStatus | undefined {
    this.#note('filter', place - this.#placeOf(0), 'sees', part.bytes, part.isEnd);
    return this.#do(place, part);
  }

  protected override visitTrailers(place: number, trailers: Trailers): FilterStatus {
    this.#note('filter', place - this.#placeOf(0), 'sees trailers', trailers.text());
    return this.#do(place, null);
  }

  #do(place: number, part: MessagePart | null): FilterStatus {
    const scripted = place - this.#placeOf(0);
    const turn = this.#turns[scripted]!;
    this.#turns[scripted] = turn + 1;
    const { deed, status } = this.#script.filters[scripted]!.visits[turn] ?? { deed: 'nothing', status: 'continue' };
    this.#attempt(() => this.#perform(deed, place, part));
    const { headSeenBy, holdsHead, isTransparent } = this;
    this.#note('meanwhile', headSeenBy - this.#placeOf(0), holdsHead, isTransparent);
    return status;
  }

  #perform(deed: Visit['deed'], place: number, part: MessagePart | null): void {
    switch (deed) {
      case 'nothing':
        return;
      case 'go on':
        this.goOn(place);
        return;
      case 'go on for another':
        this.goOn(this.#placeOf((place - this.#placeOf(0) + 1) % this.#turns.length));
        return;
      case 'leave':
        this.leave(place);
        return;
      case 'only read':
        // The others have nothing that they could do without.
        if (this.#script.filters[place - this.#placeOf(0)]!.use === 'edits') this.leave(place, 'reads');
        return;
      case 'add':
        if (part === null) this.addData(place, Buffer.from('added'));
        else part.addTrailers().append('x-added', '1');
        return;
      case 'edit':
        if (part === null) this.reviveHeadFor(place);
        else part.bytes = Buffer.from(part.bytes.toString().repeat(2));
        return;
      case 'aside':
        if (this.hasLiveHead && this.putHeadAside()) this.takeHeadBack();
        return;
      case 'abandon':
        this.abandon();
        return;
    }
  }

  protected override visitWithRoom(place: number): void {
    this.#note('filter', place - this.#placeOf(0), 'has room');
  }

  protected override saveHead(): boolean {
    return true;
  }

  protected override restoreHead(): void {}

  protected override mayHaveBody(): boolean {
    return true;
  }

  protected override reframe(length: number | null): void {
    this.#note('announces', length);
  }

  protected override deliver(
    withHead: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    const hasRoom = this.#script.room[this.#deliveries] ?? true;
    this.#deliveries += 1;
    this.#note(withHead ? 'head and' : 'leaves', bytes.subarray(start, end), isEnd, trailers?.text());
    return hasRoom;
  }

  protected override keepBytes(bytes: Buffer, start: number, end: number): Buffer {
    return start === end ? NO_BYTES : Buffer.from(bytes.subarray(start, end));
  }

  protected override resumeReading(): void {}

  protected override onOverflow(): void {
    this.#note('overflow');
    this.abandon();
  }
}
