// OCSP responses stapled to certificates, as openssl's client sees them.

import assert from 'node:assert/strict';
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

async function ask(listener: string, name = 'a.example'): Promise<string> {
  const at = `127.0.0.1:${ports.get(listener)}`;
  const args = ['s_client', '-connect', at, '-servername', name, '-status', '-CAfile', ca.certificatePath];
  const { stdout, stderr } = await runProgram('openssl', args);
  return stdout + stderr;
}

function stat(listener: string, name: string): Promise<number | undefined> {
  return weir.stat(`listener.${listener}.ssl.ocsp_staple_${name}`);
}

before(async () => {
  folder = new CertificateFolder();
  ca = await folder.make('ca', { isAuthority: true });
  first = await folder.make('first', { issuer: ca, altNames: 'DNS:a.example' });
  second = await folder.make('second', { issuer: ca, altNames: 'DNS:b.example' });
  good = await folder.ocspResponse('first', first, ca);
  expired = expire(good);
  const policy = (ocsp_staple_policy: string): object => ({ context: { ocsp_staple_policy } });
  const listeners = [
    tlsListener('good', { common: { tls_certificates: [stapled(first, good)] } }),
    tlsListener('lenient', { common: { tls_certificates: [stapled(first, expired)] } }),
    tlsListener('strict', { common: { tls_certificates: [stapled(first, expired)] }, ...policy('STRICT_STAPLING') }),
    tlsListener('must', { common: { tls_certificates: [stapled(first, good)] }, ...policy('MUST_STAPLE') }),
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
