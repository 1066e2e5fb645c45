// The checks of one host: what is told of how each ends.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  FailureType,
  Verdict,
} from '../../../../../src/control-plane/cluster-manager/health-check/check-state.ts';
import {
  type CheckableHost,
  type CheckRecord,
  HostCheck,
  type HostCheckListener,
} from '../../../../../src/control-plane/cluster-manager/health-check/host-check.ts';
import type { Probe, ProbeResult } from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import type { HealthCheckSettings } from '../../../../../src/snapshot/index.ts';
import { clusterNamed, clusterSettings } from '../../../../support/bootstrap.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';

const TIMEOUT_MS = 1000;
const SETTINGS: HealthCheckSettings = clusterSettings(
  clusterNamed('web', {
    health_checks: [
      { timeout: '1s', interval: '60s', unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} },
    ],
  }),
).healthCheck!;

/** Ends when the test says so, and not when its host answers. */
class HeldProbe implements Probe {
  end: ((result: ProbeResult) => void) | undefined;
  aborts = 0;

  check(_target: unknown, onResult: (result: ProbeResult) => void): void {
    this.end = onResult;
  }

  abort(): void {
    this.aborts += 1;
  }
}

class Host implements CheckableHost {
  healthFlags = 0;
  readonly records: CheckRecord[] = [];

  setHealthFlags(flags: number, isSet: boolean): void {
    this.healthFlags = isSet ? this.healthFlags | flags : this.healthFlags & ~flags;
  }

  target() {
    return { address: { kind: 'ip', ip: '127.0.0.1', port: 1 }, authority: '' } as const;
  }

  noteCheck(record: CheckRecord): void {
    this.records.push(record);
  }
}

class Fixture implements HostCheckListener {
  readonly clock = new ManualClock();
  readonly host = new Host();
  readonly probe = new HeldProbe();
  readonly verdicts: (readonly [FailureType | undefined, Verdict['events']])[] = [];
  attempts = 0;
  readonly check = new HostCheck(
    this.host,
    SETTINGS,
    {
      clock: this.clock,
      random: { u32: () => 0 },
      bounds: () => ({ minMs: 0, maxMs: Number.MAX_SAFE_INTEGER }),
      hasTraffic: () => true,
    },
    this.probe,
    this,
  );

  onAttempt(): void {
    this.attempts += 1;
  }

  onVerdict(_check: HostCheck, { events }: Verdict, failureType: FailureType | undefined): void {
    this.verdicts.push([failureType, events]);
  }

  /** Of the last verdict: the kind of failure, and that of each event. */
  get told(): unknown[] {
    const [failureType, events] = this.verdicts.at(-1)!;
    return [failureType, events.map((event) => ('failureType' in event ? event.failureType : event.kind))];
  }
}

describe('a check of a host', () => {
  const cases = [
    { result: { kind: 'broken', detail: 'x' }, failureType: 'network' },
    { result: { kind: 'wrong', isRetriable: false, isImmediate: false, detail: 'x' }, failureType: 'active' },
  ] as const;
  for (const { result, failureType } of cases) {
    it(`that ends as ${result.kind} is a failure of the kind ${failureType}, in the verdict and its events`, () => {
      const fixture = new Fixture();
      fixture.check.start();
      fixture.probe.end!(result);
      assert.deepEqual(fixture.told, [failureType, [failureType, failureType]]);
      fixture.check.stop();
    });
  }

  it('that passes is none', () => {
    const fixture = new Fixture();
    fixture.check.start();
    fixture.probe.end!({ kind: 'passed', isDegraded: false, detail: 'x' });
    assert.deepEqual(fixture.told, [undefined, []]);
    assert.equal(fixture.host.records[0]!.hasPassed, true);
    fixture.check.stop();
  });

  it('that takes too long is broken off, and a failure of the network', () => {
    const fixture = new Fixture();
    fixture.check.start();
    fixture.clock.turn(TIMEOUT_MS - 1);
    assert.deepEqual([fixture.verdicts, fixture.probe.aborts], [[], 0]);
    fixture.clock.turn(1);
    assert.deepEqual(fixture.told, ['network-timeout', ['network-timeout', 'network-timeout']]);
    assert.equal(fixture.probe.aborts, 1);
    assert.equal(fixture.host.records[0]!.detail, 'no answer within 1000 ms');
    fixture.check.stop();
  });

  it('gets the time back, once, that the thread has not looked at it', () => {
    const fixture = new Fixture();
    fixture.check.start();
    fixture.clock.stall(TIMEOUT_MS + 300);
    fixture.clock.turn(299);
    assert.deepEqual([fixture.verdicts.length, fixture.probe.aborts], [0, 0]);
    fixture.probe.end!({ kind: 'passed', isDegraded: false, detail: 'late for our own sake' });
    assert.deepEqual(fixture.host.records.at(-1)!.hasPassed, true);
    fixture.check.stop();
    const silent = new Fixture();
    silent.check.start();
    silent.clock.stall(TIMEOUT_MS + 300);
    silent.clock.turn(0);
    silent.clock.stall(500);
    silent.clock.turn(0);
    assert.deepEqual(silent.told, ['network-timeout', ['network-timeout', 'network-timeout']]);
    silent.check.stop();
  });

  it('does not get what timers are late by anyway', () => {
    const fixture = new Fixture();
    fixture.check.start();
    fixture.clock.stall(TIMEOUT_MS + 4);
    fixture.clock.turn(0);
    assert.equal(fixture.verdicts.length, 1);
    fixture.check.stop();
    const late = new Fixture();
    late.check.start();
    late.clock.stall(TIMEOUT_MS + 5);
    late.clock.turn(0);
    assert.equal(late.verdicts.length, 0);
    late.check.stop();
  });

  it('is not needed where the host asks a client to be left out, and comes when it would have come', () => {
    const fixture = new Fixture();
    fixture.check.start();
    fixture.probe.end!({ kind: 'passed', isDegraded: false, detail: 'x' });
    fixture.check.failPassively();
    assert.deepEqual(fixture.told, ['passive', ['passive']]);
    assert.deepEqual([fixture.attempts, fixture.clock.timerCount], [1, 1]);
    fixture.clock.turn(60_000);
    assert.equal(fixture.attempts, 2);
    fixture.check.stop();
    assert.equal(fixture.clock.timerCount, 0);
  });
});
