// What it costs to learn where a TLS client wants to go: a client hello as browsers send it, whole, in small records, and byte by
// byte, which has its beginning looked at with each arrival. Medians of some rounds.
// node bench/client-hello.ts

import { ClientHelloReader } from '../src/data-plane/listener/listener-filter/client-hello.ts';
import { extension, helloMessage, inRecords } from '../test/support/client-hello.ts';

const ROUNDS = 9;
const MAX = 16 * 1024;
const reader = new ClientHelloReader();

/** With key shares of 1.2 KB, as for hybrid key exchange. */
const message = helloMessage({
  serverName: 'www.example.com',
  protocols: ['h2', 'http/1.1'],
  ciphers: 32,
  extensions: [10, 11, 13, 23, 35, 43, 45]
    .map((type) => extension(type, Buffer.alloc(16)))
    .concat(extension(51, Buffer.alloc(1250))),
});
const whole = inRecords(message);
const pieces = inRecords(
  message,
  Array.from({ length: 16 }, (_, index) => 100 * index),
);
/** The most that is looked at: as many records as there may be, of which all but the last hold one byte. */
const crumbs = inRecords(
  helloMessage({ extensions: [extension(21, Buffer.alloc(15_900))] }),
  Array.from({ length: 63 }, (_, index) => index + 1),
);

function medianNs(runs: number, run: () => void): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.hrtime.bigint();
    for (let index = 0; index < runs; index += 1) run();
    return Number(process.hrtime.bigint() - before) / runs;
  });
  return times.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
}

function byByte(bytes: Buffer): () => void {
  return () => {
    for (let end = 1; end <= bytes.length; end += 1) reader.read(bytes, 0, end, MAX);
  };
}

const cases: readonly (readonly [string, number, () => void])[] = [
  ['one record', 100_000, () => void reader.read(whole, 0, whole.length, MAX)],
  ['17 records', 50_000, () => void reader.read(pieces, 0, pieces.length, MAX)],
  ['one record, byte by byte', 200, byByte(whole)],
  [`${crumbs.length} bytes in 64 records, byte by byte`, 2, byByte(crumbs.subarray(0, MAX))],
];
for (const [name, runs, run] of cases) {
  const ns = medianNs(runs, run);
  process.stdout.write(`${name}: ${ns < 10_000 ? `${ns.toFixed(0)} ns` : `${(ns / 1e6).toFixed(2)} ms`}\n`);
}
