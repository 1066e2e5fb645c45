import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import type { CheckEvent } from '../../../../../src/control-plane/cluster-manager/health-check/check-state.ts';
import {
  type EventSubject,
  HealthEventLogs,
  renderEvent,
} from '../../../../../src/control-plane/cluster-manager/health-check/event-log.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { Fifo } from '../../../../support/fifo.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { isOpenFile } from '../../../../support/open-files.ts';

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-events-')));
after(() => rmSync(folder, { recursive: true }));

const SUBJECT: EventSubject = {
  clusterName: 'x'.repeat(1000),
  address: { kind: 'ip', ip: '127.0.0.1', port: 80 },
  locality: { region: '', zone: '', subZone: '' },
  checkerKind: 'tcp',
};

function openLogs() {
  const messages: string[] = [];
  const sink = { write: ({ message }: { message: string }) => void messages.push(message) };
  const loggers = new Loggers({ levels: { default: 'info' }, threadId: 0, sink });
  const clock = new ManualClock();
  return { logs: new HealthEventLogs(clock, loggers), loggers, clock, messages };
}

/** With a reader that reads nothing by itself. */
async function openFifo(t: TestContext, name: string): Promise<Fifo> {
  const fifo = await Fifo.make(path.join(folder, name));
  t.after(() => fifo.close());
  fifo.openReader();
  return fifo;
}

const countLines = (text: string): number => text.split('\n').length - 1;

describe('health check events', () => {
  it('go on in a new file when the old one is moved away', async () => {
    const file = path.join(folder, 'events');
    const { logs } = openLogs();
    logs.write([file], SUBJECT, { kind: 'success' });
    renameSync(file, `${file}.1`);
    logs.reopen();
    logs.write([file], SUBJECT, { kind: 'degraded' });
    assert.ok(isOpenFile(file));
    logs.close();
    await eventually(() => !isOpenFile(file), 'the end of the file');
    assert.match(readFileSync(`${file}.1`, 'utf8'), /^\{.*"successful_health_check_event":\{\}\}\n$/);
    assert.match(readFileSync(file, 'utf8'), /^\{.*"degraded_healthy_host":\{\}.*\}\n$/);
  });

  it('leave their file when all who hold it have let go', async () => {
    const file = path.join(folder, 'held');
    const { logs } = openLogs();
    const letGo = logs.hold([file]);
    logs.write([file], SUBJECT, { kind: 'success' });
    assert.ok(isOpenFile(file));
    letGo();
    await eventually(() => !isOpenFile(file), 'the end of the file');
  });

  it('that cannot be written are told of and counted, and the next one tries again', () => {
    const file = path.join(folder, 'missing', 'events');
    const { logs, loggers, messages } = openLogs();
    for (let events = 0; events < 2; events++) logs.write([file], SUBJECT, { kind: 'success' });
    assert.equal(messages.length, 2);
    assert.match(messages[0]!, /^cannot write health check events to .*missing\/events: .*ENOENT/);
    assert.equal(loggers.dropped, 2);
    mkdirSync(path.dirname(file));
    logs.write([file], SUBJECT, { kind: 'success' });
    assert.equal(messages.length, 2);
    assert.match(readFileSync(file, 'utf8'), /^\{.*\}\n$/);
    logs.close();
  });

  it('go on in the old file when its name can no longer be opened', () => {
    const moved = path.join(folder, 'gone');
    mkdirSync(moved);
    const file = path.join(moved, 'events');
    const { logs, loggers, messages } = openLogs();
    logs.write([file], SUBJECT, { kind: 'success' });
    renameSync(moved, `${moved}.1`);
    logs.reopen();
    assert.match(messages[0]!, /^cannot write health check events to .*gone\/events: .*ENOENT/);
    logs.write([file], SUBJECT, { kind: 'degraded' });
    assert.match(readFileSync(path.join(`${moved}.1`, 'events'), 'utf8'), /^\{.*\}\n\{.*degraded.*\}\n$/);
    assert.equal(loggers.dropped, 0);
    logs.close();
  });

  it('wait for a reader that stalls within a bound, and hold up nobody', async (t: TestContext) => {
    const fifo = await openFifo(t, 'stalled');
    const { logs, loggers, clock } = openLogs();
    let written = 0;
    for (; loggers.dropped === 0; written++) logs.write([fifo.path], SUBJECT, { kind: 'success' });
    assert.ok(written > 500, `${written} events`);
    let taken = countLines(fifo.read());
    while (clock.timerCount > 0) {
      clock.turn(1000);
      taken += countLines(fifo.read());
    }
    assert.equal(taken, written - loggers.dropped);
    logs.close();
  });

  it('that wait at the end are counted as lost', async (t: TestContext) => {
    const fifo = await openFifo(t, 'ended');
    fifo.fill();
    const { logs, loggers, clock } = openLogs();
    for (let events = 0; events < 3; events++) logs.write([fifo.path], SUBJECT, { kind: 'success' });
    assert.equal(loggers.dropped, 0);
    logs.close();
    assert.equal(loggers.dropped, 3);
    assert.equal(clock.timerCount, 0);
  });
});

describe('a health check event', () => {
  const before = { health_checker_type: 'TCP', host: renderedIp(), cluster_name: 'web' };
  const behind = {
    metadata: { filter_metadata: {}, typed_filter_metadata: {} },
    locality: { region: 'r', zone: 'z', sub_zone: 's' },
  };
  const time = { timestamp: '2026-01-01T00:00:00.007Z' };
  const subject: EventSubject = {
    clusterName: 'web',
    address: { kind: 'ip', ip: '10.0.0.1', port: 80 },
    locality: { region: 'r', zone: 'z', subZone: 's' },
    checkerKind: 'tcp',
  };
  const render = (event: CheckEvent, fields: Partial<EventSubject> = {}): string =>
    JSON.stringify(renderEvent({ ...subject, ...fields }, event, Date.UTC(2026, 0, 1) + 7));

  function renderedIp(): object {
    const ip = { protocol: 'TCP', address: '10.0.0.1', port_value: 80, resolver_name: '', ipv4_compat: false };
    return { socket_address: ip };
  }

  const cases: readonly { readonly event: CheckEvent; readonly expected: object }[] = [
    {
      event: { kind: 'eject-unhealthy', failureType: 'network-timeout' },
      expected: { ...before, eject_unhealthy_event: { failure_type: 'NETWORK_TIMEOUT' }, ...time, ...behind },
    },
    {
      event: { kind: 'add-healthy', isFirstCheck: false },
      expected: { ...before, add_healthy_event: { first_check: false }, ...time, ...behind },
    },
    {
      event: { kind: 'failure', failureType: 'active', isFirstCheck: true },
      expected: {
        ...before,
        ...time,
        health_check_failure_event: { failure_type: 'ACTIVE', first_check: true },
        ...behind,
      },
    },
    { event: { kind: 'degraded' }, expected: { ...before, ...time, degraded_healthy_host: {}, ...behind } },
    { event: { kind: 'no-longer-degraded' }, expected: { ...before, ...time, no_longer_degraded_host: {}, ...behind } },
    {
      event: { kind: 'success' },
      expected: { ...before, ...time, ...behind, successful_health_check_event: {} },
    },
  ];
  for (const { event, expected } of cases) {
    it(`of the kind ${event.kind} has its fields in the order of their numbers`, () => {
      assert.equal(render(event), JSON.stringify(expected));
    });
  }

  const failures = [
    { failureType: 'active', name: 'ACTIVE' },
    { failureType: 'passive', name: 'PASSIVE' },
    { failureType: 'network', name: 'NETWORK' },
    { failureType: 'network-timeout', name: 'NETWORK_TIMEOUT' },
  ] as const;
  for (const { failureType, name } of failures) {
    it(`calls a failure ${name}`, () => {
      const { eject_unhealthy_event } = JSON.parse(render({ kind: 'eject-unhealthy', failureType }));
      assert.deepEqual(eject_unhealthy_event, { failure_type: name });
    });
  }

  it('names the kind of the check, and a host by its path where it has one', () => {
    const address = { kind: 'pipe', path: '/a', mode: 0o600 } as const;
    const { health_checker_type, host } = JSON.parse(render({ kind: 'success' }, { checkerKind: 'http', address }));
    assert.equal(health_checker_type, 'HTTP');
    assert.deepEqual(host, { pipe: { path: '/a', mode: 0o600 } });
  });
});
