import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AggregateHosts } from '../../../../src/data-plane/upstream/aggregate-hosts.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import type { OverrideHost } from '../../../../src/data-plane/upstream/override-hosts.ts';

const RANDOM = { u32: () => 0, double: () => 0 };

type Priorities = readonly { readonly cluster: string; readonly ownPriority: number }[];

const PRIORITIES: Priorities = [
  { cluster: 'near', ownPriority: 0 },
  { cluster: 'near', ownPriority: 1 },
  { cluster: 'far', ownPriority: 0 },
  // A cluster may be named twice.
  { cluster: 'near', ownPriority: 0 },
];

function hostOf(cluster: string, address: string): Host {
  return { cluster: { name: cluster }, priority: 0, label: address } as unknown as Host;
}

/** Clusters with one host each, and who has been asked. */
function clusters(hosts: Readonly<Record<string, string>>) {
  const asked: [cluster: string, isStrict: boolean][] = [];
  const find = (name: string) => {
    const address = hosts[name];
    if (address === undefined) return undefined;
    const overriddenHost = (wanted: OverrideHost | null): Host | undefined => {
      asked.push([name, wanted!.isStrict]);
      return wanted!.address === address ? hostOf(name, address) : undefined;
    };
    return { overriddenHost, hostAt: () => null };
  };
  return { asked, find };
}

describe('hosts of an aggregate cluster', () => {
  it('are found by the address that a filter has named, in one cluster after the other, each asked once', () => {
    const { asked, find } = clusters({ near: '10.0.0.1:80', far: '10.0.0.2:80' });
    const hosts = new AggregateHosts(RANDOM, find, { shares: [], priorities: PRIORITIES });
    assert.equal(hosts.overridden({ address: '10.0.0.2:80', isStrict: true })?.label, '10.0.0.2:80');
    // One that must be had may still be another's.
    assert.deepEqual(asked, [
      ['near', false],
      ['far', false],
    ]);
    assert.equal(hosts.overridden({ address: '10.0.0.3:80', isStrict: true }), null);
    assert.equal(hosts.overridden({ address: '10.0.0.3:80', isStrict: false }), undefined);
    hosts.update({ shares: [], priorities: [{ cluster: 'gone', ownPriority: 0 }] });
    assert.equal(hosts.overridden({ address: '10.0.0.1:80', isStrict: false }), undefined);
  });

  it('have the first of the priorities that theirs is', () => {
    const hosts = new AggregateHosts(RANDOM, () => undefined, { shares: [], priorities: PRIORITIES });
    const of = (cluster: string, priority: number): number =>
      hosts.priorityOf({ cluster: { name: cluster }, priority });
    assert.deepEqual([of('near', 0), of('near', 1), of('far', 0)], [0, 1, 2]);
    assert.deepEqual([of('far', 1), of('gone', 0)], [-1, -1]);
    hosts.update({ shares: [], priorities: [{ cluster: 'far', ownPriority: 0 }] });
    assert.deepEqual([of('far', 0), of('near', 0)], [0, -1]);
  });

  it('are looked up in what an update has made once: no request goes through the priorities', () => {
    let readings = 0;
    const shares = {
      shares: [],
      get priorities() {
        readings += 1;
        return PRIORITIES;
      },
    };
    const hosts = new AggregateHosts(RANDOM, clusters({ near: '10.0.0.1:80' }).find, shares);
    const made = readings;
    hosts.overridden({ address: '10.0.0.1:80', isStrict: false });
    hosts.priorityOf({ cluster: { name: 'near' }, priority: 1 });
    assert.equal(readings, made);
  });
});
