// Secrets by discovery that change under handshakes.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { bootstrap, FORMS, type Form, SECRET, serve } from '../support/discovered-proxy.ts';
import { ANYBODY, certified, from, portOf, secured, untilShown } from '../support/discovered-secrets.ts';
import { getOverTls } from '../support/tls-client.ts';
import { startWeir } from '../support/weir-process.ts';

const [, , CHANGES] = FORMS as [Form, Form, Form];

let folder: CertificateFolder;
let ca: TestCertificate;
let one: TestCertificate;
let two: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  one = await folder.make('one', { issuer: ca, altNames: 'DNS:a.example' });
  two = await folder.make('two', { issuer: ca, altNames: 'DNS:a.example' });
});
after(() => folder[Symbol.dispose]());

describe('secrets from a management server', () => {
  it('change a thousand times under handshakes, none of which fails', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.set(SECRET, '0', [certified('server', one)]);
    serve(plane, '1', [], [secured('in', { tls_certificate_sds_secret_configs: [from(CHANGES, 'server')] })]);
    await using weir = await startWeir({ configYaml: bootstrap(CHANGES, [plane]), args: ['--concurrency', '2'] });
    const port = await portOf(weir, 'in');
    const isOver = { value: false };
    let answers = 0;
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver.value) {
        assert.match(await getOverTls(port, ANYBODY), /200 OK/);
        answers += 1;
      }
    });
    for (let change = 1; change <= 1000; change += 1) {
      plane.set(SECRET, String(change), [certified('server', change % 2 === 0 ? one : two)]);
      assert.equal((await plane.answered(SECRET, String(change))).error_detail, null);
    }
    isOver.value = true;
    await Promise.all(clients);
    await untilShown(weir, 'in', 'one');
    assert.ok(answers > 0);
    assert.equal(await weir.stat('listener.in.ssl.connection_error'), 0);
    assert.equal(await weir.stat('sds.server.update_success'), 1001);
    await weir.untilStat('listener.in.server_ssl_socket_factory.ssl_context_update_by_sds', 1001);
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
  });
});
