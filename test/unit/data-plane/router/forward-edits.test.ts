// What the router changes in the head of a request on its way to an upstream.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { isGrpc } from '../../../../src/data-plane/http/grpc-request.ts';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import type { HttpStream } from '../../../../src/data-plane/http/stream.ts';
import type { ClusterTarget, ForwardPlan } from '../../../../src/data-plane/route/forward-plan.ts';
import { compileHeaderEdits } from '../../../../src/data-plane/route/header-editor.ts';
import { Route } from '../../../../src/data-plane/route/route.ts';
import { ForwardEdits } from '../../../../src/data-plane/router/forward-edits.ts';
import type { ForwardAction, HeaderEdits, RouteSnapshot } from '../../../../src/snapshot/index.ts';
import { requestHeadOf, routeRequest, writtenLines } from '../../../support/heads.ts';
import { forwardTo, routeFor } from '../../../support/routes.ts';

const NAMES = new ProxyHeaders();
const GET = 'GET /a/b?q HTTP/1.1\r\nx: 1\r\nhost: h\r\n\r\n';
const CONNECT = 'CONNECT far:1 HTTP/1.1\r\nx: 1\r\nhost: h\r\n\r\n';
const GRPC = 'POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/grpc\r\ngrpc-timeout: 9S\r\n\r\n';
const EXPECTED = 'x-proxy-expected-rq-timeout-ms';

interface Forwarded {
  readonly head?: string;
  readonly action?: Partial<ForwardAction>;
  readonly route?: Partial<Omit<RouteSnapshot, 'action'>>;
  readonly target?: Partial<ClusterTarget>;
  readonly isSuppressed?: boolean;
  /** Of the request, by the route and by itself. */
  readonly timeoutMs?: number;
  readonly perTryTimeoutMs?: number;
  readonly hedgesOnPerTryTimeout?: boolean;
  readonly routeDurationMs?: number;
  readonly replacesDuration?: boolean;
  /** Of the connection manager. */
  readonly maxStreamDurationMs?: number;
}

/** Lines of the head that goes out. */
function forwarded(options: Forwarded = {}): string[] {
  const { head = GET, action, route: fields, target = {}, isSuppressed = false } = options;
  const { timeoutMs = 0, perTryTimeoutMs = 0, hedgesOnPerTryTimeout = false } = options;
  const { routeDurationMs = 0, replacesDuration = false, maxStreamDurationMs = 0 } = options;
  const snapshot = routeFor('/', forwardTo('web', { timeoutMs: 0, ...action }), fields);
  const route = new Route(snapshot, { name: 'all' }, NAMES, new RuntimeValues());
  const plain = {
    name: 'web',
    requestEditor: null,
    responseEditor: null,
    hostRewrite: '',
    filters: null,
    pickContext: null,
  };
  const request = routeRequest(requestHeadOf(head));
  const limits = { timeoutMs, perTryTimeoutMs, hedgesOnPerTryTimeout, routeDurationMs, replacesDuration };
  const stream = { ...limits, isGrpc: isGrpc(request.head) } as HttpStream;
  const edits = new ForwardEdits(NAMES, isSuppressed, maxStreamDurationMs);
  edits.apply(stream, request, route, route.plan as ForwardPlan, { ...plain, ...target });
  return writtenLines();
}

/** The same without the lines that stand in the head as it came. */
function added(options: Forwarded): string[] {
  const known = new Set((options.head ?? GET).split('\r\n'));
  return forwarded(options).filter((line) => !known.has(line));
}

function adding(name: string): readonly HeaderEdits[] {
  return [{ remove: [], add: [{ name, value: ['1'], action: 'append', keepsEmptyValue: false }] }];
}

describe('a head that is forwarded', () => {
  test('is what came where nothing is to be changed', () => {
    assert.deepEqual(forwarded(), GET.split('\r\n').slice(0, -2));
  });

  test('is edited by its cluster and its route, in this order, behind what the router says itself', () => {
    const lines = added({
      timeoutMs: 500,
      action: { timeoutMs: 500 },
      route: { countsAttemptsInRequest: true, requestEdits: adding('by-route') },
      target: { requestEditor: compileHeaderEdits(adding('by-cluster')) },
    });
    assert.deepEqual(lines, [`${EXPECTED}: 500`, 'x-proxy-attempt-count: 1', 'by-cluster: 1', 'by-route: 1']);
  });
});

describe('the time that an upstream is told', () => {
  test('is that of the route, or what the request has made of it', () => {
    const action = { timeoutMs: 700 };
    assert.deepEqual(added({ action, timeoutMs: 700 }), [`${EXPECTED}: 700`]);
    assert.deepEqual(added({ action, timeoutMs: 300 }), [`${EXPECTED}: 300`]);
    assert.deepEqual(added({ action, timeoutMs: 700, perTryTimeoutMs: 200 }), [`${EXPECTED}: 200`]);
    assert.deepEqual(added({ timeoutMs: 300 }), [`${EXPECTED}: 300`]);
  });

  test('is none where any time will do, or nobody wants to say', () => {
    assert.deepEqual(added({ action: { timeoutMs: 700 } }), []);
    assert.deepEqual(added({}), []);
    assert.deepEqual(added({ timeoutMs: 300, isSuppressed: true }), []);
  });

  test('is said in the words of gRPC where the route respects them', () => {
    const action = { grpcTimeout: { maxMs: 0, offsetMs: 0 } };
    const ofGrpc = (options: Forwarded): string | undefined =>
      forwarded({ head: GRPC, ...options }).find((line) => line.startsWith('grpc-timeout'));
    assert.equal(ofGrpc({ action, timeoutMs: 300 }), 'grpc-timeout: 300m');
    assert.equal(ofGrpc({ action, timeoutMs: 300, perTryTimeoutMs: 200 }), 'grpc-timeout: 200m');
    assert.equal(ofGrpc({ action, timeoutMs: 300, isSuppressed: true }), 'grpc-timeout: 300m');
    assert.equal(ofGrpc({ action }), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ timeoutMs: 300 }), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ action, timeoutMs: 300, head: GRPC.replace('/grpc', '/json') }), 'grpc-timeout: 9S');
  });
});

describe('the time that a service of gRPC is told where its route limits streams', () => {
  const action = { limitsStreamDuration: true };
  const ofGrpc = (options: Forwarded): string | undefined =>
    forwarded({ head: GRPC, action, ...options }).find((line) => line.startsWith('grpc-timeout'));

  test("is the route's, else the connection manager's", () => {
    assert.equal(ofGrpc({ routeDurationMs: 300, replacesDuration: true }), 'grpc-timeout: 300m');
    assert.equal(ofGrpc({ routeDurationMs: 300, maxStreamDurationMs: 200 }), 'grpc-timeout: 300m');
    assert.equal(ofGrpc({ maxStreamDurationMs: 200 }), 'grpc-timeout: 200m');
    assert.equal(ofGrpc({ maxStreamDurationMs: 200, timeoutMs: 100, isSuppressed: true }), 'grpc-timeout: 200m');
    const silent = { head: GRPC.replace('grpc-timeout: 9S\r\n', '') };
    assert.equal(ofGrpc({ ...silent, routeDurationMs: 300 }), 'grpc-timeout: 300m');
  });

  test('is what the caller says where there is no limit, or it is not of gRPC, or the route says nothing', () => {
    assert.equal(ofGrpc({}), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ replacesDuration: true }), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ routeDurationMs: 300, head: GRPC.replace('/grpc', '/json') }), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ action: {}, maxStreamDurationMs: 200 }), 'grpc-timeout: 9S');
  });

  test('is none where the route takes away the limit of the connection manager', () => {
    const unlimited = { replacesDuration: true, maxStreamDurationMs: 200 };
    assert.equal(ofGrpc(unlimited), undefined);
    assert.equal(ofGrpc({ ...unlimited, head: GRPC.replace('/grpc', '/json') }), 'grpc-timeout: 9S');
    assert.equal(ofGrpc({ ...unlimited, head: GRPC.replace('grpc-timeout: 9S\r\n', '') }), undefined);
    assert.equal(ofGrpc({ ...unlimited, routeDurationMs: 300 }), 'grpc-timeout: 300m');
  });
});

describe('the host that an upstream is asked for', () => {
  const literal = { hostRewrite: { kind: 'literal', value: 'other' } } as const;
  const ofHeader = { hostRewrite: { kind: 'header', name: 'y' } } as const;

  test('is that of the route, else that of the cluster', () => {
    assert.deepEqual(forwarded({ action: literal }), ['GET /a/b?q HTTP/1.1', 'host: other', 'x: 1']);
    const target = { hostRewrite: 'clusters-own' };
    assert.equal(forwarded({ target })[1], 'host: clusters-own');
    assert.equal(forwarded({ action: literal, target })[1], 'host: other');
    assert.equal(forwarded({ action: ofHeader, target })[1], 'host: clusters-own');
    assert.deepEqual(forwarded({ action: ofHeader }), GET.split('\r\n').slice(0, -2));
  });

  test('stands where the name of the upstream host can take its place', () => {
    assert.deepEqual(forwarded({ action: { hostRewrite: { kind: 'auto' } } }), [
      'GET /a/b?q HTTP/1.1',
      'host: h',
      'x: 1',
    ]);
  });

  test('is told beside the former one where the route wants it, and they differ', () => {
    const action = { ...literal, appendForwardedHost: true };
    assert.deepEqual(added({ action }), ['host: other', 'x-forwarded-host: h']);
    assert.deepEqual(added({ action, head: GET.replace('host: h', 'host: other') }), []);
    assert.deepEqual(added({ action: { appendForwardedHost: true } }), []);
  });

  test('is the target of a CONNECT, whatever its Host says', () => {
    assert.deepEqual(forwarded({ head: CONNECT }), ['CONNECT far:1 HTTP/1.1', 'host: far:1', 'x: 1']);
    const action = { ...literal, appendForwardedHost: true };
    assert.deepEqual(forwarded({ head: CONNECT, action }), [
      'CONNECT other HTTP/1.1',
      'host: other',
      'x: 1',
      'x-forwarded-host: far:1',
    ]);
  });
});

describe('the path that an upstream is asked for', () => {
  const pathRewrite = { kind: 'prefix', value: '/new/' } as const;

  test('is rewritten, without its query, and the former one is told', () => {
    const lines = forwarded({ action: { pathRewrite } });
    assert.equal(lines[0], 'GET /new/a/b?q HTTP/1.1');
    assert.deepEqual(lines.slice(3), ['x-proxy-original-path: /a/b?q']);
  });

  test('is rewritten in silence where the router says nothing of itself', () => {
    const lines = forwarded({ action: { pathRewrite }, isSuppressed: true });
    assert.deepEqual([lines[0], lines.length], ['GET /new/a/b?q HTTP/1.1', 3]);
  });

  test('is left where it is the same, and where there is none', () => {
    const same = { pathRewrite: { kind: 'prefix', value: '/' } } as const;
    assert.deepEqual(added({ action: same }), []);
    assert.equal(forwarded({ head: CONNECT, action: { pathRewrite } })[0], 'CONNECT far:1 HTTP/1.1');
  });
});

describe('the coding that a client takes', () => {
  for (const [te, isKept] of [
    ['trailers', true],
    ['gzip, Trailers ', true],
    ['gzip', false],
    ['trailers;q=1', false],
    ['xtrailers', false],
  ] as const) {
    test(`${te} is ${isKept ? 'told as that of trailers' : 'for this hop alone'}`, () => {
      const head = requestHeadOf(`GET / HTTP/1.1\r\nhost: h\r\nte: ${te}\r\nconnection: te\r\n\r\n`);
      new ForwardEdits(NAMES, false, 0).keepTrailersOption(head);
      assert.deepEqual(writtenLines().slice(2), isKept ? ['te: trailers', 'connection: te'] : []);
    });
  }
});
