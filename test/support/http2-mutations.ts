// Frames of HTTP/2 of which one in five has something wrong in it, the same in every run.

import { FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { data, frame, GET, headers, POST, word } from './http2-session.ts';

/** Numbers below 2^32 from a seed, the same in every run. */
export function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** One that is sound, or nearly. @param isServer whether it is one for a server. */
export function randomFrame(pick: (below: number) => number, isServer: boolean): Buffer {
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
