// The examples of TLS and of HTTP/2 behind the proxy as they stand, on ports and with certificates of their own.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it } from 'node:test';
import { CertificateFolder } from '../../support/certificates.ts';
import { runProgram } from '../../support/child-process.ts';
import { eventually } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';
import { SecureUpstream } from '../../support/secure-upstream.ts';

const EXAMPLES = path.join(import.meta.dirname, '../../../examples');
const SITES = ['shop.example.com', 'news.example.com'] as const;

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
    const answer = await curl(folder, name, `https://${name}:${port}/`);
    assert.match(answer, new RegExp(`^HTTP/2 200 .*\r\n\r\n${name} by https$`, 's'));
  }
  assertRedirect(await curl(folder, SITES[0], `http://${SITES[0]}:${port}/basket`));
  await weir.untilStat('http.news.downstream_rq_2xx', 1);
});

it('two proxies carry what clients of either protocol say over HTTP/2, under TLS in which both prove who they are', async (t) => {
  using folder = new CertificateFolder();
  const authority = await folder.make('authority', { isAuthority: true });
  for (const name of ['near', 'far']) {
    await folder.make(name, { altNames: `DNS:${name}.internal.example`, issuer: authority });
  }
  const stranger = await folder.make('stranger', { altNames: 'DNS:stranger.example', issuer: authority });
  const answer: RequestListener = ({ headers }, response) => response.end(`${headers['x-forwarded-client-cert']}`);
  const service = await portOf(t, createHttpServer(answer));
  await using far = await startExample('double-proxy-far.yaml', { 9090: service }, folder.path);
  const { port: farPort } = (await far.listeners()).get('proxies')!;
  await using near = await startExample('double-proxy-near.yaml', { 8443: farPort }, folder.path);
  const { port } = (await near.listeners()).get('clients')!;
  for (const version of ['--http1.1', '--http2-prior-knowledge']) {
    const { stdout } = await runProgram('curl', ['-sS', version, `http://127.0.0.1:${port}/`]);
    assert.match(stdout, /;DNS=near\.internal\.example$/);
  }
  await far.untilStat('http.proxies.downstream_rq_http2_total', 2);
  await near.untilStat('cluster.far.upstream_cx_http1_total', 0);

  const own = ['--cacert', authority.certificatePath, '--resolve', `far.internal.example:${farPort}:127.0.0.1`];
  const pair = ['--cert', stranger.certificatePath, '--key', stranger.keyPath];
  for (const shown of [[], pair]) {
    const refused = await runProgram('curl', ['-sS', ...own, ...shown, `https://far.internal.example:${farPort}/`]);
    assert.notEqual(refused.code, 0, refused.stdout);
  }
  await far.untilStat('listener.127.0.0.1_0.ssl.fail_verify_no_cert', 1);
  await far.untilStat('listener.127.0.0.1_0.ssl.fail_verify_san', 1);
});

it('hosts are spoken to in HTTP/2 by their choice, by knowledge of it, or as their clients speak', async (t) => {
  using folder = new CertificateFolder();
  const authority = await folder.make('authority', { isAuthority: true });
  const pair = await folder.make('shop', { altNames: 'DNS:shop.example.com', issuer: authority });
  const internal = createHttp2Server((request, response) => void response.end(request.httpVersion));
  const ports: Record<string, number> = { 9090: await portOf(t, internal) };
  // It serves both, by what the first bytes are.
  const first = createHttpServer((request, response) => void response.end(request.httpVersion));
  const either = createServer((socket) => {
    socket.once('readable', () => {
      const bytes = socket.read() as Buffer;
      socket.unshift(bytes);
      (bytes.toString('latin1', 0, 3) === 'PRI' ? internal : first).emit('connection', socket);
    });
  });
  ports['9091'] = await portOf(t, either);
  for (const [chosen, version] of [
    ['h2', 'HTTP/2'],
    ['http/1.1', 'HTTP/1.1'],
  ] as const) {
    const host = await SecureUpstream.start(t, pair, [chosen], ({ protocol, answer }) => answer(protocol));
    await using weir = await startExample('http2-upstreams.yaml', { ...ports, 9443: host.port }, folder.path);
    const { port } = (await weir.listeners()).get('clients')!;
    const get = async (path: string, ...options: string[]): Promise<string> =>
      (await runProgram('curl', ['-sS', ...options, `http://127.0.0.1:${port}${path}`])).stdout;
    assert.equal(await get('/by-alpn'), version);
    assert.equal(await get('/internal'), '2.0');
    assert.equal(await get('/like-clients'), '1.1');
    assert.equal(await get('/like-clients', '--http2-prior-knowledge'), '2.0');
  }
});

it('certificates.sh makes all that the examples read, and they work with it as their pages say', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-example-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const made = await runProgram('sh', [path.join(EXAMPLES, 'certificates.sh'), folder]);
  assert.deepEqual([made.code, made.stderr], [0, '']);
  const wanted = readdirSync(EXAMPLES)
    .filter((file) => file.endsWith('.yaml'))
    .flatMap(
      (file) => readFileSync(path.join(EXAMPLES, file), 'utf8').match(/(?<=filename: \/etc\/weir\/)[\w.-]+/g) ?? [],
    );
  assert.ok(wanted.length > 0);
  assert.deepEqual(
    wanted.filter((file) => !existsSync(path.join(folder, file))),
    [],
  );

  const service = await portOf(
    t,
    createHttpServer((_request, response) => void response.end('here')),
  );
  const ask = async (site: string, port: number, ...options: string[]): Promise<string> => {
    const own = ['--cacert', `${folder}/authority.pem`, '--resolve', `${site}:${port}:127.0.0.1`];
    return (await runProgram('curl', ['-sS', '--noproxy', '*', ...own, ...options, `https://${site}:${port}/`])).stdout;
  };
  for (const [name, listener, site, options] of [
    ['tls-certificates', 'https', 'shop.example.com', []],
    ['tls-certificates', 'https', 'one.tenants.example.com', []],
    ['tls-termination', 'https', 'news.example.com', []],
    [
      'client-certificates',
      'members',
      'api.example.com',
      ['--cert', `${folder}/alice.pem`, '--key', `${folder}/alice.key`],
    ],
  ] as const) {
    const ports = { 9080: service, 9081: service, 9090: service };
    await using weir = await startExample(`${name}.yaml`, ports, folder);
    assert.equal(await ask(site, (await weir.listeners()).get(listener)!.port, ...options), 'here', `${name}: ${site}`);
  }
  await using far = await startExample('double-proxy-far.yaml', { 9090: service }, folder);
  await using near = await startExample(
    'double-proxy-near.yaml',
    { 8443: (await far.listeners()).get('proxies')!.port },
    folder,
  );
  const { port } = (await near.listeners()).get('clients')!;
  assert.equal((await runProgram('curl', ['-sS', `http://127.0.0.1:${port}/`])).stdout, 'here');
});
