// What is the same for all resources that come by discovery and go to the workers, by a kind that is as small as one can be: a number
// that is read in units.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ResourceType } from '../../../../src/config/index.ts';
import {
  nothingBeside,
  type PublishedKind,
  type ResourceEvent,
} from '../../../../src/control-plane/discovery/published-kind.ts';
import { PublishedResources } from '../../../../src/control-plane/discovery/published-resources.ts';
import type { PublishedLease } from '../../../../src/control-plane/discovery/resource-lease.ts';
import { ANY_SOURCE, DiscoveryWorld, FETCH_LIMIT_MS } from '../../../support/discovery-world.ts';

interface InUnit {
  readonly unit: string;
  /** A value that it has no room for. */
  readonly refuses?: string;
}

interface Told {
  readonly id: number;
  readonly text: string;
}

type Kind = PublishedKind<InUnit, string, Told>;

function readIn(units: readonly InUnit[]): ResourceType<ReadonlyMap<InUnit, string>> {
  return {
    typeName: 'proxy.config.core.v3.Extension',
    nameOf: (message) => (message as { readonly name: string }).name,
    scope: undefined,
    read: (content, at, faults) => {
      const { category: value } = content.message as unknown as { readonly category: string };
      const resource = new Map<InUnit, string>();
      for (const wanted of units) {
        if (value === wanted.refuses) faults.error(at, `is no number of ${wanted.unit}`);
        else resource.set(wanted, `${value} ${wanted.unit}`);
      }
      return { resource, deprecatedFields: new Map(), standsAlone: false };
    },
  };
}

class World extends DiscoveryWorld {
  /** What workers know, by id. */
  readonly known = new Map<number, string>();
  readonly events: ResourceEvent[] = [];
  /** A worker has let go of what was before. */
  readonly gone: (() => void)[] = [];
  readonly resources: PublishedResources<InUnit, string, Told>;

  constructor(defaults: Partial<Pick<Kind, 'defaults'>> = {}) {
    super();
    const kind: Kind = {
      name: 'measure',
      target: 'measures',
      field: 'measure',
      withoutIt: 'are not measured',
      ...defaults,
      read: readIn,
      prepare: (id, _, text, holdings) => {
        holdings.scope(`measure.${text.replace(' ', '_')}.`).counter('seen');
        return { id, text };
      },
      publish: ({ id, text }, onGone) => {
        this.known.set(id, text);
        this.gone.push(onGone);
      },
      remove: (id, onGone) => {
        this.known.delete(id);
        this.gone.push(onGone);
      },
      counter: () => (event) => void this.events.push(event),
      beside: nothingBeside,
    };
    let lastId = 0;
    this.resources = new PublishedResources(kind, this.dependencies, () => ++lastId);
  }

  lease(wanted: InUnit): PublishedLease {
    return this.resources.leaseOne({ name: 'm', source: ANY_SOURCE, statPrefix: 'm.' }, wanted);
  }

  of({ id }: PublishedLease): string | undefined {
    return this.known.get(id);
  }

  has(value: string): Promise<readonly string[]> {
    return this.answer(value, [{ name: 'm', category: value }]);
  }
}

const BY_DEFAULT = { defaults: { of: ({ unit }: InUnit) => `no ${unit}`, areFirst: () => false } };
const DEFAULT_FIRST = { defaults: { ...BY_DEFAULT.defaults, areFirst: () => true } };

const metres: InUnit = { unit: 'm' };
const feet: InUnit = { unit: 'ft' };

describe('resources that go to the workers', () => {
  it('are asked for once, and published once for each way in which they are wanted', async () => {
    const world = new World();
    const [one, other, third] = [world.lease(metres), world.lease(feet), world.lease({ ...metres })];
    assert.deepEqual([world.requests.length, one.id === third.id, one.id === other.id], [1, true, false]);
    assert.deepEqual(await world.has('7'), []);
    assert.deepEqual(
      [...world.resources.published()].map(({ text }) => text),
      ['7 m', '7 ft'],
    );
    third.release();
    third.release();
    assert.equal(world.of(one), '7 m');
    one.release();
    assert.deepEqual([...world.known.values()], ['7 ft']);
    other.release();
    assert.deepEqual([world.known.size, world.ended], [0, 1]);
  });

  it('of which nothing has come are their default, when nobody waits for another any more', async () => {
    const world = new World(BY_DEFAULT);
    const lease = world.lease(metres);
    assert.deepEqual([world.of(lease), lease.isReady], [undefined, false]);
    world.clock.turn(FETCH_LIMIT_MS);
    await lease.whenReady;
    // Whoever waits hears of it behind the workers.
    assert.equal(world.of(lease), 'no m');
    assert.equal(world.of(world.lease(feet)), 'no ft');
    await world.has('7');
    assert.equal(world.of(lease), '7 m');
  });

  it('may be their default from the beginning, for which nobody waits', async () => {
    const world = new World(DEFAULT_FIRST);
    const lease = world.lease(metres);
    assert.deepEqual([world.of(lease), lease.isReady], ['no m', true]);
    await lease.whenReady;
  });

  it('that their source has no more are their default, or stay where there is none', async () => {
    const world = new World(BY_DEFAULT);
    const lease = world.lease(metres);
    await world.has('7');
    await world.answer('8', []);
    assert.deepEqual([world.of(lease), world.resources.dump()], ['no m', []]);
    const staying = new World();
    const kept = staying.lease(metres);
    await staying.has('7');
    await staying.answer('8', [], { extent: 'changes', removed: ['m'] });
    assert.deepEqual([staying.of(kept), staying.events], ['7 m', ['taken-over', 'absent']]);
    assert.match(staying.log.at(-1)!, /measure m is not among what its source has: the one before it stays/);
  });

  it('are refused for all where one may not have them', async () => {
    const world = new World();
    const [one, other] = [world.lease(metres), world.lease({ unit: 'ft', refuses: '8' })];
    await world.has('7');
    assert.deepEqual(await world.has('8'), ['measure m: resources[0]: is no number of ft']);
    assert.deepEqual([world.of(one), world.of(other)], ['7 m', '7 ft']);
    assert.deepEqual(
      [...world.resources.failures()].map(({ error }) => error),
      ['resources[0]: is no number of ft'],
    );
    assert.deepEqual(world.events, ['taken-over', 'refused']);
    await world.has('7');
    assert.deepEqual([...world.resources.failures()], []);
  });

  it('that may not be for somebody who comes later are their default for that one alone', async () => {
    const world = new World(BY_DEFAULT);
    const lease = world.lease(metres);
    await world.has('7');
    const late = world.lease({ unit: 'ft', refuses: '7' });
    assert.deepEqual([world.of(lease), world.of(late)], ['7 m', 'no ft']);
    assert.deepEqual([world.events, [...world.resources.failures()]], [['taken-over', 'unfit'], []]);
    // Without a default it is one that could not be had.
    const bare = new World();
    bare.lease(metres);
    await bare.has('7');
    assert.equal(bare.of(bare.lease({ unit: 'ft', refuses: '7' })), undefined);
    assert.deepEqual(
      [...bare.resources.failures()].map(({ error }) => error),
      ['measure: is no number of ft'],
    );
  });

  it('that a worker can do nothing with are listed, counted once, and refused when they come again', async () => {
    const world = new World();
    const [one, other] = [world.lease(metres), world.lease(feet)];
    const failures = (): readonly string[] => [...world.resources.failures()].map(({ error }) => error);
    // Nothing has come, and nobody knows the other.
    const unfit = ({ id }: { readonly id: number }, value: string, reason = 'is too much'): void =>
      world.resources.noteUnfit(id, ({ text }) => text.startsWith(value), reason);
    for (const each of [one, { id: 77 }]) unfit(each, '7', 'comes too early');
    assert.deepEqual(await world.has('7'), []);
    assert.deepEqual(failures(), []);
    for (const each of [one, other, one]) unfit(each, '7');
    assert.deepEqual([failures(), world.events], [['is too much'], ['taken-over', 'refused']]);
    assert.deepEqual(await world.has('7'), ['measure m: is too much']);
    assert.deepEqual([failures(), world.events.length, world.of(one)], [['is too much'], 3, '7 m']);
    assert.deepEqual(await world.has('8'), []);
    // A worker that is behind speaks of what is in force no longer.
    unfit(other, '7');
    assert.deepEqual([failures(), world.of(one)], [[], '8 m']);
    assert.deepEqual(await world.has('7'), []);
  });

  it('that find no room leave the one before them, and what had been made of them goes back', async () => {
    const world = new World();
    const [one, other] = [world.lease(metres), world.lease(feet)];
    await world.has('7');
    const { cells } = world.stats.owner;
    const used = cells.usedCells;
    const allocate = cells.allocate.bind(cells);
    let room = 1;
    cells.allocate = (...sizes) => {
      if (room === 0) throw new Error('shared memory is full');
      room -= 1;
      return allocate(...sizes);
    };
    assert.deepEqual(await world.has('8'), ['measure m: shared memory is full']);
    assert.deepEqual([world.of(one), world.of(other), cells.usedCells], ['7 m', '7 ft', used]);
    assert.equal(world.resources.dump()[0]!.accepted!.version, '7');
  });

  it('give back what they were given when no worker uses them any more', async () => {
    const world = new World();
    const { cells } = world.stats.owner;
    const before = cells.usedCells;
    const lease = world.lease(metres);
    await world.has('7');
    const used = cells.usedCells;
    await world.has('8');
    assert.ok(cells.usedCells > used);
    for (const gone of world.gone.splice(0)) gone();
    assert.equal(cells.usedCells, used);
    lease.release();
    for (const gone of world.gone) gone();
    assert.equal(cells.usedCells, before);
  });
});
