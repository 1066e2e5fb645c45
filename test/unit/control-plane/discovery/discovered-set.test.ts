import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { DiscoveredResource, DiscoveredResponse } from '../../../../src/config/index.ts';
import { DiscoveredSet, type ResourceManager } from '../../../../src/control-plane/discovery/discovered-set.ts';
import { Loggers } from '../../../../src/log/index.ts';

/** `bad` may not be; `full` cannot be had. */
type Kind = 'good' | 'bad' | 'full';

interface Resource {
  readonly name: string;
  readonly warnings?: readonly string[];
  readonly kind: Kind;
  readonly value: number;
}

const NO_BYTES = new Uint8Array(0);
/** Names of those that were read. */
const READ: string[] = [];

function responseOf(version: string, resources: readonly Resource[]): DiscoveredResponse<Resource> {
  return {
    version,
    extent: 'all',
    removed: [],
    names: resources.map(({ name }) => name),
    warnings: [],
    offered: () =>
      resources.map((resource) => ({
        name: resource.name,
        fingerprint: () => `${resource.kind} ${resource.value}`,
        read: () => readOne(resource),
      })),
  };
}

function readOne(resource: Resource): DiscoveredResource<Resource> {
  const { name, kind, warnings = [] } = resource;
  READ.push(name);
  const any = { name, message: NO_BYTES, warnings };
  if (kind === 'bad') return { ...any, isGood: false, errors: ['is bad'] };
  return { ...any, isGood: true, resource, deprecatedFields: new Map(), standsAlone: warnings.length === 0 };
}

/** Of which `fixed` is the bootstrap's. */
class Manager implements ResourceManager<Resource> {
  readonly held = new Map<string, number>();
  readonly failed = new Map<string, string>();
  readonly calls: string[] = [];
  version = '';

  *discoveredNames(): Iterable<string> {
    yield* this.held.keys();
    yield* this.failed.keys();
  }

  async put({ name, kind, value }: Resource): Promise<boolean> {
    this.calls.push(`put ${name}`);
    if (name === 'fixed') return false;
    if (kind === 'full') {
      this.failed.set(name, 'is full');
      throw new Error('is full');
    }
    this.held.set(name, value);
    this.failed.delete(name);
    return true;
  }

  keep(name: string, version: string): boolean {
    this.calls.push(`keep ${name} ${version}`);
    return this.held.has(name);
  }

  remove(name: string): void {
    this.calls.push(`remove ${name}`);
    this.held.delete(name);
    this.failed.delete(name);
  }

  refuse({ name, error }: { readonly name: string; readonly error: string }): void {
    if (name !== 'fixed') this.failed.set(name, error);
  }

  accept(version: string): void {
    this.version = version;
  }
}

interface SetOptions {
  readonly removes?: 'first' | 'last';
  readonly isForeign?: (name: string) => boolean;
}

function open({ removes = 'last', isForeign = () => false }: SetOptions = {}) {
  const manager = new Manager();
  const log: string[] = [];
  const sink = { write: ({ message }: { readonly message: string }) => void log.push(message) };
  const state = { answers: 0 };
  const set = new DiscoveredSet<Resource>({
    kind: 'thing',
    manager,
    removes,
    isForeign,
    log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('config'),
    onDeprecatedFields: () => {},
    onAnswered: () => {
      state.answers += 1;
    },
  });
  return { manager, log, set, state };
}

const resource = (name: string, value = 0, kind: Kind = 'good'): Resource => ({ name, value, kind });

describe('a set that discovery keeps', () => {
  it('is what the last responses say, whatever they say', async () => {
    const resources = fc.array(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c', 'd', 'fixed', ''),
        kind: fc.constantFrom<Kind>('good', 'good', 'bad', 'full'),
        value: fc.nat(3),
      }),
      { maxLength: 6 },
    );
    const ways = fc.constantFrom<'first' | 'last'>('first', 'last');
    const property = fc.asyncProperty(fc.array(resources, { maxLength: 8 }), ways, async (responses, removes) => {
      const { manager, set, state } = open({ removes });
      let expected = new Map<string, number>();
      let failed = new Set<string>();
      let version = '';
      /** What need not be read when it comes again. */
      let known = new Map<string, number>();
      for (const [index, each] of responses.entries()) {
        // A name that none has is that of what could not be opened.
        const given = each.map((one): Resource => (one.name === '' ? { ...one, kind: 'bad' } : one));
        READ.splice(0);
        const refusals = await set.onResponse(responseOf(String(index), given));
        const firsts = given.filter(({ name }, at) => given.findIndex((other) => other.name === name) === at);
        const isKept = ({ name, kind, value }: Resource): boolean => kind === 'good' && known.get(name) === value;
        const isFirst = (one: Resource): boolean => one.name === '' || firsts.includes(one);
        const read = given.filter((one) => isFirst(one) && !isKept(one)).map(({ name }) => name);
        assert.deepEqual(READ, read);
        const good = firsts.filter(({ name, kind }) => kind === 'good' && name !== 'fixed');
        // Where one has no name, those that are missing stay.
        const missing = [...known].filter(([name]) => firsts.every((one) => one.name !== name));
        const stay = given.some(({ name }) => name === '') ? missing : [];
        known = new Map([...stay, ...good.map(({ name, value }) => [name, value] as const)]);
        const wrong = firsts.filter(({ name, kind }) => kind === 'bad' || (kind === 'full' && name !== 'fixed'));
        const wanted = new Set(wrong.map(({ name }) => name).filter((name) => name !== '' && name !== 'fixed'));
        const next = new Map<string, number>();
        // It may be any of those that are missing.
        if (given.some(({ name }) => name === '')) {
          for (const [name, value] of expected) next.set(name, value);
          for (const name of failed) if (firsts.every((one) => one.name !== name)) wanted.add(name);
        }
        failed = wanted;
        for (const { name, kind, value } of firsts) {
          if (name === 'fixed') continue;
          const before = expected.get(name);
          const now = kind === 'good' ? value : before;
          if (now !== undefined) next.set(name, now);
        }
        expected = next;
        assert.deepEqual(new Map([...manager.held].sort()), new Map([...expected].sort()));
        assert.deepEqual(new Set(manager.failed.keys()), wanted);
        const hasSecond = given.some(({ name }, at) => name !== '' && given.findIndex((one) => one.name === name) < at);
        assert.equal(refusals.length > 0, wrong.length > 0 || hasSecond);
        if (refusals.length === 0) version = String(index);
        assert.equal(manager.version, version);
        assert.equal(state.answers, index + 1);
      }
    });
    await fc.assert(property, { numRuns: 300 });
  });

  it('lets go first or last what is not in it any more', async () => {
    for (const removes of ['first', 'last'] as const) {
      const { manager, set } = open({ removes });
      await set.onResponse(responseOf('1', [resource('a'), resource('b')]));
      manager.calls.splice(0);
      await set.onResponse(responseOf('2', [resource('c')]));
      const put = ['put c'];
      const gone = ['remove a', 'remove b'];
      assert.deepEqual(manager.calls, removes === 'first' ? [...gone, ...put] : [...put, ...gone]);
    }
  });

  it('leaves what its manager has from elsewhere', async () => {
    const { manager, set } = open({ isForeign: (name) => name === 'b' });
    await set.onResponse(responseOf('1', [resource('a')]));
    manager.held.set('b', 1);
    await set.onResponse(responseOf('2', []));
    assert.deepEqual([...manager.held.keys()], ['b']);
    manager.held.set('a', 1);
    await set.onResponse({ ...responseOf('3', []), extent: 'changes', removed: ['a', 'b'] });
    assert.deepEqual([...manager.held.keys()], ['b']);
  });

  it('says of each resource why it is refused, and that the bootstrap has one of its name', async () => {
    const { set, log } = open();
    const refusals = await set.onResponse(
      responseOf('1', [
        resource('a', 0, 'bad'),
        resource('b', 0, 'full'),
        resource('c'),
        resource('c', 1),
        resource('', 0, 'bad'),
        resource('fixed'),
        { ...resource('d'), warnings: ['is odd'] },
      ]),
    );
    assert.deepEqual(refusals, ['thing a: is bad', 'thing b: is full', 'duplicate thing c found', 'is bad']);
    assert.deepEqual(log, [
      'thing fixed is left out: the bootstrap has one of this name, or none are taken any more',
      'thing d: is odd',
    ]);
  });

  it('keeps what comes as it was put, of the new version, and reads what its manager has not kept or something was said of', async () => {
    const { manager, set } = open();
    const odd = { ...resource('odd'), warnings: ['is odd'] };
    await set.onResponse(responseOf('1', [resource('a'), resource('b'), odd]));
    manager.calls.splice(0);
    READ.splice(0);
    manager.held.delete('b');
    await set.onResponse(responseOf('2', [resource('a'), resource('b'), odd]));
    assert.deepEqual(manager.calls, ['keep a 2', 'keep b 2', 'put b', 'put odd']);
    assert.deepEqual(READ, ['b', 'odd']);
    await set.onResponse(responseOf('3', []));
    manager.calls.splice(0);
    await set.onResponse(responseOf('4', [resource('a')]));
    assert.deepEqual(manager.calls, ['put a']);
  });

  it('changes nothing any more when it is closed, even in the middle of a response', async () => {
    const { manager, set, state } = open();
    await set.onResponse(responseOf('1', [resource('a')]));
    const { put } = manager;
    manager.put = async (given) => {
      set.close();
      return await put.call(manager, given);
    };
    await set.onResponse(responseOf('2', [resource('b'), resource('c')]));
    assert.deepEqual([[...manager.held.keys()], manager.version, state.answers], [['a', 'b'], '1', 1]);
  });

  it('lets others have their turns while it takes in many', async () => {
    const { manager, set } = open();
    manager.put = async () => {
      // As long as a resource of some size.
      const end = performance.now() + 1;
      while (performance.now() < end);
      return true;
    };
    let turns = 0;
    let isDone = false;
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const many = Array.from({ length: 50 }, (_, index) => resource(String(index)));
    await set.onResponse(responseOf('1', many));
    isDone = true;
    assert.ok(turns >= 3, `${turns} turns`);
  });
});
