// HTTP/2 by the real program: over TLS by ALPN, and the clients that everybody has.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:http2';
import { test } from 'node:test';
import { CertificateFolder } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { answerOf } from '../support/http2-clients.ts';
import { bootstrapOf, connectionManager, pair, tlsListener } from '../support/tls-config.ts';
import { startWeir } from '../support/weir-process.ts';

test('clients speak HTTP/2 by ALPN, and with prior knowledge where there is none', async () => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('server', { altNames: 'DNS:a.example' });
  const plain = {
    name: 'plain',
    address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
    filter_chains: [{ filters: [connectionManager()] }],
  };
  const secured = tlsListener('secured', {
    common: { tls_certificates: [pair(certificate)], alpn_protocols: ['h2', 'http/1.1'] },
  });
  await using weir = await startWeir({ configYaml: bootstrapOf([plain, secured]), args: ['--concurrency', '1'] });
  const ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));

  const session = connect(`https://127.0.0.1:${ports.get('secured')}`, { rejectUnauthorized: false });
  await once(session, 'connect');
  assert.equal(session.alpnProtocol, 'h2');
  const answer = await answerOf(session.request({ ':path': '/' }));
  assert.deepEqual([answer.status, answer.body], [200, 'ok']);
  session.destroy();

  const url = `http://127.0.0.1:${ports.get('plain')}/`;
  const written = ['-s', '-w', ' %{http_version}'];
  assert.equal((await runProgram('curl', [...written, '--http2-prior-knowledge', url])).stdout, 'ok 2');
  assert.equal((await runProgram('curl', [...written, url])).stdout, 'ok 1.1');
  const overTls = `https://127.0.0.1:${ports.get('secured')}/`;
  assert.equal((await runProgram('curl', [...written, '-k', overTls])).stdout, 'ok 2');
  assert.equal((await runProgram('curl', [...written, '-k', '--http1.1', overTls])).stdout, 'ok 1.1');
  await weir.untilStat('http.ingress.downstream_rq_http2_total', 3);
  await weir.untilStat('http.ingress.downstream_rq_http1_total', 2);
  await weir.untilStat('http.ingress.downstream_cx_http2_active', 0);
});
