// 100,000 frames with something wrong in them, over sessions of both roles: none throws, each is read in one way however
// it is cut, and what a session holds stays within its bounds.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FrameFlag, FrameType, PREFACE } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { codecs, data, frame, GET, headers, POST, SETTINGS, TestSession, word } from '../../support/http2-session.ts';

const FRAMES = 100_000;
const PER_SESSION = 20;

/** Numbers below 2^32 from a seed, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomFrame(pick: (below: number) => number, isServer: boolean): Buffer {
  const id = pick(4) * 2 + 1;
  const sound = [
    () => headers(id, isServer ? GET : [[':status', '200']], pick(2)),
    () =>
      headers(
        id,
        isServer
          ? [...POST, ['content-length', '3']]
          : [
              [':status', '200'],
              ['content-length', '2'],
            ],
        0,
      ),
    () => headers(id, [['x', 'y']]),
    () => data(id, 'abc', pick(2)),
    () => frame(FrameType.DATA, FrameFlag.PADDED, id, [1, 0x61, 0]),
    () => frame(FrameType.WINDOW_UPDATE, 0, pick(2) * id, word(pick(70_000))),
    () => frame(FrameType.RST_STREAM, 0, id, word(pick(14))),
    () => frame(FrameType.SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, pick(9)]), word(pick(70_000))])),
    () => frame(FrameType.PING, pick(2), 0, Buffer.alloc(8, pick(256))),
    () => frame(FrameType.PRIORITY, 0, id, Buffer.alloc(5)),
    () =>
      Buffer.concat([
        frame(FrameType.HEADERS, 0, id, Buffer.from([0x82, 0x86])),
        frame(FrameType.CONTINUATION, 4, id, Buffer.from([0x84, 0x41, 1, 0x61])),
      ]),
    () => frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8)),
  ];
  const bytes = sound[pick(sound.length)]!();
  // Most of them stay sound: otherwise no session lives long enough for what comes behind.
  for (let change = pick(5) === 0 ? 1 + pick(3) : 0; change > 0; change -= 1) bytes[pick(bytes.length)] = pick(256);
  return bytes;
}

interface Reading {
  readonly events: readonly string[];
  readonly stats: readonly string[];
  readonly fault: string | undefined;
}

function read(isServer: boolean, parts: readonly Buffer[]): Reading {
  const test = new TestSession(isServer, { isStreamErrorOnInvalidMessage: true });
  if (isServer) test.feed(PREFACE);
  test.feed(SETTINGS);
  if (!isServer)
    for (let stream = 0; stream < 4; stream += 1) test.request('POST / HTTP/1.1\r\nHost: a\r\n\r\n', stream < 2);
  test.answer = (stream) => void test.session.respondLines(stream, 200, 'a: b\r\n', stream.id % 4 === 1);
  for (const part of parts) test.feed(part);
  assert.ok(test.session.output.length < 100_000);
  assert.ok(test.session.streamCount <= 1024);
  test.take();
  test.session.close(0, true, 'end');
  // How content is cut into events is no reading of it.
  const events: string[] = [];
  for (const event of test.events) {
    const [id, kind, ...rest] = event.split(' ');
    const last = events.at(-1);
    if (kind === 'data' && last?.startsWith(`${id} data`) === true) events[events.length - 1] = last + rest.join(' ');
    else events.push(kind === 'data' ? `${id} data${rest.join(' ')}` : event);
  }
  return { events, stats: test.stats, fault: test.fault?.reason };
}

it('frames with faults are read in one way, or refused', () => {
  const pick = numbers(20261123);
  const faults = new Map<string, number>();
  for (let done = 0; done < FRAMES; done += PER_SESSION) {
    const isServer = pick(2) === 0;
    const frames = Array.from({ length: PER_SESSION }, () => randomFrame(pick, isServer));
    const whole = Buffer.concat(frames);
    const at = pick(whole.length);
    const step = 1 + pick(40);
    const slices: Buffer[] = [];
    for (let from = at; from < whole.length; from += step) slices.push(whole.subarray(from, from + step));
    const first = read(isServer, [whole]);
    assert.deepEqual(read(isServer, [whole.subarray(0, at), ...slices]), first);
    faults.set(first.fault ?? 'none', (faults.get(first.fault ?? 'none') ?? 0) + 1);
  }
  assert.ok(faults.size > 8, JSON.stringify([...faults]));
  assert.ok((faults.get('none') ?? 0) > 0);
  assert.equal(codecs.heads.tableBytes, 0);
});
