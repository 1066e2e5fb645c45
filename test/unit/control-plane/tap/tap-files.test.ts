import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { TapFilesWriter } from '../../../../src/control-plane/tap/tap-files.ts';
import type { TapTrace } from '../../../../src/snapshot/index.ts';
import { untilEqual } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';

const MB = 1024 * 1024;

function open(t: TestContext) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-taps-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const counts = { written: 0, dropped: 0 };
  const warnings: string[] = [];
  const writer = new TapFilesWriter({
    faults: NO_FAULTS,
    log: { warning: (text) => void warnings.push(text) },
    onWritten: () => void counts.written++,
    onDropped: (count) => {
      counts.dropped += count;
    },
  });
  return { folder, counts, warnings, writer };
}

function piece(text: string | Buffer): TapTrace {
  const body = { bytes: Uint8Array.from(Buffer.from(text)), isTruncated: false };
  return { kind: 'piece', exchangeId: 7, piece: { part: 'request_body_chunk', body } };
}

test('the pieces of an exchange are in one file, in their order, in the form that was asked for', async (t) => {
  const { folder, counts, writer } = open(t);
  const pathPrefix = path.join(folder, 'edge');
  for (const text of ['one', 'two']) writer.write({ pathPrefix, format: 'json-text', exchangeId: 7 }, piece(text));
  writer.write({ pathPrefix, format: 'binary-delimited', exchangeId: 8 }, piece('three'));
  writer.write({ pathPrefix, format: 'text', exchangeId: 9 }, piece('four'));
  writer.write({ pathPrefix, format: 'binary', exchangeId: 9 }, piece('five'));
  await untilEqual(5, () => counts.written, 'pieces that are written');
  const names = ['edge_7.json', 'edge_8.pb_length_delimited', 'edge_9.pb', 'edge_9.pb_text'];
  assert.deepEqual(readdirSync(folder).sort(), names);
  const text = readFileSync(path.join(folder, 'edge_7.json'), 'utf8');
  const bodies = text.split(/^(?=\{)/m).map((each) => JSON.parse(each).http_streamed_trace_segment);
  assert.deepEqual(
    bodies.map(({ trace_id, request_body_chunk }) => [trace_id, request_body_chunk.as_string]),
    [
      ['7', 'one'],
      ['7', 'two'],
    ],
  );
  assert.match(readFileSync(path.join(folder, 'edge_8.pb_length_delimited'), 'latin1'), /three/);
});

test('what cannot be written is counted, and said once until it can be again', async (t) => {
  const { folder, counts, warnings, writer } = open(t);
  const file = { pathPrefix: path.join(folder, 'later', 'edge'), format: 'json-bytes', exchangeId: 1 } as const;
  writer.write(file, piece('a'));
  writer.write(file, piece('b'));
  await untilEqual(2, () => counts.dropped, 'pieces that are lost');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^cannot write a tapped exchange: ENOENT/);
  mkdirSync(path.join(folder, 'later'));
  writer.write(file, piece('c'));
  await untilEqual(1, () => counts.written, 'pieces that are written');
  rmSync(path.join(folder, 'later'), { recursive: true });
  writer.write(file, piece('d'));
  await untilEqual(2, () => warnings.length, 'warnings');
});

test('no more than 8 MiB wait for a disk', async (t) => {
  const { folder, counts, writer } = open(t);
  const file = { pathPrefix: path.join(folder, 'edge'), format: 'binary-delimited', exchangeId: 1 } as const;
  for (let at = 0; at < 12; at++) writer.write(file, piece(Buffer.alloc(MB)));
  assert.equal(counts.dropped, 5);
  await untilEqual(7, () => counts.written, 'pieces that are written');
  writer.write(file, piece('more'));
  await untilEqual(8, () => counts.written, 'pieces that are written');
});
