// The example as it stands, on ports of its own.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { CertificateFolder } from '../../support/certificates.ts';
import { runProgram } from '../../support/child-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startWeir } from '../../support/weir-process.ts';

const EXAMPLE = path.join(import.meta.dirname, '../../../examples/tls-passthrough.yaml');

/** Answers with its name. */
async function site(t: TestContext, folder: CertificateFolder, name: string): Promise<number> {
  const { certificate: cert, key } = await folder.make(name, { altNames: `DNS:${name}` });
  const server = createServer({ cert, key }, (_request, response) => void response.end(name));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

it('the example of TLS passthrough leads to services by name, and plain HTTP to https', async (t) => {
  using folder = new CertificateFolder();
  const ports = new Map([
    ['9901', 0],
    ['8443', 0],
    ['9443', await site(t, folder, 'shop.example.com')],
    ['9444', await site(t, folder, 'news.example.com')],
  ]);
  const configYaml = readFileSync(EXAMPLE, 'utf8')
    .replaceAll(/port_value: (\d+)/g, (_all, port: string) => `port_value: ${ports.get(port)}`)
    .replace('0.0.0.0', '127.0.0.1');
  await using weir = await startWeir({ configYaml });
  const { port } = (await weir.listeners()).get('tls')!;
  const curl = async (url: string, ca: string): Promise<string> => {
    const { host, hostname } = new URL(url);
    const resolve = ['--resolve', `${host}:127.0.0.1`, '--cacert', path.join(folder.path, `${ca}.pem`)];
    const { stdout, stderr } = await runProgram('curl', ['-sS', '--noproxy', '*', '-D', '-', ...resolve, url]);
    assert.equal(stderr, '', hostname);
    return stdout;
  };
  for (const name of ['shop.example.com', 'news.example.com']) {
    assert.match(await curl(`https://${name}:${port}/`, name), new RegExp(`\r\n\r\n${name}$`));
  }
  const redirect = await curl(`http://shop.example.com:${port}/basket`, 'shop.example.com');
  assert.match(redirect, /^HTTP\/1\.1 301 .*\r\nlocation: https:\/\/shop\.example\.com:\d+\/basket\r\n/s);
  await weir.untilStat('tcp.shop.downstream_cx_total', 1);
  await weir.untilStat('tcp.sites.downstream_cx_total', 1);
  await eventually(
    () => / news\.example\.com to 127\.0\.0\.1:\d+, \d+ bytes in /.test(weir.output.stdout),
    'a log line',
  );
});
