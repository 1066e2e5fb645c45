// The scheme of a secured connection, by the port that its client meant to connect to.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ForwardingEdits } from '../../../../src/data-plane/http/forwarding-edits.ts';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import type { TlsFacts } from '../../../../src/data-plane/network/tls/connection-tls.ts';
import { httpManager } from '../../../support/data-plane.ts';
import { PLAIN_FORWARDING } from '../../../support/plain-manager.ts';

const SCHEME_PORTS = { https: [443], http: [80] };

function isHttps(port: number, isSecured: boolean, fields: Partial<typeof PLAIN_FORWARDING>): boolean {
  const settings = httpManager([], { forwarding: { ...PLAIN_FORWARDING, ...fields } });
  const edits = ForwardingEdits.of(settings, new ProxyHeaders());
  const tls = isSecured ? ({} as TlsFacts) : null;
  return edits!.isHttps({ tls, localAddress: '', localPort: 0, originalDestination: { ip: '192.0.2.1', port } });
}

test('the scheme is that of the port, then that of the connection', () => {
  const byPort = (port: number, isSecured: boolean) => isHttps(port, isSecured, { schemePorts: SCHEME_PORTS });
  assert.deepEqual([byPort(80, true), byPort(443, false)], [false, true]);
  assert.deepEqual([byPort(81, true), byPort(81, false)], [true, false]);
});

test('the scheme is what was ordered, whatever the port', () => {
  assert.equal(isHttps(443, true, { schemePorts: SCHEME_PORTS, scheme: 'http' }), false);
  assert.equal(isHttps(80, false, { schemePorts: SCHEME_PORTS, scheme: 'https' }), true);
});

test('a connection manager that says nothing has no edits', () => {
  assert.equal(ForwardingEdits.of(httpManager([], {}), new ProxyHeaders()), null);
});
