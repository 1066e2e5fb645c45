// Connections to hosts that speak Redis, over hosts that are made up: who gets which answer, and what becomes of who waits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FilterHost, LinkReceiver } from '../../../../src/data-plane/index.ts';
import { RedisUpstreams } from '../../../../src/extensions/filters.network/redis_proxy/upstream-client.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

class Link {
  readonly receiver: LinkReceiver;
  readonly written: string[] = [];
  readonly outcomes: string[] = [];
  readonly host: FilterHost;
  readonly redirections: boolean[] = [];
  takes = true;
  isClosed = false;
  active = 0;

  constructor(receiver: LinkReceiver, host: FilterHost) {
    this.receiver = receiver;
    this.host = host;
  }

  write(bytes: Buffer): boolean {
    this.written.push(bytes.toString());
    return this.takes;
  }

  requestBegan(): void {
    this.active += 1;
  }

  requestEnded(outcome: string): void {
    this.active -= 1;
    this.outcomes.push(outcome);
  }

  redirected(isFollowed: boolean): void {
    this.redirections.push(isFollowed);
  }

  close(): void {
    this.isClosed = true;
  }
}

interface Options {
  readonly flushBytes?: number;
  readonly followsRedirections?: boolean;
  readonly maxConnectionsPerSecond?: number;
  readonly readPolicy?: 'primary' | 'any';
  readonly credentials?: { readonly username: string; readonly password: string };
}

const PLAIN = { metadata: undefined, isHealthy: true };

class Fixture {
  readonly clock = new ManualClock();
  readonly links: Link[] = [];
  host: FilterHost | null;
  readonly other: FilterHost = { label: '10.0.0.2:6379', credentials: null, ...PLAIN };
  readonly strangers: string[] = [];
  rateLimited = 0;
  hasPlace = true;
  readonly told: string[] = [];
  readonly upstreams: RedisUpstreams;

  constructor({
    flushBytes = 0,
    followsRedirections = false,
    maxConnectionsPerSecond = 0,
    credentials,
    readPolicy = 'primary',
  }: Options = {}) {
    const settings = {
      readPolicy,
      opTimeoutMs: 100,
      usesHashTags: false,
      flushBytes,
      flushMs: 3,
      followsRedirections,
      maxConnectionsPerSecond,
    };
    this.host = { label: '10.0.0.1:6379', credentials: credentials ?? null, ...PLAIN };
    this.upstreams = new RedisUpstreams(
      settings,
      {
        upstreams: {
          members: () => [],
          reportStranger: (_beside, ip, port) => void this.strangers.push(`${ip}:${port}`),
          hostFor: () => this.host,
          hostAt: (_beside, name, port) => (port !== 6379 ? null : name === '10.0.0.2' ? this.other : this.host),
          connect: (host, receiver) => {
            if (!this.hasPlace) return null;
            const link = new Link(receiver, host);
            this.links.push(link);
            return link;
          },
        },
        clock: this.clock,
        random: () => 0,
      },
      () => {
        this.rateLimited += 1;
      },
    );
  }

  /** @returns whether it has been taken. What becomes of it stands in `told`. */
  send(text: string): boolean {
    const receiver = {
      onAnswer: (message: Buffer) => void this.told.push(`${text} ${message.toString().trim()}`),
      onNoAnswer: (why: string) => void this.told.push(`${text} ${why === 'failed' ? 'none' : why}`),
    };
    return this.upstreams.send('ring', Buffer.from('key'), Buffer.from(text), receiver, true);
  }

  answer(text: string, at = 0): void {
    this.links[at]!.receiver.onBytes(Buffer.from(text));
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('requests to a host', () => {
  it('go out together over one connection, and get their answers in order', async () => {
    const fixture = new Fixture();
    for (const text of ['a', 'b', 'c']) assert.ok(fixture.send(text));
    await turn();
    assert.equal(fixture.links.length, 1);
    assert.deepEqual(fixture.links[0]!.written, ['abc']);
    fixture.answer('+1\r\n+');
    fixture.answer('2\r\n+3\r\n');
    assert.deepEqual(fixture.told, ['a +1', 'b +2', 'c +3']);
    assert.deepEqual(fixture.links[0]!.outcomes, ['answered', 'answered', 'answered']);
    assert.equal(fixture.clock.timerCount, 0);
  });

  it('are collected until there are as many bytes, or the time is over', async () => {
    const fixture = new Fixture({ flushBytes: 3 });
    fixture.send('a');
    await turn();
    assert.deepEqual(fixture.links[0]!.written, []);
    fixture.clock.turn(3);
    assert.deepEqual(fixture.links[0]!.written, ['a']);
    fixture.send('bb');
    fixture.send('c');
    assert.deepEqual(fixture.links[0]!.written, ['a', 'bbc']);
  });

  it('wait while the host takes none', async () => {
    const fixture = new Fixture();
    fixture.send('a');
    const [link] = fixture.links;
    link!.takes = false;
    await turn();
    fixture.send('b');
    await turn();
    assert.deepEqual(link!.written, ['a']);
    link!.takes = true;
    link!.receiver.onWritable();
    assert.deepEqual(link!.written, ['a', 'b']);
  });

  for (const [what, outcome, happens] of [
    ['the connection ends', 'failed', ({ links }: Fixture) => links[0]!.receiver.onClosed()],
    ['the oldest is late', 'timeout', ({ clock }: Fixture) => clock.turn(100)],
    ['the host answers nonsense', 'failed', (fixture: Fixture) => fixture.answer('hello\r\n')],
    ['the chain goes', 'failed', ({ upstreams }: Fixture) => upstreams.close()],
  ] as const) {
    it(`get no answer when ${what}, and the next has another connection`, async () => {
      const fixture = new Fixture();
      fixture.send('a');
      fixture.send('b');
      happens(fixture);
      assert.deepEqual(fixture.told, ['a none', 'b none']);
      assert.deepEqual(fixture.links[0]!.outcomes, [outcome, outcome]);
      assert.ok(fixture.links[0]!.isClosed);
      assert.equal(fixture.clock.timerCount, 0);
      await turn();
      assert.deepEqual(fixture.links[0]!.written, []);
      assert.ok(fixture.send('c'));
      assert.equal(fixture.links.length, 2);
    });
  }

  it('are late by their own time, not by that of those before', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.clock.turn(60);
    fixture.send('b');
    fixture.answer('+1\r\n');
    fixture.clock.turn(60);
    assert.deepEqual(fixture.told, ['a +1']);
    fixture.clock.turn(40);
    assert.deepEqual(fixture.told, ['a +1', 'b none']);
  });

  it('end with the connection when the host speaks unasked', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.answer('+1\r\n+2\r\n');
    assert.deepEqual(fixture.told, ['a +1']);
    assert.ok(fixture.links[0]!.isClosed);
  });

  it('go on when the host leaves, and its connection ends behind the last', () => {
    const fixture = new Fixture();
    fixture.send('a');
    fixture.links[0]!.receiver.onHostLeft();
    assert.ok(!fixture.links[0]!.isClosed);
    fixture.send('b');
    assert.equal(fixture.links.length, 2);
    fixture.answer('+1\r\n');
    assert.ok(fixture.links[0]!.isClosed);
    fixture.answer('+2\r\n', 1);
    assert.deepEqual(fixture.told, ['a +1', 'b +2']);
    fixture.links[1]!.receiver.onHostLeft();
    assert.ok(fixture.links[1]!.isClosed, 'one at rest ends at once');
  });

  it('are not taken without a host, or a place for a connection', () => {
    const fixture = new Fixture();
    fixture.hasPlace = false;
    assert.equal(fixture.send('a'), false);
    fixture.host = null;
    assert.equal(fixture.send('b'), false);
    assert.deepEqual(fixture.told, []);
  });
});

describe('connections to a host that asks who comes', () => {
  const credentials = { username: 'app', password: 'secret' };
  const auth = '*3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$6\r\nsecret\r\n';

  it('say so first, and their own question counts for no request', async () => {
    const fixture = new Fixture({ credentials });
    fixture.send('a');
    fixture.send('b');
    await turn();
    assert.deepEqual(fixture.links[0]!.written, [`${auth}ab`]);
    assert.equal(fixture.links[0]!.active, 2);
    fixture.answer('+OK\r\n+1\r\n+2\r\n');
    assert.deepEqual(fixture.told, ['a +1', 'b +2']);
    assert.deepEqual(fixture.links[0]!.outcomes, ['answered', 'answered']);
  });

  it('end when it does not let them in, and all who wait hear why', async () => {
    const fixture = new Fixture({ credentials });
    fixture.send('a');
    fixture.send('b');
    await turn();
    fixture.answer('-WRONGPASS invalid username-password pair or user is disabled.\r\n');
    assert.deepEqual(fixture.told, ['a refused', 'b refused']);
    assert.ok(fixture.links[0]!.isClosed);
    assert.equal(fixture.links[0]!.active, 0);
  });

  it('go on with a server that has no password', () => {
    const fixture = new Fixture({ credentials });
    fixture.send('a');
    fixture.answer('-ERR AUTH <password> called without any password configured for the default user.\r\n+1\r\n');
    assert.deepEqual(fixture.told, ['a +1']);
  });

  it('are late when that is not answered', () => {
    const fixture = new Fixture({ credentials });
    fixture.send('a');
    fixture.clock.turn(100);
    assert.deepEqual(fixture.told, ['a none']);
    assert.deepEqual(fixture.links[0]!.outcomes, ['timeout']);
  });
});

describe('answers that name another host', () => {
  it('have the request sent there, with a word before where it is a favour', async () => {
    const fixture = new Fixture({ followsRedirections: true });
    fixture.send('a');
    await turn();
    fixture.answer('-ASK 7 10.0.0.2:6379\r\n');
    await turn();
    assert.equal(fixture.links[1]!.host, fixture.other);
    assert.deepEqual(fixture.links[1]!.written, ['*1\r\n$6\r\nASKING\r\na']);
    assert.equal(fixture.links[1]!.active, 1);
    assert.deepEqual(fixture.told, []);
    fixture.answer('+OK\r\n-MOVED 7 10.0.0.1:6379\r\n', 1);
    await turn();
    assert.deepEqual(fixture.links[0]!.written, ['a', 'a']);
    fixture.answer('+1\r\n');
    assert.deepEqual(fixture.told, ['a +1']);
    assert.deepEqual(fixture.links[0]!.redirections, [true]);
    assert.deepEqual(fixture.links[1]!.redirections, [true]);
  });

  it('go to the client when the host is no member, or there is no place for a connection', () => {
    const fixture = new Fixture({ followsRedirections: true });
    fixture.send('a');
    fixture.answer('-MOVED 7 10.0.0.9:1\r\n');
    fixture.send('b');
    fixture.hasPlace = false;
    fixture.answer('-MOVED 7 10.0.0.2:6379\r\n');
    assert.deepEqual(fixture.told, ['a -MOVED 7 10.0.0.9:1', 'b -MOVED 7 10.0.0.2:6379']);
    assert.deepEqual(fixture.links[0]!.redirections, [false, false]);
    assert.deepEqual(fixture.strangers, ['10.0.0.9:1'], 'main is told of who is not known');
  });

  it('go to the client after five of them, and where nobody follows any', () => {
    const fixture = new Fixture({ followsRedirections: true });
    fixture.send('a');
    for (let count = 0; count < 5; count += 1) fixture.answer('-MOVED 7 10.0.0.1:6379\r\n');
    assert.deepEqual(fixture.told, []);
    fixture.answer('-MOVED 7 10.0.0.1:6379\r\n');
    assert.deepEqual(fixture.told, ['a -MOVED 7 10.0.0.1:6379']);
    const plain = new Fixture();
    plain.send('a');
    plain.answer('-MOVED 7 10.0.0.1:6379\r\n');
    assert.deepEqual(plain.told, ['a -MOVED 7 10.0.0.1:6379']);
  });

  it('are other errors where they are not exactly that', () => {
    for (const text of [
      '-MOVED\r\n',
      '-MOVED 7 10.0.0.1\r\n',
      '-MOVEDX 7 10.0.0.1:6379\r\n',
      '+MOVED 7 10.0.0.1:6379\r\n',
    ]) {
      const fixture = new Fixture({ followsRedirections: true });
      fixture.send('a');
      fixture.answer(text);
      assert.deepEqual(fixture.told, [`a ${text.trim()}`]);
    }
  });
});

it('hosts are told first that copies may answer, where that is wanted', async () => {
  const fixture = new Fixture({ readPolicy: 'any', credentials: { username: '', password: 'x' } });
  fixture.send('a');
  await turn();
  assert.deepEqual(fixture.links[0]!.written, ['*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n*1\r\n$8\r\nREADONLY\r\na']);
  fixture.answer('+OK\r\n-ERR This instance has cluster support disabled\r\n+1\r\n');
  assert.deepEqual(fixture.told, ['a +1']);
});

it('no more connections than there may be are opened in a second', () => {
  const fixture = new Fixture({ maxConnectionsPerSecond: 2 });
  for (let count = 0; count < 2; count += 1) {
    assert.ok(fixture.send('a'));
    fixture.links.at(-1)!.receiver.onClosed();
  }
  assert.equal(fixture.send('b'), false);
  assert.equal(fixture.rateLimited, 1);
  fixture.clock.turn(1000);
  assert.ok(fixture.send('c'));
  assert.equal(fixture.links.length, 3);
});
