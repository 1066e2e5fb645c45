// Which hosts filters may choose: by what is known of their health, and by what a cluster accepts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { healthOf, OverrideHosts } from '../../../../src/data-plane/upstream/override-hosts.ts';
import type { ConfiguredHealth } from '../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../src/wasm/shared-records.ts';

const HEALTH: readonly ConfiguredHealth[] = ['unknown', 'healthy', 'degraded', 'unhealthy', 'timeout', 'draining'];

const member = (configuredHealth: ConfiguredHealth, healthFlags = 0, label = '10.0.0.1:80') => ({
  label,
  healthFlags,
  configuredHealth,
});

test('a host that has failed is unhealthy whatever is said of it, a degraded one that serves is degraded', () => {
  for (const said of HEALTH) {
    assert.equal(healthOf(member(said)), said);
    assert.equal(healthOf(member(said, HealthFlag.failedActiveHealthCheck)), 'unhealthy');
    assert.equal(healthOf(member(said, HealthFlag.failedOutlierCheck)), 'unhealthy');
    const serves = said === 'unknown' || said === 'healthy' || said === 'degraded';
    assert.equal(healthOf(member(said, HealthFlag.degradedActiveHealthCheck)), serves ? 'degraded' : said);
  }
});

test('a cluster accepts hosts that serve, unless it names others', () => {
  const asked = { address: '10.0.0.1:80', isStrict: false };
  const accepted = (hosts: OverrideHosts<ReturnType<typeof member>>) =>
    HEALTH.filter((health) => {
      const host = member(health);
      hosts.forget();
      return hosts.choose(asked, [host]) === host;
    });
  assert.deepEqual(accepted(new OverrideHosts()), ['unknown', 'healthy', 'degraded']);
  fc.assert(
    fc.property(fc.subarray([...HEALTH]), (named) => {
      assert.deepEqual(accepted(new OverrideHosts(named)), named);
    }),
  );
});

test('who may not be used is nobody for the strict, and where no host is accepted the balancer chooses', () => {
  const hosts = [member('healthy'), member('unhealthy', 0, '10.0.0.2:80')];
  const choose = (address: string, isStrict: boolean, accepted?: readonly ConfiguredHealth[]) =>
    new OverrideHosts(accepted).choose({ address, isStrict }, hosts);
  for (const address of ['10.0.0.2:80', '10.0.0.3:80']) {
    assert.equal(choose(address, false), undefined);
    assert.equal(choose(address, true), null);
    assert.equal(choose(address, true, []), undefined);
  }
  assert.equal(choose('10.0.0.1:80', true, []), undefined);
});

test('members are looked at when somebody asks, and again when they have changed', () => {
  const overrides = new OverrideHosts<ReturnType<typeof member>>();
  let looks = 0;
  const first = member('healthy');
  const second = member('healthy');
  const members = (host: typeof first) => ({
    *[Symbol.iterator]() {
      looks += 1;
      yield host;
    },
  });
  const asked = { address: '10.0.0.1:80', isStrict: true };
  assert.equal(overrides.choose(asked, members(first)), first);
  assert.equal(overrides.choose(asked, members(second)), first);
  assert.equal(looks, 1);
  overrides.forget();
  assert.equal(overrides.choose(asked, members(second)), second);
  assert.equal(looks, 2);
});
