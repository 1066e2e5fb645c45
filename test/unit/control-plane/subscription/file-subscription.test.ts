import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type DiscoveredResponse, RUNTIME_TYPE, UnknownFieldPolicy } from '../../../../src/config/index.ts';
import type { Subscription, SubscriptionOwner } from '../../../../src/control-plane/subscription/subscription.ts';
import { SubscriptionStats } from '../../../../src/control-plane/subscription/subscription-stats.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { readAll } from '../../../support/discovered-response.ts';
import { eventually } from '../../../support/eventually.ts';
import { notedFaults } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';
import { sourcesWith } from '../../../support/subscriptions.ts';

function open(t: TestContext, owner: SubscriptionOwner<unknown>, names?: ReadonlySet<string>) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-subscription-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'response.json');
  const { faults, reports } = notedFaults();
  const { store } = statsFixture();
  const log: string[] = [];
  const sink = { write: ({ message }: { message: string }) => void log.push(message) };
  const clock = new ManualClock();
  const sources = sourcesWith({
    clock,
    unknownFields: new UnknownFieldPolicy('warn'),
    log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('config'),
    faults,
  });
  const origin = { kind: 'file', path: file, watchedFolder: undefined } as const;
  const subscribe = (owner: SubscriptionOwner<unknown>, names?: ReadonlySet<string>): Subscription => {
    const stats = SubscriptionStats.under(store, 'x.', clock);
    const source = { origin, resourceGeneration: 'v3' as const, initialFetchTimeoutMs: 0 };
    return sources.subscribe({ source, names, type: () => RUNTIME_TYPE, stats, owner });
  };
  const subscription = subscribe(owner, names);
  t.after(() => subscription.close());
  return {
    subscription,
    subscribe,
    /** The opened response is not kept any longer. */
    forget: () => clock.turn(1000),
    reports,
    log,
    value: (name: string): number => store.value(`x.update_${name}`) ?? 0,
    write(version: number, resources: readonly object[] = []): void {
      writeFileSync(`${file}.next`, JSON.stringify({ version_info: String(version), resources }));
      renameSync(`${file}.next`, file);
    },
  };
}

describe('a subscription to a file', () => {
  it('tells one response after the other, and of several that come meanwhile the last', async (t) => {
    const versions: string[] = [];
    let go = Promise.withResolvers<readonly string[]>();
    const opened = open(t, {
      onResponse: (response) => {
        versions.push(response.version);
        return go.promise;
      },
      onFailed: () => assert.fail(),
    });
    opened.write(1);
    opened.subscription.start();
    await eventually(() => versions.length === 1, 'the first response');
    for (const version of [2, 3, 4]) {
      opened.write(version);
      await eventually(() => opened.log.length >= version - 1, 'news of the file');
    }
    assert.deepEqual(versions, ['1']);
    const first = go;
    go = Promise.withResolvers();
    first.resolve([]);
    await eventually(() => versions.length === 2, 'the last response');
    go.resolve([]);
    await eventually(() => opened.value('success') === 2, 'two updates');
    assert.deepEqual([versions, opened.value('attempt')], [['1', '4'], 2]);
  });

  it('goes on when an owner fails, and says so to it', async (t) => {
    let failures = 0;
    let isBroken = true;
    const opened = open(t, {
      onResponse: async () => {
        if (isBroken) throw new Error('broken');
        return [];
      },
      onFailed: () => {
        failures += 1;
      },
    });
    opened.write(1);
    opened.subscription.start();
    await eventually(() => opened.reports.length === 1, 'a fault');
    assert.deepEqual([failures, opened.value('rejected'), opened.value('success')], [1, 1, 0]);
    isBroken = false;
    opened.write(2);
    await eventually(() => opened.value('success') === 1, 'an update');
  });

  it('reads nothing any more once it is closed', async (t) => {
    const versions: string[] = [];
    const go = Promise.withResolvers<readonly string[]>();
    const opened = open(t, {
      onResponse: (response) => {
        versions.push(response.version);
        return go.promise;
      },
      onFailed: () => assert.fail(),
    });
    opened.write(1);
    opened.subscription.start();
    opened.write(2);
    await eventually(() => opened.log.length > 0, 'news of the file');
    opened.subscription.close();
    go.resolve([]);
    await eventually(() => opened.value('success') === 1, 'an update');
    assert.deepEqual(versions, ['1']);
  });

  it('tells only of what was asked for, and of what has no name', async (t) => {
    const told = Promise.withResolvers<readonly string[]>();
    const onResponse = (response: DiscoveredResponse<unknown>): readonly string[] => {
      const read = readAll(response).map(({ name, isGood }) => `${name}: ${isGood}`);
      told.resolve([response.extent, ...response.names, ...read]);
      return [];
    };
    const opened = open(t, { onResponse, onFailed: () => assert.fail() }, new Set(['b', 'z']));
    const layer = (name: string): object => ({ '@type': `type.googleapis.com/${RUNTIME_TYPE.typeName}`, name });
    const cluster = { '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster', name: 'z' };
    opened.write(1, [layer('a'), layer('b'), cluster, layer('c')]);
    opened.subscription.start();
    assert.deepEqual(await told.promise, ['all', 'b', '', 'b: true', ': false']);
  });
});

describe('subscriptions to one file', () => {
  const layer = (name: string): object => ({ '@type': `type.googleapis.com/${RUNTIME_TYPE.typeName}`, name });

  it('are told of the same response, each of its part, and open it once', async (t) => {
    const count = 50;
    /** One list of warnings for each. */
    const openings = new Set<readonly string[]>();
    const told: string[] = [];
    const owner: SubscriptionOwner<unknown> = {
      onResponse: ({ names, version, warnings }) => {
        openings.add(warnings);
        told.push(`${version} ${names}`);
        return [];
      },
      onFailed: () => assert.fail(),
    };
    const opened = open(t, owner, new Set(['r0']));
    const subscriptions = [opened.subscription];
    for (let at = 1; at < count; at += 1) subscriptions.push(opened.subscribe(owner, new Set([`r${at}`])));
    const names = subscriptions.map((_, at) => `r${at}`);
    const resources = names.map((name) => layer(name));
    opened.write(1, resources);
    for (const each of subscriptions) each.start();
    await eventually(() => told.length === count, 'all of them');
    assert.deepEqual(
      told,
      names.map((name) => `1 ${name}`),
    );
    assert.equal(openings.size, 1);
    subscriptions[1]!.close();
    opened.write(2, resources);
    await eventually(() => told.length === 2 * count - 1, 'all that are left');
    assert.equal(told.includes('2 r1'), false);
    assert.equal(opened.log.filter((line) => /is read again/.test(line)).length, 1);
  });

  it('hear of it that comes while another is told of, and of one that comes late', async (t) => {
    const told: string[] = [];
    const owner = (name: string): SubscriptionOwner<unknown> => ({
      onResponse: ({ version }) => {
        told.push(`${name} ${version}`);
        if (name === 'first' && version === '1') late.start();
        return [];
      },
      onFailed: () => told.push(`${name} failed`),
    });
    const opened = open(t, owner('first'));
    const late = opened.subscribe(owner('late'));
    opened.write(1);
    opened.subscription.start();
    await eventually(() => told.length === 2, 'both');
    opened.forget();
    const last = opened.subscribe(owner('last'));
    last.start();
    await eventually(() => told.length === 3, 'the last');
    assert.deepEqual(told, ['first 1', 'late 1', 'last 1']);
    for (const each of [opened.subscription, late, last]) each.close();
    opened.write(2);
    const again = opened.subscribe(owner('again'));
    again.start();
    await eventually(() => told.length === 4, 'one that asks when nobody did');
    assert.equal(told.at(-1), 'again 2');
    again.close();
  });
});
