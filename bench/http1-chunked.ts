// ns per chunk of the chunk scanner, beside the least that a scanner in WASM would cost per chunk: copying 16 bytes
// of framing into linear memory and one call.
// node bench/http1-chunked.ts

import * as layout from '../assembly/layout/http1.ts';
import { CodecMemory } from '../src/wasm/http1/memory.ts';
import { ChunkScanner } from '../src/wasm/http1.ts';
import { compileModule, instantiateModule } from '../src/wasm/instantiate.ts';

const ROUNDS = 8;
const CHUNKS = 200_000;
const BUFFER_BYTES = 65536;

function nsPerChunk(chunks: number, run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = process.hrtime.bigint();
    run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / chunks);
  }
  return Math.round(best * 10) / 10;
}

const scanner = new ChunkScanner();
const { memory } = new CodecMemory();
const inside = Buffer.from(memory.buffer);
const { layoutVersion } = instantiateModule('http1', compileModule('http1'), memory, layout.LAYOUT_VERSION);
const rows: Record<string, object> = {};
for (const size of [1, 16, 256, 4096, 16384]) {
  const chunk = Buffer.from(`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`);
  const perBuffer = Math.max(1, Math.floor(BUFFER_BYTES / chunk.length));
  const bytes = Buffer.concat(Array<Buffer>(perBuffer).fill(chunk));
  const buffers = Math.ceil(CHUNKS / perBuffer);
  rows[`${size} bytes`] = {
    scanner: nsPerChunk(buffers * perBuffer, () => {
      for (let round = 0; round < buffers; round += 1) {
        scanner.reset();
        scanner.scan(bytes, 0, bytes.length);
      }
    }),
    'copy and call': nsPerChunk(buffers * perBuffer, () => {
      for (let round = 0; round < buffers; round += 1) {
        for (let index = 0; index < perBuffer; index += 1) {
          bytes.copy(inside, layout.REQUEST_IN, index * chunk.length, index * chunk.length + 16);
          layoutVersion();
        }
      }
    }),
  };
}
console.log('ns per chunk');
console.table(rows);
