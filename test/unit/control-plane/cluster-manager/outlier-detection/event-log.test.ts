import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import {
  OutlierEventLog,
  renderOutlierEvent,
} from '../../../../../src/control-plane/cluster-manager/outlier-detection/event-log.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import type { OutlierKind } from '../../../../../src/snapshot/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { isOpenFile } from '../../../../support/open-files.ts';

const SUBJECT = {
  clusterName: 'web',
  address: { kind: 'ip', ip: '10.0.0.1', port: 443 },
  ejections: 2,
  sinceLastMs: 30_999,
} as const;
const NOW_MS = Date.parse('2018-12-18T09:00:00Z');
const RATES = { average: 98.7, threshold: 95.2 };

function rendered(type: OutlierKind, rate = 40.9): object {
  return renderOutlierEvent(SUBJECT, { kind: 'eject', type, isEnforced: true, rate, rates: RATES }, NOW_MS);
}

describe('the event of an ejection', () => {
  const common = {
    timestamp: '2018-12-18T09:00:00.000Z',
    secs_since_last_action: '30',
    cluster_name: 'web',
    upstream_url: '10.0.0.1:443',
    action: 'EJECT',
    num_ejections: 2,
    enforced: true,
  };
  const consecutive = { eject_consecutive_event: {} };
  const bySuccessRate = {
    eject_success_rate_event: {
      host_success_rate: 40,
      cluster_average_success_rate: 98,
      cluster_success_rate_ejection_threshold: 95,
    },
  };
  const byPercentage = { eject_failure_percentage_event: { host_success_rate: 40 } };
  const cases: readonly (readonly [OutlierKind, string, object])[] = [
    ['consecutive-5xx', 'CONSECUTIVE_5XX', consecutive],
    ['consecutive-gateway-failure', 'CONSECUTIVE_GATEWAY_FAILURE', consecutive],
    ['consecutive-local-origin-failure', 'CONSECUTIVE_LOCAL_ORIGIN_FAILURE', consecutive],
    ['success-rate', 'SUCCESS_RATE', bySuccessRate],
    ['local-origin-success-rate', 'SUCCESS_RATE_LOCAL_ORIGIN', bySuccessRate],
    ['failure-percentage', 'FAILURE_PERCENTAGE', byPercentage],
    ['local-origin-failure-percentage', 'FAILURE_PERCENTAGE_LOCAL_ORIGIN', byPercentage],
  ];
  for (const [kind, type, reason] of cases) {
    it(`says ${type} and why`, () => {
      assert.equal(JSON.stringify(rendered(kind)), JSON.stringify({ type, ...common, ...reason }));
    });
  }

  it('says nothing of a last action before the first', () => {
    const first = { ...SUBJECT, sinceLastMs: undefined };
    const event = { kind: 'eject', type: 'consecutive-5xx', isEnforced: false, rate: 0, rates: RATES } as const;
    const { secs_since_last_action: _, ...others } = common;
    assert.deepEqual(renderOutlierEvent(first, event, NOW_MS), {
      type: 'CONSECUTIVE_5XX',
      ...others,
      enforced: false,
      ...consecutive,
    });
  });
});

describe('the file of events', () => {
  it('is told of when it cannot be written, and is none without a name', () => {
    const messages: string[] = [];
    const sink = { write: ({ message }: { message: string }) => void messages.push(message) };
    const loggers = new Loggers({ levels: { default: 'info' }, threadId: 0, sink });
    for (const path of ['', '/dev/null/events']) {
      const log = new OutlierEventLog(new ManualClock(), loggers, path);
      log.write(SUBJECT, { kind: 'uneject' });
      log.close();
    }
    assert.equal(messages.length, 1);
    assert.match(messages[0]!, /^cannot write ejections of outliers to \/dev\/null\/events: .*ENOTDIR/);
    assert.equal(loggers.dropped, 1);
  });

  it('goes on in a new file when it has been moved, and is closed at the end', async (t) => {
    const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-ejections-')));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'events');
    const loggers = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });
    const log = new OutlierEventLog(new ManualClock(), loggers, file);
    log.write(SUBJECT, { kind: 'uneject' });
    renameSync(file, `${file}.1`);
    log.reopen();
    log.write({ ...SUBJECT, clusterName: 'db' }, { kind: 'uneject' });
    assert.match(readFileSync(`${file}.1`, 'latin1'), /^\{.*"cluster_name":"web".*\}\n$/);
    assert.match(readFileSync(file, 'latin1'), /^\{.*"cluster_name":"db".*\}\n$/);
    assert.ok(isOpenFile(file));
    log.close();
    await eventually(() => !isOpenFile(file), 'the end of the file');
  });
});

describe('the event of an end', () => {
  it('has no reason', () => {
    assert.equal(
      JSON.stringify(renderOutlierEvent(SUBJECT, { kind: 'uneject' }, NOW_MS)),
      '{"type":"CONSECUTIVE_5XX","timestamp":"2018-12-18T09:00:00.000Z","secs_since_last_action":"30",' +
        '"cluster_name":"web","upstream_url":"10.0.0.1:443","action":"UNEJECT","num_ejections":2,"enforced":false}',
    );
  });
});
