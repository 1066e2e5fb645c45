// Lookups: the files of the system, families of addresses, and a server of the test's own.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SYSTEM_CLOCK } from '../../../src/base/clock.ts';
import type { DnsAnswer } from '../../../src/control-plane/dns/dns-resolver.ts';
import { HostsFile, parseHosts } from '../../../src/control-plane/dns/hosts-file.ts';
import { parseResolvConf, ResolverFile, searchCandidates } from '../../../src/control-plane/dns/resolver-file.ts';
import { SystemResolver } from '../../../src/control-plane/dns/system-resolver.ts';
import type { DnsResolverSettings } from '../../../src/snapshot/index.ts';
import { RESOLVER } from '../../support/dns-discovery.ts';
import { DnsServer } from '../../support/dns-server.ts';

function ips(answer: DnsAnswer): string[] {
  assert.equal(answer.kind, 'success');
  return answer.kind === 'success' ? answer.addresses.map(({ ip }) => ip) : [];
}

describe('the hosts file', () => {
  it('knows names and aliases in any case, and skips comments and nonsense', () => {
    const entries = parseHosts(
      '# 10.0.0.9 no\n10.0.0.1\tWeb web.alias # 10.0.0.2\nbroken line\n::1 web\n10.0.0.1 web\n',
    );
    assert.deepEqual(entries.get('web'), ['10.0.0.1', '::1']);
    assert.deepEqual(entries.get('web.alias'), ['10.0.0.1']);
    assert.equal(entries.size, 2);
  });

  it('is read again when it has changed, and does without a file', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-hosts-'));
    const file = path.join(folder, 'hosts');
    const hosts = new HostsFile(file);
    assert.equal(await hosts.find('web'), undefined);
    writeFileSync(file, '10.0.0.1 web\n');
    assert.deepEqual(await hosts.find('WEB.'), ['10.0.0.1']);
    writeFileSync(file, '10.0.0.1 web\n10.0.0.22 web\n');
    assert.deepEqual(await hosts.find('web'), ['10.0.0.1', '10.0.0.22']);
    rmSync(folder, { recursive: true });
    assert.equal(await hosts.find('web'), undefined);
  });

  it('keeps what it has read while the file cannot be read', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-hosts-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'hosts');
    writeFileSync(file, '10.0.0.1 web\n');
    const hosts = new HostsFile(file);
    assert.deepEqual(await hosts.find('web'), ['10.0.0.1']);
    rmSync(file);
    mkdirSync(file);
    assert.deepEqual(await hosts.find('web'), ['10.0.0.1']);
    rmSync(file, { recursive: true });
    writeFileSync(file, '10.0.0.3 web\n');
    assert.deepEqual(await hosts.find('web'), ['10.0.0.3']);
  });

  it('always knows localhost, by the file where it is listed', async () => {
    const nowhere = new HostsFile('/nonexistent/hosts');
    assert.deepEqual(await nowhere.find('localhost'), ['127.0.0.1', '::1']);
    assert.deepEqual(await nowhere.find('app.localhost'), ['127.0.0.1', '::1']);
    assert.deepEqual(parseHosts('127.0.0.1 localhost').get('localhost'), ['127.0.0.1']);
  });
});

describe('search domains', () => {
  const cases = [
    { name: 'web', ndots: 1, candidates: ['web.a.test', 'web.b.test', 'web'] },
    { name: 'web.x', ndots: 1, candidates: ['web.x', 'web.x.a.test', 'web.x.b.test'] },
    { name: 'web.x', ndots: 5, candidates: ['web.x.a.test', 'web.x.b.test', 'web.x'] },
    { name: 'web.', ndots: 1, candidates: ['web'] },
  ];
  for (const { name, ndots, candidates } of cases) {
    it(`make ${name} with ndots ${ndots} into ${candidates.join(', ')}`, () => {
      assert.deepEqual(searchCandidates(name, { domains: ['a.test', 'b.test'], ndots }), candidates);
    });
  }

  it('come from the last search or domain line, or from the name of this machine', () => {
    const text = 'domain first.test\n; comment\nsearch a.test. b.test # c\noptions timeout:1 ndots:3\n';
    assert.deepEqual(parseResolvConf(text).searchList, { domains: ['a.test', 'b.test'], ndots: 3 });
    assert.deepEqual(parseResolvConf('options ndots:99', 'host.own.test').searchList, {
      domains: ['own.test'],
      ndots: 15,
    });
    assert.deepEqual(parseResolvConf('search .', 'host.own.test').searchList.domains, []);
  });
});

describe('servers', () => {
  it('come from the lines of the file that hold addresses, with its options', () => {
    const text = 'nameserver 10.0.0.1\nnameserver dns.test\nnameserver fe80::1%lo\noptions rotate use-vc\n';
    const { servers, useTcp, rotate } = parseResolvConf(text);
    assert.deepEqual(servers, [
      { ip: '10.0.0.1', port: 53 },
      { ip: 'fe80::1%lo', port: 53 },
    ]);
    assert.deepEqual({ useTcp, rotate }, { useTcp: true, rotate: true });
  });

  it('are read again when the file has changed', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-resolv-'));
    const file = path.join(folder, 'resolv.conf');
    const resolverFile = new ResolverFile(file);
    assert.deepEqual((await resolverFile.read()).servers, []);
    writeFileSync(file, 'nameserver 10.0.0.1\n');
    assert.deepEqual((await resolverFile.read()).servers, [{ ip: '10.0.0.1', port: 53 }]);
    rmSync(folder, { recursive: true });
  });
});

describe('a lookup', () => {
  let server: DnsServer;
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-resolv-'));
  const resolverPath = path.join(folder, 'resolv.conf');
  const resolver = (settings: Partial<DnsResolverSettings> = {}): SystemResolver =>
    new SystemResolver({
      settings: {
        ...RESOLVER,
        servers: [{ ip: '127.0.0.1', port: server.port }],
        useSearchDomains: false,
        ...settings,
      },
      hostsFile: new HostsFile('/nonexistent/hosts'),
      resolverFile: new ResolverFile(resolverPath),
      clock: SYSTEM_CLOCK,
    });

  before(async () => {
    server = await DnsServer.start();
    server.set('both.test', ['10.0.0.1', '10.0.0.2', 'fd00::1'], 30);
    server.set('four.test', ['10.0.0.4'], 7);
    server.set('none.test', []);
    server.set('short.a.test', ['10.0.0.5']);
  });
  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  const families = [
    { family: 'AUTO', both: ['fd00::1'], four: ['10.0.0.4'], queries: ['AAAA', 'A'] },
    { family: 'V4_ONLY', both: ['10.0.0.1', '10.0.0.2'], four: ['10.0.0.4'], queries: ['A'] },
    { family: 'V6_ONLY', both: ['fd00::1'], four: [], queries: ['AAAA'] },
    { family: 'V4_PREFERRED', both: ['10.0.0.1', '10.0.0.2'], four: ['10.0.0.4'], queries: ['A'] },
    { family: 'ALL', both: ['fd00::1', '10.0.0.1', '10.0.0.2'], four: ['10.0.0.4'], queries: ['AAAA', 'A'] },
  ] as const;
  for (const { family, both, four, queries } of families) {
    it(`${family} asks for ${queries.join(' and ')}`, async () => {
      assert.deepEqual(ips(await resolver().lookup('both.test', family)), both);
      server.queries.length = 0;
      assert.deepEqual(ips(await resolver().lookup('four.test', family)), four);
      assert.deepEqual(
        server.queries,
        queries.map((type) => `four.test ${type}`),
      );
    });
  }

  it('brings the time to live', async () => {
    const answer = await resolver().lookup('four.test', 'V4_ONLY');
    assert.deepEqual(answer, { kind: 'success', addresses: [{ ip: '10.0.0.4', ttlSeconds: 7 }] });
  });

  it('is empty, not failed, for a name without addresses and for one that does not exist', async () => {
    assert.deepEqual(ips(await resolver().lookup('none.test', 'AUTO')), []);
    assert.deepEqual(ips(await resolver().lookup('unknown.test', 'AUTO')), []);
  });

  it('fails when the server does', async () => {
    server.fail('REFUSED');
    const answer = await resolver().lookup('four.test', 'V4_ONLY');
    server.fail(undefined);
    assert.deepEqual(answer, { kind: 'failure', reason: 'REFUSED for four.test' });
  });

  it('tries search domains until one has the name, passing over those that make it too long', async () => {
    writeFileSync(resolverPath, `search ${'x'.repeat(63)}.${'y'.repeat(190)}.test b.test a.test\n`);
    const answer = await resolver({ useSearchDomains: true }).lookup('short', 'V4_ONLY');
    assert.deepEqual(ips(answer), ['10.0.0.5']);
    assert.deepEqual(ips(await resolver().lookup('short', 'V4_ONLY')), []);
  });

  it('takes its own servers as a fallback only when the system names none', async () => {
    const fallback = { serversAreFallback: true, queryTries: 1 };
    writeFileSync(resolverPath, 'search b.test\n');
    assert.deepEqual(ips(await resolver(fallback).lookup('four.test', 'V4_ONLY')), ['10.0.0.4']);
    // Nobody answers at this port of the system's server.
    writeFileSync(resolverPath, 'nameserver 127.0.0.77\n');
    assert.equal((await resolver(fallback).lookup('four.test', 'V4_ONLY')).kind, 'failure');
  });

  it('never asks a server for localhost', async () => {
    server.queries.length = 0;
    assert.deepEqual(ips(await resolver().lookup('localhost', 'V4_ONLY')), ['127.0.0.1']);
    assert.deepEqual(server.queries, []);
  });
});
