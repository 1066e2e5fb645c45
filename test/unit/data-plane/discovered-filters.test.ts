import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DiscoveredFilters, type DiscoveredMember } from '../../../src/data-plane/discovered-filters.ts';
import type { PublishedFilter } from '../../../src/snapshot/index.ts';

const ID = 7;

/** Refuses cells of the name `bad`, and retires what it had when the test says so. */
class Member implements DiscoveredMember<PublishedFilter> {
  inUse: PublishedFilter | null = null;
  unfit: unknown;
  readonly #retired: (() => void)[] = [];

  configure(published: PublishedFilter | null): (onGone: () => void) => void {
    if (published !== null && 'bad' in published.cells) throw new Error('it does not compile');
    this.inUse = published;
    return (onGone) => void this.#retired.push(onGone);
  }

  onUnfit(error: unknown, published: PublishedFilter | null): void {
    assert.ok(published !== null && 'bad' in published.cells);
    this.unfit = error;
  }

  /** The last requests of all that was replaced have ended. */
  finish(): void {
    for (const onGone of this.#retired.splice(0)) onGone();
  }
}

function world() {
  const filters = new DiscoveredFilters();
  const gone: string[] = [];
  let edition = 0;
  const publish = (cell: string): PublishedFilter => {
    const published = { id: ID, edition: ++edition, configured: null, cells: { [cell]: 1 } };
    filters.publish(published, () => gone.push(cell));
    return published;
  };
  return { filters, gone, publish };
}

describe('configurations of filters in a worker', () => {
  it('are confirmed when the last request of every chain that had the one before has ended', () => {
    const { filters, gone, publish } = world();
    const members = [new Member(), new Member()] as const;
    for (const member of members) filters.join(ID, member);
    publish('first');
    members[0].finish();
    assert.deepEqual(gone, []);
    members[1].finish();
    assert.deepEqual(gone, ['first']);
  });

  it('that cannot be taken in are confirmed when the one that stays in their place is given up for another', () => {
    const { filters, gone, publish } = world();
    const member = new Member();
    filters.join(ID, member);
    const first = publish('first');
    member.finish();
    publish('bad');
    assert.match(String(member.unfit), /does not compile/);
    member.finish();
    assert.equal(member.inUse, first);
    assert.deepEqual(gone, ['first'], 'the first one is still in use');
    publish('third');
    assert.deepEqual(gone, ['first'], 'and it is until its last request has ended');
    member.finish();
    assert.deepEqual(gone, ['first', 'bad', 'third']);
  });

  it('that cannot be taken in are confirmed when their chain goes', () => {
    const { filters, gone, publish } = world();
    const leave = filters.join(ID, new Member());
    publish('bad');
    assert.deepEqual(gone, []);
    leave();
    assert.deepEqual(gone, ['bad']);
  });

  it('in force that a chain cannot take in which has just been opened leave it without, until another comes', () => {
    const { filters, gone, publish } = world();
    publish('bad');
    const member = new Member();
    filters.join(ID, member);
    assert.match(String(member.unfit), /does not compile/);
    assert.equal(member.inUse, null);
    const second = publish('second');
    member.finish();
    assert.equal(member.inUse, second);
    assert.deepEqual(gone, ['bad', 'second']);
  });

  it('reach all other chains where one cannot take them in', () => {
    const { filters, gone, publish } = world();
    const told: unknown[] = [];
    const broken: DiscoveredMember = {
      onUnfit: (error) => void told.push(error),
      configure(published) {
        if (published !== null) throw new Error('it does not compile');
        return (onGone) => onGone();
      },
    };
    const other = new Member();
    const leave = filters.join(ID, broken);
    filters.join(ID, other);
    publish('first');
    assert.match(told.join(), /does not compile/);
    assert.deepEqual(other.inUse?.cells, { first: 1 });
    other.finish();
    assert.deepEqual(gone, []);
    leave();
    assert.deepEqual(gone, ['first']);
  });
});
