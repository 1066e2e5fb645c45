import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import { FileWatches } from '../../../../src/control-plane/subscription/file-watches.ts';
import { Loggers } from '../../../../src/log/index.ts';

const LATER = Number.MAX_SAFE_INTEGER;

let folder: string;
let log: string[];
let watches: FileWatches;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-watches-'));
  log = [];
  const sink = { write: ({ message }: { message: string }) => void log.push(message) };
  const loggers = new Loggers({ levels: { default: 'debug' }, threadId: 0, sink });
  watches = new FileWatches({
    clock: SYSTEM_CLOCK,
    faults: new FaultBoundary((where, error) => assert.fail(`${where}: ${(error as Error).message}`)),
    log: loggers.get('file'),
  });
});

afterEach(() => {
  watches.close();
  rmSync(folder, { recursive: true });
});

function place(...names: string[]): string {
  return path.join(folder, ...names);
}

/** What is told next, in the order of the paths. */
class Told {
  readonly all: string[][] = [];
  #next = Promise.withResolvers<readonly string[]>();

  readonly hear = (paths: ReadonlySet<string>): void => {
    const names = [...paths].map((each) => path.relative(folder, each)).sort();
    this.all.push(names);
    this.#next.resolve(names);
    this.#next = Promise.withResolvers();
  };

  get next(): Promise<readonly string[]> {
    return this.#next.promise;
  }
}

describe('files that are watched', () => {
  it('cost one watch for each folder, however many ask for them', () => {
    mkdirSync(place('other'));
    for (let i = 0; i < 1000; i += 1) writeFileSync(place(`${i}`), '');
    const ends = Array.from({ length: 10_000 }, (_, i) => {
      return watches.follow([{ path: place(`${i % 1000}`) }], LATER, () => {});
    });
    ends.push(watches.follow([{ path: place('other', 'one') }], LATER, () => {}));
    assert.equal(watches.folderCount, 2);
    for (const end of ends) end();
    assert.equal(watches.folderCount, 0);
  });

  it('are told of together, to those who asked for them', async () => {
    for (const name of ['one', 'two', 'three']) writeFileSync(place(name), 'before');
    const told = new Told();
    const other = new Told();
    watches.follow([{ path: place('one') }, { path: place('two') }], LATER, told.hear);
    watches.follow([{ path: place('three') }], LATER, other.hear);
    writeFileSync(place('one'), 'behind it');
    writeFileSync(place('new'), 'behind it');
    renameSync(place('new'), place('two'));
    assert.deepEqual(await told.next, ['one', 'two']);
    assert.deepEqual(other.all, []);
  });

  it('are looked at when something is moved into a folder that stands for them', async () => {
    mkdirSync(place('files'));
    mkdirSync(place('signals'));
    symlinkSync(place('files'), place('link'));
    writeFileSync(place('files', 'one'), '1');
    const told = new Told();
    watches.follow([{ path: place('link', 'one'), watchedFolder: place('signals') }], LATER, told.hear);
    rmSync(place('link'));
    mkdirSync(place('more'));
    writeFileSync(place('more', 'one'), '22');
    symlinkSync(place('more'), place('link'));
    writeFileSync(place('signals', 'now'), '');
    assert.deepEqual(await told.next, ['link/one']);
  });

  it('are told of when they have changed since they were read, and their folder is there again', async () => {
    const told = new Told();
    const end = watches.follow([{ path: place('late', 'one') }], 0, told.hear);
    assert.match(log.join('\n'), /late is not watched: ENOENT/);
    mkdirSync(place('late'));
    writeFileSync(place('late', 'one'), '1');
    assert.deepEqual(await told.next, ['late/one']);
    const second = new Told();
    watches.follow([{ path: place('late', 'one') }], 0, second.hear);
    assert.deepEqual(await second.next, ['late/one']);
    assert.equal(told.all.length, 1);
    end();
  });
});
