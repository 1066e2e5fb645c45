// The examples of TLS as they stand, on ports and with certificates of their own.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { CertificateFolder } from '../../support/certificates.ts';
import { runProgram } from '../../support/child-process.ts';
import { eventually } from '../../support/eventually.ts';
import { startWeir } from '../../support/weir-process.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../../examples');
const SITES = ['shop.example.com', 'news.example.com'] as const;
/** Where the examples keep keys. */
const KEY_FOLDER = '/etc/weir';

async function portOf(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** @param ports in place of those in the file; the system chooses the others. */
async function startExample(name: string, ports: Readonly<Record<string, number>>, keyFolder = KEY_FOLDER) {
  const configYaml = readFileSync(path.join(EXAMPLES, name), 'utf8')
    .replaceAll(/port_value: (\d+)/g, (_all, port: string) => `port_value: ${ports[port] ?? 0}`)
    .replaceAll(KEY_FOLDER, keyFolder)
    .replace('0.0.0.0', '127.0.0.1');
  return await startWeir({ configYaml });
}

/** @returns head and body, and what the server's certificate is held against is that of `site`. */
async function curl(folder: CertificateFolder, site: string, url: string): Promise<string> {
  const resolve = ['--resolve', `${new URL(url).host}:127.0.0.1`, '--cacert', path.join(folder.path, `${site}.pem`)];
  const { stdout, stderr } = await runProgram('curl', ['-sS', '--noproxy', '*', '-D', '-', ...resolve, url]);
  assert.equal(stderr, '', url);
  return stdout;
}

function assertRedirect(answer: string): void {
  assert.match(answer, /^HTTP\/1\.1 301 .*\r\nlocation: https:\/\/shop\.example\.com:\d+\/basket\r\n/s);
}

it('TLS passes through to services by name, and plain HTTP is sent to https', async (t) => {
  using folder = new CertificateFolder();
  const ports: number[] = [];
  for (const name of SITES) {
    const { certificate: cert, key } = await folder.make(name, { altNames: `DNS:${name}` });
    ports.push(
      await portOf(
        t,
        createHttpsServer({ cert, key }, (_request, response) => void response.end(name)),
      ),
    );
  }
  await using weir = await startExample('tls-passthrough.yaml', { 9443: ports[0]!, 9444: ports[1]! });
  const { port } = (await weir.listeners()).get('tls')!;
  for (const name of SITES) {
    assert.match(await curl(folder, name, `https://${name}:${port}/`), new RegExp(`\r\n\r\n${name}$`));
  }
  assertRedirect(await curl(folder, SITES[0], `http://${SITES[0]}:${port}/basket`));
  await weir.untilStat('tcp.shop.downstream_cx_total', 1);
  await weir.untilStat('tcp.sites.downstream_cx_total', 1);
  await eventually(
    () => / news\.example\.com to 127\.0\.0\.1:\d+, \d+ bytes in /.test(weir.output.stdout),
    'a log line',
  );
});

it('TLS ends here with a certificate for each site, whose upstreams are told of it', async (t) => {
  using folder = new CertificateFolder();
  const ports: number[] = [];
  for (const name of SITES) {
    await folder.make(name, { altNames: `DNS:${name}` });
    const answer: RequestListener = ({ headers }, response) =>
      response.end(`${name} by ${headers['x-forwarded-proto']}`);
    ports.push(await portOf(t, createHttpServer(answer)));
  }
  await using weir = await startExample('tls-termination.yaml', { 9080: ports[0]!, 9081: ports[1]! }, folder.path);
  const { port } = (await weir.listeners()).get('https')!;
  for (const name of SITES) {
    assert.match(await curl(folder, name, `https://${name}:${port}/`), new RegExp(`\r\n\r\n${name} by https$`));
  }
  assertRedirect(await curl(folder, SITES[0], `http://${SITES[0]}:${port}/basket`));
  await weir.untilStat('http.news.downstream_rq_2xx', 1);
});
