// Thresholds, flags and waits of health checks, by the answers that they are known to give.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkIntervalMs } from '../../../../../src/control-plane/cluster-manager/health-check/check-interval.ts';
import {
  CheckState,
  type CheckStateSettings,
  type FlaggedHost,
  type Verdict,
} from '../../../../../src/control-plane/cluster-manager/health-check/check-state.ts';
import { PayloadMatch } from '../../../../../src/control-plane/cluster-manager/health-check/payload-match.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';

const {
  failedActiveHealthCheck: FAILED,
  degradedActiveHealthCheck: DEGRADED,
  pendingActiveHealthCheck: PENDING,
  excludedViaImmediateHealthCheckFail: IMMEDIATE,
  activeHealthCheckTimeout: TIMED_OUT,
} = HealthFlag;

class FakeHost implements FlaggedHost {
  healthFlags: number;

  constructor(flags: number) {
    this.healthFlags = flags;
  }

  setHealthFlags(flags: number, isSet: boolean): void {
    this.healthFlags = isSet ? this.healthFlags | flags : this.healthFlags & ~flags;
  }
}

function checked(
  flags: number,
  settings: Partial<CheckStateSettings> = {},
): { readonly host: FakeHost; readonly state: CheckState } {
  const host = new FakeHost(flags);
  const thresholds = { unhealthyThreshold: 3, healthyThreshold: 2 };
  const all = { ...thresholds, alwaysLogsFailures: false, alwaysLogsSuccess: false, ...settings };
  return { host, state: new CheckState(all, host) };
}

function kinds({ events }: Verdict): string[] {
  return events.map(({ kind }) => kind);
}

describe('the state of a checked host', () => {
  it('turns healthy with the first check of all, whatever the threshold says', () => {
    const { host, state } = checked(FAILED);
    assert.equal(state.isFirstCheck, true);
    assert.deepEqual(state.pass(false), {
      transition: 'changed',
      events: [{ kind: 'add-healthy', isFirstCheck: true }],
    });
    assert.equal(host.healthFlags, 0);
    assert.equal(state.isFirstCheck, false);
    assert.deepEqual(state.pass(false), { transition: 'unchanged', events: [] });
  });

  it('stays unhealthy after a first check that fails, and then needs as many passes as the threshold says', () => {
    const { host, state } = checked(FAILED);
    const first = state.fail('network');
    assert.deepEqual(first, {
      transition: 'unchanged',
      events: [{ kind: 'failure', failureType: 'network', isFirstCheck: true }],
    });
    assert.equal(state.pass(false).transition, 'pending');
    // A failure between them starts the count over.
    state.fail('network');
    assert.equal(state.pass(false).transition, 'pending');
    assert.equal(host.healthFlags, FAILED);
    assert.deepEqual(state.pass(false), {
      transition: 'changed',
      events: [{ kind: 'add-healthy', isFirstCheck: false }],
    });
    assert.equal(host.healthFlags, 0);
  });

  it('turns unhealthy after as many network failures in a row as the threshold says', () => {
    const { host, state } = checked(FAILED);
    state.pass(false);
    const transitions = ['network', 'network-timeout', 'pass', 'network', 'network-timeout'] as const;
    for (const type of transitions) {
      const { transition } = type === 'pass' ? state.pass(false) : state.fail(type);
      assert.equal(transition, type === 'pass' ? 'unchanged' : 'pending');
    }
    assert.equal(host.healthFlags, 0);
    assert.deepEqual(state.fail('network'), {
      transition: 'changed',
      events: [{ kind: 'eject-unhealthy', failureType: 'network' }],
    });
    assert.equal(host.healthFlags, FAILED);
    assert.deepEqual(state.fail('network'), { transition: 'unchanged', events: [] });
  });

  it('needs the whole threshold each time', () => {
    const { host, state } = checked(FAILED);
    state.pass(false);
    for (let round = 0; round < 2; round++) {
      const transitions = [
        ...Array.from({ length: 3 }, () => state.fail('network').transition),
        ...Array.from({ length: 2 }, () => state.pass(false).transition),
      ];
      assert.deepEqual(transitions, ['pending', 'pending', 'changed', 'pending', 'changed']);
    }
    assert.equal(host.healthFlags, 0);
  });

  it('turns unhealthy at once with a wrong answer, but not with a retriable one', () => {
    const { host, state } = checked(FAILED);
    state.pass(false);
    assert.equal(state.fail('active', true).transition, 'pending');
    assert.equal(host.healthFlags, 0);
    assert.equal(state.fail('active').transition, 'changed');
    assert.equal(host.healthFlags, FAILED);
  });

  it('turns unhealthy at once when it asks a client to be left out', () => {
    const { host, state } = checked(FAILED);
    state.pass(false);
    assert.deepEqual(state.fail('passive', false, true), {
      transition: 'changed',
      events: [{ kind: 'eject-unhealthy', failureType: 'passive' }],
    });
    assert.equal(host.healthFlags, FAILED | IMMEDIATE);
    assert.deepEqual(state.fail('passive', false, true), { transition: 'unchanged', events: [] });
  });

  it('asks to be left out for good also when it is unhealthy already', () => {
    const { host, state } = checked(FAILED);
    state.fail('network');
    assert.deepEqual(state.fail('active', false, true), { transition: 'changed', events: [] });
    assert.equal(host.healthFlags, FAILED | IMMEDIATE);
  });

  it('remembers that the last failure was a timeout, while the host is unhealthy', () => {
    const { host, state } = checked(FAILED);
    state.fail('network-timeout');
    assert.equal(host.healthFlags, FAILED | TIMED_OUT);
    state.fail('network');
    assert.equal(host.healthFlags, FAILED);
    state.fail('network-timeout');
    state.pass(false);
    assert.equal(host.healthFlags, FAILED | TIMED_OUT);
    state.pass(false);
    assert.equal(host.healthFlags, 0);
    state.fail('network-timeout');
    assert.equal(host.healthFlags, 0);
  });

  for (const end of ['pass', 'fail'] as const) {
    it(`counts a new host that was left out after its first check, a ${end}`, () => {
      const { host, state } = checked(FAILED | PENDING);
      const { transition } = end === 'pass' ? state.pass(false) : state.fail('network');
      assert.equal(transition, 'changed');
      assert.equal(host.healthFlags, end === 'pass' ? 0 : FAILED);
    });
  }

  it('is degraded while the host says so, and tells of each change once', () => {
    const { host, state } = checked(FAILED);
    assert.deepEqual(kinds(state.pass(true)), ['add-healthy', 'degraded']);
    assert.equal(host.healthFlags, DEGRADED);
    assert.deepEqual(state.pass(true), { transition: 'unchanged', events: [] });
    const better = state.pass(false);
    assert.deepEqual([better.transition, kinds(better)], ['changed', ['no-longer-degraded']]);
    assert.equal(host.healthFlags, 0);
  });

  it('leaves a host out that asks for it, until it is healthy again', () => {
    const { host, state } = checked(FAILED, { healthyThreshold: 1 });
    state.pass(false);
    state.fail('active', false, true);
    assert.equal(host.healthFlags, FAILED | IMMEDIATE);
    state.pass(false);
    assert.equal(host.healthFlags, 0);
  });

  it('tells of every check when it is asked to', () => {
    const { state } = checked(FAILED, { alwaysLogsFailures: true, alwaysLogsSuccess: true });
    assert.deepEqual(kinds(state.pass(false)), ['add-healthy', 'success']);
    assert.deepEqual(kinds(state.fail('network')), ['failure']);
    assert.deepEqual(kinds(state.fail('active')), ['eject-unhealthy', 'failure']);
  });
});

describe('the wait for the next check', () => {
  const INTERVALS = {
    initialJitterMs: 0,
    healthyMs: 1,
    healthyEdgeMs: 2,
    unhealthyMs: 3,
    unhealthyEdgeMs: 4,
    noTrafficMs: 5,
    noTrafficHealthyMs: 6,
    jitterMs: 0,
    jitterPercent: 0,
  };
  const NO_BOUNDS = { minMs: 0, maxMs: Number.MAX_SAFE_INTEGER };
  const random = (value: number): { u32: () => number } => ({ u32: () => value });

  const cases = [
    { hasPassed: true, transition: 'unchanged', traffic: true, expected: 1 },
    { hasPassed: true, transition: 'changed', traffic: true, expected: 1 },
    { hasPassed: true, transition: 'pending', traffic: true, expected: 2 },
    { hasPassed: false, transition: 'unchanged', traffic: true, expected: 3 },
    { hasPassed: false, transition: 'changed', traffic: true, expected: 3 },
    { hasPassed: false, transition: 'pending', traffic: true, expected: 4 },
    { hasPassed: false, transition: 'unchanged', traffic: false, expected: 5 },
    { hasPassed: true, transition: 'pending', traffic: false, expected: 5 },
    { hasPassed: true, transition: 'unchanged', traffic: false, expected: 6 },
    { hasPassed: true, transition: 'changed', traffic: false, expected: 6 },
  ] as const;
  for (const { hasPassed, transition, traffic, expected } of cases) {
    const name = `${hasPassed ? 'a pass' : 'a failure'}, ${transition}, ${traffic ? 'with' : 'without'} traffic`;
    it(`follows ${name}`, () => {
      assert.equal(checkIntervalMs(INTERVALS, hasPassed, transition, traffic, NO_BOUNDS, random(0)), expected);
    });
  }

  it('gets both kinds of jitter on top, and stays within the bounds of the runtime', () => {
    const jittered = { ...INTERVALS, healthyMs: 1000, jitterMs: 300, jitterPercent: 20 };
    const wait = (value: number, bounds = NO_BOUNDS): number =>
      checkIntervalMs(jittered, true, 'unchanged', true, bounds, random(value));
    assert.equal(wait(0), 1000);
    assert.equal(wait(199), 1398);
    assert.equal(wait(250), 1000 + 50 + 250);
    assert.equal(wait(299, { minMs: 0, maxMs: 1200 }), 1200);
    assert.equal(wait(0, { minMs: 5000, maxMs: Number.MAX_SAFE_INTEGER }), 5000);
    assert.equal(wait(0, { minMs: 0, maxMs: 0 }), 1);
  });
});

describe('expected bytes', () => {
  const blocks = (...texts: string[]): PayloadMatch => new PayloadMatch(texts.map((text) => Buffer.from(text)));

  it('occur in order, with anything between them, however the stream is cut', () => {
    const stream = 'xxabxxabcyyyabzz';
    for (let cut = 0; cut <= stream.length; cut++) {
      const match = blocks('abc', 'ab');
      match.read(Buffer.from(stream.slice(0, cut)));
      assert.equal(match.isMatched, cut >= 14, `${cut}`);
      match.read(Buffer.from(stream.slice(cut)));
      assert.equal(match.isMatched, true);
    }
    const bytewise = blocks('aab', 'b');
    for (const byte of 'aaabab') bytewise.read(Buffer.from(byte));
    assert.equal(bytewise.isMatched, true);
    const long = blocks('ababac');
    for (const byte of 'abababac') long.read(Buffer.from(byte));
    assert.equal(long.isMatched, true);
  });

  it('are not there in another order, or twice in the same place', () => {
    const match = blocks('b', 'a', 'a');
    match.read(Buffer.from('ab a'));
    assert.equal(match.isMatched, false);
    assert.equal(blocks().isMatched, true);
  });
});
