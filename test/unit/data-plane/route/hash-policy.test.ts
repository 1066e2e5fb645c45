// What requests are hashed by, over heads that the real codec has parsed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RequestHasher } from '../../../../src/data-plane/route/hash-policy.ts';
import { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import type { PickContext } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { HashInput, HashPolicy } from '../../../../src/snapshot/index.ts';
import { compileHttp1, Http1Codec } from '../../../../src/wasm/http1.ts';
import { openLb } from '../../../support/lb.ts';
import { xxHash64 } from '../../../support/reference/hash.ts';

const FOO = 3728699739546630719n;
/** Of the list foo, bar in ascending order, and in this one. */
const BAR_FOO = xxHash64(Buffer.from('foo'), xxHash64(Buffer.from('bar'), 0n));
const FOO_BAR = 17745830980996999794n;

const codec = new Http1Codec(compileHttp1());
const { kernel } = openLb();

class Client {
  readonly cookies: string[] = [];
  readonly clientAddress: string;
  readonly connectionEnds = {
    remote: { ip: '10.1.2.3', port: 4567 },
    local: { ip: '::1', port: 80 },
  };

  constructor(clientAddress = '10.1.2.3') {
    this.clientAddress = clientAddress;
  }

  state(key: string): string | undefined {
    return new Map(Object.entries({ user: 'foo', wide: 'é', empty: '' })).get(key);
  }

  setCookie(text: string): void {
    this.cookies.push(text);
  }
}

function header(name: string, fields: Partial<HashInput & { kind: 'header' }> = {}): HashInput {
  return { kind: 'header', name, rewrite: null, ...fields };
}

function cookie(name: string, ttlSeconds: number | null = null, fields = {}): HashInput {
  return { kind: 'cookie', name, ttlSeconds, path: '', attributes: [], ...fields };
}

interface Asked {
  readonly path?: string;
  readonly lines?: readonly string[];
  readonly client?: Client;
}

function hashed(policies: readonly (HashInput & Partial<HashPolicy>)[], asked: Asked = {}): PickContext {
  const { path = '/', lines = [], client = new Client() } = asked;
  const bytes = Buffer.from(`${[`GET ${path} HTTP/1.1`, 'Host: h.example', ...lines].join('\r\n')}\r\n\r\n`, 'latin1');
  assert.ok(codec.parseRequest(bytes, 0, bytes.length, { maxHeadBytes: 60_000, maxFields: 100 }) > 0);
  const request = new RouteRequest({ u32: () => 0 });
  request.read(codec.request, false, false);
  const hasher = new RequestHasher(policies.map((policy) => ({ isTerminal: false, ...policy })));
  return hasher.hash(kernel, request, client, null);
}

/** The hash as one number; undefined for none. */
function hashOf(...args: Parameters<typeof hashed>): bigint | undefined {
  const { hasHash, hashHi, hashLo } = hashed(...args);
  return hasHash ? (BigInt(hashHi >>> 0) << 32n) | BigInt(hashLo >>> 0) : undefined;
}

function turned(hash: bigint): bigint {
  return BigInt.asUintN(64, hash << 1n) | (hash >> 63n);
}

function ofText(text: string): bigint {
  return xxHash64(Buffer.from(text, 'latin1'), 0n);
}

describe('a request is hashed by', () => {
  test('what a filter has put into filter state', () => {
    assert.equal(hashOf([{ kind: 'filter-state', key: 'user' }]), FOO);
    assert.equal(hashOf([{ kind: 'filter-state', key: 'wide' }]), xxHash64(Buffer.from('é'), 0n));
    for (const key of ['empty', 'none']) assert.equal(hashOf([{ kind: 'filter-state', key }]), undefined);
  });

  test('the value of a header, whatever the case of its name', () => {
    assert.equal(hashOf([header('x-user')], { lines: ['X-User: foo'] }), FOO);
    assert.equal(hashOf([header('x-user')], { lines: ['x-other: foo'] }), undefined);
    assert.equal(hashOf([header('cookie')], { lines: ['cookie: foo'] }), FOO);
    assert.equal(hashOf([header(':path')], { path: '/a?b' }), ofText('/a?b'));
  });

  test('the bytes of a header that are no text', () => {
    assert.equal(hashOf([header('x-user')], { lines: ['x-user: \xe4\xff'] }), ofText('\xe4\xff'));
    const long = '\xe9'.repeat(3000);
    assert.equal(hashOf([header('x-user')], { lines: [`x-user: ${long}`] }), ofText(long));
  });

  test('all values of a header, in whatever order they come', () => {
    for (const lines of [
      ['x-user: foo', 'x-user: bar'],
      ['x-user: bar', 'x-user: foo'],
    ]) {
      assert.equal(hashOf([header('x-user')], { lines }), BAR_FOO);
    }
    const rewrite = { pattern: '^z', substitution: 'b' };
    assert.equal(hashOf([header('x-user', { rewrite })], { lines: ['x-user: zar', 'x-user: foo'] }), BAR_FOO);
    assert.equal(xxHash64(Buffer.from('bar'), FOO), FOO_BAR);
  });

  test('the first query parameter of a name as it stands', () => {
    const policy: HashInput = { kind: 'query-parameter', name: 'u' };
    assert.equal(hashOf([policy], { path: '/?x=1&u=foo&u=bar' }), FOO);
    assert.equal(hashOf([policy], { path: '/?u=%66oo' }), ofText('%66oo'));
    assert.equal(hashOf([policy], { path: '/?u' }), ofText(''));
    assert.equal(hashOf([policy], { path: '/?U=foo' }), undefined);
  });

  test('the address of the client, if there is one', () => {
    assert.equal(hashOf([{ kind: 'source-ip' }]), ofText('10.1.2.3'));
    assert.equal(hashOf([{ kind: 'source-ip' }], { client: new Client('') }), undefined);
  });

  test('a cookie without its quotes, the first of its name in any Cookie field', () => {
    for (const lines of [
      ['cookie: id=foo'],
      ['cookie: a=b; id="foo" ; id=bar'],
      ['cookie: xid=no;  id=foo'],
      ['cookie: a=b', 'cookie: id=foo'],
    ]) {
      assert.equal(hashOf([cookie('id')], { lines }), FOO, lines.join());
    }
    for (const lines of [[], ['cookie: id'], ['cookie: ID=foo'], ['cookie: id='], ['cookie: id=""']]) {
      assert.equal(hashOf([cookie('id')], { lines }), undefined, lines.join());
    }
  });

  test('a cookie that the client is given when it brings none, the same on all of its connection', () => {
    const client = new Client();
    const made = hashOf([cookie('id', 60, { path: '/a', attributes: [{ name: 'SameSite', value: 'Lax' }] })], {
      client,
    });
    const value = ofText('10.1.2.3:4567[::1]:80').toString(16).padStart(16, '0');
    assert.deepEqual(client.cookies, [`id="${value}"; Max-Age=60; Path=/a; SameSite=Lax; HttpOnly`]);
    assert.equal(made, ofText(value));
    assert.equal(hashOf([cookie('id', 60)], { lines: [`cookie: id="${value}"`] }), made);
    const lasting = new Client();
    hashOf([cookie('id', 0, { attributes: [{ name: 'Secure', value: '' }] })], { client: lasting });
    assert.deepEqual(lasting.cookies, [`id="${value}"; Secure; HttpOnly`]);
  });

  test('several inputs, whose order counts', () => {
    const lines = ['a: foo', 'b: 1'];
    assert.equal(hashOf([header('a'), header('b')], { lines }), turned(FOO) ^ ofText('1'));
    assert.equal(hashOf([header('b'), header('a')], { lines }), turned(ofText('1')) ^ FOO);
    assert.equal(hashOf([header('none'), header('a')], { lines }), FOO);
  });

  test('nothing behind a terminal input that has given a hash', () => {
    const policies = [{ ...header('a'), isTerminal: true }, header('b')];
    assert.equal(hashOf(policies, { lines: ['a: foo', 'b: 1'] }), FOO);
    assert.equal(hashOf(policies, { lines: ['b: foo'] }), FOO);
    const client = new Client();
    hashOf([{ ...header('a'), isTerminal: true }, cookie('id', 0)], { lines: ['a: foo'], client });
    assert.deepEqual(client.cookies, []);
    hashOf([header('b'), { ...header('a'), isTerminal: true }, cookie('id', 0)], { lines: ['b: foo'], client });
    assert.deepEqual(client.cookies, []);
  });
});
