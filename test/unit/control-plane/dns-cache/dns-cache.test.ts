// The hosts that clients of forward proxies have named: looked up, kept while they are used, forgotten when they are not.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { DnsAnswer } from '../../../../src/control-plane/dns/dns-resolver.ts';
import { DnsCache, type DnsCacheUser, hostKey } from '../../../../src/control-plane/dns-cache/dns-cache.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { DnsCacheSettings } from '../../../../src/snapshot/index.ts';
import { FAILED, found, RESOLVER, settle } from '../../../support/dns-discovery.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const WEB = { name: 'web.test', port: 80 };
const KEY = 'web.test:80';

class User implements DnsCacheUser {
  readonly told: string[] = [];
  readonly used = new Set<string>();

  onAddresses(key: string, _host: object, ips: readonly string[]): void {
    this.told.push(`${key} at ${ips.join(' ')}`);
  }

  onMissing(key: string): void {
    this.told.push(`${key} missing`);
  }

  onForgotten(key: string): void {
    this.told.push(`${key} forgotten`);
  }

  isUsed(key: string): boolean {
    return this.used.delete(key);
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly asked: string[] = [];
  readonly counts = new Map<string, number>();
  readonly logged: string[] = [];
  readonly user = new User();
  /** What lookups find from now on; an error is thrown, null is silence. */
  answer: DnsAnswer | Error | null = found(['10.0.0.1']);
  readonly cache: DnsCache;

  constructor(settings: Partial<DnsCacheSettings> = {}) {
    const sink = { write: ({ message }: { message: string }) => void this.logged.push(message) };
    const all: DnsCacheSettings = {
      name: 'hosts',
      lookupFamily: 'AUTO',
      refreshRateMs: 60_000,
      minRefreshRateMs: 5000,
      failureRefresh: undefined,
      forgetsFailures: false,
      hostTtlMs: 300_000,
      maxHosts: 3,
      maxPending: 10,
      queryTimeoutMs: 5000,
      preresolved: [],
      resolver: RESOLVER,
      ...settings,
    };
    const lookup = async (name: string): Promise<DnsAnswer> => {
      this.asked.push(name);
      if (this.answer instanceof Error) throw this.answer;
      return this.answer ?? new Promise(() => {});
    };
    this.cache = new DnsCache(
      all,
      { lookup },
      { add: (name, n = 1) => this.counts.set(name, this.count(name) + n) },
      {
        clock: this.clock,
        faults: NO_FAULTS,
        random: { u32: () => 99 },
        log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('forward_proxy'),
      },
    );
    this.cache.join(this.user);
  }

  count(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  async want(host = WEB) {
    const wanted = this.cache.want(hostKey(host), host);
    await settle();
    return wanted;
  }

  async turn(byMs: number): Promise<void> {
    this.clock.turn(byMs);
    await settle();
  }
}

describe('a DNS cache', () => {
  it('looks a name up once for all who want it, and tells its users', async () => {
    const fixture = new Fixture();
    assert.equal(fixture.cache.want(KEY, WEB), 'looking up');
    assert.equal(await fixture.want(), 'looking up');
    assert.equal(await fixture.want(), 'found');
    assert.deepEqual(fixture.asked, ['web.test']);
    assert.deepEqual(fixture.user.told, [`${KEY} at 10.0.0.1`]);
    const late = new User();
    fixture.cache.join(late);
    assert.deepEqual(late.told, [`${KEY} at 10.0.0.1`]);
    assert.deepEqual(
      ['dns_query_attempt', 'dns_query_success', 'host_added', 'host_address_changed', 'num_hosts'].map((name) =>
        fixture.count(name),
      ),
      [1, 1, 1, 1, 1],
    );
  });

  it('takes an address as its own answer', async () => {
    const fixture = new Fixture();
    assert.equal(await fixture.want({ name: '::1', port: 80 }), 'found');
    assert.deepEqual(fixture.asked, []);
    assert.deepEqual(fixture.user.told, ['[::1]:80 at ::1']);
  });

  for (const [what, ttlSeconds, waitMs] of [
    ['dns_refresh_rate where records say nothing', 0, 60_000],
    ['the life of its records', 20, 20_000],
    ['dns_min_refresh_rate where they live shorter', 1, 5000],
  ] as const) {
    it(`looks up again after ${what}`, async () => {
      const fixture = new Fixture();
      fixture.answer = found(['10.0.0.1'], ttlSeconds);
      await fixture.want();
      await fixture.turn(waitMs - 1);
      assert.equal(fixture.asked.length, 1);
      await fixture.turn(1);
      assert.equal(fixture.asked.length, 2);
    });
  }

  it('tells of other addresses, in whatever order they come', async () => {
    const fixture = new Fixture();
    fixture.answer = found(['10.0.0.1', '10.0.0.2'], 5);
    await fixture.want();
    fixture.answer = found(['10.0.0.2', '10.0.0.1'], 5);
    await fixture.turn(5000);
    assert.equal(fixture.user.told.length, 1);
    fixture.answer = found(['10.0.0.3'], 5);
    await fixture.turn(5000);
    assert.equal(fixture.user.told[1], `${KEY} at 10.0.0.3`);
    assert.equal(fixture.count('host_address_changed'), 2);
  });

  for (const [what, answer] of [
    ['fails', FAILED],
    ['finds nothing', found([])],
    ['throws', new Error('no socket')],
  ] as const) {
    it(`keeps addresses when a lookup ${what}, and remembers a name without any until it is due`, async () => {
      const fixture = new Fixture();
      await fixture.want();
      fixture.answer = answer;
      await fixture.turn(60_000);
      assert.equal(await fixture.want(), 'found');
      assert.equal(fixture.count('dns_query_failure'), 1);
      const other = { name: 'other.test', port: 80 };
      assert.equal(await fixture.want(other), 'looking up');
      assert.equal(fixture.user.told.at(-1), 'other.test:80 missing');
      const asked = fixture.asked.length;
      assert.equal(await fixture.want(other), 'missing');
      assert.equal(fixture.asked.length, asked);
      fixture.answer = found(['10.0.0.9']);
      await fixture.turn(60_000);
      assert.equal(fixture.user.told.at(-1), 'other.test:80 at 10.0.0.9');
    });
  }

  it('forgets a name without an address that nobody has wanted again', async () => {
    const fixture = new Fixture();
    fixture.answer = FAILED;
    await fixture.want();
    await fixture.turn(60_000);
    assert.equal(fixture.cache.size, 0);
    assert.equal(fixture.count('host_removed'), 1);
    assert.equal(fixture.count('num_hosts'), 0);
    assert.deepEqual(fixture.user.told, [`${KEY} missing`], 'there was nothing to forget for users');
    assert.equal(fixture.asked.length, 1);
  });

  it('waits after failures by dns_failure_refresh_rate', async () => {
    const fixture = new Fixture({ failureRefresh: { baseMs: 1000, maxMs: 4000 } });
    fixture.answer = FAILED;
    await fixture.want();
    await fixture.want();
    await fixture.turn(98);
    assert.equal(fixture.asked.length, 1);
    await fixture.turn(1);
    assert.equal(fixture.asked.length, 2);
  });

  it('forgets a name without an address at once where it is told to', async () => {
    const fixture = new Fixture({ forgetsFailures: true });
    fixture.answer = FAILED;
    await fixture.want();
    assert.equal(fixture.cache.size, 0);
    assert.deepEqual(fixture.user.told, [`${KEY} missing`]);
    assert.equal(await fixture.want(), 'looking up');
    assert.equal(fixture.clock.timerCount, 0, 'no timer of a name that is forgotten');
  });

  it('gives up a lookup after dns_query_timeout, and takes no late answer', async () => {
    const fixture = new Fixture();
    fixture.answer = null;
    await fixture.want();
    await fixture.turn(4999);
    assert.deepEqual(fixture.user.told, []);
    await fixture.turn(1);
    assert.deepEqual(fixture.user.told, [`${KEY} missing`]);
    assert.equal(fixture.count('dns_query_timeout'), 1);
    assert.equal(fixture.count('dns_query_failure'), 1);
    const forever = new Fixture({ queryTimeoutMs: 0 });
    forever.answer = null;
    await forever.want();
    assert.equal(forever.clock.timerCount, 0);
  });

  it('forgets a host when nobody has used it for host_ttl', async () => {
    const fixture = new Fixture({ hostTtlMs: 120_000 });
    await fixture.want();
    await fixture.turn(60_000);
    fixture.user.used.add(KEY);
    await fixture.turn(60_000);
    await fixture.turn(60_000);
    assert.equal(fixture.cache.size, 1);
    await fixture.turn(60_000);
    assert.equal(fixture.cache.size, 0);
    assert.equal(fixture.user.told.at(-1), `${KEY} forgotten`);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('keeps a host that any of its users uses', async () => {
    const fixture = new Fixture({ hostTtlMs: 60_000 });
    const other = new User();
    fixture.cache.join(other);
    await fixture.want();
    other.used.add(KEY);
    await fixture.turn(60_000);
    assert.equal(fixture.cache.size, 1);
    fixture.cache.leave(other);
    other.used.add(KEY);
    await fixture.turn(60_000);
    assert.equal(fixture.cache.size, 0);
  });

  it('has no more than max_hosts, says so once, and has room again', async () => {
    const fixture = new Fixture({ hostTtlMs: 60_000 });
    for (const name of ['a', 'b', 'c']) await fixture.want({ name, port: 80 });
    for (const name of ['d', 'e']) assert.equal(await fixture.want({ name, port: 80 }), 'refused');
    assert.equal(fixture.count('host_overflow'), 2);
    assert.deepEqual(fixture.logged, ['DNS cache hosts has 3 hosts, and takes no more']);
    await fixture.turn(60_000);
    assert.equal(await fixture.want({ name: 'd', port: 80 }), 'looking up');
  });

  it('looks up at the start what it is told to', async () => {
    const fixture = new Fixture({ preresolved: [WEB] });
    await settle();
    assert.deepEqual(fixture.user.told, [`${KEY} at 10.0.0.1`]);
  });

  it('does nothing once it is closed', async () => {
    const fixture = new Fixture();
    await fixture.want();
    fixture.answer = null;
    await fixture.want({ name: 'b', port: 80 });
    fixture.cache.close();
    assert.equal(fixture.clock.timerCount, 0);
    assert.equal(fixture.count('num_hosts'), 0);
  });

  it('never has more hosts than it may, nor a host without a timer, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('want'), n: fc.integer({ min: 0, max: 6 }) }),
      fc.record({ kind: fc.constant('turn'), n: fc.integer({ min: 1, max: 200_000 }) }),
      fc.record({ kind: fc.constant('answer'), n: fc.integer({ min: 0, max: 3 }) }),
      fc.record({ kind: fc.constant('use'), n: fc.integer({ min: 0, max: 6 }) }),
    );
    const answers = [found(['10.0.0.1'], 30), found(['10.0.0.2']), FAILED, null];
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), async (steps, forgetsFailures) => {
        const fixture = new Fixture({ forgetsFailures });
        for (const { kind, n } of steps) {
          if (kind === 'want') await fixture.want({ name: `h${n}`, port: 80 });
          else if (kind === 'turn') await fixture.turn(n);
          else if (kind === 'answer') fixture.answer = answers[n]!;
          else fixture.user.used.add(`h${n}:80`);
          assert.ok(fixture.cache.size <= 3);
          assert.equal(fixture.count('num_hosts'), fixture.cache.size);
          // Each host is being looked up, with a limit of time, or will be.
          assert.equal(fixture.clock.timerCount, fixture.cache.size);
          assert.equal(fixture.count('host_added') - fixture.count('host_removed'), fixture.cache.size);
        }
        // Whoever uses nothing leaves nothing behind.
        fixture.user.used.clear();
        fixture.answer = FAILED;
        for (let n = 0; n < 8; n += 1) await fixture.turn(120_000);
        assert.equal(fixture.cache.size, 0);
      }),
      { numRuns: 60 },
    );
  });
});
