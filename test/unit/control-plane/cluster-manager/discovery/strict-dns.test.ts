// STRICT_DNS discovery over answers that the test gives and a clock that it turns.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DiscoveryFixture, FAILED, found, REFRESH_MS, settle, target } from '../../../../support/dns-discovery.ts';

describe('STRICT_DNS', () => {
  it('makes every address a member with the settings of its endpoint', async () => {
    const fixture = new DiscoveryFixture([target('web', { port: 81, weight: 3, priority: 1, canary: true })]);
    fixture.resolver.script('web', found(['10.0.0.1', '10.0.0.2']));
    await fixture.start();
    assert.deepEqual(fixture.ips, ['10.0.0.1', '10.0.0.2']);
    const { address, ...host } = fixture.updates[0]![0]!;
    assert.deepEqual(address, { kind: 'ip', ip: '10.0.0.1', port: 81 });
    const { name: _name, port: _port, ...expected } = target('web', { weight: 3, priority: 1, canary: true });
    assert.deepEqual(host, { ...expected, hostname: 'web' });
  });

  it('gives an address that two names have to the first, and takes addresses as they are', async () => {
    const fixture = new DiscoveryFixture([
      target('a', { weight: 2 }),
      target('b', { hostname: 'named' }),
      target('10.0.0.9'),
    ]);
    fixture.resolver.script('a', found(['10.0.0.1']));
    fixture.resolver.script('b', found(['10.0.0.1', '10.0.0.2']));
    await fixture.start();
    assert.deepEqual(fixture.ips, ['10.0.0.1', '10.0.0.2', '10.0.0.9']);
    assert.deepEqual(
      fixture.updates.at(-1)!.map(({ hostname, weight }) => [hostname, weight]),
      [
        ['a', 2],
        ['named', 1],
        ['10.0.0.9', 1],
      ],
    );
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.resolver.asked, ['a', 'b', 'a', 'b']);
  });

  it('keeps the order of members when a server rotates its answers, and rebuilds nothing', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', found(['10.0.0.1', '10.0.0.2']), found(['10.0.0.2', '10.0.0.1']));
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    assert.equal(fixture.updates.length, 1);
    assert.equal(fixture.count('update_no_rebuild'), 1);
    fixture.resolver.script('web', found(['10.0.0.3', '10.0.0.2']));
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, ['10.0.0.2', '10.0.0.3']);
    assert.equal(fixture.count('update_attempt'), 3);
    assert.equal(fixture.count('update_success'), 3);
  });

  it('keeps what it knows when a lookup fails, and loses it to an empty answer', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', found(['10.0.0.1']), FAILED, new Error('a bug'), found([]));
    await fixture.start();
    await fixture.turn(REFRESH_MS);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, ['10.0.0.1']);
    assert.equal(fixture.count('update_failure'), 2);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, []);
    assert.equal(fixture.updates.length, 2);
    assert.equal(fixture.count('update_empty'), 1);
    assert.deepEqual(fixture.logged, [
      'DNS lookup of web for cluster shop failed, its known hosts stay: ESERVFAIL',
      'DNS lookup of web for cluster shop works again',
    ]);
  });

  it('is ready with the first answer of any name, even a failure, and only once', async () => {
    const fixture = new DiscoveryFixture([target('a'), target('b')]);
    fixture.resolver.script('a', FAILED);
    fixture.resolver.script('b', found(['10.0.0.1']));
    fixture.discovery.start();
    assert.equal(fixture.readyCount, 0);
    await settle();
    assert.equal(fixture.readyCount, 1);
    const empty = new DiscoveryFixture([]);
    await empty.start();
    assert.equal(empty.readyCount, 1);
  });

  it('takes a member away when its address is found no more, and counts no name without members as a change', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', found([]), found(['10.0.0.1', '10.0.0.1', '10.0.0.2']), found(['10.0.0.2']));
    await fixture.start();
    assert.deepEqual([fixture.updates.length, fixture.count('update_no_rebuild')], [0, 1]);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, ['10.0.0.1', '10.0.0.2']);
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.ips, ['10.0.0.2']);
    assert.deepEqual([fixture.count('update_empty'), fixture.count('update_no_rebuild')], [1, 1]);
  });

  it('tells of every first failure in a row, and of the reason that a lookup has thrown', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', new Error('a bug'), FAILED, found(['10.0.0.1']), found(['10.0.0.1']), FAILED);
    await fixture.start();
    const lines = [fixture.logged.splice(0)];
    for (let lookups = 0; lookups < 4; lookups++) {
      await fixture.turn(REFRESH_MS);
      lines.push(fixture.logged.splice(0));
    }
    assert.deepEqual(lines, [
      ['DNS lookup of web for cluster shop failed, its known hosts stay: a bug for web'],
      [],
      ['DNS lookup of web for cluster shop works again'],
      [],
      ['DNS lookup of web for cluster shop failed, its known hosts stay: ESERVFAIL'],
    ]);
  });

  it('waits for the refresh rate after an answer without a time to live or an address', async () => {
    const fixture = new DiscoveryFixture([target('web')], { respectTtl: true });
    fixture.resolver.script('web', found([]));
    await fixture.start();
    await fixture.turn(REFRESH_MS - 1);
    assert.equal(fixture.resolver.asked.length, 1);
    await fixture.turn(1);
    assert.equal(fixture.resolver.asked.length, 2);
  });

  it('does not look at times to live unless told to', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', found(['10.0.0.1'], 1));
    await fixture.start();
    await fixture.turn(REFRESH_MS - 1);
    assert.equal(fixture.resolver.asked.length, 1);
  });

  it('waits for the refresh rate, or with respect_dns_ttl for the record that expires first', async () => {
    const fixture = new DiscoveryFixture([target('web')], { respectTtl: true });
    const addresses = [
      { ip: '10.0.0.1', ttlSeconds: 60 },
      { ip: '10.0.0.2', ttlSeconds: 20 },
    ];
    fixture.resolver.script('web', { kind: 'success', addresses }, found(['10.0.0.1'], 0));
    await fixture.start();
    await fixture.turn(19_999);
    assert.equal(fixture.resolver.asked.length, 1);
    await fixture.turn(1);
    assert.equal(fixture.resolver.asked.length, 2);
    // A time to live of 0 would mean no rest at all.
    await fixture.turn(REFRESH_MS - 1);
    assert.equal(fixture.resolver.asked.length, 2);
    await fixture.turn(1);
    assert.equal(fixture.resolver.asked.length, 3);
  });

  it('waits for a time to live of any length', async () => {
    const fixture = new DiscoveryFixture([target('web')], { respectTtl: true });
    const daySeconds = 24 * 60 * 60;
    fixture.resolver.script('web', found(['10.0.0.1'], 30 * daySeconds), found(['10.0.0.1'], 2 ** 31 - 1));
    await fixture.start();
    await fixture.turn(30 * daySeconds * 1000 - 1);
    assert.equal(fixture.resolver.asked.length, 1);
    await fixture.turn(1);
    assert.equal(fixture.resolver.asked.length, 2);
    await fixture.turn(365 * daySeconds * 1000);
    assert.equal(fixture.resolver.asked.length, 2);
  });

  it('backs off after failures up to the maximum, and starts over after a success', async () => {
    const fixture = new DiscoveryFixture([target('web')], { failureRefresh: { baseMs: 100, maxMs: 300 } });
    fixture.resolver.script('web', FAILED, FAILED, FAILED, FAILED, found(['10.0.0.1']), FAILED, FAILED);
    // One below each bound: the longest wait that randomness can make of it.
    const waits = [
      { bound: 100, next: 'failure' },
      { bound: 200, next: 'failure' },
      { bound: 300, next: 'failure' },
      { bound: 300, next: 'success' },
    ];
    fixture.random = 99;
    await fixture.start();
    for (const [index, { bound }] of waits.entries()) {
      fixture.random = (waits[index + 1]?.bound ?? 1) - 1;
      await fixture.turn(bound - 2);
      assert.equal(fixture.resolver.asked.length, index + 1, `early after ${index + 1} failures`);
      await fixture.turn(1);
      assert.equal(fixture.resolver.asked.length, index + 2, `late after ${index + 1} failures`);
    }
    fixture.random = 99;
    await fixture.turn(REFRESH_MS);
    assert.equal(fixture.resolver.asked.length, 6);
    await fixture.turn(99);
    assert.equal(fixture.resolver.asked.length, 7);
  });

  it('adds jitter to every wait', async () => {
    const fixture = new DiscoveryFixture([target('web')], { jitterMs: 1000 });
    fixture.resolver.script('web', found(['10.0.0.1']), FAILED);
    fixture.random = 1700;
    await fixture.start();
    for (const count of [1, 2]) {
      await fixture.turn(REFRESH_MS + 699);
      assert.equal(fixture.resolver.asked.length, count);
      await fixture.turn(1);
      assert.equal(fixture.resolver.asked.length, count + 1);
    }
  });

  it('says nothing more once stopped', async () => {
    const fixture = new DiscoveryFixture([target('web')]);
    fixture.resolver.script('web', found(['10.0.0.1']));
    fixture.discovery.start();
    fixture.discovery.stop();
    await settle();
    await fixture.turn(REFRESH_MS);
    assert.deepEqual(fixture.updates, []);
    assert.equal(fixture.clock.timerCount, 0);
    const waiting = new DiscoveryFixture([target('web')]);
    waiting.resolver.script('web', found(['10.0.0.1']));
    await waiting.start();
    assert.equal(waiting.clock.timerCount, 1);
    assert.equal(waiting.holders, 1);
    waiting.discovery.stop();
    waiting.discovery.stop();
    assert.equal(waiting.holders, 0);
    assert.equal(waiting.clock.timerCount, 0);
  });
});
