// Lookups: the files of the system, families of addresses, and a server of the test's own.

import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import type { DnsServerList } from '../../../../src/control-plane/dns/dns-client.ts';
import type { DnsAnswer } from '../../../../src/control-plane/dns/dns-resolver.ts';
import { HostsFile, parseHosts } from '../../../../src/control-plane/dns/hosts-file.ts';
import {
  parseResolvConf,
  type ResolverConfig,
  ResolverFile,
  searchCandidates,
} from '../../../../src/control-plane/dns/resolver-file.ts';
import { DnsResolvers } from '../../../../src/control-plane/dns/resolvers.ts';
import { chooseServers, SystemResolver } from '../../../../src/control-plane/dns/system-resolver.ts';
import { MAX_WATCHED_BYTES, WatchedText } from '../../../../src/control-plane/dns/watched-text.ts';
import type { DnsResolverSettings } from '../../../../src/snapshot/index.ts';
import { RESOLVER } from '../../../support/dns-discovery.ts';
import { DnsServer } from '../../../support/dns-server.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { Fifo } from '../../../support/fifo.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

function ips(answer: DnsAnswer): string[] {
  assert.equal(answer.kind, 'success');
  return answer.kind === 'success' ? answer.addresses.map(({ ip }) => ip) : [];
}

const readText = (text: string, ownName = ''): ResolverConfig => parseResolvConf(text, ownName);

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
    const said: string[] = [];
    const report = (sentence: string): void => void said.push(sentence);
    const hosts = new HostsFile(file, report);
    assert.deepEqual(await hosts.find('web'), ['10.0.0.1']);
    rmSync(file);
    mkdirSync(file);
    assert.deepEqual(await hosts.find('web'), ['10.0.0.1']);
    await new ResolverFile(file, report).read();
    const sentence = `${file} is a directory, not a file: what was read of it before still holds`;
    assert.deepEqual(said, [sentence, sentence]);
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

describe('the files of the system', () => {
  it('are where every system has them', async () => {
    const text = (file: string): string => (existsSync(file) ? readFileSync(file, 'latin1') : '');
    assert.deepEqual(await new ResolverFile().read(), parseResolvConf(text('/etc/resolv.conf'), hostname()));
    for (const [name, addresses] of parseHosts(text('/etc/hosts'))) {
      assert.deepEqual(await new HostsFile().find(name), addresses);
    }
  });

  it('are read anew only when they have changed', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-watched-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'text');
    const parsed: string[] = [];
    const watched = new WatchedText(file, (text) => {
      parsed.push(text);
      return text;
    });
    const write = (text: string, seconds: number): void => {
      writeFileSync(file, text);
      utimesSync(file, seconds, seconds);
    };
    write('one', 1);
    assert.deepEqual([await watched.read(), await watched.read()], ['one', 'one']);
    assert.deepEqual(parsed, ['', 'one']);
    write('two', 2);
    assert.equal(await watched.read(), 'two');
    write('three', 2);
    assert.equal(await watched.read(), 'three');
    // One that is there again is another one, even where nothing tells them apart.
    rmSync(file);
    assert.equal(await watched.read(), '');
    write('tree!', 2);
    assert.equal(await watched.read(), 'tree!');
  });

  it('are not read where they have no end, are none or are far too large, which is said once', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-watched-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'text');
    const said: string[] = [];
    const watched = new WatchedText(
      file,
      (text) => text.length,
      (sentence) => said.push(sentence),
    );
    const before = 'what was read of it before still holds';
    writeFileSync(file, 'x'.repeat(MAX_WATCHED_BYTES));
    assert.equal(await watched.read(), MAX_WATCHED_BYTES);
    truncateSync(file, MAX_WATCHED_BYTES + 1);
    for (let time = 0; time < 2; time += 1) assert.equal(await watched.read(), MAX_WATCHED_BYTES);
    const tooLarge = `has ${MAX_WATCHED_BYTES + 1} bytes, more than the limit ${MAX_WATCHED_BYTES}`;
    assert.deepEqual(said, [`${file} ${tooLarge}: ${before}`]);
    rmSync(file);
    await Fifo.make(file);
    assert.equal(await watched.read(), MAX_WATCHED_BYTES);
    assert.equal(said.at(-1), `${file} is not a regular file: ${before}`);
    rmSync(file);
    symlinkSync(file, file);
    assert.equal(await watched.read(), MAX_WATCHED_BYTES);
    assert.equal(said.at(-1), `${file} cannot be read (ELOOP): ${before}`);
    // None that is right or away is told of, and each of these once more behind it.
    rmSync(file);
    assert.equal(await watched.read(), 0);
    symlinkSync(file, file);
    await watched.read();
    rmSync(file);
    writeFileSync(file, 'right');
    assert.equal(await watched.read(), 'right'.length);
    rmSync(file);
    symlinkSync(file, file);
    assert.equal(await watched.read(), 'right'.length);
    assert.equal(said.length, 5);
  });

  it('hold lines with blanks around them, in the ends of lines of any system', async () => {
    assert.deepEqual(
      parseHosts(' \t10.0.0.1 \t web  alias \r\n'),
      new Map([
        ['web', ['10.0.0.1']],
        ['alias', ['10.0.0.1']],
      ]),
    );
    const { servers, searchList } = readText('  nameserver \t 10.0.0.1 \r\n search  a.test\t b.test \r\nnameserver\n');
    assert.deepEqual(servers, [{ ip: '10.0.0.1', port: 53 }]);
    assert.deepEqual(searchList.domains, ['a.test', 'b.test']);
  });
});

describe('the resolvers of the process', () => {
  it('are shared by those who ask in the same way, and give up with the last of them', async () => {
    await using server = await DnsServer.start();
    const clock = new ManualClock();
    const resolvers = new DnsResolvers(clock, NO_FAULTS);
    const settings = { ...RESOLVER, servers: [{ ip: '127.0.0.1', port: server.port }] };
    server.tamper(() => []);
    const query = server.nextQuery();
    const [first, second] = [resolvers.hold(settings), resolvers.hold({ ...settings })];
    const answer = first.lookup('web.test', 'V4_ONLY');
    await query;
    first.release();
    first.release();
    assert.equal(clock.timerCount, 1, 'the question goes on for the other');
    second.release();
    assert.deepEqual(await answer, { kind: 'failure', reason: 'cancelled for web.test' });
    assert.equal(clock.timerCount, 0);
    // Who comes later asks anew.
    server.tamper((message) => [message]);
    server.set('web.test', ['10.0.0.5']);
    const third = resolvers.hold(settings);
    assert.deepEqual(ips(await third.lookup('web.test', 'V4_ONLY')), ['10.0.0.5']);
    third.release();
  });

  it('ask by the files that they are given, each by its settings until it is released', async () => {
    await using server = await DnsServer.start();
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-resolvers-'));
    const [hosts, resolvConf] = [path.join(folder, 'hosts'), path.join(folder, 'resolv.conf')];
    writeFileSync(hosts, '10.0.0.7 listed\n');
    writeFileSync(resolvConf, 'search a.test\n');
    const clock = new ManualClock();
    const resolvers = new DnsResolvers(clock, NO_FAULTS, new HostsFile(hosts), new ResolverFile(resolvConf));
    const settings = { ...RESOLVER, servers: [{ ip: '127.0.0.1', port: server.port }] };
    assert.deepEqual(ips(await resolvers.hold(settings).lookup('listed', 'V4_ONLY')), ['10.0.0.7']);
    server.set('short.a.test', ['10.0.0.5']);
    assert.deepEqual(ips(await resolvers.hold(settings).lookup('short', 'V4_ONLY')), ['10.0.0.5']);
    server.tamper(() => []);
    const query = server.nextQuery();
    const [one, other] = [
      { ...settings, queryTries: 1 },
      { ...settings, queryTries: 2 },
    ].map((each) => resolvers.hold(each));
    const answer = one!.lookup('web', 'V4_ONLY');
    await query;
    other!.release();
    assert.equal(clock.timerCount, 1);
    one!.release();
    assert.equal((await answer).kind, 'failure');
    assert.equal(clock.timerCount, 0);
    rmSync(folder, { recursive: true });
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
    assert.deepEqual(readText(text).searchList, { domains: ['a.test', 'b.test'], ndots: 3 });
    assert.deepEqual(readText('options ndots:99', 'host.own.test').searchList, {
      domains: ['own.test'],
      ndots: 15,
    });
    assert.deepEqual(readText('search .', 'host.own.test').searchList.domains, []);
    assert.deepEqual(readText('domain a.test b.test').searchList.domains, ['a.test']);
    assert.deepEqual(readText('', 'host').searchList.domains, []);
  });

  const ndots = [
    { options: 'ndots:0', expected: 0 },
    { options: 'ndots:2 ndots:4', expected: 4 },
    { options: 'ndots:3 timeout:12', expected: 3 },
    { options: 'ndots:x', expected: 1 },
    { options: 'ndots:-1', expected: 1 },
    { options: 'ndots:1.5', expected: 1 },
    { options: 'xndots:3', expected: 1 },
  ];
  for (const { options, expected } of ndots) {
    it(`take ${expected} for the dots of ${options}`, () => {
      assert.equal(readText(`options ${options}`).searchList.ndots, expected);
    });
  }

  it('take 0 dots for enough when told to', () => {
    assert.deepEqual(searchCandidates('web', { domains: ['a.test'], ndots: 0 }), ['web', 'web.a.test']);
  });
});

describe('servers', () => {
  it('come from the lines of the file that hold addresses, with its options', () => {
    const text = 'nameserver 10.0.0.1\nnameserver dns.test\nnameserver fe80::1%lo\noptions rotate use-vc\n';
    const { servers, useTcp, rotate } = readText(text);
    assert.deepEqual(servers, [
      { ip: '10.0.0.1', port: 53 },
      { ip: 'fe80::1%lo', port: 53 },
    ]);
    assert.deepEqual({ useTcp, rotate }, { useTcp: true, rotate: true });
    assert.equal(readText('options usevc').useTcp, true);
    const none = readText('use-vc rotate\nsortlist 10.0.0.1\n');
    assert.deepEqual([none.useTcp, none.rotate, none.servers], [false, false, []]);
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

describe('the servers of a cluster', () => {
  const own = { ip: '10.0.0.2', port: 5353 };
  const system = { ip: '10.0.0.1', port: 53 };
  const local = { ip: '127.0.0.1', port: 53 };
  const cases: readonly {
    readonly name: string;
    readonly settings: Partial<DnsResolverSettings>;
    readonly text: string;
    readonly expected: DnsServerList;
  }[] = [
    {
      name: 'are those of the system where it names none itself',
      settings: {},
      text: 'nameserver 10.0.0.1',
      expected: { servers: [system], useTcp: false, rotate: false },
    },
    {
      name: 'are asked as the system says',
      settings: {},
      text: 'nameserver 10.0.0.1\noptions use-vc rotate',
      expected: { servers: [system], useTcp: true, rotate: true },
    },
    {
      name: 'are asked over TCP when it says so',
      settings: { useTcp: true },
      text: 'nameserver 10.0.0.1',
      expected: { servers: [system], useTcp: true, rotate: false },
    },
    {
      name: 'are asked in turns when it says so',
      settings: { rotate: true },
      text: 'nameserver 10.0.0.1',
      expected: { servers: [system], useTcp: false, rotate: true },
    },
    {
      name: 'are this machine where nobody names any',
      settings: {},
      text: 'options rotate',
      expected: { servers: [local], useTcp: false, rotate: true },
    },
    {
      name: 'are its own, asked as it says',
      settings: { servers: [own] },
      text: 'nameserver 10.0.0.1\noptions use-vc rotate',
      expected: { servers: [own], useTcp: false, rotate: false },
    },
    {
      name: 'are those of the system before its fallback',
      settings: { servers: [own], serversAreFallback: true },
      text: 'nameserver 10.0.0.1',
      expected: { servers: [system], useTcp: false, rotate: false },
    },
    {
      name: 'are its fallback where the system names none',
      settings: { servers: [own], serversAreFallback: true, useTcp: true },
      text: 'options rotate',
      expected: { servers: [own], useTcp: true, rotate: false },
    },
  ];
  for (const { name, settings, text, expected } of cases) {
    it(name, () => {
      assert.deepEqual(chooseServers({ ...RESOLVER, ...settings }, readText(text)), expected);
    });
  }
});

describe('a lookup', () => {
  let server: DnsServer;
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-resolv-'));
  const resolverPath = path.join(folder, 'resolv.conf');
  const resolver = (settings: Partial<DnsResolverSettings> = {}): SystemResolver =>
    new SystemResolver({
      faults: NO_FAULTS,
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

  it('brings what it has found of one family though the other fails', async () => {
    server.tamper((answer, query) => {
      const isV6 = query.readUInt16BE(query.length - 4) === 28;
      if (isV6) answer.writeUInt16BE(0x8182, 2);
      return [answer];
    });
    try {
      assert.deepEqual(ips(await resolver().lookup('both.test', 'ALL')), ['10.0.0.1', '10.0.0.2']);
      assert.deepEqual(ips(await resolver().lookup('both.test', 'AUTO')), ['10.0.0.1', '10.0.0.2']);
      const answer = await resolver().lookup('none.test', 'AUTO');
      assert.deepEqual(answer, { kind: 'failure', reason: 'SERVFAIL for none.test' });
    } finally {
      server.tamper(undefined);
    }
  });

  it('leaves out families that no interface but loopback has, when told to', async () => {
    server.set('both.test', ['10.0.0.1', 'fd00::1']);
    const at = (family: 'IPv4' | 'IPv6', internal: boolean) =>
      ({ address: '', netmask: '', mac: '', cidr: null, scopeid: 0, family, internal }) as const;
    const v4 = { ip: '10.0.0.1', ttlSeconds: 0 };
    const v6 = { ip: 'fd00::1', ttlSeconds: 0 };
    for (const [lo, eth, found] of [
      [[at('IPv4', true), at('IPv6', true)], [at('IPv4', false)], [v4]],
      [[at('IPv4', true)], [at('IPv6', false)], [v6]],
      [[at('IPv4', true), at('IPv6', true)], [], []],
    ] as const) {
      const only = new SystemResolver({
        faults: NO_FAULTS,
        settings: { ...RESOLVER, servers: [{ ip: '127.0.0.1', port: server.port }], leavesOutUnroutable: true },
        hostsFile: new HostsFile('/nonexistent/hosts'),
        resolverFile: new ResolverFile(resolverPath),
        clock: SYSTEM_CLOCK,
        interfaces: () => ({ lo: [...lo], eth0: [...eth] }),
      });
      assert.deepEqual(await only.lookup('both.test', 'ALL'), { kind: 'success', addresses: found });
    }
  });

  it('brings addresses of the family that was asked for out of the hosts file', async () => {
    const file = path.join(folder, 'hosts');
    writeFileSync(file, '10.0.0.1 web\nfd00::1 web\n');
    const listed = new SystemResolver({
      faults: NO_FAULTS,
      settings: RESOLVER,
      hostsFile: new HostsFile(file),
      resolverFile: new ResolverFile(resolverPath),
      clock: SYSTEM_CLOCK,
    });
    const addresses = [
      { ip: 'fd00::1', ttlSeconds: 0 },
      { ip: '10.0.0.1', ttlSeconds: 0 },
    ];
    assert.deepEqual(await listed.lookup('web', 'ALL'), { kind: 'success', addresses });
    assert.deepEqual(ips(await listed.lookup('web', 'V4_PREFERRED')), ['10.0.0.1']);
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
