// Replays the cases of test/conformance/http1/*.md: each input whole, cut in two at every byte, and byte by byte,
// by both builds. A case is a heading, an ```input block and an ```events block.
//
// Input: the lines of the block joined without line ends; \r \n \t \0 \xHH stand for bytes, and \{x*100} for a
// hundred x. The info string says `request` or `response`, for a response the request's method, and limits as
// bytes=N and fields=N. UPDATE_EXPECTED=1 writes what happens into the events blocks: read the diff.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { Http1Codec, Method } from '../../src/wasm/http1.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { type Conversation, eventsOf } from '../support/http1-event-log.ts';

const FOLDER = path.join(import.meta.dirname, 'http1');
const CASE =
  /^## (?<title>.+)\n(?<prose>[^`]*)```input (?<info>.*)\n(?<input>[\s\S]*?)```\n\n```events\n(?<events>[\s\S]*?)```$/gm;
const UPDATE = process.env.UPDATE_EXPECTED === '1';

const codecs = (['http1', 'http1-scalar'] as const).map((name) => ({
  name,
  codec: new Http1Codec({ name, module: compileModule(name) }),
}));

function bytesOf(input: string): Buffer {
  const text = input
    .replaceAll('\n', '')
    .replace(/\\\{(.+?)\*(\d+)\}/g, (_, unit: string, count: string) => unit.repeat(Number(count)))
    .replace(/\\(r|n|t|0|x[0-9a-f]{2}|\\)/g, (_, code: string) => {
      const named: Record<string, string> = { r: '\r', n: '\n', t: '\t', '0': '\0', '\\': '\\' };
      return named[code] ?? String.fromCharCode(Number.parseInt(code.slice(1), 16));
    });
  return Buffer.from(text, 'latin1');
}

function isMethod(word: string): word is keyof typeof Method {
  return word in Method;
}

function conversationOf(info: string): Conversation {
  const [direction, ...rest] = info.trim().split(/ +/);
  assert.ok(direction === 'request' || direction === 'response', `direction of "${info}"`);
  let method: keyof typeof Method = 'GET';
  const limits = { maxHeadBytes: 61440, maxFields: 100 };
  for (const word of rest) {
    const limit = /^(bytes|fields)=(\d+)$/.exec(word);
    if (limit !== null) limits[limit[1] === 'bytes' ? 'maxHeadBytes' : 'maxFields'] = Number(limit[2]);
    else if (isMethod(word)) method = word;
    else assert.fail(`"${word}" in "${info}"`);
  }
  return { direction, method, limits };
}

function checkCase(info: string, input: string, expected: string): void {
  const conversation = conversationOf(info);
  const bytes = bytesOf(input);
  for (const { name, codec } of codecs) {
    assert.deepEqual(eventsOf(codec, conversation, [bytes]), expected.trimEnd().split('\n'), `${name}, whole`);
    // A cut into single bytes parses each head once per byte: leave that to the short inputs.
    const singles = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    if (bytes.length < 2000) {
      assert.equal(eventsOf(codec, conversation, singles).join('\n'), expected.trimEnd(), `${name}, byte by byte`);
    }
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)];
      assert.equal(eventsOf(codec, conversation, pieces).join('\n'), expected.trimEnd(), `${name}, cut at ${cut}`);
    }
  }
}

function updated(text: string): string {
  return text.replace(CASE, (whole: string, ...groups: unknown[]) => {
    const { info, input, events } = groups.at(-1) as { info: string; input: string; events: string };
    const seen = eventsOf(codecs[0]!.codec, conversationOf(info), [bytesOf(input)]).join('\n');
    return `${whole.slice(0, whole.length - events.length - 3)}${seen}\n\`\`\``;
  });
}

for (const file of readdirSync(FOLDER).sort()) {
  const name = path.join(FOLDER, file);
  const text = readFileSync(name, 'utf8');
  if (UPDATE) {
    writeFileSync(name, updated(text));
    continue;
  }
  describe(`HTTP/1 ${path.basename(file, '.md')}`, () => {
    const cases = [...text.matchAll(CASE)];
    it('has every heading read as a case', () => {
      assert.equal(cases.length, text.match(/^## /gm)?.length);
    });
    for (const { groups } of cases) {
      it(groups!.title!, () => checkCase(groups!.info!, groups!.input!, groups!.events!));
    }
  });
}
