// LOGICAL_DNS discovery over answers that the test gives and a clock that it turns.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DiscoveryFixture, FAILED, found, REFRESH_MS, target } from '../../../../support/dns-discovery.ts';

const LOGICAL = { kind: 'logical-dns' } as const;

describe('LOGICAL_DNS', () => {
  it('has one member, whose address is the first that was found last', async () => {
    const fixture = new DiscoveryFixture([target('web', { port: 81, weight: 3, priority: 1 })], LOGICAL);
    fixture.resolver.script('web', found(['10.0.0.1', '10.0.0.2']), found(['10.0.0.2', '10.0.0.1']));
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(
      fixture.updates.map(([host, ...others]) => [host!.address, host!.logicalName, others.length]),
      [
        [{ kind: 'ip', ip: '10.0.0.1', port: 81 }, 'web:81', 0],
        [{ kind: 'ip', ip: '10.0.0.2', port: 81 }, 'web:81', 0],
      ],
    );
    const { hostname, weight, priority } = fixture.updates[0]![0]!;
    assert.deepEqual({ hostname, weight, priority }, { hostname: 'web', weight: 3, priority: 0 });
    assert.deepEqual([fixture.count('update_attempt'), fixture.count('update_success')], [3, 3]);
    assert.equal(fixture.count('update_no_rebuild'), 1);
    assert.equal(fixture.readyCount, 1);
  });

  it('has all addresses that were found, in the order in which they are tried', async () => {
    const familyOrder = { first: 'v6', firstCount: 1 } as const;
    const fixture = new DiscoveryFixture([target('web', { port: 81 })], { ...LOGICAL, familyOrder });
    fixture.resolver.script('web', found(['10.0.0.1', '10.0.0.2', '::1']), found(['10.0.0.1']));
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    const [several, one] = fixture.updates.map(([host]) => host!);
    assert.deepEqual(several!.address, { kind: 'ip', ip: '10.0.0.1', port: 81 });
    assert.deepEqual(several!.connectOrder, [
      { kind: 'ip', ip: '::1', port: 81 },
      { kind: 'ip', ip: '10.0.0.1', port: 81 },
      { kind: 'ip', ip: '10.0.0.2', port: 81 },
    ]);
    assert.deepEqual(one!.address, several!.address);
    assert.equal(one!.connectOrder, undefined);
    assert.equal(fixture.count('update_no_rebuild'), 0);
  });

  it('keeps its address through failures and empty answers, and backs off after both', async () => {
    const failureRefresh = { baseMs: 10, maxMs: 10 };
    const fixture = new DiscoveryFixture([target('web')], { ...LOGICAL, failureRefresh });
    fixture.resolver.script('web', found(['10.0.0.1']), FAILED, found([]), found(['10.0.0.1']));
    fixture.random = 9;
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    await fixture.turn(9);
    assert.equal(fixture.resolver.asked.length, 3);
    await fixture.turn(9);
    assert.equal(fixture.resolver.asked.length, 4);
    assert.equal(fixture.updates.length, 1);
    assert.equal(fixture.count('update_failure'), 2);
  });

  it('takes an address as it is, and asks nobody', async () => {
    const fixture = new DiscoveryFixture([target('10.0.0.9')], LOGICAL);
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, ['10.0.0.9']);
    assert.deepEqual(fixture.resolver.asked, []);
  });

  it('has the name that its endpoint gives it, and shows the one that is looked up', async () => {
    const fixture = new DiscoveryFixture([target('::1', { hostname: 'named', port: 81 })], LOGICAL);
    await fixture.start();
    const { hostname, logicalName } = fixture.updates[0]![0]!;
    assert.deepEqual([hostname, logicalName], ['named', '[::1]:81']);
  });

  it('looks for no address any more once stopped', async () => {
    const fixture = new DiscoveryFixture([target('web')], LOGICAL);
    fixture.resolver.script('web', found(['10.0.0.1']), found(['10.0.0.2']));
    await fixture.start();
    assert.equal(fixture.holders, 1);
    fixture.discovery.stop();
    assert.equal(fixture.holders, 0);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual([fixture.ips, fixture.resolver.asked], [['10.0.0.1'], ['web']]);
  });

  it('is ready after a failure or an empty answer, without a member', async () => {
    for (const [answer, reason] of [
      [FAILED, 'ESERVFAIL'],
      [found([]), 'the name has no address'],
    ] as const) {
      const fixture = new DiscoveryFixture([target('web')], LOGICAL);
      fixture.resolver.script('web', answer);
      await fixture.start();
      assert.deepEqual([fixture.readyCount, fixture.updates.length], [1, 0]);
      assert.deepEqual(fixture.logged, [`DNS lookup of web for cluster shop failed, its known hosts stay: ${reason}`]);
    }
  });
});
