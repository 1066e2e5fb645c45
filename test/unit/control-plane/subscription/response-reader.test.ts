// Files of resources, small and large, and the thread that reads the large ones.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { MAX_SOURCE_BYTES, RUNTIME_TYPE, UnknownFieldPolicy } from '../../../../src/config/index.ts';
import {
  type ReadResponseFile,
  ResponseReader,
  startResponseThread,
} from '../../../../src/control-plane/subscription/response-reader.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { runProgram } from '../../../support/child-process.ts';
import { eventually } from '../../../support/eventually.ts';
import { notedFaults } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const LAYER = 'type.googleapis.com/envoy.service.runtime.v3.Runtime';
/** Of which a file is large. */
const MANY = 4000;

class Scene {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-reader-'));
  readonly clock = new ManualClock();
  readonly threads: Worker[] = [];
  readonly unknownFields = new UnknownFieldPolicy('warn');
  readonly log: string[] = [];
  readonly reports: readonly unknown[];
  readonly reader: ResponseReader;
  #file = 0;

  constructor(t: TestContext, start: () => Worker = () => startResponseThread([])) {
    const { faults, reports } = notedFaults();
    this.reports = reports;
    const sink = { write: ({ message }: { message: string }) => void this.log.push(message) };
    this.reader = new ResponseReader({
      clock: this.clock,
      unknownFields: this.unknownFields,
      log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('config'),
      faults,
      startThread: () => {
        const thread = start();
        this.threads.push(thread);
        return thread;
      },
    });
    t.after(() => {
      this.reader.close();
      rmSync(this.folder, { recursive: true });
    });
  }

  file(layers: number, fields: object = {}): string {
    this.#file += 1;
    const file = path.join(this.folder, `${this.#file}.json`);
    const resources = Array.from({ length: layers }, (_, at) => ({ '@type': LAYER, name: `layer-${at}`, ...fields }));
    writeFileSync(file, JSON.stringify({ version_info: `v${layers}`, resources }));
    return file;
  }
}

function layersOf(opened: ReadResponseFile): number | string {
  if ('faults' in opened) return opened.faults.join('\n').replace(/^.*\//, '');
  return [...opened.of(RUNTIME_TYPE).offered()].filter((offered) => offered.read().isGood).length;
}

describe('files of resources', () => {
  it('are read at once where they are small, none, too large, or not there', async (t) => {
    const scene = new Scene(t);
    const pipe = path.join(scene.folder, 'pipe.json');
    assert.equal((await runProgram('mkfifo', [pipe])).code, 0);
    const gigabytes = path.join(scene.folder, 'gigabytes.json');
    writeFileSync(gigabytes, '');
    truncateSync(gigabytes, MAX_SOURCE_BYTES * 100);
    const found = [scene.file(3), pipe, gigabytes, scene.folder, path.join(scene.folder, 'none.json')].map((file) => {
      const opened = scene.reader.open(file);
      assert.ok(!(opened instanceof Promise));
      return layersOf(opened);
    });
    assert.deepEqual(
      found.map((each) => String(each).replace(/\d{3,}/g, 'N')),
      [
        '3',
        'pipe.json: is not a regular file',
        'gigabytes.json: has N bytes, more than the limit N',
        `${path.basename(scene.folder)}: unknown file extension; expected .json, .yaml, .yml, .pb, .pb_text, .pbtxt, .textproto`,
        'none.json: no such file',
      ],
    );
    assert.deepEqual(scene.threads, []);
  });

  it('are read by another thread where they are large, one after the other, while this one has its turns', async (t) => {
    const scene = new Scene(t);
    const opening = [
      scene.reader.open(scene.file(MANY, { odd: 1 })),
      scene.reader.open(scene.file(MANY * 2, { odd: 1 })),
      scene.reader.open(scene.file(MANY)),
    ];
    let turns = 0;
    const opened: ReadResponseFile[] = [];
    const count = async (): Promise<void> => {
      for (const each of opening) opened.push(await each);
    };
    const counted = count();
    await eventually(() => {
      turns += 1;
      return opened.length === opening.length;
    }, 'all of them');
    await counted;
    assert.ok(turns > 10, `${turns} turns`);
    assert.deepEqual(opened.map(layersOf), [MANY, MANY * 2, MANY]);
    // A field that is not known is told of once, whoever has met it.
    const odd = opened.flatMap((each) => ('warnings' in each ? [...each.of(RUNTIME_TYPE).offered()] : []));
    assert.equal(odd.flatMap((each) => each.read().warnings).length, 1);
    assert.equal(scene.unknownFields.count, 1);
    assert.equal(scene.threads.length, 1);
    assert.deepEqual(scene.reports, []);
  });

  it('have the thread end a while after the last one, and begin another with the next', async (t) => {
    const scene = new Scene(t);
    assert.equal(layersOf(await scene.reader.open(scene.file(MANY))), MANY);
    const [thread] = scene.threads;
    const ended = new Promise((resolve) => thread!.once('exit', resolve));
    scene.clock.turn(500);
    await ended;
    assert.equal(layersOf(await scene.reader.open(scene.file(MANY))), MANY);
    assert.equal(scene.threads.length, 2);
    assert.deepEqual(scene.log, []);
  });

  it('cannot be read where the thread dies of them; the next one gets another thread', async (t) => {
    const deaths = ['process.exit(3)', 'throw new Error("lost its mind")', 'const all = []; for (;;) all.push([all])'];
    const scene = new Scene(t, () => {
      const death = deaths.shift();
      if (death === undefined) return startResponseThread([]);
      const code = `require('node:worker_threads').parentPort.on('message', () => { ${death} })`;
      return new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16 } });
    });
    const opening = Array.from({ length: 4 }, () => scene.reader.open(scene.file(MANY)));
    const found = [];
    for (const each of opening) found.push(layersOf(await each));
    const cannot = 'cannot be read: the thread that reads it has ended';
    assert.deepEqual(found, [
      `1.json: ${cannot}: exit code 3`,
      `2.json: ${cannot}: lost its mind`,
      `3.json: ${cannot}: Worker terminated due to reaching memory limit: JS heap out of memory`,
      MANY,
    ]);
  });

  it('cannot be read where no thread can be had, until one can', async (t) => {
    let isPossible = false;
    const scene = new Scene(t, () => {
      if (!isPossible) throw new Error('too many threads');
      return startResponseThread([]);
    });
    const file = scene.file(MANY);
    assert.match(String(layersOf(await scene.reader.open(file))), /has ended: too many threads$/);
    isPossible = true;
    assert.equal(layersOf(await scene.reader.open(file)), MANY);
  });

  it('may be gone when the thread looks for them', async (t) => {
    const scene = new Scene(t);
    const [first, second] = [scene.file(MANY), scene.file(MANY)];
    const opening = [scene.reader.open(first), scene.reader.open(second)];
    rmSync(second);
    assert.equal(layersOf(await opening[0]!), MANY);
    assert.equal(layersOf(await opening[1]!), '2.json: no such file');
  });
});
