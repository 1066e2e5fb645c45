// A fault in what the admin interface does by itself reaches neither the process of whoever embeds a proxy nor the next client: one
// is injected into each kind of event. That there are no others is seen to by test/architecture/imports.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import type { AdminTraffic } from '../../../src/admin/index.ts';
import { eventually } from '../../support/eventually.ts';
import { notedFaults } from '../../support/faults.ts';
import { call, type RunningAdmin, startAdmin } from './fixture.ts';

const NO_TRAFFIC: AdminTraffic = {
  connectionOpened() {},
  connectionRefused() {},
  connectionClosed() {},
  bytesMoved() {},
  requestStarted() {},
  requestEnded() {},
};

function fail(): never {
  throw new Error('injected');
}

/** What the server says to bytes that a client sends; the client goes when it has ended. */
async function say(admin: RunningAdmin, bytes: string): Promise<string> {
  const { hostname, port } = new URL(admin.url);
  const client = connect(Number(port), hostname);
  await once(client, 'connect');
  client.end(bytes);
  return text(client);
}

describe('a fault of the admin interface is contained', () => {
  for (const [event, where] of [
    ['connectionOpened', 'an admin connection'],
    ['connectionClosed', 'counting admin traffic'],
    ['requestEnded', 'counting admin traffic'],
  ] as const) {
    it(`when traffic is told of (${event}), which is served`, async () => {
      const { faults, reports } = notedFaults();
      await using admin = await startAdmin({ faults, traffic: { ...NO_TRAFFIC, [event]: fail } });
      assert.equal((await call(`${admin.url}/ready`)).status, 200);
      await eventually(() => reports.length === 1, 'the fault');
      assert.deepEqual(reports, [`${where}: Error: injected`]);
    });
  }

  it('when a request begins, which gets an answer, be its path readable or not', async () => {
    const { faults, reports } = notedFaults();
    await using admin = await startAdmin({ faults, traffic: { ...NO_TRAFFIC, requestStarted: fail } });
    for (const path of ['/ready', '/%zz']) {
      assert.match(await say(admin, `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`), /^HTTP\/1.1 500 /);
    }
    assert.deepEqual(reports, []);
    const failures = admin.world.records.filter(({ level }) => level === 'error').map(({ message }) => message);
    assert.deepEqual(failures, [
      'admin path "/ready" failed: Error: injected',
      'admin path "/%zz" failed: Error: injected',
    ]);
  });

  it('when the access log is written', async () => {
    const { faults, reports } = notedFaults();
    await using admin = await startAdmin({ faults, accessLog: { write: fail } });
    assert.equal((await call(`${admin.url}/ready`)).status, 200);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['the admin access log: Error: injected']);
  });

  it('when an order is carried out behind its answer', async () => {
    const { faults, reports } = notedFaults();
    await using usual = await startAdmin();
    const { commands } = usual.options;
    await using admin = await startAdmin({ faults, commands: { ...commands, quit: fail } });
    assert.equal((await call(`${admin.url}/quitquitquit`, { method: 'POST' })).status, 200);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['the end of an admin request: Error: injected']);
    assert.equal((await call(`${admin.url}/ready`)).status, 200);
  });
});
