// The filter chains of a listener in a worker, held against a model: which stay, which leave, and who is told of their end.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ActiveFilterChain } from '../../../../src/data-plane/listener/active-filter-chain.ts';
import { FilterChains } from '../../../../src/data-plane/listener/filter-chains.ts';
import type { FilterChainSnapshot } from '../../../../src/snapshot/index.ts';
import { MATCHES_ALL } from '../../../support/listeners.ts';

const DRAIN_MS = 30;
const settings = {};
const IDS = 6;

/** A chain whose connections are a number. */
class CountedChain {
  readonly id: number;
  connectionCount = 0;
  isDraining = false;
  isClosed = false;

  constructor({ id }: FilterChainSnapshot) {
    this.id = id;
  }

  beginDrain(): void {
    assert.equal(this.isDraining, false);
    this.isDraining = true;
  }

  destroyConnections(): void {
    this.connectionCount = 0;
  }

  close(): void {
    assert.deepEqual([this.isClosed, this.connectionCount], [false, 0]);
    this.isClosed = true;
  }
}

function snapshots(ids: readonly number[]): readonly FilterChainSnapshot[] {
  return ids.map(
    (id) => ({ id, settings: { match: { ...MATCHES_ALL, destinationPort: id + 1 } } }) as FilterChainSnapshot,
  );
}

function opened() {
  const made: CountedChain[] = [];
  const activate = (snapshot: FilterChainSnapshot): ActiveFilterChain => {
    if (snapshot.id === IDS) throw new Error('no such chain');
    const chain = new CountedChain(snapshot);
    made.push(chain);
    return chain as unknown as ActiveFilterChain;
  };
  const chains = new FilterChains(activate, () => () => undefined);
  return { chains, made };
}

describe('the filter chains of a listener', () => {
  it('that stay are not touched, and those that are gone are told of once, when they have no connections', () => {
    const ids = fc.uniqueArray(fc.nat(IDS - 1), { maxLength: IDS });
    const connect = fc.record({ kind: fc.constant('connect' as const), at: fc.nat(20) });
    const step = fc.oneof(
      connect,
      fc.record({ kind: fc.constant('replace' as const), ids, hasDefault: fc.boolean() }),
      connect,
      fc.record({ kind: fc.constant('disconnect' as const), at: fc.nat(20) }),
      fc.record({ kind: fc.constant('pass' as const), tens: fc.nat(4) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { chains, made } = opened();
        /** By update: what is gone with it, and how often that has been told. */
        const updates: { gone: CountedChain[]; endMs: number; told: number }[] = [];
        let current: CountedChain[] = [];
        let nowMs = 0;
        for (const each of steps) {
          if (each.kind === 'replace') {
            const [first, ...rest] = snapshots(each.ids);
            const hasDefault = each.hasDefault && first !== undefined;
            const given = {
              settings,
              filterChains: hasDefault ? rest : snapshots(each.ids),
              defaultFilterChain: hasDefault ? first : null,
            };
            const update = {
              gone: current.filter(({ id }) => !each.ids.includes(id)),
              endMs: nowMs + DRAIN_MS,
              told: 0,
            };
            const gone = chains.replace(given);
            assert.deepEqual(new Set(gone), new Set<unknown>(update.gone));
            const drain = { strategy: 'immediate', elapsedMs: 0, durationMs: DRAIN_MS } as const;
            const onGone = (): void => {
              update.told += 1;
            };
            chains.leave(gone, { drain, nowMs, onGone });
            updates.push(update);
            const kept = new Map(current.map((chain) => [chain.id, chain]));
            const next = chains.current as unknown as CountedChain[];
            for (const chain of next) assert.equal(chain, kept.get(chain.id) ?? chain);
            assert.deepEqual(next.map(({ id }) => id).sort(), [...each.ids].sort());
            current = [...next];
          } else if (each.kind === 'connect') {
            const chain = current[each.at % Math.max(current.length, 1)];
            if (chain !== undefined) chain.connectionCount += 1;
          } else if (each.kind === 'disconnect') {
            const busy = made.filter(({ connectionCount }) => connectionCount > 0);
            const chain = busy[each.at % Math.max(busy.length, 1)];
            if (chain !== undefined) chain.connectionCount -= 1;
          } else {
            nowMs += each.tens * 10;
            const before = new Map(made.map((chain) => [chain, chain.connectionCount]));
            const areLeft = chains.letGo(nowMs);
            for (const { gone, endMs, told } of updates) {
              const isOver = gone.every(({ connectionCount }) => connectionCount === 0);
              assert.equal(told, isOver ? 1 : 0);
              assert.ok(isOver || nowMs < endMs);
              // Nobody is cut before the time.
              if (nowMs < endMs) for (const chain of gone) assert.equal(chain.connectionCount, before.get(chain));
              for (const chain of gone) assert.equal(chain.isClosed, chain.connectionCount === 0);
            }
            assert.equal(
              areLeft,
              updates.some(({ told }) => told === 0),
            );
          }
          for (const chain of current) assert.deepEqual([chain.isDraining, chain.isClosed], [false, false]);
          for (const { gone } of updates) assert.ok(gone.every(({ isDraining }) => isDraining));
          const alive = made.filter(({ isClosed }) => !isClosed);
          assert.deepEqual(new Set(chains.all), new Set<unknown>(alive));
        }
      }),
      { numRuns: 1500 },
    );
  });

  it('are as they were when one of them cannot be made', () => {
    const { chains, made } = opened();
    chains.replace({ settings, filterChains: snapshots([0, 1]), defaultFilterChain: null });
    const before = [...chains.current];
    assert.deepEqual(chains.all, before);
    const find = (localPort: number): unknown => chains.find({ localPort } as never);
    assert.throws(
      () => chains.replace({ settings, filterChains: snapshots([1, 2, IDS]), defaultFilterChain: null }),
      /no such chain/,
    );
    assert.deepEqual(chains.current, before);
    assert.deepEqual(
      made.map(({ id, isClosed }) => [id, isClosed]),
      [
        [0, false],
        [1, false],
        [2, true],
      ],
    );
    assert.equal(find(1), before[0]);
    assert.equal(find(3), undefined);
  });
});
