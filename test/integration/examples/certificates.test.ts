// The examples of certificates, those that the proxy shows and those that it asks for, as they stand.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { it, type TestContext } from 'node:test';
import { type ConnectionOptions, connect } from 'node:tls';
import { CertificateFolder, type TestCertificate } from '../../support/certificates.ts';
import { runProgram } from '../../support/child-process.ts';
import { eventually } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';

/** @returns common name and kind of key of what a client is shown. */
async function shown(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
  await once(socket, 'secureConnect');
  const certificate = new X509Certificate(socket.getPeerX509Certificate()!.raw);
  socket.end();
  await once(socket.resume(), 'close');
  return `${certificate.subject} ${certificate.publicKey.asymmetricKeyType}`;
}

/** @returns its port. */
async function echo(t: TestContext, name: string): Promise<number> {
  const answer: RequestListener = ({ headers }, response) => {
    const said = ['x-tenant', 'x-forwarded-client-cert'].map((field) => headers[field] ?? '-');
    response.end([name, ...said].join(' '));
  };
  return await portOf(t, createServer(answer));
}

it('a client is shown the certificate of the site that it asks for, of a kind that it knows', async (t) => {
  using folder = new CertificateFolder();
  await folder.make('shop-ecdsa', { altNames: 'DNS:shop.example.com', name: 'shop' });
  await folder.make('shop-rsa', { altNames: 'DNS:shop.example.com', name: 'shop', key: 'rsa' });
  await folder.make('tenants', { altNames: 'DNS:*.tenants.example.com' });
  await folder.make('nobody');
  const ports = { 9080: await echo(t, 'shop'), 9081: await echo(t, 'tenants') };
  await using weir = await startExample('tls-certificates.yaml', ports, folder.path);
  const { port } = (await weir.listeners()).get('https')!;

  const onlyRsa = { sigalgs: 'RSA-PSS+SHA256:RSA+SHA256' };
  assert.equal(await shown(port, { servername: 'shop.example.com' }), 'CN=shop ec');
  assert.equal(await shown(port, { servername: 'shop.example.com', ...onlyRsa }), 'CN=shop rsa');
  assert.equal(await shown(port, { servername: 'shop.example.com', ...onlyRsa, maxVersion: 'TLSv1.2' }), 'CN=shop rsa');
  assert.equal(await shown(port, { servername: 'a.tenants.example.com' }), 'CN=tenants ec');
  assert.equal(await shown(port, { servername: 'tenants.example.com' }), 'CN=nobody ec');
  assert.equal(await shown(port, {}), 'CN=nobody ec');

  const get = async (name: string): Promise<string> => {
    const resolve = ['--resolve', `${name}:${port}:127.0.0.1`];
    return (await runProgram('curl', ['-sSk', '--noproxy', '*', ...resolve, `https://${name}:${port}/`])).stdout;
  };
  assert.equal(await get('shop.example.com'), 'shop - -');
  assert.equal(await get('a.tenants.example.com'), 'tenants a.tenants.example.com -');
  assert.equal(await get('other.example.com'), 'No site of this name is here.\n');
});

it('a service is told who asks, if that is somebody of ours whose certificate stands', async (t) => {
  using folder = new CertificateFolder();
  const authority = await folder.make('authority', { isAuthority: true });
  await folder.make('api', { altNames: 'DNS:api.example.com', issuer: authority });
  const member = (name: string, trust: string): Promise<TestCertificate> =>
    folder.make(name, { altNames: `URI:spiffe://${trust}/${name}`, issuer: authority });
  const alice = await member('alice', 'example.com');
  const stranger = await member('stranger', 'other.example');
  const former = await member('former', 'example.com');
  await folder.revocationList('revoked', authority, [former]);
  await using weir = await startExample('client-certificates.yaml', { 9090: await echo(t, 'api') }, folder.path);
  const listeners = await weir.listeners();

  const get = async (listener: string, place: string, client?: TestCertificate): Promise<string> => {
    const { port } = listeners.get(listener)!;
    const own = client === undefined ? [] : ['--cert', client.certificatePath, '--key', client.keyPath];
    const trust = ['--cacert', authority.certificatePath, '--resolve', `api.example.com:${port}:127.0.0.1`];
    const claim = ['-H', 'x-forwarded-client-cert: URI=spiffe://example.com/root'];
    const url = `https://api.example.com:${port}${place}`;
    const { code, stdout } = await runProgram('curl', ['-sS', '--noproxy', '*', ...trust, ...own, ...claim, url]);
    return code === 0 ? stdout : 'refused';
  };
  const known = /^api - Hash=[0-9a-f]{64};Subject="CN=alice";URI=spiffe:\/\/example\.com\/alice$/;
  assert.match(await get('members', '/', alice), known);
  for (const other of [stranger, former, undefined]) assert.equal(await get('members', '/', other), 'refused');
  assert.equal(await get('everybody', '/public/a', undefined), 'api - -');
  assert.equal(await get('everybody', '/', undefined), '');

  await eventually(
    () => /^spiffe:\/\/example\.com\/alice TLSv1\.3 GET \/ 200$/m.test(weir.output.stdout),
    'a log line',
  );
  await weir.untilStat('http.members.downstream_rq_2xx', 1);
  await weir.untilStat('http.everybody.no_route', 1);
});
