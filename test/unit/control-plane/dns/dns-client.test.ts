// Questions to DNS servers that are well, away, broken or hostile; real sockets, and a clock that the test turns.

import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { DnsClient, type DnsServerList } from '../../../../src/control-plane/dns/dns-client.ts';
import type { DnsAnswer } from '../../../../src/control-plane/dns/dns-resolver.ts';
import {
  answerWith,
  DnsServer,
  encodeName,
  formatError,
  payloadOf,
  record,
  type Tamper,
  v4Bytes,
} from '../../../support/dns-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const TIMEOUT_MS = 5000;
const TYPE_A = 1;
const TYPE_CNAME = 5;
const TRUNCATED = 0x0200;
/** The name of the question. */
const OWN_NAME = Buffer.from([0xc0, 0x0c]);

class Fixture {
  readonly clock = new ManualClock();
  readonly client: DnsClient;

  constructor(servers: readonly DnsServer[], list: Partial<DnsServerList> = {}, tries = 2, payloadBytes = 0) {
    const addresses = servers.map(({ port }) => ({ ip: '127.0.0.1', port }));
    const whole = { servers: addresses, useTcp: false, rotate: false, ...list };
    const options = { timeoutMs: TIMEOUT_MS, tries, payloadBytes };
    this.client = new DnsClient({ faults: NO_FAULTS, clock: this.clock, servers: async () => whole, ...options });
  }

  ask(name: string): Promise<DnsAnswer> {
    return this.client.query(name, 'A');
  }
}

function ipsOf(answer: DnsAnswer): readonly string[] | string {
  return answer.kind === 'success' ? answer.addresses.map(({ ip }) => ip) : answer.reason;
}

const SILENT: Tamper = () => [];

describe('a DNS client', () => {
  it('asks over TCP for what UDP cannot carry: 500 addresses', async () => {
    await using server = await DnsServer.start();
    const many = Array.from({ length: 500 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
    server.set('web.test', many, 3);
    assert.deepEqual(ipsOf(await new Fixture([server]).ask('web.test')), many);
    assert.deepEqual(server.queries, ['web.test A', 'web.test A TCP']);
  });

  it('tells servers how long an answer over UDP may be, and spares TCP', async () => {
    await using server = await DnsServer.start();
    const many = Array.from({ length: 60 }, (_, index) => `10.0.0.${index}`);
    server.set('web.test', many);
    const payloads: (number | undefined)[] = [];
    server.tamper((answer, query) => {
      payloads.push(payloadOf(query));
      return [answer];
    });
    const long = new Fixture([server], {}, 2, 1232);
    assert.deepEqual(ipsOf(await long.ask('web.test')), many);
    assert.deepEqual(server.queries, ['web.test A']);
    assert.deepEqual(ipsOf(await new Fixture([server]).ask('web.test')), many);
    assert.deepEqual(payloads, [1232, undefined, undefined]);
  });

  it('asks a server that does not know of it once more, without', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    server.tamper((answer, query) => [payloadOf(query) === undefined ? answer : formatError(query)]);
    assert.deepEqual(ipsOf(await new Fixture([server], {}, 1, 4096).ask('web.test')), ['10.0.0.1']);
    assert.equal(server.queries.length, 2);
    server.tamper((_answer, query) => [formatError(query)]);
    assert.equal(ipsOf(await new Fixture([server], {}, 1).ask('web.test')), 'FORMERR');
    assert.equal(server.queries.length, 3);
  });

  it('asks over TCP alone when told to', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    assert.deepEqual(ipsOf(await new Fixture([server], { useTcp: true }).ask('web.test')), ['10.0.0.1']);
    assert.deepEqual(server.queries, ['web.test A TCP']);
  });

  it('follows aliases, with the shortest time to live on the way', async () => {
    await using server = await DnsServer.start();
    server.alias('web.test', 'a.test', 30);
    server.alias('a.test', 'b.test', 5);
    server.set('b.test', ['10.0.0.1'], 60);
    const answer = await new Fixture([server]).ask('WEB.test');
    assert.deepEqual(answer, { kind: 'success', addresses: [{ ip: '10.0.0.1', ttlSeconds: 5 }] });
  });

  it('takes a loop of aliases for a failure, not for a name without addresses', async () => {
    await using server = await DnsServer.start();
    server.alias('web.test', 'a.test');
    server.alias('a.test', 'web.test');
    const answer = await new Fixture([server]).ask('web.test');
    assert.deepEqual(answer, { kind: 'failure', reason: 'an answer cut off over UDP, and a loop of aliases over TCP' });
  });

  const lies: readonly { readonly name: string; readonly tamper: Tamper }[] = [
    {
      name: 'under another id',
      tamper: (answer, query) => {
        const forged = answerWith(query, [record(OWN_NAME, TYPE_A, 1, v4Bytes('10.6.6.6'))]);
        forged.writeUInt16BE((query.readUInt16BE(0) + 1) & 0xffff, 0);
        return [forged, answer];
      },
    },
    {
      name: 'to another question',
      tamper: (answer, query) => {
        const forged = answerWith(query, [record(OWN_NAME, TYPE_A, 1, v4Bytes('10.6.6.6'))]);
        // The first letter of the name.
        forged[13] = 'x'.charCodeAt(0);
        return [forged, answer];
      },
    },
    { name: 'that are questions', tamper: (answer, query) => [query, answer] },
    { name: 'too short for a header', tamper: (answer) => [answer.subarray(0, 5), Buffer.alloc(0), answer] },
  ];
  for (const { name, tamper } of lies) {
    it(`does not listen to answers ${name}, and waits for the true one`, async () => {
      await using server = await DnsServer.start();
      server.set('web.test', ['10.0.0.1']);
      server.tamper(tamper);
      assert.deepEqual(ipsOf(await new Fixture([server]).ask('web.test')), ['10.0.0.1']);
      assert.equal(server.queries.length, 1);
    });
  }

  it('gives up a server that answers nothing but other questions', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const guesses = (count: number): Tamper => {
      return (answer, query) => [...Array.from({ length: count }, () => query), answer];
    };
    server.tamper(guesses(63));
    assert.deepEqual(ipsOf(await new Fixture([server]).ask('web.test')), ['10.0.0.1']);
    server.tamper(guesses(64));
    assert.equal(ipsOf(await new Fixture([server], {}, 1).ask('web.test')), '64 answers to other questions');
  });

  it('takes no address that belongs to another name than the one asked for', async () => {
    await using server = await DnsServer.start();
    server.tamper((_answer, query) => [
      answerWith(query, [
        record(encodeName('evil.test'), TYPE_A, 1, v4Bytes('10.6.6.6')),
        record(OWN_NAME, TYPE_CNAME, 1, encodeName('a.test')),
        record(encodeName('web.test'), TYPE_A, 1, v4Bytes('10.6.6.7')),
        record(encodeName('a.test'), TYPE_A, 1, v4Bytes('10.0.0.1')),
      ]),
    ]);
    assert.deepEqual(ipsOf(await new Fixture([server]).ask('web.test')), ['10.0.0.1']);
  });

  const damage: readonly { readonly name: string; readonly tamper: Tamper }[] = [
    { name: 'that ends in the middle', tamper: (answer) => [answer.subarray(0, -3)] },
    {
      name: 'with a name that points at itself',
      tamper: (_answer, query) => {
        const at = query.length;
        return [answerWith(query, [record(Buffer.from([0xc0 | (at >> 8), at & 255]), TYPE_A, 1, v4Bytes('10.0.0.1'))])];
      },
    },
    {
      name: 'with an address of 3 bytes',
      tamper: (_answer, query) => [answerWith(query, [record(OWN_NAME, TYPE_A, 1, Buffer.from([10, 0, 0]))])],
    },
    {
      name: 'that is noise behind the id',
      tamper: (answer) => {
        const noise = Buffer.alloc(200, 0xbf);
        answer.copy(noise, 0, 0, answer.length - 4);
        noise.writeUInt16BE(0xffff, 6);
        return [noise];
      },
    },
  ];
  for (const { name, tamper } of damage) {
    it(`goes on to the next server after an answer ${name}, and fails without one`, async () => {
      await using broken = await DnsServer.start();
      await using sound = await DnsServer.start();
      for (const server of [broken, sound]) server.set('web.test', ['10.0.0.1']);
      broken.tamper(tamper);
      assert.deepEqual(ipsOf(await new Fixture([broken, sound]).ask('web.test')), ['10.0.0.1']);
      assert.equal(ipsOf(await new Fixture([broken]).ask('web.test')), 'a damaged answer');
    });
  }

  it('asks the next server when one fails, refuses or is not there, and each of them once', async () => {
    await using failing = await DnsServer.start();
    await using refusing = await DnsServer.start();
    await using sound = await DnsServer.start();
    failing.fail('SERVFAIL');
    refusing.fail('REFUSED');
    sound.set('web.test', ['10.0.0.1']);
    const gone = await DnsServer.start();
    const list = [gone, failing, refusing, sound];
    const fixture = new Fixture(list);
    await gone.close();
    assert.deepEqual(ipsOf(await fixture.ask('web.test')), ['10.0.0.1']);
    sound.fail('SERVFAIL');
    assert.equal(ipsOf(await fixture.ask('web.test')), 'SERVFAIL');
    assert.deepEqual([failing.queries.length, refusing.queries.length, sound.queries.length], [2, 2, 2]);
  });

  it('asks a silent server again, and gives up when the tries are used up', async () => {
    await using server = await DnsServer.start();
    server.tamper(SILENT);
    const fixture = new Fixture([server], {}, 3);
    let hasEnded = false;
    const asked = fixture.ask('web.test').finally(() => {
      hasEnded = true;
    });
    for (let round = 1; round <= 3; round++) {
      const next = server.nextQuery();
      if (server.queries.length < round) await next;
      assert.equal(hasEnded, false);
      fixture.clock.turn(TIMEOUT_MS);
    }
    assert.equal(ipsOf(await asked), 'no answer in time');
    assert.equal(server.queries.length, 3);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('asks the other servers before it asks a silent one again', async () => {
    await using silent = await DnsServer.start();
    await using sound = await DnsServer.start();
    silent.tamper(SILENT);
    sound.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture([silent, sound]);
    const query = silent.nextQuery();
    const asked = fixture.ask('web.test');
    await query;
    fixture.clock.turn(TIMEOUT_MS);
    assert.deepEqual(ipsOf(await asked), ['10.0.0.1']);
  });

  it('gives up a TCP server that hangs, closes early or answers something else', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture([server], { useTcp: true }, 1);
    server.tamper(SILENT);
    const query = server.nextQuery();
    const hanging = fixture.ask('web.test');
    await query;
    fixture.clock.turn(TIMEOUT_MS);
    assert.equal(ipsOf(await hanging), 'no answer in time');
    server.tamper((answer) => [Buffer.concat([Buffer.from([0, 0]), answer])]);
    assert.equal(ipsOf(await fixture.ask('web.test')), 'an answer to another question');
    const port = server.port;
    await server.close();
    const refused = new Fixture([], { useTcp: true, servers: [{ ip: '127.0.0.1', port }] });
    assert.equal(ipsOf(await refused.ask('web.test')), 'ECONNREFUSED');
  });

  it('says of a failure over TCP that UDP was cut off', async () => {
    const udp = createSocket('udp4');
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    udp.on('message', (query, { port }) => {
      const cutOff = answerWith(query, []);
      cutOff.writeUInt16BE(cutOff.readUInt16BE(2) | TRUNCATED, 2);
      udp.send(cutOff, port, '127.0.0.1');
    });
    const { port } = udp.address();
    const blocked = new Fixture([], { servers: [{ ip: '127.0.0.1', port }] }, 1);
    assert.equal(ipsOf(await blocked.ask('web.test')), 'an answer cut off over UDP, and ECONNREFUSED over TCP');
    udp.close();

    await using server = await DnsServer.start();
    server.tamper((answer, _query, transport) => {
      answer.writeUInt16BE(answer.readUInt16BE(2) | TRUNCATED, 2);
      return transport === 'udp' ? [answer] : [];
    });
    const fixture = new Fixture([server], {}, 1);
    const asked = fixture.ask('web.test');
    await eventually(() => server.queries.length === 2, 'the question over TCP');
    fixture.clock.turn(TIMEOUT_MS);
    assert.equal(ipsOf(await asked), 'an answer cut off over UDP, and no answer in time over TCP');
  });

  it('begins with the next server each time when told to rotate, and goes on to all others', async () => {
    await using first = await DnsServer.start();
    await using second = await DnsServer.start();
    await using third = await DnsServer.start();
    const order: number[] = [];
    for (const [index, server] of [first, second, third].entries()) {
      server.fail('SERVFAIL');
      server.onUdpQuery = async () => void order.push(index + 1);
    }
    const fixture = new Fixture([first, second, third], { rotate: true });
    for (let count = 0; count < 4; count++) await fixture.ask('web.test');
    assert.deepEqual(order, [1, 2, 3, 2, 3, 1, 3, 1, 2, 1, 2, 3]);
  });

  it('fails without a server, and with one that refuses, however many tries there are', async () => {
    await using refusing = await DnsServer.start();
    refusing.fail('REFUSED');
    for (const rotate of [false, true]) {
      const none = new Fixture([], { rotate }, Number.POSITIVE_INFINITY);
      assert.deepEqual(await none.ask('web.test'), { kind: 'failure', reason: 'there is no DNS server' });
      const refused = new Fixture([refusing], { rotate }, Number.POSITIVE_INFINITY);
      assert.deepEqual(await refused.ask('web.test'), { kind: 'failure', reason: 'REFUSED' });
    }
    assert.equal(refusing.queries.length, 2);
  });

  it('bounds the sockets that it has open, and loses no question', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture([server]);
    const openFiles = (): number => readdirSync('/proc/self/fd').length;
    const before = openFiles();
    let most = 0;
    server.onUdpQuery = async () => {
      most = Math.max(most, openFiles() - before);
    };
    const asked = Array.from({ length: 1000 }, () => fixture.ask('web.test'));
    await Promise.resolve();
    // Each question under way has a timer.
    assert.equal(fixture.clock.timerCount, 256);
    const answers = await Promise.all(asked);
    assert.ok(most >= 200 && most < 300, `${most} sockets`);
    assert.ok(answers.every((answer) => ipsOf(answer)[0] === '10.0.0.1'));
  });

  it('ends everything when it is cancelled, also what still waits for its turn', async () => {
    await using server = await DnsServer.start();
    server.tamper(SILENT);
    const fixture = new Fixture([server]);
    const query = server.nextQuery();
    const asked = Array.from({ length: 300 }, () => fixture.ask('web.test'));
    await query;
    fixture.client.cancel();
    for (const answer of await Promise.all(asked)) assert.deepEqual(answer, { kind: 'failure', reason: 'cancelled' });
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('asks nobody once it is cancelled, nor for a question that did not know whom yet', async () => {
    await using server = await DnsServer.start();
    const fixture = new Fixture([server]);
    const asked = fixture.ask('web.test');
    fixture.client.cancel();
    assert.equal(ipsOf(await asked), 'cancelled');
    assert.equal(ipsOf(await fixture.ask('web.test')), 'cancelled');
    assert.equal(fixture.clock.timerCount, 0);
    assert.deepEqual(server.queries, []);
  });

  it('hears only the server that it asked', async () => {
    await using server = await DnsServer.start();
    const stranger = createSocket('udp4');
    stranger.bind(0, '127.0.0.1');
    await once(stranger, 'listening');
    const fixture = new Fixture([server]);
    server.set('web.test', ['10.0.0.1']);
    const { promise, resolve } = Promise.withResolvers<void>();
    const { promise: isAsked, resolve: onAsked } = Promise.withResolvers<{ readonly port: number; query: Buffer }>();
    // The stranger answers first, rightly but for where it sends from.
    server.onUdpQuery = async (query, port) => {
      onAsked({ port, query });
      await promise;
    };
    const asked = fixture.ask('web.test');
    const { port, query } = await isAsked;
    const forged = answerWith(query, [record(OWN_NAME, TYPE_A, 1, v4Bytes('10.6.6.6'))]);
    stranger.send(forged, port, '127.0.0.1', () => resolve());
    assert.deepEqual(ipsOf(await asked), ['10.0.0.1']);
    stranger.close();
  });
});
