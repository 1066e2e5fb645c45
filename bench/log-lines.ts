// Log lines, nanoseconds each: one that is off, plain, with a text that has to be built, and guarded; and one that is written,
// with the place of its call, to a file in memory. node bench/log-lines.ts
//
// Bar, on an idle machine: a line that is off 5 ns.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LogDestination, Loggers, TextSink } from '../src/log/index.ts';
import { contest, printContest } from './support/contest.ts';

const silent = { write() {} };
const components = new Loggers({ levels: { default: 'info' }, sink: silent, threadId: 0 }).get('router');
const files = { default: 'info', files: [{ pattern: 'src/*', level: 'warning' }] } as const;
const fine = new Loggers({ levels: files, sink: silent, threadId: 0 }).get('router');
const chatty = { default: 'info', files: [{ pattern: 'src/*', level: 'debug' }] } as const;
const elsewhere = new Loggers({ levels: chatty, sink: silent, threadId: 0 }).get('router');

const ofFile = elsewhere.ofFile('bench/log-lines.ts');

const plain = new Float64Array(4096);
const off = {
  'plain increment': (count: number) => {
    for (let at = 0; at < count; at++) plain[at & 4095]! += 1;
  },
  'a line that is off': (count: number) => {
    for (let at = 0; at < count; at++) components.debug('no route');
  },
  'its text built first': (count: number) => {
    for (let at = 0; at < count; at++) components.debug(`no route for ${at}`);
  },
  'guarded by `enabled`': (count: number) => {
    for (let at = 0; at < count; at++) if (components.enabled('debug')) components.debug(`no route for ${at}`);
  },
  'off, fine-grain': (count: number) => {
    for (let at = 0; at < count; at++) fine.debug('no route');
  },
  'off in its file, on in others': (count: number) => {
    for (let at = 0; at < count; at++) ofFile.debug('no route');
  },
  'the same, its logger asked for': (count: number) => {
    for (let at = 0; at < count; at++) elsewhere.ofFile('bench/log-lines.ts').debug('no route');
  },
};
printContest('off', contest({ contenders: off, count: 100_000 }));

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
try {
  const destination = LogDestination.open(path.join(folder, 'weir.log'));
  const sink = new TextSink({ format: '[%Y-%m-%d %T.%e][%t][%l][%n] [%g:%#] %v', escaped: false, destination });
  const written = new Loggers({ levels: { default: 'info' }, sink, threadId: 0 }).get('router');
  const on = {
    'a line to a file': (count: number) => {
      for (let at = 0; at < count; at++) written.info('no route');
    },
    'to nowhere, with its place': (count: number) => {
      for (let at = 0; at < count; at++) components.info('no route');
    },
    'off in this file, which its logger does not know': (count: number) => {
      for (let at = 0; at < count; at++) elsewhere.debug('no route');
    },
  };
  printContest('written', contest({ contenders: on, count: 1000, warmUp: 20_000, rounds: 9 }));
  destination.close();
} finally {
  rmSync(folder, { recursive: true });
}
