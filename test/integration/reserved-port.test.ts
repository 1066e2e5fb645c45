// What tests and benchmarks rely on whose programs are told their port long before they bind it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'node:test';
import { neverGivenOut, ReservedPort } from '../support/reserved-port.ts';

describe('a reserved port', () => {
  it('is one that the system gives to nobody', async () => {
    const { first, last } = neverGivenOut();
    const server = createServer().listen(0);
    await once(server, 'listening');
    const { port: given } = server.address() as AddressInfo;
    server.close();
    await using reserved = await ReservedPort.take();
    assert.ok(given < first || given > last, `${given} is between ${first} and ${last}`);
    assert.ok(reserved.port >= first && reserved.port <= last, `${reserved.port} is not between ${first} and ${last}`);
  });

  it('is for whoever reserved it alone', { skip: process.platform !== 'linux' }, async () => {
    const reserved = await ReservedPort.take();
    const only = { first: reserved.port, last: reserved.port };
    await assert.rejects(ReservedPort.take(only), /every port of \d+ to \d+ is in use/);
    const server = createServer().listen(reserved.port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');

    await reserved[Symbol.asyncDispose]();
    await using again = await ReservedPort.take(only);
    assert.equal(again.port, reserved.port);
  });

  it('is never one that somebody listens on', async () => {
    const reserved = await ReservedPort.take();
    const server = createServer().listen(reserved.port, '127.0.0.1');
    await once(server, 'listening');
    await reserved[Symbol.asyncDispose]();
    await assert.rejects(ReservedPort.take({ first: reserved.port, last: reserved.port }), /is in use/);
    server.close();
    await once(server, 'close');
  });
});
