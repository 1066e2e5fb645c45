// The credit of a session, both ways, whatever becomes of its streams: what a peer has sent comes back to it as window of the
// connection once its users are done with it, also for streams that were broken off in between; and what this side sends is
// within the windows that the peer has given, and all of it as soon as there are enough.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ErrorCode, FrameFlag, FrameType, Setting } from '../../../../../../src/data-plane/http/codec/http2/frames.ts';
import type { SessionStream, StreamHandler } from '../../../../../../src/data-plane/http/codec/http2/session-stream.ts';
import { frame, headers, POST, TestSession, word } from '../../../../../support/http2-session.ts';

const DEFAULT_WINDOW = 65_535;
const FRAME_BYTES = 16_384;
/** Not one of the sizes in which frames and windows come. */
const PERIOD = 251;
const CONTENT = Buffer.from(Uint8Array.from({ length: 300_000 + PERIOD }, (_, at) => at % PERIOD));
/** So that no guard against floods says anything: that is not the question here. */
const NO_GUARD = { maxWindowUpdatesPerDataFrame: 1e6, maxConsecutiveEmptyFrames: 1e6 };

const SILENT: StreamHandler = {
  onHead() {},
  onInterimHead() {},
  onData() {},
  onTrailers() {},
  onReset() {},
  onWritable() {},
};

type Step<Model> = (model: Model) => void;

/** A step that shows what it is when a property fails. */
function step<Model, Input>(name: string, input: fc.Arbitrary<Input>, act: (model: Model, input: Input) => void) {
  return input.map(
    (value): Step<Model> =>
      Object.assign((model: Model) => act(model, value), {
        [fc.toStringMethod]: () => `${name} ${fc.stringify(value)}`,
      }),
  );
}

const which = fc.nat(20);

/** A client that sends content to a session, within the windows that it has been given, and users that take it or do not. */
class Uploads {
  readonly #windowBytes: number;
  readonly #streamBytes: number;
  readonly #test: TestSession;
  #nextId = 1;
  /** What the client may still send. */
  #window: number;
  readonly #windows = new Map<number, number>();
  /** Streams that the client may send to. */
  readonly #open: SessionStream[] = [];
  /** Those that the session has broken off, which the client may not know. */
  readonly #broken = new Set<number>();
  /** What users have not done with, of streams that live or not: the stream's credit, and perhaps the connection's. */
  readonly #held: { readonly stream: SessionStream; readonly octets: number; readonly isKept: boolean }[] = [];

  constructor(windowBytes: number, streamBytes: number) {
    this.#windowBytes = windowBytes;
    this.#streamBytes = streamBytes;
    this.#window = windowBytes;
    const options = { ...NO_GUARD, connectionWindowBytes: windowBytes, streamWindowBytes: streamBytes };
    this.#test = TestSession.server(options);
    this.#test.answer = (stream) => {
      stream.handler = {
        ...SILENT,
        onData: (_bytes, start, end) => void this.#held.push({ stream, octets: end - start, isKept: false }),
      };
    };
  }

  request(): void {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#test.feed(headers(id, POST, 0));
    const stream = this.#test.streams.at(-1)!;
    assert.equal(this.#test.session.respondLines(stream, 200, '', false), 0);
    this.#open.push(stream);
    this.#windows.set(id, this.#streamBytes);
    this.#read();
  }

  /** @param padding of the frame, with the octet that says how much; 0 for none. @param cut where its bytes are cut in two. */
  send(n: number, octets: number, padding: number, isEnd: boolean, cut: number): void {
    const stream = this.#pick(n);
    if (stream === null) return;
    const { id } = stream;
    const most = Math.min(this.#window, this.#windows.get(id) ?? 0, FRAME_BYTES);
    const length = Math.min(octets, Math.max(0, most - padding));
    if (length + padding > most) return;
    const pad = padding === 0 ? [] : [Buffer.from([padding - 1])];
    const payload = Buffer.concat([...pad, Buffer.alloc(length), Buffer.alloc(Math.max(0, padding - 1))]);
    const flags = (padding > 0 ? FrameFlag.PADDED : 0) | (isEnd ? FrameFlag.END_STREAM : 0);
    const bytes = frame(FrameType.DATA, flags, id, payload);
    this.#window -= payload.length;
    this.#windows.set(id, this.#windows.get(id)! - payload.length);
    const at = Math.min(cut, bytes.length);
    this.#test.feed(bytes.subarray(0, at)).feed(bytes.subarray(at));
    if (isEnd) this.#forget(stream);
    this.#read();
  }

  resetByClient(n: number): void {
    const stream = this.#pick(n);
    if (stream === null) return;
    this.#test.feed(frame(FrameType.RST_STREAM, 0, stream.id, word(ErrorCode.CANCEL)));
    this.#forget(stream);
    this.#read();
  }

  /** The client does not know yet, and goes on sending. */
  resetHere(n: number): void {
    const stream = this.#pick(n);
    if (stream === null) return;
    this.#test.session.reset(stream, ErrorCode.CANCEL);
    this.#read();
  }

  /** The answer is complete, and nobody wants the rest of the request. */
  discard(n: number): void {
    const stream = this.#pick(n);
    if (stream === null || stream.isLocalEnded) return;
    this.#test.session.discard(stream);
    this.#test.session.send(stream, Buffer.alloc(0), 0, 0, true);
    this.#read();
  }

  consume(n: number): void {
    if (this.#held.length === 0) return;
    const { stream, octets, isKept } = this.#held.splice(n % this.#held.length, 1)[0]!;
    if (isKept) this.#test.session.consumeKept(stream, octets);
    else this.#test.session.consume(stream, octets);
    this.#read();
  }

  keep(n: number): void {
    const index = n % Math.max(1, this.#held.length);
    const held = this.#held[index];
    if (held === undefined || held.isKept) return;
    this.#test.session.keep(held.octets);
    this.#held[index] = { ...held, isKept: true };
    this.#read();
  }

  /** Every user takes what it holds. */
  finish(): void {
    while (this.#held.length > 0) this.consume(0);
  }

  #pick(n: number): SessionStream | null {
    return this.#open[n % Math.max(1, this.#open.length)] ?? null;
  }

  #forget(stream: SessionStream): void {
    this.#open.splice(this.#open.indexOf(stream), 1);
  }

  /** Takes what the session says, and holds what the client may send now against what has been made of what it has sent. */
  #read(): void {
    for (const { type, streamId, payload } of this.#test.take()) {
      if (type === FrameType.RST_STREAM) this.#broken.add(streamId);
      if (type !== FrameType.WINDOW_UPDATE) continue;
      const more = payload.readUInt32BE();
      if (streamId === 0) this.#window += more;
      else this.#windows.set(streamId, this.#windows.get(streamId)! + more);
    }
    assert.equal(this.#test.fault, null);
    const unread = this.#held.reduce((sum, { octets, isKept }) => sum + (isKept ? 0 : octets), 0);
    this.#within(this.#window, this.#windowBytes, unread, 'the connection');
    for (const { id, isDiscarded } of this.#open) {
      // One whose content is thrown away gets no more credit, and one that was reset here none, either.
      if (isDiscarded || this.#broken.has(id)) continue;
      const ofStream = this.#held.reduce((sum, { stream, octets }) => sum + (stream.id === id ? octets : 0), 0);
      this.#within(this.#windows.get(id)!, this.#streamBytes, ofStream, `stream ${id}`);
    }
  }

  /** Less than half of a window is given back later, all at once. */
  #within(window: number, full: number, unread: number, what: string): void {
    const missing = full - unread - window;
    assert.ok(missing >= 0, `${what} has been given ${-missing} octets too many`);
    assert.ok(missing * 2 < full, `${what} lacks ${missing} octets of ${full}`);
  }
}

const uploadSteps = fc.oneof(
  { weight: 3, arbitrary: step('request', fc.constant(null), (model: Uploads) => model.request()) },
  {
    weight: 12,
    arbitrary: step(
      'send',
      fc.tuple(which, fc.nat(20_000), fc.constantFrom(0, 0, 0, 1, 2, 200), fc.nat(9), fc.nat(17_000)),
      (model: Uploads, [n, octets, padding, end, cut]) => model.send(n, octets, padding, end === 0, cut),
    ),
  },
  { weight: 2, arbitrary: step('reset by the client', which, (model: Uploads, n) => model.resetByClient(n)) },
  { weight: 2, arbitrary: step('reset here', which, (model: Uploads, n) => model.resetHere(n)) },
  { weight: 1, arbitrary: step('discard', which, (model: Uploads, n) => model.discard(n)) },
  { weight: 6, arbitrary: step('consume', which, (model: Uploads, n) => model.consume(n)) },
  { weight: 2, arbitrary: step('keep', which, (model: Uploads, n) => model.keep(n)) },
);

test('what a client has sent comes back to it as credit, whatever becomes of its streams', () => {
  const windows = fc.constantFrom(DEFAULT_WINDOW, 100_000);
  const uploads = fc.array(uploadSteps, { minLength: 20, maxLength: 120 });
  fc.assert(
    fc.property(windows, windows, uploads, (windowBytes, streamBytes, steps) => {
      const model = new Uploads(windowBytes, streamBytes);
      model.request();
      for (const act of steps) act(model);
      model.finish();
    }),
    { numRuns: 300 },
  );
});

/** So many octets of an answer behind the first ones: each says where it is. */
function content(at: number, length: number): Buffer {
  return CONTENT.subarray(at % PERIOD, (at % PERIOD) + length);
}

/** One answer as its client sees it. */
class Answer {
  readonly stream: SessionStream;
  window: number;
  /** Octets that the session was given, and those that have come. */
  given = 0;
  came = 0;
  isEnded = false;
  /** Whoever sends it waits to be told to go on. */
  waits = false;

  constructor(stream: SessionStream, window: number) {
    this.stream = stream;
    this.window = window;
  }

  onWritable(): void {
    this.waits = false;
  }
}

/** Answers that a session sends to a client, which gives it windows. */
class Downloads {
  readonly #test = TestSession.server(NO_GUARD);
  #nextId = 1;
  /** What the client has given of the connection, and to a stream that begins. */
  #window = DEFAULT_WINDOW;
  #initial = DEFAULT_WINDOW;
  readonly #answers: Answer[] = [];

  constructor() {
    // Who has had content may widen windows as often as it likes.
    this.request();
    this.send(0, 1, false);
  }

  request(): void {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#test.feed(headers(id));
    const stream = this.#test.streams.at(-1)!;
    const answer = new Answer(stream, this.#initial);
    stream.handler = { ...SILENT, onWritable: () => answer.onWritable() };
    this.#answers.push(answer);
    assert.equal(this.#test.session.respondLines(stream, 200, '', false), 0);
    this.#read();
  }

  /** Each octet says where in its answer it is. */
  send(n: number, octets: number, isEnd: boolean): void {
    const answer = this.#pick(n);
    if (answer === null || answer.isEnded) return;
    const bytes = content(answer.given, octets);
    answer.given += octets;
    answer.isEnded = isEnd;
    const isThrough = this.#test.session.send(answer.stream, bytes, 0, octets, isEnd);
    answer.waits = !isThrough;
    this.#read();
  }

  widenConnection(octets: number): void {
    this.#window += octets;
    this.#test.feed(frame(FrameType.WINDOW_UPDATE, 0, 0, word(octets)));
    this.#read();
  }

  widen(n: number, octets: number): void {
    const answer = this.#pick(n);
    if (answer === null) return;
    answer.window += octets;
    this.#test.feed(frame(FrameType.WINDOW_UPDATE, 0, answer.stream.id, word(octets)));
    this.#read();
  }

  setInitial(octets: number): void {
    // What has been framed already may come behind a setting that would not have let it.
    const { isRead } = this.#test;
    this.setReading(true);
    this.#test.isRead = isRead;
    for (const answer of this.#answers) answer.window += octets - this.#initial;
    this.#initial = octets;
    const setting = Buffer.concat([Buffer.from([0, Setting.INITIAL_WINDOW_SIZE]), word(octets)]);
    this.#test.feed(frame(FrameType.SETTINGS, 0, 0, setting));
    this.#read();
  }

  reset(n: number, isLocal: boolean): void {
    const answer = this.#pick(n);
    if (answer === null) return;
    this.#answers.splice(this.#answers.indexOf(answer), 1);
    if (isLocal) this.#test.session.reset(answer.stream, ErrorCode.CANCEL);
    else this.#test.feed(frame(FrameType.RST_STREAM, 0, answer.stream.id, word(ErrorCode.CANCEL)));
    this.#read();
  }

  /** The client reads again, or no more. */
  setReading(isRead: boolean): void {
    this.#test.isRead = isRead;
    if (isRead) this.#read();
  }

  /** There are windows for everything. */
  finish(): void {
    this.setReading(true);
    this.widenConnection(10_000_000);
    this.setInitial(5_000_000);
    for (const answer of [...this.#answers]) {
      assert.equal(answer.came, answer.given, `stream ${answer.stream.id} is complete`);
      assert.equal(answer.waits, false, `stream ${answer.stream.id} has heard that it may go on`);
    }
    assert.equal(this.#test.session.pendingBytes, 0);
  }

  #pick(n: number): Answer | null {
    return this.#answers[n % Math.max(1, this.#answers.length)] ?? null;
  }

  #read(): void {
    for (;;) {
      const frames = this.#test.take();
      if (frames.length === 0) break;
      for (const { type, streamId, payload } of frames) {
        if (type === FrameType.DATA) this.#content(streamId, payload);
      }
      if (!this.#test.isRead) break;
    }
    assert.equal(this.#test.fault, null);
    if (!this.#test.isRead) return;
    // What waits has no window: of its stream, or of the connection.
    for (const { stream, came, given, window } of this.#answers) {
      assert.ok(came === given || this.#window === 0 || window <= 0, `stream ${stream.id} waits for nothing`);
    }
    const waiting = this.#answers.reduce((sum, { came, given }) => sum + given - came, 0);
    assert.equal(this.#test.session.pendingBytes, waiting);
  }

  #content(streamId: number, payload: Buffer): void {
    this.#window -= payload.length;
    assert.ok(this.#window >= 0, 'the connection has a window for it');
    const answer = this.#answers.find(({ stream }) => stream.id === streamId);
    // It may have been on its way when the stream was broken off.
    if (answer === undefined) return;
    answer.window -= payload.length;
    assert.ok(answer.window >= 0 || payload.length === 0, `stream ${streamId} has a window for it`);
    assert.ok(payload.equals(content(answer.came, payload.length)), `stream ${streamId} brings its octets in order`);
    answer.came += payload.length;
  }
}

const octets = fc.constantFrom(1, 2, 1000, 16_384, 16_385, 70_000);
const downloadSteps = fc.oneof(
  { weight: 3, arbitrary: step('request', fc.constant(null), (model: Downloads) => model.request()) },
  {
    weight: 8,
    arbitrary: step(
      'send',
      fc.tuple(which, fc.constantFrom(0, 1, 1000, 16_384, 16_385, 70_000, 300_000), fc.nat(5)),
      (model: Downloads, [n, most, end]) => model.send(n, most, end === 0),
    ),
  },
  {
    weight: 4,
    arbitrary: step('widen the connection by', octets, (model: Downloads, more) => model.widenConnection(more)),
  },
  {
    weight: 4,
    arbitrary: step('widen', fc.tuple(which, octets), (model: Downloads, [n, more]) => model.widen(n, more)),
  },
  {
    weight: 1,
    arbitrary: step('initial window', fc.constantFrom(0, 1, 1000, 65_535, 200_000), (model: Downloads, size) =>
      model.setInitial(size),
    ),
  },
  {
    weight: 3,
    arbitrary: step('reset', fc.tuple(which, fc.boolean()), (model: Downloads, [n, isLocal]) =>
      model.reset(n, isLocal),
    ),
  },
  { weight: 1, arbitrary: step('reads', fc.boolean(), (model: Downloads, isRead) => model.setReading(isRead)) },
);

test('what is sent is within the windows of the client, and complete when they are wide enough', () => {
  fc.assert(
    fc.property(fc.array(downloadSteps, { minLength: 20, maxLength: 120 }), (steps) => {
      const model = new Downloads();
      for (const act of steps) act(model);
      model.finish();
    }),
    { numRuns: 300 },
  );
});
