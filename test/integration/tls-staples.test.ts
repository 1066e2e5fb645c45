// OCSP responses stapled to certificates, as openssl's client sees them.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CertificateFolder, type TestCertificate } from '../support/certificates.ts';
import { runProgram } from '../support/child-process.ts';
import { bootstrapOf, pair, tlsListener } from '../support/tls-config.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';

const STAPLED = /OCSP Response Status: successful/;
const NONE = /OCSP response: no response sent/;

let folder: CertificateFolder;
let ca: TestCertificate;
let first: TestCertificate;
let second: TestCertificate;
let good: string;
let expired: string;
let ofEc: TestCertificate;
let ofRsa: TestCertificate;
let weir: WeirProcess;
let ports: Map<string, number>;

/** A response whose time is over; nobody looks at its signature here. */
function expire(file: string): string {
  const bytes = readFileSync(file);
  const times = [...bytes.toString('latin1').matchAll(/\d{14}Z/g)];
  bytes.write('2001', times.at(-1)!.index, 'latin1');
  const to = path.join(folder.path, 'expired.ocsp');
  writeFileSync(to, bytes);
  return to;
}

function stapled(certificate: TestCertificate, file: string): object {
  return { ...pair(certificate), ocsp_staple: { filename: file } };
}

async function ask(listener: string, name = 'a.example', options: readonly string[] = []): Promise<string> {
  const at = `127.0.0.1:${ports.get(listener)}`;
  const named = name === '' ? ['-noservername'] : ['-servername', name];
  const args = ['s_client', '-connect', at, ...named, '-status', '-CAfile', ca.certificatePath, ...options];
  const { stdout, stderr } = await runProgram('openssl', args);
  return stdout + stderr;
}

function serialOf({ certificate }: TestCertificate): string {
  return new X509Certificate(certificate).serialNumber;
}

/** Which certificate a client was shown, and which one the response tells of. */
async function shown(listener: string, name: string, options: readonly string[]): Promise<string> {
  const answer = await ask(listener, name, options);
  const pem = /Server certificate\n(-----BEGIN.*?END CERTIFICATE-----)/s.exec(answer)?.[1];
  if (pem === undefined) return 'refused';
  const nameOf = (serial: string | undefined): string => {
    const all = { first, second, ofEc, ofRsa };
    return Object.entries(all).find(([, own]) => serialOf(own) === serial)?.[0] ?? 'none';
  };
  const told = /Serial Number: ([0-9A-F]+)/.exec(answer)?.[1];
  return `${nameOf(new X509Certificate(pem).serialNumber)} ${nameOf(told)}`;
}

function stat(listener: string, name: string): Promise<number | undefined> {
  return weir.stat(`listener.${listener}.ssl.ocsp_staple_${name}`);
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  first = await folder.make('first', { issuer: ca, altNames: 'DNS:a.example' });
  second = await folder.make('second', { issuer: ca, altNames: 'DNS:b.example' });
  ofEc = await folder.make('of-ec', { issuer: ca, altNames: 'DNS:c.example' });
  ofRsa = await folder.make('of-rsa', { issuer: ca, altNames: 'DNS:c.example', key: 'rsa' });
  const goodEc = await folder.ocspResponse('of-ec', ofEc, ca);
  const goodRsa = await folder.ocspResponse('of-rsa', ofRsa, ca);
  const other = await folder.make('other', { issuer: ca, altNames: 'DNS:d.example', key: 'rsa' });
  const another = await folder.make('another', { issuer: ca, altNames: 'DNS:c.example', key: 'rsa' });
  const altNames = 'DNS:c.example\ntlsfeature=status_request';
  const must = await folder.make('must', { issuer: ca, altNames, key: 'rsa' });
  const ofMust = await folder.ocspResponse('must', must, ca);
  good = await folder.ocspResponse('first', first, ca);
  expired = expire(good);
  const policy = (ocsp_staple_policy: string): object => ({ context: { ocsp_staple_policy } });
  const listeners = [
    tlsListener('good', { common: { tls_certificates: [stapled(first, good)] } }),
    tlsListener('lenient', { common: { tls_certificates: [stapled(first, expired)] } }),
    tlsListener('strict', { common: { tls_certificates: [stapled(first, expired)] }, ...policy('STRICT_STAPLING') }),
    tlsListener('must', { common: { tls_certificates: [stapled(first, good)] }, ...policy('MUST_STAPLE') }),
    tlsListener('types', { common: { tls_certificates: [stapled(ofRsa, goodRsa), stapled(ofEc, goodEc)] } }),
    tlsListener('must-types', {
      common: { tls_certificates: [stapled(ofRsa, goodRsa), stapled(ofEc, goodEc)] },
      ...policy('MUST_STAPLE'),
    }),
    tlsListener('half', { common: { tls_certificates: [stapled(ofRsa, goodRsa), pair(ofEc)] } }),
    tlsListener('of-names', {
      common: { tls_certificates: [stapled(first, good), stapled(ofRsa, goodRsa), stapled(ofEc, goodEc)] },
    }),
    // Both key types have a first certificate for other names.
    tlsListener('by-name', {
      common: {
        tls_certificates: [pair(first), pair(other), stapled(ofRsa, goodRsa), pair(another), stapled(ofEc, goodEc)],
      },
    }),
    tlsListener('must-feature', { common: { tls_certificates: [stapled(must, ofMust), stapled(ofEc, goodEc)] } }),
    tlsListener('pinned', {
      common: {
        tls_certificates: [stapled(ofRsa, goodRsa), stapled(ofEc, goodEc)],
        tls_params: { cipher_suites: ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'] },
      },
    }),
    tlsListener('names', { common: { tls_certificates: [stapled(first, good), pair(second)] } }),
  ];
  weir = await startWeir({ configYaml: bootstrapOf(listeners) });
  ports = new Map([...(await weir.listeners())].map(([name, { port }]) => [name, port]));
});

after(async () => {
  await weir?.stop();
  folder[Symbol.dispose]();
});

describe('an OCSP response', () => {
  it('is stapled for clients that ask', async () => {
    const answer = await ask('good');
    assert.match(answer, STAPLED);
    assert.match(answer, /Cert Status: good/);
    await weir.untilStat('listener.good.ssl.ocsp_staple_responses', 1);
    assert.equal(await stat('good', 'requests'), 1);
  });

  it('is left out when it has expired, or keeps the certificate from being shown', async () => {
    assert.match(await ask('lenient'), NONE);
    await weir.untilStat('listener.lenient.ssl.ocsp_staple_omitted', 1);
    const answer = await ask('strict');
    assert.doesNotMatch(answer, /Certificate chain/);
    await weir.untilStat('listener.strict.ssl.ocsp_staple_failed', 1);
    assert.match(weir.output.stderr, /expired\.ocsp" expired on 2001-/);
    assert.match(await ask('must'), STAPLED);
  });

  it('goes with its own certificate alone', async () => {
    assert.match(await ask('names'), STAPLED);
    assert.match(await ask('names', 'b.example'), NONE);
    assert.equal(await stat('names', 'responses'), 1);
  });

  it('goes with the certificate that a client can verify, where there are keys of several types', async () => {
    const [ec128, ec256] = ['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'];
    const [rsa128, rsa256] = ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384'];
    const tls12 = (cipher: string, ...others: readonly string[]): readonly string[] => [
      '-tls1_2',
      ...['-cipher', cipher],
      ...others,
    ];
    const onlyRsa = ['-sigalgs', 'RSA-PSS+SHA256'];
    const cases: readonly (readonly [listener: string, options: readonly string[], answer: string])[] = [
      ['types', [], 'ofEc ofEc'],
      ['types', onlyRsa, 'ofRsa ofRsa'],
      ['types', tls12(`${rsa128}:${ec128}`), 'ofEc ofEc'],
      ['types', tls12(rsa128), 'ofRsa ofRsa'],
      ['types', tls12(ec128), 'ofEc ofEc'],
      ['types', tls12(`${rsa128}:${ec128}`, '-groups', 'X25519'), 'ofRsa ofRsa'],
      ['types', tls12(`${rsa128}:${ec128}`, '-sigalgs', 'RSA+SHA256'), 'ofRsa ofRsa'],
      // Too old to be certain of: OpenSSL chooses, and nobody knows what in time.
      ['types', tls12('ECDHE-RSA-AES128-SHA256'), 'ofRsa none'],
      ['must-types', tls12('ECDHE-RSA-AES128-SHA256'), 'refused'],
      ['must-types', onlyRsa, 'ofRsa ofRsa'],
      ['half', [], 'ofEc none'],
      ['half', onlyRsa, 'ofRsa ofRsa'],
      ['pinned', tls12(`${rsa128}:${ec128}`), 'ofRsa ofRsa'],
      ['pinned', tls12(`${rsa256}:${ec256}`), 'ofEc ofEc'],
    ];
    for (const [listener, options, answer] of cases) {
      assert.equal(await shown(listener, 'c.example', options), answer, `${listener} ${options.join(' ')}`);
    }
    assert.equal(await stat('must-types', 'failed'), 1);
    // One of the certificates may not go without, and nobody knows whether it is the one.
    assert.equal(await shown('must-feature', 'c.example', tls12('ECDHE-RSA-AES128-SHA256')), 'refused');
    assert.equal(await shown('must-feature', 'c.example', []), 'ofEc ofEc');
    assert.equal(await shown('types', '', []), 'ofEc ofEc');
    assert.equal(await shown('types', '', onlyRsa), 'ofRsa ofRsa');
  });

  it('goes with the certificate of a name, whatever key types other names have', async () => {
    const onlyRsa = ['-sigalgs', 'RSA-PSS+SHA256'];
    assert.equal(await shown('of-names', 'a.example', []), 'first first');
    assert.equal(await shown('of-names', 'c.example', onlyRsa), 'ofRsa ofRsa');
    assert.equal(await shown('of-names', 'a.example', onlyRsa), 'ofRsa ofRsa');
    assert.equal(await shown('by-name', 'c.example', []), 'ofEc ofEc');
    assert.equal(await shown('by-name', 'c.example', onlyRsa), 'ofRsa ofRsa');
    assert.equal(await shown('by-name', 'a.example', []), 'first none');
  });

  it('is not asked for by clients that get a certificate as before', async () => {
    const at = `127.0.0.1:${ports.get('types')}`;
    const { stdout } = await runProgram('openssl', ['s_client', '-connect', at, '-CAfile', ca.certificatePath]);
    assert.match(stdout, /CN ?= ?of-ec/);
  });

  it('is shown with the certificate, and its end as a gauge', async () => {
    const { certificates } = JSON.parse(await weir.admin('/certs'));
    const { valid_from: from, expiration } = certificates[0].cert_chain[0].ocsp_details;
    assert.equal(Date.parse(expiration) - Date.parse(from), 7 * 24 * 3600 * 1000);
    // That of the expired one.
    assert.equal(await weir.stat('server.seconds_until_first_ocsp_response_expiring'), 0);
  });

  it('is refused when it is none, of another certificate, or missing where there must be one', async () => {
    const stapler = path.join(folder.path, 'must.cnf');
    writeFileSync(stapler, 'tlsfeature=status_request\n');
    const must = { ...first, certificatePath: path.join(folder.path, 'must.pem') };
    const renewed = ['-in', first.certificatePath, '-signkey', first.keyPath, '-extfile', stapler];
    await folder.openssl(['x509', ...renewed, '-clrext', '-out', must.certificatePath]);
    const of = (tls_certificates: object[], context: object = {}): object =>
      tlsListener('a', { common: { tls_certificates }, context });
    const configs: [object, RegExp][] = [
      [of([stapled(first, ca.certificatePath)]), /ocsp_staple: ".*ca\.pem" is no OCSP response in DER/],
      [of([stapled(second, good)]), /ocsp_staple: ".*first\.ocsp" tells of another certificate/],
      [of([pair(must)]), /ocsp_staple: is missing for a certificate that says it must be stapled/],
      [
        of([pair(first)], { ocsp_staple_policy: 'MUST_STAPLE' }),
        /MUST_STAPLE needs an ocsp_staple for each certificate/,
      ],
    ];
    for (const [listener, fault] of configs) {
      const { code, stderr } = await runWeir(['--mode', 'validate', '--config-yaml', bootstrapOf([listener])]);
      assert.equal(code, 1);
      assert.match(stderr, fault);
    }
  });
});
