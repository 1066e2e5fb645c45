// Members on demand: which of them are made, told of together, kept while they are of use, and taken back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatAddress, type IpAddress } from '../../../../../src/base/address.ts';
import { RuntimeValues } from '../../../../../src/base/runtime.ts';
import {
  OriginalDstDiscovery,
  type UsedHost,
} from '../../../../../src/control-plane/cluster-manager/discovery/original-dst.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import type { HostSettings } from '../../../../../src/snapshot/index.ts';
import { hostSettings } from '../../../../support/clusters.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const CLEANUP_MS = 5000;

class Host implements UsedHost {
  readonly settings: HostSettings;
  activeConnections = 0;
  uses = 0;
  isEjected = false;
  wanted = false;

  constructor(settings: HostSettings) {
    this.settings = settings;
  }

  get port(): number {
    return (this.settings.address as IpAddress).port;
  }

  takeWanted(): boolean {
    const { wanted } = this;
    this.wanted = false;
    return wanted;
  }
}

const portsOf = (hosts: Iterable<Host>): number[] => [...hosts].map(({ port }) => port);

function open(maxHosts?: number) {
  const clock = new ManualClock();
  const messages: string[] = [];
  const sink = { write: ({ message }: { message: string }) => void messages.push(message) };
  const members = new Map<string, Host>();
  const waiting: (() => void)[] = [];
  const published: { readonly ports: readonly number[]; readonly applied: () => void }[] = [];
  const removed: number[][] = [];
  let refusal: Error | undefined;
  let readyCount = 0;
  /** Comes in the place of the next that would be made. */
  let former: Host | undefined;
  const limit = maxHosts === undefined ? [] : [['upstream.original_dst.max_hosts', `${maxHosts}`] as const];
  const discovery = new OriginalDstDiscovery<Host>(
    { kind: 'original-dst', cleanupIntervalMs: CLEANUP_MS } as ConstructorParameters<typeof OriginalDstDiscovery>[0],
    {
      clock,
      log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('upstream'),
      runtime: new RuntimeValues(new Map(limit)),
      afterMessages: (callback) => void waiting.push(callback),
    },
    {
      name: 'web',
      get size() {
        return members.size;
      },
      members: () => [...members.values()],
      member: (key) => members.get(key),
      make: (settings) => {
        if (refusal) throw refusal;
        const host = former ?? new Host(settings);
        members.set(formatAddress(settings.address), host);
        return host;
      },
      publish: (hosts, applied) => void published.push({ ports: portsOf(hosts), applied }),
      remove: (hosts) => {
        removed.push(portsOf(hosts));
        for (const { settings } of hosts) members.delete(formatAddress(settings.address));
      },
      onReady: () => {
        readyCount += 1;
      },
    },
  );
  return {
    discovery,
    clock,
    messages,
    waiting,
    published,
    removed,
    ports: (): number[] => portsOf(members.values()),
    host: (port: number): Host => members.get(`127.0.0.1:${port}`)!,
    want: (port: number): boolean => discovery.want({ kind: 'ip', ip: '127.0.0.1', port }) === undefined,
    /** The messages of the moment have been dealt with. */
    settle: (): void => {
      for (const callback of waiting.splice(0)) callback();
    },
    /** All workers know all that they have been told of. */
    apply: (): void => {
      for (const { applied } of published) applied();
    },
    cleanUp: (): void => clock.turn(CLEANUP_MS),
    refuse: (error: Error | undefined): void => {
      refusal = error;
    },
    bringBack: (host: Host): void => {
      former = host;
    },
    get readyCount() {
      return readyCount;
    },
  };
}

describe('members on demand', () => {
  it('are made once each, as healthy hosts like all others, and told of together', () => {
    const fixture = open();
    const { discovery, want, settle, waiting, published, ports, host } = fixture;
    discovery.start();
    assert.equal(fixture.readyCount, 1);
    assert.deepEqual([want(1), want(2), want(1), ports()], [true, true, true, [1, 2]]);
    assert.deepEqual([waiting.length, published.length], [1, 0]);
    settle();
    assert.deepEqual(
      published.map((batch) => batch.ports),
      [[1, 2]],
    );
    want(3);
    settle();
    assert.deepEqual(published[1]!.ports, [3]);
    const address = { kind: 'ip', ip: '127.0.0.1', port: 2 } as const;
    assert.deepEqual(host(2).settings, hostSettings(address, { hostname: 'web127.0.0.1:2', health: 'unknown' }));
    discovery.stop();
  });

  it('go when nobody has used them from one cleanup to the next, once all workers know them', () => {
    const { discovery, want, settle, apply, cleanUp, host, ports, removed } = open();
    discovery.start();
    for (const port of [1, 2, 3, 4]) want(port);
    settle();
    for (let times = 0; times < 3; times++) cleanUp();
    assert.deepEqual([ports(), removed], [[1, 2, 3, 4], []]);
    apply();
    // Looked at for the first time.
    cleanUp();
    assert.deepEqual(removed, []);
    host(1).uses += 1;
    host(2).activeConnections = 1;
    cleanUp();
    assert.deepEqual(removed, [[3, 4]]);
    host(1).uses += 1;
    cleanUp();
    assert.deepEqual(removed, [[3, 4]]);
    host(2).activeConnections = 0;
    cleanUp();
    assert.deepEqual(
      [removed, ports()],
      [
        [
          [3, 4],
          [1, 2],
        ],
        [],
      ],
    );
    cleanUp();
    assert.equal(removed.length, 2);
    discovery.stop();
  });

  it('stay while they are wanted in vain, or out of service for a time', () => {
    const { discovery, want, settle, apply, cleanUp, host, removed } = open();
    discovery.start();
    for (const port of [1, 2]) want(port);
    settle();
    apply();
    cleanUp();
    host(1).wanted = true;
    host(2).isEjected = true;
    cleanUp();
    assert.deepEqual(removed, []);
    host(2).wanted = true;
    host(2).isEjected = false;
    cleanUp();
    assert.deepEqual(removed, [[1]]);
    cleanUp();
    assert.deepEqual(removed, [[1], [2]]);
    discovery.stop();
  });

  it('are looked at anew when they come again', () => {
    const { discovery, want, settle, apply, cleanUp, host, ports, bringBack } = open();
    discovery.start();
    want(1);
    settle();
    apply();
    bringBack(host(1));
    for (let times = 0; times < 2; times++) cleanUp();
    assert.deepEqual(ports(), []);
    want(1);
    settle();
    apply();
    cleanUp();
    assert.deepEqual(ports(), [1]);
    discovery.stop();
  });

  it('are as many as the runtime says, of which one line tells until there is room again', () => {
    const { discovery, want, settle, apply, cleanUp, messages } = open(2);
    discovery.start();
    const full = 'cluster web has 2 hosts, and makes no more on demand';
    assert.deepEqual([want(1), want(2), want(3), want(4), want(2)], [true, true, false, false, true]);
    assert.deepEqual(messages, [full]);
    settle();
    apply();
    for (let times = 0; times < 2; times++) cleanUp();
    assert.deepEqual([want(3), want(4), want(5), messages], [true, true, false, [full, full]]);
    discovery.stop();
  });

  it('are 4096 at most where it says nothing', () => {
    const { discovery, want, messages } = open();
    discovery.start();
    for (let port = 1; port <= 4096; port++) assert.ok(want(port));
    assert.equal(want(4097), false);
    assert.deepEqual(messages, ['cluster web has 4096 hosts, and makes no more on demand']);
    discovery.stop();
  });

  it('are not had where there is no memory for them', () => {
    const { discovery, want, refuse, waiting, messages } = open();
    discovery.start();
    refuse(new Error('nothing left'));
    assert.equal(want(1), false);
    assert.deepEqual([messages, waiting.length], [['cluster web cannot make the host 127.0.0.1:1: nothing left'], 0]);
    refuse(undefined);
    assert.ok(want(1));
    discovery.stop();
  });

  it('are neither made, told of nor taken back when nobody looks for them any more', () => {
    const { discovery, want, settle, published, clock } = open();
    discovery.start();
    assert.equal(clock.timerCount, 1);
    want(1);
    discovery.stop();
    settle();
    assert.deepEqual([want(1), want(2), published.length, clock.timerCount], [false, false, 0, 0]);
  });

  it('need no start to be stopped', () => {
    const { discovery, clock } = open();
    discovery.stop();
    assert.equal(clock.timerCount, 0);
  });
});
