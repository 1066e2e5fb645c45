// Drains by order of the operator on the main thread: what listeners and workers are told, and when.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DrainManager } from '../../../../src/control-plane/drain/drain-manager.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { DrainState } from '../../../../src/snapshot/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const DURATION_MS = 60_000;

function open() {
  const clock = new ManualClock();
  const orders: string[] = [];
  const published: (() => DrainState)[] = [];
  const log: string[] = [];
  const left = { connections: 0 };
  const sink = { write: ({ message }: { message: string }) => void log.push(message) };
  const manager = new DrainManager({
    clock,
    log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('main'),
    workers: { publishDrains: (drains) => published.push(drains) },
    listeners: {
      beginDrain: (which) => orders.push(`drain ${which}`),
      stopAccepting: (which) => orders.push(`stop ${which}`),
    },
    durationMs: DURATION_MS,
    strategy: 'gradual',
    connections: () => left.connections,
  });
  const progress = (elapsedMs: number) => ({ strategy: 'gradual', elapsedMs, durationMs: DURATION_MS });
  return { clock, orders, published, manager, progress, log, left };
}

describe('a drain', () => {
  it('stops listeners at once, and tells workers of nothing else', () => {
    const { manager, orders, published, clock } = open();
    manager.stop('inbound');
    manager.stop('all');
    assert.deepEqual([orders, published.length, clock.timerCount], [['stop inbound', 'stop all'], 0, 0]);
  });

  it('stops them after the drain time where it is graceful, and is not begun twice', () => {
    const { manager, orders, published, clock, progress } = open();
    manager.start('all', false);
    assert.deepEqual(published[0]!(), { inbound: progress(0), others: progress(0) });
    clock.turn(DURATION_MS / 2);
    manager.start('all', false);
    manager.start('inbound', true);
    assert.equal(published.length, 1);
    // As a worker is told that starts now.
    assert.deepEqual(published[0]!(), { inbound: progress(DURATION_MS / 2), others: progress(DURATION_MS / 2) });
    clock.turn(DURATION_MS / 2 - 1);
    assert.deepEqual(orders, ['drain all']);
    clock.turn(1);
    assert.deepEqual(orders, ['drain all', 'stop all']);
    clock.turn(DURATION_MS);
    assert.deepEqual(orders.length, 2);
  });

  it('of inbound listeners can be widened to all, and those go on as they have begun', () => {
    const { manager, orders, published, clock, progress, log } = open();
    manager.start('inbound', false);
    assert.deepEqual(published[0]!(), { inbound: progress(0), others: null });
    clock.turn(1000);
    manager.start('inbound', false);
    manager.start('all', false);
    assert.deepEqual(published[1]!(), { inbound: progress(1000), others: progress(0) });
    clock.turn(DURATION_MS - 1000);
    assert.deepEqual(orders, ['drain inbound', 'drain all', 'stop inbound']);
    clock.turn(1000);
    assert.deepEqual(orders.at(-1), 'stop all');
    assert.deepEqual(log, [
      'draining the inbound listeners over 60 s, gradual',
      'draining all listeners over 60 s, gradual',
      'the drain time of the inbound listeners is over, 0 connections are left',
      'the drain time of all listeners is over, 0 connections are left',
    ]);
  });

  it('says now and then how many connections are left, while there are any', () => {
    const { manager, clock, log, left } = open();
    manager.start('all', false);
    log.splice(0);
    for (const connections of [30, 1, 0, 10]) {
      left.connections = connections;
      clock.turn(DURATION_MS / 10);
    }
    left.connections = 0;
    clock.turn(DURATION_MS);
    const expected = ['30 connections are left', '1 connection is left', '10 connections are left'];
    assert.deepEqual(log, [...expected, 'the drain time of all listeners is over, 0 connections are left']);
    assert.equal(clock.timerCount, 0);
  });

  it('leaves the listeners open where they are to stay', () => {
    const { manager, orders, clock } = open();
    manager.start('all', true);
    clock.turn(DURATION_MS * 2);
    assert.deepEqual(orders, ['drain all']);
  });

  it('can be called off, and all is as it was before it', () => {
    const { manager, orders, published, clock, progress } = open();
    manager.start('inbound', true);
    const callOff = manager.start('all', false);
    // Begun already.
    manager.start('all', false)();
    assert.deepEqual(published.at(-1)!(), { inbound: progress(0), others: progress(0) });
    callOff();
    assert.deepEqual(published.at(-1)!(), { inbound: progress(0), others: null });
    clock.turn(DURATION_MS);
    assert.deepEqual([orders, clock.timerCount], [['drain inbound', 'drain all'], 0]);
    manager.start('all', false);
    assert.equal(clock.timerCount, 2);
  });

  it('is called off when the server stops', () => {
    const { manager, orders, clock } = open();
    manager.start('inbound', false);
    manager.start('all', false);
    manager.close();
    assert.equal(clock.timerCount, 0);
    clock.turn(DURATION_MS);
    assert.deepEqual(orders, ['drain inbound', 'drain all']);
  });
});
