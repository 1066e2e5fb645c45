// 100,000 frames with something wrong in them, over sessions of both roles: none throws, each is read in one way however
// it is cut, and what a session holds stays within its bounds.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PREFACE } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { numbers, randomFrame } from '../../support/http2-mutations.ts';
import { codecs, SETTINGS, TestSession } from '../../support/http2-session.ts';

const FRAMES = 100_000;
const PER_SESSION = 20;

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
